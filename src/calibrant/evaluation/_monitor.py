"""Has calibration drifted? Evidence that adds up from window to window."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, inf, log
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ._bets import DIRECTIONS, growth
from ._events import Forecasts, events
from ._table import counted

Direction = Literal["over-confident", "under-confident"]

# Beyond this exponent a float64 is infinite.
_LARGEST = 700.0


@dataclass(frozen=True)
class Watched:
    """What is known after a window.

    - `window`: its place, from 0; `n`: how many events it had.
    - `evidence`: against calibration so far; the bar is one over the rate of false alarms.
    - `alarm`: whether the bar has been reached, in this window or before.
    - `direction`, `since`: what the evidence speaks for, and the window from which on.
    """

    window: int
    n: int
    evidence: float
    alarm: bool
    direction: Direction
    since: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class CalibrationMonitor:
    r"""Watch predictions window by window, for as long as you like, and rarely cry wolf.

    While events happen as often as their confidence says, give or take `tolerance`, the chance
    that an alarm is *ever* raised is at most `false_alarms`: over all windows together, however
    many there will be and whenever one looks.

    Gamblers play against that claim. Gambler $k$ says that an event of confidence $C$ really has
    the chance $q_k(C)$, its log-odds shifted or scaled by a fixed amount, and multiplies its
    stake by the ratio of what either predicts,

    $$\frac{q_k(C)^Y \, (1 - q_k(C))^{1 - Y}}{C'^{\,Y} \, (1 - C')^{1 - Y}},$$

    where $C'$ is $C$ moved by the tolerance towards $q_k$. If the claim holds no gambler can
    expect to gain. Window $j$ starts with the share $\gamma_j = 1 / (j (j + 1))$ of the capital
    spread over all gamblers, so that a drift is noticed whenever it begins:

    $$M_t = \frac{1}{t + 1} + \sum_{j \le t} \gamma_j \frac1K \sum_k \prod_{s = j}^t L_{sk},$$

    with $L_{sk}$ the factors of window $s$ multiplied. By Ville's inequality the total $M_t$,
    which starts at one, ever reaches $1 / \alpha$ with a chance of at most $\alpha$. It is exact
    for windows of any size, and the size may depend on the past.

    - `false_alarms`: $\alpha$.
    - `tolerance`: gaps between confidence and frequency that are nobody's worry. With zero, a
      model that is off by a hair raises an alarm sooner or later, and rightly so.

    The confidences must be what was said before the outcomes were known, and events must follow
    the order of windows; within a window the order is irrelevant.

    >>> rng = torch.Generator().manual_seed(0)
    >>> monitor = CalibrationMonitor()
    >>> for day in range(6):
    ...     confidence = 0.5 + 0.5 * torch.rand(1_000, generator=rng)
    ...     drift = 0.15 if day >= 3 else 0.0
    ...     outcome = torch.rand(1_000, generator=rng) < confidence - drift
    ...     found = monitor.update((confidence, outcome))
    ...     print(day, found.alarm)
    0 False
    1 False
    2 False
    3 True
    4 True
    5 True
    >>> found.direction, found.since
    ('over-confident', 3)
    >>> monitor
    CalibrationMonitor(6 windows, over-confident since 3, alarm in 3)

    Arnold, Henzi & Ziegel, "Sequentially Valid Tests for Forecast Calibration", Annals of Applied
    Statistics 2023; Shin, Ramdas & Rinaldo, "E-detectors: A Nonparametric Framework for
    Sequential Change Detection", NEJSDS 2024; Ville, "Étude critique de la notion de collectif",
    1939.
    """

    def __init__(self, *, false_alarms: float = 0.05, tolerance: float = 0.02) -> None:
        if not 0 < false_alarms < 1:
            raise ValueError(
                f"false_alarms must lie between 0 and 1; got {false_alarms}. Usual is 0.05."
            )
        if not 0 <= tolerance < 0.5:
            raise ValueError(
                f"tolerance must lie between 0 and a half; got {tolerance}. Usual is 0.02."
            )
        self.false_alarms, self.tolerance = false_alarms, tolerance
        self.windows: list[Watched] = []
        self._growth: list[Tensor] = []
        self._fortunes = torch.full((len(DIRECTIONS),), -inf, dtype=torch.float64)
        # Of each gambler: the gain from the start that would have been the luckiest, and which.
        self._luck = torch.zeros(len(DIRECTIONS), dtype=torch.float64)
        self._start = torch.zeros(len(DIRECTIONS), dtype=torch.long)

    @property
    def bar(self) -> float:
        """The evidence that is an alarm."""
        return 1 / self.false_alarms

    @property
    def alarm(self) -> Watched | None:
        """The window that raised it; `None` while there is none."""
        return next((each for each in self.windows if each.alarm), None)

    def __repr__(self) -> str:
        if not self.windows:
            return f"CalibrationMonitor(no window yet, alarm at evidence {self.bar:.4g})"
        seen = counted(len(self.windows), "window")
        if (raised := self.alarm) is not None:
            found = f"{raised.direction} since {raised.since}, alarm in {raised.window}"
            return f"CalibrationMonitor({seen}, {found})"
        told = counted(sum(each.n for each in self.windows), "event")
        evidence = f"evidence {self.windows[-1].evidence:.3g} of {self.bar:.4g}"
        return f"CalibrationMonitor({seen}, {told}, {evidence}, no alarm)"

    def update(self, forecasts: Forecasts) -> Watched:
        """Add the next window.

        - `forecasts`: predictions, whose top label is judged, or a pair `(confidence, outcome)`.
        """
        confidence, outcome = events(forecasts)
        return self.advance(growth(confidence, outcome, self.tolerance), len(confidence))

    def advance(self, gained: Float[Tensor, " gamblers"], n: int) -> Watched:
        """Add a window of which only the gamblers' gains are known: the sum over its parts."""
        place = len(self.windows) + 1
        stake = torch.tensor(-log(place * (place + 1)), dtype=torch.float64)
        self._growth.append(gained.double().cpu())
        self._fortunes = torch.logaddexp(self._fortunes, stake) + self._growth[-1]
        played = torch.logsumexp(self._fortunes, dim=0).item() - log(len(self._fortunes))
        evidence = exp(min(played, _LARGEST)) + 1 / (place + 1)
        direction, since = self._strongest()
        before = bool(self.windows) and self.windows[-1].alarm
        alarm = before or evidence >= self.bar
        self.windows.append(Watched(place - 1, n, evidence, alarm, direction, since))
        return self.windows[-1]

    def _strongest(self) -> tuple[Direction, int]:
        """Which way the luckiest gambler bets, and the start that was luckiest."""
        # Whoever has lost all that was won since the last start had better begin anew.
        self._start[self._luck <= 0] = len(self.windows)
        self._luck = self._luck.clamp(min=0) + self._growth[-1]
        gambler = int(self._luck.argmax())
        direction: Direction = "over-confident" if DIRECTIONS[gambler] < 0 else "under-confident"
        return direction, int(self._start[gambler])

    def to_dict(self) -> dict[str, Any]:
        """All there is to remember until the next window, as plain numbers."""
        return {
            "false_alarms": self.false_alarms,
            "tolerance": self.tolerance,
            "windows": [
                {"n": each.n, "growth": gained.tolist()}
                for each, gained in zip(self.windows, self._growth, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "CalibrationMonitor":
        """Go on from what `to_dict` gave."""
        monitor = cls(false_alarms=kept["false_alarms"], tolerance=kept["tolerance"])
        for window in kept["windows"]:
            monitor.advance(torch.tensor(window["growth"], dtype=torch.float64), window["n"])
        return monitor

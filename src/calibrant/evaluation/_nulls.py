"""Is it calibrated? Four tests that hold the confidences fixed and doubt the outcomes."""

from dataclasses import asdict, dataclass
from math import erfc, sqrt
from typing import Any

import torch
from torch import Tensor

from .._checks import check_count, check_seed
from ..measures import esd
from ..measures._order import Ascending
from . import _table as table
from ._events import Forecasts, events, of_one_argument
from ._null_laws import EXACT_UP_TO, beyond_range, beyond_supremum, draw_null, ends_of_ties

# Of less variance a single outcome is a step that a Brownian motion does not have.
_BROWNIAN = 512


@dataclass(frozen=True)
class CalibrationTest:
    """One test of the four.

    - `statistic`: how far the outcomes are from the confidences, in the test's own unit.
    - `p_value`: how often a calibrated model would show a statistic as extreme.

    >>> CalibrationTest(statistic=0.1, p_value=0.001).p_value < 0.05
    True
    """

    statistic: float
    p_value: float


@dataclass(frozen=True, repr=False)
class CalibrationTests:
    """Four tests of one claim: events happen as often as their confidence says; printed, a table.

    Each p-value stands alone. To act on the least of the four, compare it with a quarter of
    the level.

    - `ks`, `kuiper`, `spiegelhalter`, `esd`: the tests, as `calibration_tests` defines them.
    - `n`: how many samples. `draws`: of the null.
    """

    ks: CalibrationTest
    kuiper: CalibrationTest
    spiegelhalter: CalibrationTest
    esd: CalibrationTest
    n: int
    draws: int

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, by the name of the test."""
        return asdict(self)

    def __repr__(self) -> str:
        lines = [f"{'test':<14}{'statistic':>12}{'p-value':>12}"]
        for name, test in vars(self).items():
            if isinstance(test, CalibrationTest):
                statistic, p = table.number(test.statistic), table.p_value(test.p_value)
                lines.append(f"{name:<14}{statistic:>12}{p:>12}")
        return "\n".join(lines)


@of_one_argument
def calibration_tests(
    forecasts: Forecasts, *, draws: int = 10_000, seed: int = 0
) -> CalibrationTests:
    r"""Test whether events happen as often as their confidence says.

    Given the confidences, the outcomes of a calibrated model are independent coins. With
    $D_c = \sum_{i : C_i \le c} (Y_i - C_i)$, a small p-value says that these are not:

    - `ks`: $\max_c |D_c| / n$, the largest gap of the running sums.
    - `kuiper`: $(\max_c D_c - \min_c D_c) / n$ with $D_0 = 0$ among them; it sees gaps that
      change sign as well as those that do not.
    - `spiegelhalter`: $\sum (Y_i - C_i)(1 - 2 C_i) / \sqrt{\sum (1 - 2 C_i)^2 C_i (1 - C_i)}$,
      normal in the limit; two-sided, the others one-sided. Blind where all confidences are
      one half: then its p-value is 1.
    - `esd`: the unbiased estimate, which is zero on average.

    It takes:

    - `forecasts`: predictions, whose top label is judged, or a pair `(confidence, outcome)`.
    - `draws`, `seed`: of the null of `ks`, `kuiper` and `esd`, which is drawn from coins with
      the given chances, so that ties and small samples are right by construction: a p-value
      is $(1 + \#\{\ge\}) / (1 + \mathrm{draws})$.

    Beyond 16,384 distinct confidences the null is drawn with neighbouring ones as ties. If then
    also $V = \sum C_i (1 - C_i)$ is 512 or more, $D / \sqrt V$ is as good as a Brownian motion, and
    `ks` and `kuiper` use the laws of its supremum and range.

    Weights are not supported. A weight that knows what happened, as where
    wrong answers were sampled more often than right ones, makes the coins other than their
    confidences say. Where weights are counts of independent events, repeat each event; where not,
    see whether the interval of `ks_error` begins above zero in `evaluate`, which counts
    weights of every kind. See docs/decisions/weights.md.

    A confidence of exactly 0 or 1 leaves nothing to chance. Where all are such, calibration allows
    no statistic but zero, so that every other has a p-value of 0 (`esd` is zero also after a single
    miss); where none was contradicted there is nothing to test, which is refused. Beside ordinary
    confidences a miss of a certain one counts as a gap of 1 and no more, since a 1 is often a
    rounding of a little less: one among thousands may pass, many do not.

    >>> sure = torch.full((200,), 0.9)
    >>> right = (torch.arange(200) % 5 != 0).float()  # four in five
    >>> print(calibration_tests((sure, right), draws=999))
    test             statistic     p-value
    ks                  0.1000      0.0010
    kuiper              0.1000      0.0010
    spiegelhalter       4.7140    < 0.0001
    esd                 0.0092      0.0010

    Arrieta-Ibarra et al., "Metrics of Calibration for Probabilistic Predictions", JMLR 2022
    (running sums); Spiegelhalter, "Probabilistic Prediction in Patient Management and Clinical
    Trials", Statistics in Medicine, 1986; Yoon et al., ICLR 2023 (ESD).
    """
    check_count("draws", draws, usual=10_000)
    check_seed(seed)
    draws = int(draws)
    given, outcome = events(forecasts)
    confidence = given.double()
    n, variance = len(given), confidence * (1 - confidence)
    certain = not bool(variance.any())
    if n < 3 or (certain and torch.equal(confidence, outcome)):
        raise ValueError(
            "a test of calibration needs at least three samples and a confidence between 0 and "
            f"1; got {n} samples from {confidence.min():g} to {confidence.max():g}."
        )
    ascending = Ascending.of(confidence)
    running = (outcome - confidence)[ascending.source].cumsum(0)
    null = draw_null(confidence.numpy(), draws=draws, seed=seed)

    def drawn(name: str, statistic: float) -> float:
        if certain:  # every draw would be zero: another value is not rare but impossible
            return 1.0 if statistic == 0 else 0.0
        # A draw that repeats what was observed counts, however its sums were rounded.
        as_large = int((getattr(null, name) >= statistic - 1e-12).sum())
        return (1 + as_large) / (1 + draws)

    ks, kuiper = _extent(running[ascending.last_tied])
    scale = sqrt(variance.sum().item())
    if len(confidence.unique()) > EXACT_UP_TO and scale**2 >= _BROWNIAN:
        p_values = beyond_supremum(ks / scale), beyond_range(kuiper / scale)
    else:
        # Compared where the draws look, which may be at runs of neighbours.
        seen = _extent(running[torch.from_numpy(ends_of_ties(confidence.numpy()))])
        p_values = drawn("ks", seen[0] / n), drawn("kuiper", seen[1] / n)
    observed = esd(confidence, outcome).item()
    return CalibrationTests(
        ks=CalibrationTest(ks / n, p_values[0]),
        kuiper=CalibrationTest(kuiper / n, p_values[1]),
        spiegelhalter=_spiegelhalter(confidence, outcome),
        esd=CalibrationTest(observed, drawn("esd", observed)),
        n=n,
        draws=draws,
    )


def _extent(running: Tensor) -> tuple[float, float]:
    """How far running sums go from zero, and from end to end."""
    high, low = max(running.max().item(), 0.0), min(running.min().item(), 0.0)
    return max(high, -low), high - low


def _spiegelhalter(confidence: Tensor, outcome: Tensor) -> CalibrationTest:
    tilt = 1 - 2 * confidence
    gap = ((outcome - confidence) * tilt).sum()
    spread = (tilt.square() * confidence * (1 - confidence)).sum().sqrt()
    # Without spread a gap is that of certainties which were contradicted: infinitely far off.
    z = float(torch.where((spread > 0) | (gap != 0), gap / spread, 0))
    return CalibrationTest(z, erfc(abs(z) / sqrt(2)))

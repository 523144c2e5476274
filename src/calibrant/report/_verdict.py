"""The answer in a sentence: does it claim too much, too little, or what it keeps?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..evaluation import CalibrationTests, Estimate
from ..evaluation._table import spoken_p
from ._bins import Bin

_AT_ODDS = (
    "The interval leaves out 0, but the test, which looks at every confidence and decides, "
    "does not find more than chance. "
)

Kind = Literal["over", "under", "mixed", "none"]


@dataclass(frozen=True)
class Verdict:
    """Over- or under-confident, by how much, and whether it could be chance.

    - `kind`: `"over"`, `"under"`, `"mixed"` where both occur and cancel, or `"none"`.
    - `sentence`: the same for a person.
    - `overconfidence`, `low`, `high`: mean confidence less accuracy, with its interval.
    - `p_value`: how often a calibrated model looks as far off, by Kuiper's test; none where the
      test cannot be made.
    """

    kind: Kind
    sentence: str
    overconfidence: float
    low: float
    high: float
    p_value: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def verdict(
    rows: Mapping[str, Estimate], tests: CalibrationTests | None, bins: Sequence[Bin], level: float
) -> Verdict:
    """One test decides whether there is anything to say; the interval says in which direction.

    - `rows`: the numbers of the model. `tests`: none where they cannot be made.
    - `bins`: of the reliability diagram, for where the model is furthest off.
    """
    gap = rows["overconfidence"]
    p = None if tests is None else tests.kuiper.p_value
    clear = gap.low > 0 or gap.high < 0
    off = clear if p is None else p < 1 - level
    # What never leans the other way cannot cancel: certainty that was contradicted but once.
    one_way = clear or len({one.gap > 0 for one in bins if one.gap != 0}) == 1
    kind: Kind = "none"
    if off:
        kind = ("over" if gap.value > 0 else "under") if one_way else "mixed"
    claims = (
        f"it claims {rows['mean_confidence'].value:.1%} on average and is right "
        f"{rows['accuracy'].value:.1%} of the time"
    )
    chance = "not tested" if p is None else f"Kuiper's test {spoken_p(p)}"
    ends = (-gap.high, -gap.low) if kind == "under" else (gap.low, gap.high)
    interval = f"{100 * level:g}% interval {points(ends[0])} to {points(ends[1])}; {chance}"
    if kind in ("over", "under"):
        far = f"{100 * abs(gap.value):.1f} points"
        said = f"{kind.capitalize()}-confident by {far} ({interval}): {claims}."
    elif kind == "mixed":
        said = (
            f"Miscalibrated in both directions, which cancel on average: {claims} "
            f"(difference {points(gap.value)} points, {interval}). {_furthest(bins)}"
        )
    else:
        found = "Not clearly miscalibrated" if clear else "No miscalibration found"
        said = (
            f"{found}: {claims} (difference {points(gap.value)} points, {interval}). "
            f"{_AT_ODDS if clear else ''}"
            f"Its expected calibration error is at most {rows['ece'].high:.3f}."
        )
    return Verdict(kind, said, gap.value, gap.low, gap.high, p)


def _furthest(bins: Sequence[Bin]) -> str:
    worst = max(bins, key=lambda one: one.mass * abs(one.gap))
    way = "claims too much" if worst.gap > 0 else "claims too little"
    return (
        f"It {way} most around confidence {worst.confidence:.2f}, where it is right "
        f"{worst.accuracy:.1%} of {worst.count:,} times."
    )


def points(share: float) -> str:
    """A share in points of a hundred, with a true minus sign.

    >>> points(-0.0312)
    '−3.1'
    """
    return f"{100 * share:z.1f}".replace("-", "\N{MINUS SIGN}")

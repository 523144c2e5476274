"""The wrong answers it was surest of."""

from collections.abc import Sequence
from dataclasses import dataclass

from ._models import Told, named


@dataclass(frozen=True)
class Mistake:
    """A wrong answer: the row it stands in (counted from 0), what was said and what was true."""

    row: int
    sample: str
    said: str
    true: str
    confidence: float


def mistakes_of(
    told: Told, names: Sequence[str], samples: Sequence[object] | None, most: int
) -> list[Mistake]:
    """The surest first, tied ones in the order of their rows.

    - `names`: of the classes. `samples`: a name for each row, such as the file of an image.
    """
    if samples is not None and len(samples) != len(told):
        raise ValueError(
            f"sample_names must hold one name per sample, {len(told)} in all; got {len(samples)}."
        )
    wrong = (told.outcome == 0).nonzero()[:, 0]
    surest = told.confidence[wrong].argsort(descending=True, stable=True)[:most]
    found = []
    for row in wrong[surest].tolist():
        pair = ("", "")
        if told.predicted is not None and told.labels is not None:
            pair = (names[int(told.predicted[row])], names[int(told.labels[row])])
        sample = "" if samples is None else named(samples[row])
        found.append(Mistake(row, sample, *pair, told.confidence[row].item()))
    return found

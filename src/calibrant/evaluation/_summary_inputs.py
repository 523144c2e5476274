"""What a summary is made from, merged with and given; one sentence where it is something else."""

from numbers import Integral
from typing import TYPE_CHECKING

from ..predictions import Predictions

if TYPE_CHECKING:
    from ._summary import Summary


# Of eight bytes each: a gigabyte.
_MOST_NUMBERS = 2**27


def check_sizes(classes: object, bins: object, cells: object) -> None:
    """Whole numbers; no classes for events."""
    if classes is not None and not _is_whole(classes, at_least=2):
        raise ValueError(
            f"classes must be a whole number, at least 2, or None for events; got {classes!r}. "
            "Pass how many classes there are, such as logits.shape[1]."
        )
    for name, value, usual in (("bins", bins, 15), ("cells", cells, 8192)):
        if not _is_whole(value, at_least=1):
            raise ValueError(
                f"{name} must be a whole number, at least 1; got {value!r}. Usual is {usual}."
            )


def check_fits(classes: int | None, bins: int, cells: int) -> None:
    """A summary is small whatever it has seen, so that it cannot have any number of bins."""
    numbers = 5 * (cells + bins) + 2 * 3 * (classes or 0) * bins
    if numbers > _MOST_NUMBERS:
        raise ValueError(
            f"a summary must hold at most {_MOST_NUMBERS:,} numbers; {bins:,} bins and {cells:,} "
            f"cells{f' of {classes:,} classes' if classes else ''} take {numbers:,}. Use fewer."
        )


def _is_whole(value: object, *, at_least: int) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and int(value) >= at_least  # type: ignore[call-overload]


def check_addable(predictions: object, classes: int | None) -> None:
    """Predictions of as many classes, every one of which counts once."""
    if not isinstance(predictions, Predictions):
        right = "add_events(confidence, outcome)" if classes is None else "update(logits, labels)"
        raise TypeError(
            f"predictions must be Predictions; got {type(predictions).__name__}. For numbers use "
            f"{right}, and for another summary merge."
        )
    if predictions.weights is not None:
        raise ValueError("a summary counts every sample once; got weights. Leave them out.")
    if classes is None:
        raise ValueError(
            "a summary of events takes add_events(confidence, outcome); got predictions. "
            f"Make a Summary({predictions.classes}) for them."
        )
    if predictions.classes != classes:
        raise ValueError(
            f"predictions must have {classes} classes, like the summary; "
            f"got {predictions.classes}. Make a Summary({predictions.classes}) for them."
        )


def check_mergeable(one: "Summary", other: object) -> None:
    """Another summary with the same settings."""
    if not isinstance(other, type(one)):
        raise TypeError(
            f"a summary merges with another Summary; got {type(other).__name__}. For several, "
            "merge one after the other: functools.reduce(Summary.merge, summaries)."
        )
    mine, theirs = ((s.classes, s.bins, s.cells) for s in (one, other))
    if mine != theirs:
        raise ValueError(
            "summaries must share classes, bins and cells to merge; "
            f"got {mine} and {theirs}. Make them with the same settings."
        )

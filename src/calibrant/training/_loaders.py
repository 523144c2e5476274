"""What a loader must be like before the first step, and the sentence if it is not."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ._batches import labels_of
from ._parallel import gathered
from ._random import undisturbed


def check_loader(
    name: str,
    loader: Iterable[Any],
    *,
    together: bool,
    ignore_index: int | None = None,
    fewest: int = 0,
    classes: int = 2,
) -> None:
    """A loader that can be gone through again, is not empty, and knows more than one class.

    - `ignore_index`: a label that is none; negative ones are none in any case.
    - `fewest`: samples that the first batch with labels must have, those of all processes together.
    - `classes`: that its labels must name, 2 or 1.

    Reads one batch, and more only while too few classes are seen. Processes that train
    `together` come to one verdict, since one that stops alone leaves the others waiting.
    """
    if not isinstance(loader, Iterable):
        raise TypeError(
            f"{name} must yield batches; got {type(loader).__name__}. Wrap a data set in a "
            "DataLoader."
        )
    if isinstance(loader, Iterator):
        raise TypeError(
            f"{name} must begin anew at each epoch; got {type(loader).__name__}, which runs out. "
            "Pass a DataLoader or a list of batches."
        )
    ranks = gathered(tuple(_look(loader, ignore_index, classes)), together)
    batches, lows, highs, told, firsts = zip(*ranks, strict=True)
    low, high = min(lows), max(highs)
    if min(batches) == 0:
        raise ValueError(
            f"{name} must yield at least one batch; got none. With drop_last=True it needs a whole "
            "batch of samples: lower batch_size, or hold out more of them."
        )
    if not all(told):
        return
    if high - low < classes - 1:
        wanted = "two classes or more" if classes == 2 else "a class"
        raise ValueError(
            f"labels of {name} must name {wanted}; "
            + ("got none at all. " if low > high else f"got {low:g} for every sample. ")
            + "Check how the data set is read."
        )
    if sum(firsts) < fewest:
        raise ValueError(
            f"batches of {name} must hold at least {fewest} samples, for calibration belongs to "
            f"many of them; got {sum(firsts)} in the first. Raise batch_size."
        )


class _Seen(NamedTuple):
    """What a look at a loader found: batches, extreme labels, how many the first batch has."""

    batches: int = 0
    low: float = float("inf")
    high: float = -float("inf")
    told: bool = True
    first: int = 0


def _look(loader: Iterable[Any], ignore_index: int | None, classes: int) -> _Seen:
    seen, ignored = _Seen(), -1 if ignore_index is None else ignore_index
    with undisturbed(loader):
        for batch in loader:
            seen = seen._replace(batches=seen.batches + 1)
            labels = labels_of(batch)
            if labels is None or labels.is_floating_point():
                return seen._replace(told=False)
            kept = labels[(labels >= 0) & (labels != ignored)]
            if kept.numel():
                seen = seen._replace(
                    low=min(seen.low, kept.min().item()),
                    high=max(seen.high, kept.max().item()),
                    first=seen.first or kept.numel(),
                )
            if seen.high - seen.low >= classes - 1:
                break
    return seen


def check_same_lengths(lengths: Sequence[int | None], together: bool) -> None:
    """As many batches for each process, or the one that has more of them would wait for ever."""
    everyone = gathered(list(lengths), together)
    if any(own != everyone[0] for own in everyone):
        raise ValueError(
            "loaders must have as many batches in every process that trains the model; got "
            f"{' and '.join(str(own) for own in everyone)}. Use a DistributedSampler."
        )


def check_workers(loader: object) -> None:
    """Workers that begin anew with every pass, as a run that goes on must begin them."""
    if getattr(loader, "persistent_workers", False):
        raise ValueError(
            "loaders must start their workers anew with every epoch where there is a checkpoint, "
            "since random numbers that workers keep to themselves cannot be found again; got "
            "persistent_workers=True. Leave it out, or checkpoint."
        )

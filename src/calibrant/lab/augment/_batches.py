"""Batches straight from tensors that are already on the device."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from .._samples import Samples
from ._augmentation import Augmentation


class Batches:
    """Pairs of inputs and labels, in a new order and newly augmented at each pass.

    Everything stays on the device: a small data set fits there whole, and nothing is fetched,
    decoded or copied while training. `fit`, `fit_interleaved` and `fit_meta` take it as a loader.

    - `samples`: what there is.
    - `size`: of a batch; the last may be smaller.
    - `augment`: turns stored bytes into floats; `None` gives inputs as they are stored.
    - `generator`: order and augmentation are drawn from it, all at the beginning of a pass; on a
      CPU, so that they are the same whatever the device. Each loader needs its own, and then a
      run that is resumed sees the batches it would have seen. Without one they come in the order
      in which they are stored and are not moved about: the way to judge a model.
    - `device`: to which samples go first, by default where they are.
    - `drop_last`: whether to leave out a last batch that is smaller.
    - `groups`: a name in `samples.groups`, to give the group of each sample as a third part.

    >>> samples = Samples(torch.zeros(10, 1, 28, 28, dtype=torch.uint8), torch.arange(10))
    >>> augment = Augmentation(mean=(0.5,), std=(0.5,), padding=4)
    >>> batches = Batches(samples, 4, augment, torch.Generator().manual_seed(0))
    >>> len(batches), [labels.tolist() for _, labels in batches]
    (3, [[4, 1, 7, 5], [3, 9, 0, 8], [6, 2]])
    """

    def __init__(
        self,
        samples: Samples,
        size: int,
        augment: Augmentation | None = None,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        *,
        drop_last: bool = False,
        groups: str | None = None,
    ) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, samples in a batch; got {size}.")
        if groups is not None and groups not in samples.groups:
            there = ", ".join(samples.groups) or "none"
            raise ValueError(f"groups must be those the data have: {there}; got {groups!r}.")
        self.samples = samples if device is None else samples.to(device)
        self.size, self.augment, self.generator = size, augment, generator
        self.drop_last, self.groups = drop_last, groups

    def __len__(self) -> int:
        whole, rest = divmod(len(self.samples), self.size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        order, draws = self._drawn()
        for start in range(0, len(self) * self.size, self.size):
            here = slice(start, start + self.size)
            # Without an order there is no index to gather by: a slice is a view.
            chosen = self.samples[here] if order is None else self.samples[order[here]]
            inputs = chosen.inputs
            if self.augment is not None:
                inputs = self.augment(inputs, None if draws is None else draws[here])
            if self.groups is None:
                yield inputs, chosen.labels
            else:
                yield inputs, chosen.labels, chosen.groups[self.groups]

    def _drawn(self) -> tuple[Tensor | None, Tensor | None]:
        """The order of this pass and what its augmentation needs, on the samples' device."""
        if self.generator is None:
            return None, None
        n, device = len(self.samples), self.samples.labels.device
        where = self.generator.device
        order = torch.randperm(n, generator=self.generator, device=where).to(device)
        if self.augment is None or not self.augment.is_random:
            return order, None
        return order, self.augment.draw(n, self.generator).to(device)

"""What a data set holds, in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs and the class of each.

    - `inputs`: one row per sample: images as bytes, channels first; token numbers; or floats.
    - `labels`: the index of the true class of each; -1 where no class is right.
    - `groups`: by name, which group each sample belongs to, such as `sex`.

    >>> digits = Samples(torch.zeros(4, 1, 28, 28, dtype=torch.uint8), torch.tensor([7, 2, 1, 0]))
    >>> len(digits), digits[torch.tensor([0, 3])].labels.tolist()
    (4, [7, 0])
    """

    inputs: Tensor
    labels: Tensor
    groups: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {"inputs": len(self.inputs)}
        lengths |= {name: len(group) for name, group in self.groups.items()}
        if self.labels.ndim != 1 or any(n != len(self.labels) for n in lengths.values()):
            raise ValueError(
                "labels must hold one class index per row of inputs and of every group; got "
                f"shape {tuple(self.labels.shape)} and {lengths}."
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: Tensor | slice) -> "Samples":
        """Those at the given places."""
        groups = {name: group[chosen] for name, group in self.groups.items()}
        return Samples(self.inputs[chosen], self.labels[chosen], groups)

    def to(self, device: torch.device | str) -> "Samples":
        """The same samples on a device."""
        groups = {name: group.to(device) for name, group in self.groups.items()}
        return Samples(self.inputs.to(device), self.labels.to(device), groups)


@dataclass(frozen=True, eq=False)
class Texts:
    """Sentences, or pairs of them, and the class of each; `encode` makes `Samples` of them.

    - `texts`: of each sample one sentence, or a premise and a hypothesis.
    - `labels`: the index of the true class of each; -1 where none is known or right.
    """

    texts: tuple[tuple[str, ...], ...]
    labels: Tensor

    def __post_init__(self) -> None:
        if self.labels.shape != (len(self.texts),):
            raise ValueError(
                f"labels must hold one class index per text, {len(self.texts)} in all; got shape "
                f"{tuple(self.labels.shape)}."
            )

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, chosen: Tensor | slice) -> "Texts":
        """Those at the given places."""
        if isinstance(chosen, slice):
            return Texts(self.texts[chosen], self.labels[chosen])
        places = chosen.nonzero()[:, 0] if chosen.dtype == torch.bool else chosen
        return Texts(tuple(self.texts[place] for place in places.tolist()), self.labels[places])


Content = TypeVar("Content", Samples, Texts)
Other = TypeVar("Other", Samples, Texts)


@dataclass(frozen=True, eq=False)
class Splits(Generic[Content]):
    """What is trained on, what choices are made by, and what nothing is chosen by.

    - `train`, `validation`: in the order in which the seed drew them.
    - `test`: a function that reads the test set. Until it is called nothing of the test set is
      known, so that no choice can depend on it; `replace(splits, test=...)` can forbid it.
    - `classes`: how many there are.
    - `shifts`: functions that read samples from elsewhere, by name.
    """

    train: Content
    validation: Content
    test: Callable[[], Content]
    classes: int
    shifts: Mapping[str, Callable[[], Content]] = field(default_factory=dict)

    def hold_out(self, share: float | int = 0.1) -> tuple[Content, Content]:
        """The majority of the training set, to fit, and a slice of it kept from that.

        - `share`: of the training set as a fraction, or a number of samples. The ESD paper keeps
          0.1 to judge calibration on, which is 4,500 of CIFAR's 45,000; meta-calibration keeps a
          tenth of all that can be trained on, 5,000.

        The slice comes first in the order that the seed drew, so it is always the same one.
        """
        n = len(self.train)
        held_out = share if isinstance(share, int) else round(share * n)
        if not 0 < held_out < n:
            raise ValueError(
                f"share must leave samples on both sides; got {share!r} of {n} samples. "
                "The papers hold out 0.1."
            )
        return self.train[held_out:], self.train[:held_out]

    def map(self, change: Callable[[Content], Other]) -> "Splits[Other]":
        """The same splits with every part changed, such as texts encoded."""

        def later(read: Callable[[], Content]) -> Callable[[], Other]:
            return lambda: change(read())

        return Splits(
            change(self.train),
            change(self.validation),
            later(self.test),
            self.classes,
            {name: later(read) for name, read in self.shifts.items()},
        )

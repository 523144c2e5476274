"""What is timed: which measure, at which size, in which form, on which inputs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import references
import torch
from torch import Tensor

import calibrant
from calibrant import Criterion, Predictions

Call = Callable[[Tensor, Tensor], Tensor]
"""What a gradient is asked of, and what it is judged against, in; one number out."""

SIZES = (512, 2_048, 8_192, 32_768, 131_072, 1_048_576)
CLASSES = (10, 100, 1_000)
FORMS = ("ours", "quadratic")

# The largest n whose n × n matrices a CPU fills in seconds.
LARGEST_SQUARE_ON_CPU = 16_384


def _of_logits(criterion: Criterion) -> Call:
    return lambda logits, labels: criterion(Predictions(logits, labels))


MEASURES: dict[str, dict[str, Call]] = {
    "esd": {"ours": calibrant.esd, "quadratic": references.esd},
    "mmce": {"ours": calibrant.mmce, "quadratic": references.mmce},
    "weighted_mmce": {"ours": calibrant.weighted_mmce, "quadratic": references.weighted_mmce},
    "soft_binned_ece": {
        "ours": calibrant.soft_binned_ece,
        "quadratic": references.soft_binned_ece,
    },
    "soft_label_binned_ece": {
        "ours": calibrant.soft_label_binned_ece,
        "quadratic": references.soft_label_binned_ece,
    },
    "dece": {"ours": _of_logits(calibrant.dece), "quadratic": _of_logits(references.dece)},
}

SQUARE_IN_N = ("esd", "mmce", "weighted_mmce")


@dataclass(frozen=True)
class Case:
    """A measure at one size. `classes` is zero where the inputs are confidences."""

    measure: str
    n: int
    classes: int = 0

    def __str__(self) -> str:
        return f"{self.measure} n={self.n:,}" + (f" classes={self.classes:,}" * bool(self.classes))

    @property
    def too_slow_on_cpu(self) -> bool:
        """Whether the quadratic form would take minutes there."""
        return self.measure in SQUARE_IN_N and self.n > LARGEST_SQUARE_ON_CPU

    @property
    def pairs(self) -> int:
        """How the quadratic form's memory grows, up to a constant."""
        if self.classes:
            return self.n * self.classes**2
        return self.n**2 if self.measure in SQUARE_IN_N else self.n

    def inputs(
        self, seed: int, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> tuple[Tensor, Tensor]:
        """Confidences with outcomes, or logits with labels, drawn anew for each seed."""
        generator = torch.Generator().manual_seed(seed)
        if self.classes:
            leaf = 3 * torch.randn(self.n, self.classes, generator=generator, dtype=dtype)
            target = torch.multinomial(leaf.softmax(dim=1), 1, generator=generator)[:, 0]
        else:
            leaf = torch.rand(self.n, generator=generator, dtype=dtype)
            target = torch.bernoulli(leaf, generator=generator)
        return leaf.to(device).requires_grad_(), target.to(device)


def cases(quick: bool) -> Iterator[Case]:
    """Every row pair of the table, each measure from small to large."""
    for measure in MEASURES:
        if measure == "dece":
            for n in (128,) if quick else (128, 512):
                for classes in CLASSES[:2] if quick else CLASSES:
                    yield Case(measure, n, classes)
        else:
            for n in SIZES[:2] if quick else SIZES:
                yield Case(measure, n)


def forward_and_backward(call: Call, leaf: Tensor, target: Tensor) -> None:
    """What a training step does with a measure."""
    leaf.grad = None
    torch.autograd.backward(call(leaf, target))

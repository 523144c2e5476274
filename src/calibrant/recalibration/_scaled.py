"""Logits multiplied by one number, and what a search for that number asks of them."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import HALF, widest
from ..predictions import Predictions

# Elements worked on at once: a block stays in a processor's cache, where exponentials are
# made several times faster than in fresh memory. A GPU wants few, large pieces of work.
_BLOCK = {"cpu": 2**17}
_LARGE_BLOCK = 2**25

# Rows this short are worked on as columns, since a sum along a short row is slow.
_SHORT = 64


class Moments(NamedTuple):
    """Of how far the logits of each row lie below their largest, under the softmax.

    - `log_sum`: logarithm of the sum of exponentials, the largest counting one.
    - `mean`, `variance`: of the distance, not positive, by the probabilities.
    """

    log_sum: Float[Tensor, " n"]
    mean: Float[Tensor, " n"]
    variance: Float[Tensor, " n"]


class Scaled:
    r"""The likelihood of $\operatorname{softmax}(\beta z)$ as a function of $\beta$.

    Nothing of the size of the logits is allocated: each question is one pass over blocks of
    rows. Exponentials are made in the precision of the logits, no narrower than float32; sums
    over samples in double precision.

    >>> both = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> value, slope, curvature = Scaled(both).around(1.0)
    >>> round(value, 4), round(slope, 4), round(curvature, 4)
    (0.7201, 0.2463, 0.3083)
    """

    def __init__(self, predictions: Predictions, every: int = 1) -> None:
        self.logits = predictions.logits[::every]
        wide = widest(self.logits.device)
        narrow = self.logits.dtype in HALF
        self.top = self.logits.amax(dim=1).to(torch.float32 if narrow else self.logits.dtype)
        truth = self.logits.gather(1, predictions.labels[::every, None])[:, 0]
        # How far the true class lies below the largest: exact, so that ties are zero.
        self.lag = truth.to(wide) - self.top.to(wide)
        weights = predictions.weights
        self.share = self.lag.new_full(self.lag.shape, 1 / len(self.lag))
        if weights is not None:
            own = weights[::every].to(wide)
            self.share = own / own.sum()

    def __len__(self) -> int:
        return len(self.lag)

    def mean_of(self, per_sample: Float[Tensor, " n"]) -> float:
        """Mean over the samples, by weight."""
        return float(self.share @ per_sample)

    def around(self, beta: float) -> tuple[float, float, float]:
        """Mean negative log-likelihood, its first and its second derivative, in one pass."""
        moments = self.moments(beta)
        return (
            self.mean_of(moments.log_sum - beta * self.lag),
            self.mean_of(moments.mean - self.lag),
            self.mean_of(moments.variance),
        )

    def moments(self, beta: float, *, order: int = 2) -> Moments:
        """One pass: for each row, the moments up to `order`, the others zero."""
        sums = torch.zeros(3, len(self), dtype=self.lag.dtype, device=self.lag.device)
        dim = 0 if self.logits.shape[1] < _SHORT else 1
        at_once = _BLOCK.get(self.logits.device.type, _LARGE_BLOCK) // self.logits.shape[1]
        buffers: list[Tensor] = []
        for start in range(0, len(self), max(at_once, 1)):
            part = slice(start, start + max(at_once, 1))
            block, top = self.logits[part], self.top[part]
            if dim == 0:
                block = block.T
            if not buffers or buffers[0].shape != block.shape:
                buffers = [torch.empty_like(block, dtype=top.dtype) for _ in range(2)]
            distance, weight = buffers
            torch.sub(block, top.unsqueeze(dim), out=distance)
            torch.mul(distance, beta, out=weight).exp_()
            sums[0, part] = weight.sum(dim=dim).to(sums)
            for k in range(1, order + 1):
                sums[k, part] = weight.mul_(distance).sum(dim=dim).to(sums)
        mean = sums[1] / sums[0]
        return Moments(sums[0].log(), mean, sums[2] / sums[0] - mean * mean)

"""What a last linear layer predicts, without its logits."""

from importlib.util import find_spec

import torch
from torch import Tensor

from .._checks import check_labels, check_positive, check_weights
from ..predictions import Predictions
from . import _linear_statistics
from ._finish import Finish
from ._linear_checks import check_linear
from ._linear_passes import Linear, Plan
from ._of_linear import OfLinear
from ._products import default_chunk
from ._stand_ins import stands_in
from ._switch import in_charge

_TRITON = find_spec("triton") is not None


def linear_predictions(
    hidden: Tensor,
    classifier: Tensor,
    labels: Tensor,
    *,
    bias: Tensor | None = None,
    scale: float = 1.0,
    softcap: float | None = None,
    ignore_index: int | None = -100,
    weights: Tensor | None = None,
    chunk: int | None = None,
) -> Predictions:
    r"""What the logits `hidden @ classifier.T + bias` predict, without ever holding all of them.

    A language model's logits are its largest tensor: one row per token, one column per word. These
    predictions know the statistics of each row (confidence, correctness, entropy and so on), found
    some rows at a time; in the backward pass the logits are computed again, some columns at a time.
    Every criterion that needs no more than such statistics can judge them, and gradients reach
    hidden states, classifier and bias: four matrix products in place of three.

    - `hidden`: `(..., width)`, as the last layer gets them.
    - `classifier`: `(classes, width)`, the weight of the last layer.
    - `labels`: the shape of `hidden` without its last dimension.
    - `bias`: `(classes,)`, if there is one.
    - `scale`, `softcap`: logits are $s x$ of products $x$, or $c \tanh(s x / c)$.
    - `ignore_index`: positions with this label are left out; `None` keeps all. In a compiled graph,
      whose shapes are fixed, they stay with weight zero.
    - `weights`: the shape of `labels`.
    - `chunk`: bytes of logits held at a time. Unless given, as many as the hidden states take, and
      at least 256 MiB (32 MiB on a CPU).

    Under autocast products are in its precision, as those of a linear layer are. What else is kept
    is one number in float32 for each hidden one, where those are narrower, and eight for each row.
    The gradient of the classifier is accumulated in float32 and written once. `soft_rank`, and with
    it `dece`, takes four products of its own.

    Function transforms such as `vmap`, and second derivatives, take all the logits.

    >>> import torch
    >>> from calibrant import esd, kernels, nll, top_label
    >>> _ = torch.manual_seed(0)
    >>> hidden, head, labels = torch.randn(9, 16), torch.nn.Linear(16, 5), torch.arange(9) % 5
    >>> predictions = kernels.linear_predictions(hidden, head.weight, labels, bias=head.bias)
    >>> nll(predictions) + top_label(esd)(predictions)
    tensor(1.8346, grad_fn=<AddBackward0>)
    """
    check_linear(hidden, classifier, labels, bias, weights)
    check_positive(scale=scale, **({} if softcap is None else {"softcap": softcap}))
    linear = Linear(hidden.reshape(-1, hidden.shape[-1]), classifier, bias)
    labels = labels.reshape(-1)
    weights = None if weights is None else weights.reshape(-1)
    linear, labels, weights = _without_ignored(linear, labels, weights, ignore_index)
    if len(labels):
        alike = linear.hidden.detach()[:, :1].expand(-1, len(classifier))
        check_labels(labels, alike)
        check_weights(weights, alike)
    parts = [part for part in (hidden, classifier, bias) if part is not None]
    stand_ins = not torch.compiler.is_compiling() and any(map(stands_in, parts))
    plan = Plan(
        Finish(float(scale), None if softcap is None else float(softcap)),
        _precision(linear),
        None,
        default_chunk(linear.hidden) if chunk is None else chunk,
        not stand_ins and in_charge(linear.hidden) and _TRITON,
    )
    if stand_ins:
        return _linear_statistics.predictions_of(linear, labels.long(), weights, plan)
    return OfLinear(linear, labels.long(), weights, plan)


def _without_ignored(
    linear: Linear, labels: Tensor, weights: Tensor | None, ignore_index: int | None
) -> tuple[Linear, Tensor, Tensor | None]:
    if ignore_index is None or len(labels) == 0:
        return linear, labels, weights
    kept = labels.long() != ignore_index  # of narrow integers -100 is another number
    if torch.compiler.is_compiling():
        counted = kept.to(torch.float32)
        weights = counted if weights is None else weights * counted
        return linear, torch.where(kept, labels, 0), weights
    own = kept.nonzero().squeeze(1)
    if len(own) == len(labels):
        return linear, labels, weights
    some = linear._replace(hidden=linear.hidden.index_select(0, own))
    return some, labels[own], None if weights is None else weights[own]


def _precision(linear: Linear) -> torch.dtype:
    """Of the products: that of the parts, or the one a linear layer has under autocast."""
    device, dtype = linear.hidden.device.type, linear.hidden.dtype
    if torch.is_autocast_enabled(device) and dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return dtype

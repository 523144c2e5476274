"""What predictions must look like, and the sentence a person reads when they do not."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import torch
from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

HALF = (torch.float16, torch.bfloat16)


def is_transformed(x: Tensor) -> bool:
    """Whether `x` stands in for a tensor inside `vmap`, `grad` or another function transform."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(x))


def _readable(x: Tensor) -> bool:
    """Whether looking at values costs nothing: on a device it waits, in a graph it breaks."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling() and not is_transformed(x)


def _check_tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a torch tensor; got {type(x).__name__}. Pass torch.as_tensor({name})."
        )


def check_logits(logits: Tensor) -> None:
    """One row of real numbers per sample, one column per class, which are not probabilities."""
    check_table("logits", logits)
    if _readable(logits):
        _check_not_probabilities(logits)


def check_table(name: str, logits: Tensor) -> None:
    """One row of real numbers per sample, one column per class."""
    _check_tensor(name, logits)
    if not logits.is_floating_point():
        raise TypeError(
            f"{name} must be floating point; got {logits.dtype}. "
            "If these are labels, the order is (logits, labels)."
        )
    if logits.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n, classes); got {tuple(logits.shape)}. "
            "For pixels or tokens use Predictions.flatten; for one score per sample, "
            "Predictions.from_binary."
        )
    rows, classes = logits.shape
    if rows == 0:
        raise ValueError(
            f"predictions must hold at least one sample; got {name} of shape {(rows, classes)}. "
            "Skip empty batches, for instance with DataLoader(drop_last=True)."
        )
    if classes < 2:
        raise ValueError(
            f"{name} must have a column for each of at least two classes; got {classes}. "
            "For one score per sample use Predictions.from_binary(logits.squeeze(1), labels); "
            "for one chance, Predictions.from_probabilities(chance.squeeze(1), labels)."
        )


def _check_not_probabilities(logits: Tensor) -> None:
    # Two rows that both sum to one, and hold more than zeros and ones, are no accident.
    first = logits.detach()[:2].float()
    if len(first) < 2 or not _sums_to_one(first) or bool(((first == 0) | (first == 1)).all()):
        return
    if bool((first == first[:1]).all()) or not _sums_to_one(logits.detach().float()):
        return
    raise ValueError(
        "logits must be unnormalised scores; got rows that are probabilities: none negative, "
        "each sums to one. Use Predictions.from_probabilities(probabilities, labels)."
    )


def _sums_to_one(rows: Tensor) -> bool:
    return bool((rows >= 0).all() and ((rows.sum(dim=1) - 1).abs() < 1e-3).all())


def check_labels(labels: Tensor, logits: Tensor) -> None:
    """One class index per row, on the device of the logits."""
    _check_tensor("labels", labels)
    rows, classes = logits.shape
    if labels.shape != (rows,):
        remedy = (
            "Pass labels.squeeze(1)."
            if labels.shape == (rows, 1)
            else "For one-hot labels pass labels.argmax(dim=1); for several labels per sample use "
            "Predictions.from_multilabel."
        )
        raise ValueError(
            f"labels must hold one class index per row of logits, {rows} in all; "
            f"got shape {tuple(labels.shape)}. {remedy}"
        )
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(
            f"labels must be integers, the index of each true class; got {labels.dtype}. "
            "Pass labels.long() if they hold whole numbers."
        )
    _check_device("labels", labels, logits)
    if _readable(labels):
        low, high = (int(extreme) for extreme in labels.long().aminmax())
        if low < 0 or high >= classes:
            raise ValueError(
                f"labels must lie between 0 and {classes - 1}, since logits have {classes} "
                f"columns; got {low if low < 0 else high}. Classes count from 0; positions to be "
                "ignored are left out by ignore_index, of Predictions.flatten or of Penalised."
            )


def check_targets(targets: Tensor, scores: Tensor) -> None:
    """A zero or a one for every score."""
    _check_tensor("scores", scores)
    _check_tensor("targets", targets)
    if scores.ndim != 2 or scores.shape != targets.shape:
        raise ValueError(
            "scores and targets must share the shape (n, labels); "
            f"got {tuple(scores.shape)} and {tuple(targets.shape)}. "
            "For class indices use Predictions(logits, labels)."
        )
    if _readable(targets) and not bool(((targets == 0) | (targets == 1)).all()):
        raise ValueError(
            f"targets must be 0 or 1; got {targets.min().item():g} to {targets.max().item():g}. "
            "Where some targets are unknown, use Predictions.from_binary on the known ones."
        )


def check_weights(weights: Tensor | None, logits: Tensor) -> None:
    """One number per row that says how much it counts."""
    if weights is None:
        return
    _check_tensor("weights", weights)
    if weights.shape != logits.shape[:1] or not weights.is_floating_point():
        raise ValueError(
            f"weights must hold one floating-point number per row of logits, {len(logits)} in "
            f"all; got {weights.dtype} of shape {tuple(weights.shape)}. "
            "Pass weights.float() if they are whole numbers."
        )
    _check_device("weights", weights, logits)
    _check_weight_values(weights)


def _check_weight_values(weights: Tensor) -> None:
    if _readable(weights) and not bool((weights >= 0).all() and weights.isfinite().all()):
        raise ValueError(
            f"weights must be finite and not negative; got {weights.min().item():g} to "
            f"{weights.max().item():g}. Set the weight of a sample to leave out to zero."
        )


def check_events(confidence: Tensor, outcome: Tensor, weights: Tensor | None = None) -> None:
    """Two vectors of one length on one device, and perhaps as many weights."""
    _check_tensor("confidence", confidence)
    if not confidence.is_floating_point() or confidence.ndim != 1:
        raise ValueError(
            "confidence must be a vector of floating-point numbers, the chance given to each "
            f"event; got {confidence.dtype} of shape {tuple(confidence.shape)}. "
            "For logits and labels use a criterion, such as top_label(ece), of Predictions."
        )
    for name, x in (("outcome", outcome), ("weights", weights)):
        if x is None:
            continue
        _check_tensor(name, x)
        if x.shape != confidence.shape:
            raise ValueError(
                f"{name} must hold one number per confidence, {len(confidence)} in all; "
                f"got shape {tuple(x.shape)}."
            )
        if x.device != confidence.device:
            raise ValueError(
                f"{name} must be on the device of confidence, {confidence.device}; "
                f"got {x.device}. Pass {name}.to(confidence.device)."
            )
    if weights is not None:
        _check_weight_values(weights)
    for name, x in (("confidence", confidence), ("outcome", outcome)):
        if _readable(x) and x.numel():
            low, high = (extreme.item() for extreme in x.detach().aminmax())
            if low < -1e-3 or high > 1 + 1e-3:
                raise ValueError(
                    f"{name} must lie between 0 and 1; got {low:g} to {high:g}. A confidence is a "
                    "probability, not a logit; an outcome is 1 where the event happened, else 0."
                )


def check_probabilities(probabilities: Tensor) -> None:
    """Rows of numbers between 0 and 1 that sum to one."""
    check_probability_table(probabilities)
    unseen = torch.compiler.is_compiling() or is_transformed(probabilities)
    if unseen or probabilities.numel() == 0:
        return
    table = probabilities.detach()
    least, sums = table.amin(), _sums(table)
    # Together, so that a device is waited for once.
    check_sums(table, *torch.stack([least.to(sums.dtype), *sums.aminmax()]).tolist())


def check_sums(table: Tensor, least: float, low: float, high: float) -> None:
    """What the least entry of a table, and the least and largest sum of its rows, say of it."""
    tolerance = 2e-2 if table.dtype in HALF else 1e-3
    # The extremes of a table with NaN are NaN, and NaN is within no limits.
    if not (least >= 0 and low >= 1 - tolerance and high <= 1 + tolerance):
        raise ValueError(
            "probabilities must not be negative and each row must sum to one; got values from "
            f"{least:.3g} to {table.max().item():.3g}, a row off by {max(1 - low, high - 1):.3g}. "
            "If these are logits use Predictions(logits, labels)."
        )


def _sums(table: Tensor) -> Tensor:
    """The sum of each row, by a product where that is the faster way to add."""
    if table.device.type == "cpu" and table.dtype not in HALF and table.stride(1) == 1:
        return table.mv(table.new_ones(table.shape[1]))
    return table.sum(dim=1, dtype=torch.promote_types(table.dtype, torch.float32))


def check_probability_table(probabilities: Tensor) -> None:
    """Floating-point numbers, a row per sample and a column per class."""
    _check_tensor("probabilities", probabilities)
    if not probabilities.is_floating_point() or probabilities.ndim != 2:
        raise ValueError(
            "probabilities must be floating point of shape (n, classes) or (n,); "
            f"got {probabilities.dtype} of shape {tuple(probabilities.shape)}."
        )


def check_shapes(logits: Tensor, labels: Tensor, weights: Tensor | None, class_dim: int) -> None:
    """Labels shaped like logits without the class dimension."""
    _check_tensor("logits", logits)
    _check_tensor("labels", labels)
    if not -logits.ndim <= class_dim < logits.ndim or logits.ndim < 2:
        raise ValueError(
            f"class_dim must name a dimension of logits of shape {tuple(logits.shape)}; "
            f"got {class_dim}. It is 1 for (n, classes, d1, ...) and -1 for tokens."
        )
    expected = list(logits.shape)
    del expected[class_dim]
    for name, x in (("labels", labels), ("weights", weights)):
        if x is not None and list(x.shape) != expected:
            raise ValueError(
                f"{name} must have the shape of logits without dimension {class_dim}, "
                f"{tuple(expected)}; got {tuple(x.shape)}. Set class_dim to the dimension that "
                f"holds the classes; logits have shape {tuple(logits.shape)}."
            )


def check_linear(
    hidden: Tensor, classifier: Tensor, labels: Tensor, bias: Tensor | None, weights: Tensor | None
) -> None:
    """Hidden states with labels, and a last layer that takes them."""
    for name, x in (("hidden", hidden), ("classifier", classifier), ("labels", labels)):
        _check_tensor(name, x)
    if not hidden.is_floating_point() or hidden.ndim < 2 or classifier.ndim != 2:
        raise ValueError(
            "hidden and classifier must be floating point of shapes (..., width) and "
            f"(classes, width); got {hidden.dtype} of shape {tuple(hidden.shape)} and "
            f"{tuple(classifier.shape)}. The order is (hidden, classifier, labels)."
        )
    if classifier.shape[1] != hidden.shape[-1] or len(classifier) < 2:
        raise ValueError(
            f"classifier must have a row of {hidden.shape[-1]} numbers, as many as a hidden state, "
            f"for each of at least two classes; got shape {tuple(classifier.shape)}. "
            "Pass the weight of the last nn.Linear as it is."
        )
    for name, each in (("labels", labels), ("weights", weights)):
        if each is not None and each.shape != hidden.shape[:-1]:
            raise ValueError(
                f"{name} must have the shape of hidden without its last dimension, "
                f"{tuple(hidden.shape[:-1])}; got {tuple(each.shape)}."
            )
    if bias is not None and bias.shape != classifier.shape[:1]:
        raise ValueError(
            f"bias must hold one number per class, {len(classifier)} in all; "
            f"got shape {tuple(bias.shape)}. Pass the bias of the last nn.Linear as it is."
        )
    for name, part in (("classifier", classifier), ("bias", bias)):
        if part is None:
            continue
        if part.device != hidden.device:
            raise ValueError(
                f"{name} must be on the device of hidden, {hidden.device}; got {part.device}. "
                f"Pass {name}.to(hidden.device)."
            )
        if part.dtype != hidden.dtype and not torch.is_autocast_enabled(hidden.device.type):
            raise TypeError(
                f"{name} must have the dtype of hidden, {hidden.dtype}, outside autocast; "
                f"got {part.dtype}. Pass {name}.to(hidden.dtype)."
            )


def _check_device(name: str, x: Tensor, logits: Tensor) -> None:
    if x.device != logits.device:
        raise ValueError(
            f"{name} must be on the device of logits, {logits.device}; got {x.device}. "
            f"Pass {name}.to(logits.device)."
        )


def check_positive(**settings: float) -> None:
    """Settings that divide or scale must be above zero."""
    for name, value in settings.items():
        if not 1e-12 <= value < float("inf"):
            raise ValueError(f"{name} must be positive and finite; got {value!r}. Least is 1e-12.")


def check_callable(name: str, x: Function) -> Function:
    """Something to call; a name from the catalogue is not."""
    if not callable(x):
        raise TypeError(
            f"{name} must be a function; got {x!r}. For a name use SCORES, MEASURES or CRITERIA."
        )
    return x


def check_groups(groups: Tensor) -> None:
    """One integer per sample."""
    _check_tensor("groups", groups)
    if groups.ndim != 1 or groups.is_floating_point():
        raise ValueError(
            "groups must hold one integer per sample; "
            f"got {groups.dtype} of shape {tuple(groups.shape)}."
        )


def check_bins(bins: int) -> None:
    """A whole number of bins, one at least."""
    if not _is(Integral, bins) or isinstance(bins, bool) or bins < 1:
        raise ValueError(f"bins must be a whole number, at least 1; got {bins!r}. Usual is 15.")


def _is(kind: type, x: object) -> bool:
    """Whether a number is of a kind, NumPy's own included."""
    return isinstance(x, kind)


def check_norm(norm: float) -> None:
    """A p of at least one, for which the p-th root of a mean of p-th powers is a norm."""
    if not _is(Real, norm) or not 1 <= norm < float("inf"):
        raise ValueError(
            f"norm must be at least 1 and finite; got {norm!r}. "
            "Usual are 1 and 2; for the largest gap use mce."
        )

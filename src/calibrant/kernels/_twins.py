"""Twins of the measures for training batches, where launches are what a measure costs."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ..measures import _esd, _mmce
from ..measures._handwritten import Twin
from ..measures._soft_bins import SoftBins, _binned, _label_binned
from ._switch import in_charge
from ._table import MOST_PAIRED, MOST_SORTED

# A tile holds the memberships of some samples in all bins.
_MOST_BINS = 64


def _esd_of_batch(confidence: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # Imported when first needed: a machine without a GPU need not have Triton.
    from . import _pairs, _sorted

    if len(confidence) <= MOST_PAIRED:
        return _pairs.esd_with_gradient(confidence, outcome)
    return _sorted.esd_with_gradient(confidence, outcome)


def _form_of_batch(
    place: Tensor, charge: Tensor, *, bandwidth: float
) -> tuple[Tensor, Tensor, Tensor]:
    from . import _kernel_pairs, _kernel_sorted

    if len(place) <= MOST_PAIRED:
        return _kernel_pairs.kernel_form_with_gradient(place, charge, bandwidth=bandwidth)
    return _kernel_sorted.kernel_form_with_gradient(place, charge, bandwidth=bandwidth)


def _of_bins(
    confidence: Tensor, outcome: Tensor, *, soft: SoftBins, norm: float, weights: None
) -> tuple[Tensor, Tensor, Tensor]:
    from ._bins import error_with_gradient

    return error_with_gradient(confidence, outcome, soft, norm, label=False)


def _of_label_bins(
    confidence: Tensor, outcome: Tensor, *, soft: SoftBins, norm: float, weights: None
) -> tuple[Tensor, Tensor, Tensor]:
    from ._bins import error_with_gradient

    return error_with_gradient(confidence, outcome, soft, norm, label=True)


def _few(confidence: Tensor, **settings: Any) -> bool:
    return len(confidence) <= MOST_SORTED and in_charge(confidence)


def _few_in_bins(confidence: Tensor, *, soft: SoftBins, norm: float, weights: None) -> bool:
    return norm in (1, 2) and soft.bins <= _MOST_BINS and _few(confidence)


def _few_squares_in_bins(confidence: Tensor, *, soft: SoftBins, norm: float, weights: None) -> bool:
    return norm == 2 and _few_in_bins(confidence, soft=soft, norm=norm, weights=weights)


OF_BATCHES: dict[Callable[..., Tensor], Twin] = {
    _esd._unbiased: Twin(_esd_of_batch, _few),
    _mmce._by_prefix_sums: Twin(_form_of_batch, _few),
    _binned: Twin(_of_bins, _few_in_bins),
    _label_binned: Twin(_of_label_bins, _few_squares_in_bins),
}
"""Each by the definition it is tested against."""

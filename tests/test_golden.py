"""Values and gradients that the authors' own code gave on fixed inputs.

The whole set lies beside a checkout, in `../shared/golden`, and is used where it exists. A
selection of it is kept in this folder, so that the comparison is made everywhere.
"""

import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import calibrant as cal
from calibrant import Criterion, Predictions
from calibrant.measures._binned import bin_totals, debiased_root, gap_norm

HERE = Path(__file__).parent / "golden"
EVERYTHING = Path(__file__).parents[2] / "shared" / "golden"


def summed(score: Criterion) -> Criterion:
    return lambda predictions: len(predictions) * score(predictions)


def summed_over_classes(measure: cal.Measure) -> Criterion:
    return lambda predictions: predictions.classes * cal.class_wise(measure)(predictions)


def squared(criterion: Criterion) -> Criterion:
    return lambda predictions: criterion(predictions).square()


def vc_bins(confidence: Tensor, bins: int) -> Tensor:
    """Equal-mass bins as verified_calibration makes them: midpoints between array splits."""
    parts = [part for part in np.array_split(np.sort(confidence.numpy()), bins) if len(part)]
    edges = sorted({float(a[-1] + b[0]) / 2 for a, b in pairwise(parts)})
    return torch.bucketize(confidence, torch.tensor(edges, dtype=confidence.dtype))


def vc_debiased(predictions: Predictions, *, bins: int) -> Tensor:
    bin_of = vc_bins(predictions.confidence.detach(), bins)
    mass, gap = bin_totals(bin_of, bins, predictions.correct - predictions.confidence)
    return debiased_root(mass, gap, bin_totals(bin_of, bins, predictions.correct)[1])


def vc_plug_in(predictions: Predictions, *, bins: int, norm: float = 2) -> Tensor:
    bin_of = vc_bins(predictions.confidence.detach(), bins)
    mass, gap = bin_totals(bin_of, bins, predictions.correct - predictions.confidence)
    return gap_norm(mass, gap, norm)


def kernel_blocks(predictions: Predictions, *, theta: float) -> Tensor:
    """The released weighted MMCE, which divides by the number of pairs twice."""
    c, right = predictions.confidence, predictions.correct == 1
    m, n = int(right.sum()), int((~right).sum())
    if m == 0 or n == 0:
        return 0 * c.sum()
    square = torch.zeros((), dtype=c.dtype)
    for weight_a, a in ((1 - c[right], right), (-c[~right], ~right)):
        for weight_b, b in ((1 - c[right], right), (-c[~right], ~right)):
            kernel = torch.exp(-(c[a][:, None] - c[b]).abs() / theta)
            pairs = int(a.sum()) * int(b.sum())
            square = square + (weight_a[:, None] * weight_b * kernel).mean() / (pairs + 1e-5)
    released: Tensor = (square + 1e-10).sqrt()
    return released


def top(measure: Any, **settings: Any) -> Criterion:
    return cal.top_label(partial(measure, **settings))


# The golden name, and our criterion of the same form.
OURS: dict[str, Callable[..., Criterion]] = {
    "esd": lambda: top(cal.esd),
    "esd_sqrt_relu": lambda: top(cal.rooted(cal.esd)),
    "mmce_esdrepo": lambda theta: top(cal.mmce, bandwidth=theta),
    "mmce_sq_esdrepo": lambda theta: squared(top(cal.mmce, bandwidth=theta)),
    "mmce_sq_torrvision": lambda theta: squared(top(cal.mmce, bandwidth=theta)),
    "mmce_sq_kumar_tf": lambda theta: squared(top(cal.mmce, bandwidth=theta)),
    "sbece_bin_paper": lambda p, M, T: top(cal.soft_binned_ece, bins=M, temperature=T, norm=p),
    "sbece_lb_paper": lambda p, M, T: top(cal.soft_label_binned_ece, bins=M, temperature=T, norm=p),
    "sbece_lb_p2_esdrepo": lambda M, T: top(cal.soft_label_binned_ece, bins=M, temperature=T),
    "avuc_paper": lambda kappa, stopgrad: partial(
        cal.avuc_gs if stopgrad else cal.avuc, threshold=kappa
    ),
    "savuc_paper": lambda kappa, T: partial(cal.soft_avuc, threshold=kappa, temperature=T),
    "dece": lambda M, ta, tb: partial(cal.dece, bins=M, rank_temperature=ta, bin_temperature=tb),
    "ece_ew_l1_torrvision": lambda bins: top(cal.ece, bins=bins),
    "ece_ew_l1_spline": lambda bins: top(cal.ece, bins=bins),
    "ece_ew_l1_esdrepo": lambda bins: top(cal.ece, bins=bins),
    "ece_ew_l1_vc": lambda bins: top(cal.ece, bins=bins),
    "ece_ew_caltrain": lambda bins, norm: top(cal.ece, bins=bins, norm=norm),
    "ece_em_caltrain": lambda bins, norm: top(cal.ece, bins=bins, norm=norm, binning="mass"),
    "ece_lb_ew_caltrain": lambda bins, norm: top(cal.label_binned_ece, bins=bins, norm=norm),
    "ece_lb_em_caltrain": lambda bins, norm: top(
        cal.label_binned_ece, bins=bins, norm=norm, binning="mass"
    ),
    "marginal_em_caltrain": lambda bins, norm: cal.class_wise(
        partial(cal.ece, bins=bins, norm=norm, binning="mass"), norm=norm
    ),
    "debiased_ce_top_l2": lambda bins: partial(vc_debiased, bins=bins),
    "plugin_ce_top_em_l2_vc": lambda bins: partial(vc_plug_in, bins=bins),
    "ece_em_l1_vc": lambda bins: partial(vc_plug_in, bins=bins, norm=1),
    "mmce_weighted_torrvision": lambda theta: partial(kernel_blocks, theta=theta),
    "ks_error": lambda: top(cal.ks_error),
    "sweep_em_caltrain": lambda norm: top(cal.sweep_ece, norm=norm),
    "sweep_ew_caltrain": lambda norm: top(cal.sweep_ece, norm=norm, binning="width"),
    "kde_ece_toplabel": lambda bw, p: top(cal.kde_ece, bandwidth=bw, norm=p),
    "kde_ece_marginal": lambda bw, p: summed_over_classes(
        partial(cal.kde_ece, bandwidth=bw, norm=p)
    ),
    "kde_ece_canonical": lambda bw, p: partial(cal.canonical_kde_ece, bandwidth=bw, norm=p),
    "ce_sum": lambda: summed(cal.nll),
    "brier": lambda: cal.brier,
    "focal_sum": lambda gamma: summed(partial(cal.focal, gamma=gamma)),
    "flsd_sum": lambda gamma: summed(partial(cal.flsd, gamma=gamma)),
    "label_smoothing_sum": lambda ls: summed(partial(cal.label_smoothing, eps=ls)),
}

# Memberships of the released DECE sum to 0.999999; ours sum to one.
LOOSER = {"dece": 1e-5}
# A beta kernel at a confidence of almost one magnifies the last bit of the softmax.
LAST_BIT = {"kde_ece_toplabel": 1e-10, "kde_ece_marginal": 1e-10}

# Caltrain puts tied confidences into different bins of equal mass; we keep them together.
SPLITS_TIES = {"ece_em_caltrain", "ece_lb_em_caltrain", "marginal_em_caltrain"}
TIED = {"edge_n12_c5"}


class Entries:
    def __init__(self, folder: Path) -> None:
        self.entries = json.loads((folder / "dev.json").read_text())["entries"]
        self.arrays = np.load(folder / "dev.npz", allow_pickle=False)

    def named(self, name: str) -> list[dict[str, Any]]:
        found = [entry for entry in self.entries if entry["name"] == name]
        if name in SPLITS_TIES:
            found = [entry for entry in found if entry["case"] not in TIED]
        return found


def compare(entry: dict[str, Any], arrays: Any) -> str | None:
    """What is wrong with our value or gradient for one entry, if anything."""
    logits = torch.tensor(arrays[f"case/{entry['case']}/logits"], requires_grad=True)
    labels = torch.tensor(arrays[f"case/{entry['case']}/labels"])
    value = OURS[entry["name"]](**entry["params"])(Predictions(logits, labels))
    loosest = LOOSER.get(entry["name"], 0.0)
    told = entry["tolerance"]["value"]
    problem = None
    if entry["assertable"] and not np.isclose(
        value.item(), entry["value"], rtol=max(told["rtol"], loosest), atol=told["atol"]
    ):
        problem = f"value {value.item()!r} is not {entry['value']!r}"
    if problem is None and entry["grad_assertable"]:
        (gradient,) = torch.autograd.grad(value, logits)
        told = entry["tolerance"]["grad"]
        ours, reference = gradient.numpy(), None
        if "gradient" in entry:
            reference = arrays[entry["gradient"]]
        else:
            n = np.arange(ours.size)
            ours = np.array([ours.ravel() @ np.cos(k * n) for k in range(1, 9)])
            reference = np.array(entry["gradient_projections"])
        scale = max(loosest * np.abs(reference).max(), LAST_BIT.get(entry["name"], 0.0))
        if not np.allclose(ours, reference, rtol=told["rtol"], atol=max(told["atol"], scale)):
            problem = f"gradient off by {np.abs(ours - reference).max():.3g}"
    return problem and f"{entry['case']} {entry['params']}: {problem}"


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("folder", [HERE, EVERYTHING], ids=["selection", "everything"])
def test_agrees_with_the_authors_code(name: str, folder: Path) -> None:
    if not folder.exists():
        pytest.skip(f"{folder} is not here")
    golden = Entries(folder)
    entries = golden.named(name)
    assert entries, f"no golden entry is called {name}"
    assert not list(filter(None, (compare(entry, golden.arrays) for entry in entries)))

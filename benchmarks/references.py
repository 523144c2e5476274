"""The measures as their papers write them: every pair compared, every intermediate kept.

Written from the papers' equations with torch operators and plain autograd. Names and arguments
are those of `calibrant`, without weights, so that one can stand in for the other.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from calibrant import Predictions


def esd(confidence: Float[Tensor, " n"], outcome: Float[Tensor, " n"]) -> Float[Tensor, ""]:
    """ESD by its n × n matrix: Yoon et al., ICLR 2023, algorithm 1."""
    n = len(confidence)
    gap = outcome - confidence
    others = 1 - torch.eye(n, dtype=gap.dtype, device=gap.device)
    at_or_below = (confidence[None, :] <= confidence[:, None]).to(gap.dtype)
    gaps = gap[None, :] * at_or_below * others
    mean = gaps.sum(dim=1) / (n - 1)
    variance = gaps.square().sum(dim=1) / (n - 2) - (n - 1) / (n - 2) * mean.square()
    return (mean.square() - variance / (n - 1)).mean()


def mmce(
    confidence: Float[Tensor, " n"], outcome: Float[Tensor, " n"], *, bandwidth: float = 0.4
) -> Float[Tensor, ""]:
    """MMCE by its n × n kernel: Kumar, Sarawagi & Jain, ICML 2018, eq. 5."""
    charge = (outcome - confidence) / len(confidence)
    return (charge @ _kernel(confidence, bandwidth) @ charge).sqrt()


def weighted_mmce(
    confidence: Float[Tensor, " n"], outcome: Float[Tensor, " n"], *, bandwidth: float = 0.4
) -> Float[Tensor, ""]:
    """Weighted MMCE by its n × n kernel, right and wrong answers each averaged once."""
    right = outcome.sum()
    wrong = len(outcome) - right
    charge = outcome * (1 - confidence) / right - (1 - outcome) * confidence / wrong
    return (charge @ _kernel(confidence, bandwidth) @ charge).sqrt()


def _kernel(confidence: Tensor, bandwidth: float) -> Float[Tensor, "n n"]:
    return (-(confidence[:, None] - confidence[None, :]).abs() / bandwidth).exp()


def soft_binned_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    temperature: float = 0.01,
    norm: float = 2,
) -> Float[Tensor, ""]:
    """SB-ECE with n × bins memberships on the graph: Karandikar et al., NeurIPS 2021, eq. 11."""
    u = _memberships(confidence, bins, temperature)
    mass = u.sum(dim=0)
    mean_outcome = (u * outcome[:, None]).sum(dim=0) / mass
    mean_confidence = (u * confidence[:, None]).sum(dim=0) / mass
    gap = (mean_outcome - mean_confidence).abs()
    return (mass / len(confidence) * gap**norm).sum() ** (1 / norm)


def soft_label_binned_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    temperature: float = 0.01,
    norm: float = 2,
) -> Float[Tensor, ""]:
    """Label-binned SB-ECE with n × bins memberships on the graph: the same paper, eq. 12."""
    u = _memberships(confidence, bins, temperature)
    mean_outcome = (u * outcome[:, None]).sum(dim=0) / u.sum(dim=0)
    errors = (mean_outcome[None, :] - confidence[:, None]).abs() ** norm
    return (u * errors).sum(dim=1).mean() ** (1 / norm)


def _memberships(confidence: Tensor, bins: int, temperature: float) -> Float[Tensor, "n bins"]:
    places = torch.arange(bins, dtype=confidence.dtype, device=confidence.device)
    centres = (places + 0.5) / bins
    return (-(confidence[:, None] - centres[None, :]).square() / temperature).softmax(dim=1)


def dece(
    predictions: Predictions,
    *,
    bins: int = 15,
    rank_temperature: float = 100.0,
    bin_temperature: float = 0.01,
) -> Float[Tensor, ""]:
    """DECE with every class ranked against every other: Bohdal et al., 2021, section 2.2.

    Of the n × classes × classes comparisons only the true class's row is used in the end. As in
    the released code probabilities are ranked, and every bin has a membership of 1e-6 on top.
    """
    probs = predictions.logits.softmax(dim=1)
    ahead = (rank_temperature * (probs[:, None, :] - probs[:, :, None])).sigmoid()
    ranks = 0.5 + ahead.sum(dim=2)
    soft_accuracy = (2 - ranks.gather(1, predictions.labels[:, None])[:, 0]).relu()
    confidence = probs.amax(dim=1)
    slope = torch.arange(1, bins + 1, dtype=probs.dtype, device=probs.device)
    cuts = slope * (slope - 1) / (2 * bins)
    likely = ((slope * confidence[:, None] - cuts) / bin_temperature).softmax(dim=1) + 1e-6
    memberships = likely / likely.sum(dim=1, keepdim=True)
    gaps = memberships * (soft_accuracy - confidence)[:, None]
    return gaps.mean(dim=0).abs().sum()

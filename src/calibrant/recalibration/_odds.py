"""Every class against the rest: the odds it is given, and logits made of chances."""

import torch
from jaxtyping import Float
from torch import Tensor


def log_chances(
    logits: Float[Tensor, "n classes"],
) -> tuple[Float[Tensor, "n events"], Float[Tensor, "n events"]]:
    r"""Logarithms of the chance that each class is true, and of the chance that it is not.

    One column per class; of two classes only the second, which settles the first. The chance
    against the most probable class is summed over the others, so that it is exact however near
    to one the chance in favour has come.

    >>> for_it, against = log_chances(torch.tensor([[0.0, 60.0]]))
    >>> for_it.item(), against.item()
    (-8.75651089272076e-27, -60.0)
    """
    if logits.shape[1] == 2:
        lead = logits[:, 1:] - logits[:, :1]
        return torch.nn.functional.logsigmoid(lead), torch.nn.functional.logsigmoid(-lead)
    total, others, top = against_top(logits)
    log_chance = logits - total
    classes = torch.arange(logits.shape[1], device=logits.device)
    is_top = classes == top
    unlikely = log_chance.masked_fill(is_top, -1.0)
    return log_chance, torch.where(is_top, others - total, torch.log1p(-unlikely.exp()))


def against_top(logits: Float[Tensor, "n classes"]) -> tuple[Tensor, Tensor, Tensor]:
    """Columns: log-sum-exp of each row, the same without the largest logit, and where that is."""
    top = logits.argmax(dim=1, keepdim=True)
    others = logits.scatter(1, top, float("-inf")).logsumexp(dim=1, keepdim=True)
    return torch.logaddexp(others, logits.gather(1, top)), others, top


def log_odds(logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n events"]:
    r"""For each event of `log_chances`, $\log p / (1 - p)$: the logit that a sigmoid takes.

    >>> log_odds(torch.tensor([[0.0, 60.0]]))
    tensor([[60.]])
    """
    if logits.shape[1] == 2:
        return logits[:, 1:] - logits[:, :1]
    log_chance, log_miss = log_chances(logits)
    return log_chance - log_miss


def logits_of_odds(odds: Float[Tensor, "n events"]) -> Float[Tensor, "n classes"]:
    """Logits whose softmax is the chance of each event, made to sum to one over the classes."""
    if odds.shape[1] == 1:
        return torch.cat([torch.zeros_like(odds), odds], dim=1)
    return torch.nn.functional.logsigmoid(odds)

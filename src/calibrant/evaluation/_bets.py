"""Gamblers who bet that events happen less often, or more often, than their confidence says."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

# How far the log-odds are moved, from drifts that take months to show to those of an hour.
_SHIFTS = (0.1, 0.25, 0.6, 1.5)
_FACTORS = (1.1, 1.3, 1.7, 3.0)
# A chance that is closer than this to zero or one counts as this: a float32 cannot say more.
_CLOSEST = 1e-6

_EACH_WAY = len(_SHIFTS) + 2 * len(_FACTORS)
DIRECTIONS = torch.tensor([-1] * _EACH_WAY + [1] * _EACH_WAY)
"""Of each gambler: -1 if it bets on over-confidence, 1 if on under-confidence."""


def growth(
    confidence: Float[Tensor, "*many n"], outcome: Float[Tensor, "*many n"], tolerance: float
) -> Float[Tensor, "*many gamblers"]:
    """Logarithms of what each gambler multiplies its stake by; parts of a window add up.

    >>> sure_and_wrong = growth(torch.tensor([0.99]), torch.tensor([0.0]), 0.0)
    >>> bool((sure_and_wrong[DIRECTIONS < 0] >= 0).all())
    True
    """
    chance, happened = confidence.detach().double(), outcome.detach().double()
    less = _against(chance, happened, tolerance)
    # More often than said is the same as: the opposite happens less often.
    more = _against(1 - chance, 1 - happened, tolerance)
    return torch.stack(less + more, dim=-1)


def _against(chance: Tensor, happened: Tensor, tolerance: float) -> list[Tensor]:
    """Gains of those who say that it happens less often than `chance` less `tolerance`."""
    claimed = chance - tolerance
    odds = claimed.clamp(_CLOSEST, 1 - _CLOSEST).logit()
    # Nothing happens less often than never: there is nothing to bet on.
    stake = (claimed > _CLOSEST).double()
    sign = 1 - 2 * happened
    fair = softplus(sign * odds)  # less the logarithm of the chance given to what happened
    bets = [odds - shift for shift in _SHIFTS]
    for factor in _FACTORS:
        # Towards a half from above, away from it below; never up.
        bets.append(odds - odds.clamp(min=0) * (1 - 1 / factor))
        bets.append(odds + odds.clamp(max=0) * (factor - 1))
    return [((fair - softplus(sign * bet)) * stake).sum(dim=-1) for bet in bets]

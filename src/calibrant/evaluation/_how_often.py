"""How many resamples of two models, where nobody said."""

from collections.abc import Sequence

from ._interval import fewest_draws
from ._named import FAST

# Samples times resamples that two cores judge in some seconds.
_AT_MOST = 20_000_000
# Above this an interval hardly changes; below it its ends are guesses.
_MOST_DRAWS, _FEWEST_DRAWS = 1000, 100


def draws_for(
    n: int, names: Sequence[str] = FAST, draws: int | None = None, level: float = 0.95
) -> int:
    """As many as were asked for, or else as many as keep the ends of intervals steady.

    Of many samples some criteria are drawn one by one, and so as often as there is time for. But
    never less often than can tell the level.

    - `names`: of the criteria.

    >>> draws_for(10**6), draws_for(10**6, draws=500)
    (1000, 500)
    >>> [draws_for(n, ["dece"]) for n in (1_000, 100_000, 1_000_000)]
    [1000, 200, 100]
    """
    if draws is not None:
        return draws
    in_time = min(_MOST_DRAWS, max(_FEWEST_DRAWS, _AT_MOST // n))
    enough = _MOST_DRAWS if set(names) <= set(FAST) else in_time
    return max(enough, fewest_draws(level))

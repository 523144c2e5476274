"""How an evaluation is made: bins, draws, level and seed, checked."""

from .._checks import check_count, check_seed, check_share
from ._interval import fewest_draws

# More bins are slow to resample, and tell less.
_MOST_BINS = 1000


def check_settings(
    bins: int, draws: int, level: float, seed: int = 0
) -> tuple[int, int, float, int]:
    """The same as numbers of Python: whole ones above zero, a level between none and all."""
    check_count("bins", bins, usual=15)
    if bins > _MOST_BINS:
        raise ValueError(
            f"bins must be at most {_MOST_BINS:,}, or each would hold next to nothing; "
            f"got {bins:,}. Usual is 15."
        )
    check_count("draws", draws, usual=1000)
    check_share("level", level, " Usual is 0.95.")
    check_seed(seed)
    return int(bins), int(draws), float(level), int(seed)


def check_draws(draws: int, level: float) -> None:
    """So many that what lies beyond all of them is as seldom as the level says."""
    if (needed := fewest_draws(level)) > draws:
        raise ValueError(
            f"draws must be at least {needed} for a level of {level:g}: fewer cannot tell what "
            f"happens so seldom; got {draws}."
        )

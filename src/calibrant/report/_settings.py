"""What was asked of a report."""

from dataclasses import dataclass

from ..evaluation._settings import check_draws, check_settings


@dataclass(frozen=True)
class Settings:
    """How everything in a report is measured.

    - `bins`: of equal width. `draws`: resamples behind an interval; by default as many as
      `evaluate` draws, and of two models as many as leave time.
    - `level`: of every interval, and one less the level of every test. `seed`: of all that is
      drawn at random.
    """

    bins: int = 15
    draws: int | None = None
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        draws = 1 if self.draws is None else self.draws
        check_settings(self.bins, draws, self.level, self.seed)
        if self.draws is not None:
            check_draws(self.draws, self.level)

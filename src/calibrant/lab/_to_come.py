"""How many trials a study needs beyond those that can run now."""

from ._plan import Plan, baseline_of
from ._setting import grid_of
from ._study import Budget, Study


def to_come(study: Study, budget: Budget, current: Plan) -> int:
    """Trials that wait for others, mostly since their settings have not been chosen yet.

    Of an empty plan these are all. Where a grid holds what was tried already it is counted twice,
    so that a few less may come.
    """
    arms = [label for label in study.arms if budget.arms is None or label in budget.arms]
    baseline = baseline_of(study, budget)
    # The tested run of a baseline's seed waits for the one that others are held against.
    count = sum(trial in current.missing for trial in current.baselines.values())
    for data, _ in budget.pairs:
        for label in arms:
            if (data, label) in current.finals or (data, label) in current.stuck:
                continue
            stages = study.arms[label].stages
            count += budget.seeds + sum(
                len(grid_of(stage, budget))
                for stage in stages
                if (data, label, stage.setting) not in current.tuning
            )
            # One that is tuned itself is among the values of its grid.
            count += label == baseline and not stages
    return count

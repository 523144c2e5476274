"""Which trials a study still needs, given those that are done."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..training import select
from ._diverged import error_of
from ._setting import grid_of, on_validation, setting_of, with_setting
from ._study import Arm, Budget, Rule, Stage, Study
from ._trial import Trial

Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Candidate:
    """A tried value of a setting, as the rule sees it."""

    trial: Trial
    accuracy: float
    error: float


@dataclass
class Plan:
    """What a study needs, in order; `missing` can be run now, the rest needs their outcome.

    - `missing`: trials that are not in the store, and whose settings are known.
    - `choices`: what was chosen, stage by stage, with everything the rule looked at.
    - `finals`: of each pair and arm the trials that are tested, where all is chosen.
    - `tuning`: of each pair, arm and setting the trials that were compared.
    - `baselines`: of each data set the trial whose accuracy they are held against.
    - `stuck`: of each pair and arm that cannot go on, since runs it depends on diverged, why.
    """

    missing: list[Trial] = field(default_factory=list)
    choices: list[dict[str, Any]] = field(default_factory=list)
    finals: dict[tuple[str, str], list[Trial]] = field(default_factory=dict)
    tuning: dict[tuple[str, str, str], list[Trial]] = field(default_factory=dict)
    baselines: dict[str, Trial] = field(default_factory=dict)
    stuck: dict[tuple[str, str], str] = field(default_factory=dict)


def plan(name: str, study: Study, budget: Budget, rows: Rows) -> Plan:
    """Go through the study as far as the finished trials allow."""
    whole = Plan()
    for data, model in budget.pairs:
        base = Trial(data, model, **{**budget.settings, **budget.by_data.get(data, {})})
        tuned: dict[str, Trial] = {}
        for label, arm in study.arms.items():
            if budget.arms is not None and label not in budget.arms:
                continue
            started = _start(base, arm, tuned)
            if started is None:
                if (data, str(arm.after)) in whole.stuck:
                    whole.stuck[data, label] = f"it repeats {arm.after!r}, which cannot go on"
                continue
            chosen = _tune(name, study, budget, data, label, started, rows, whole)
            if chosen is None:
                continue
            tuned[label] = chosen
            final = [chosen.but(seed=seed) for seed in range(budget.seeds)]
            whole.finals[data, label] = final
            if label == baseline_of(study, budget):
                whole.baselines[data] = on_validation(chosen)
                if baseline_row(data, label, rows, whole) is None:
                    # Before the tested run of its seed, whose row would serve instead.
                    whole.missing.append(whole.baselines[data])
                    final = final[1:]
            whole.missing += [trial for trial in final if trial.identity not in rows]
    whole.missing = list(dict.fromkeys(whole.missing))
    return whole


def _start(base: Trial, arm: Arm, tuned: Mapping[str, Trial]) -> Trial | None:
    if arm.after is None:
        return base.but(**arm.settings)
    return tuned[arm.after].but(**arm.settings) if arm.after in tuned else None


def _tune(
    name: str,
    study: Study,
    budget: Budget,
    data: str,
    label: str,
    trial: Trial,
    rows: Rows,
    whole: Plan,
) -> Trial | None:
    """The trial with every stage's choice made, or `None` while one is still open."""
    for stage in study.arms[label].stages:
        tried = [
            on_validation(with_setting(trial, stage.setting, value))
            for value in grid_of(stage, budget)
        ]
        whole.tuning[data, label, stage.setting] = tried
        open_ones = [each for each in tried if each.identity not in rows]
        whole.missing += open_ones
        known, baseline = _baseline(study.rule, data, label, rows, whole)
        if open_ones or not known:
            return None
        if all(error_of(rows[each.identity]) is not None for each in tried):
            reason = error_of(rows[tried[0].identity])
            whole.stuck[data, label] = f"every value of {stage.setting} diverged: {reason}"
            return None
        value, told = choose(study.rule, tried, rows, baseline, stage)
        trial = with_setting(trial, stage.setting, value)
        where = {"study": name, "data": data, "arm": label, "setting": stage.setting}
        whole.choices.append({**where, "value": value, **told})
    return trial


def choose(
    rule: Rule | None,
    tried: list[Trial],
    rows: Rows,
    baseline: float | None,
    stage: Stage,
) -> tuple[float, dict[str, Any]]:
    """The value the rule picks, by validation figures alone, and what it looked at.

    At least one of the trials must not have diverged.
    """
    if rule is None:
        raise ValueError(f"a study that tunes {stage.setting} must have a rule; got none.")
    candidates = [
        Candidate(trial, figures["accuracy"], figures[rule.column])
        for trial in tried
        if error_of(rows[trial.identity]) is None  # a run that diverged is no candidate
        for figures in [rows[trial.identity]["validation"]["none"]]
    ]
    told: dict[str, Any] = {
        "baseline": baseline,
        "candidates": [
            [setting_of(each.trial, stage.setting), each.accuracy, each.error]
            for each in candidates
        ],
    }
    try:
        best = select(candidates, baseline, margin=rule.margin, relative=rule.relative)
    except ValueError as wrong:  # all lose too much: the one that loses least, and say so
        best = max(candidates, key=lambda each: each.accuracy)
        told["fallback"] = str(wrong)
    return setting_of(best.trial, stage.setting), told


def _baseline(
    rule: Rule | None,
    data: str,
    label: str,
    rows: Rows,
    whole: Plan,
) -> tuple[bool, float | None]:
    """Whether the accuracy that an arm is held against is known, and it; `None` if to nothing."""
    if rule is None or rule.baseline is None or rule.baseline == label:
        return True, None
    row = baseline_row(data, rule.baseline, rows, whole)
    wrong = whole.stuck.get((data, rule.baseline)) if row is None else error_of(row)
    if wrong is not None:
        whole.stuck[data, label] = f"the baseline {rule.baseline!r} has no accuracy: {wrong}"
    if row is None or wrong is not None:
        return False, None
    return True, float(row["validation"]["none"]["accuracy"])


def baseline_row(data: str, label: str, rows: Rows, whole: Plan) -> Mapping[str, Any] | None:
    """The row that arms of a data set are held against, of a run like those that they are tuned by.

    - `label`: of the baseline. The row of its tested run at the same seed serves where a store has
      that and not the other.
    """
    if data not in whole.baselines:
        return None
    either = (whole.baselines[data], whole.finals[data, label][0])
    return next((rows[each.identity] for each in either if each.identity in rows), None)


def baseline_of(study: Study, budget: Budget) -> str | None:
    """The arm that others are held against, if one of them is tuned."""
    if study.rule is None:
        return None
    tuned = {
        label
        for label, arm in study.arms.items()
        if arm.stages and (budget.arms is None or label in budget.arms)
    }
    return study.rule.baseline if tuned - {study.rule.baseline} else None

"""Every study is a value that can be run, tuned in the paper's order and rendered."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import ttest_rel  # type: ignore[import-untyped]

from calibrant.cli._study_choice import trials
from calibrant.lab import (
    COLUMNS,
    STUDIES,
    Arm,
    Budget,
    Claim,
    Column,
    Plan,
    Rule,
    RunSettings,
    Stage,
    Store,
    Study,
    judge,
    plan,
    render,
    run_study,
    write_results,
)
from calibrant.lab._parts import criterion_of
from calibrant.lab._store import read_lines
from calibrant.lab._study import published
from calibrant.lab._to_come import to_come
from calibrant.lab._trial import Trial
from calibrant.lab._values import value_of
from calibrant.lab.data import DATASETS
from calibrant.lab.figures import FIGURES
from calibrant.lab.models import MODELS
from calibrant.recalibration import RECALIBRATORS

every_study = pytest.mark.parametrize("name", STUDIES)


class Everything(dict[str, Any]):
    """Rows of every trial there could be, all alike."""

    def __contains__(self, _: object) -> bool:
        return True

    def __getitem__(self, _: str) -> dict[str, Any]:
        figures = dict.fromkeys(COLUMNS, 0.5)
        return {"validation": {"none": figures}}

    def get(self, key: str, default: Any = None) -> Any:
        return self[key]


@every_study
def test_every_study_holds_together(name: str) -> None:
    study = STUDIES[name]
    for claim in study.claims:
        assert {claim.better, claim.worse} <= study.arms.keys()
        assert set(claim.columns) <= study.columns.keys()
        assert (claim.better, claim.columns[0]) != (claim.worse, claim.columns[1])
    for data, table in study.published.items():
        assert table.means.keys() <= study.arms.keys(), data
        assert all(len(means) == len(study.columns) for means in table.means.values())
        for own in table.spreads.values():
            for spread, column in zip(own, study.columns.values(), strict=True):
                # Of temperatures the paper prints the mean alone.
                printed = study.spread != "none" and column.measure != "temperature"
                assert (spread is not None) == printed, data
    for column in study.columns.values():
        assert column.measure in {*COLUMNS, "error", "overconfidence", "temperature"}
        parts = {
            part
            for own in study.budgets.values()
            for data, _ in own.pairs
            if data in DATASETS
            for part in DATASETS[data].files
        }
        assert column.split in {"test", "validation", "train", "people", "shift", *parts}
        for budget in study.budgets.values():
            assert budget.settings.get("shift") or column.split != "shift"
            assert budget.settings.get("history_every") or "train" not in (
                column.split,
                column.over,
            )
    assert study.figure is None or study.figure in FIGURES
    for panel in study.figure_settings.get("panels", ()):
        assert set(panel) <= study.columns.keys()
    assert study.budgets or study.figure in ("membership", "uncertainty")


@every_study
def test_every_trial_of_every_study_can_be_built(name: str) -> None:
    study = STUDIES[name]
    for key, budget in study.budgets.items():
        whole = plan(name, study, budget, Everything())
        assert len(whole.finals) == len(budget.pairs) * len(study.arms), key
        trials = [t for own in (*whole.finals.values(), *whole.tuning.values()) for t in own]
        assert len(trials) >= len(budget.pairs) * len(study.arms) * budget.seeds
        for trial in trials:
            assert trial.data in {*DATASETS, "digits"}
            assert trial.model in MODELS
            assert set(trial.recalibrators) <= RECALIBRATORS.keys()
            criterion_of(trial.fit, trial.fit_settings)
            if trial.calibration is not None:
                criterion_of(trial.calibration, trial.calibration_settings)
        needed = {column.after for column in study.columns.values()} - {"none"}
        for own in whole.finals.values():
            assert all(needed <= set(trial.recalibrators) for trial in own)


def test_the_papers_grids_and_rules() -> None:
    esd = STUDIES["esd-table-1"]
    orders = {label: [stage.setting for stage in arm.stages] for label, arm in esd.arms.items()}
    assert orders["+MMCE"] == ["weight", "calibration_settings.bandwidth"]
    assert orders["+SB-ECE"] == ["weight", "calibration_settings.temperature"]
    assert orders["+ESD (ours)"] == ["weight"]
    assert len(esd.arms["+ESD (ours)"].stages[0].values) == 14
    soft = STUDIES["soft-table-2"].arms["Focal + S-AvUC"]
    assert [stage.setting for stage in soft.stages] == [
        "calibration_settings.threshold",
        "calibration_settings.temperature",
        "weight",
        "weight_decay",
    ]
    assert len(STUDIES["soft-table-2"].arms) == 18
    assert STUDIES["soft-table-2"].rule == Rule("ece15_mass_l2", margin=0.01, relative=True)


TWO_STAGES = Study(
    title="", paper="", place="",
    arms={
        "plain": Arm(),
        "mmce": Arm(
            {"procedure": "joint", "calibration": "mmce", "weight": 1.0,
             "calibration_settings": {"bandwidth": 0.4}},
            (Stage("weight", (1.0, 2.0)), Stage("calibration_settings.bandwidth", (0.2, 0.4))),
        ),
        "again": Arm({"batch": 7}, after="mmce"),
    },
    columns={"ECE": Column("ece20"), "Acc.": Column("accuracy")},
    rule=Rule("ece20", margin=0.015, baseline="plain"),
    claims=(Claim("ECE", "mmce", "plain"),),
    budgets={"quick": Budget((("digits", "mlp"),), seeds=3)},
)  # fmt: skip


def row(accuracy: float, error: float, test: float = 0.5) -> dict[str, Any]:
    figures = dict.fromkeys(COLUMNS, error) | {"accuracy": accuracy}
    tested = dict.fromkeys(COLUMNS, test)
    return {"validation": {"none": figures}, "test": {"none": tested}, "seconds": 1.0,
            "finished": "today"}  # fmt: skip


def finish(rows: dict[str, Any], trials: list[Trial], told: Mapping[float, Any]) -> None:
    for trial in trials:
        assert trial.judged_on == "validation"
        assert isinstance(trial.weight, float)
        rows[trial.identity] = told[trial.weight]


def next_trials(rows: Mapping[str, Any], study: Study = TWO_STAGES) -> list[Trial]:
    return plan("two", study, study.budgets["quick"], rows).missing


def test_settings_are_tuned_one_after_the_other_and_then_tested() -> None:
    rows: dict[str, Any] = {}
    first = next_trials(rows)
    baselines = [trial for trial in first if trial.procedure == "plain"]
    # What the others are held against comes before the tested run that is like it.
    assert [(t.seed, t.judged_on) for t in baselines] == [
        (0, "validation"),
        (1, "test"),
        (2, "test"),
    ]
    assert {trial.weight for trial in first} == {None, 1.0, 2.0}
    for trial in baselines:
        rows[trial.identity] = row(0.90, 0.10)
    finish(rows, [t for t in first if t.weight], {1.0: row(0.90, 0.05), 2.0: row(0.89, 0.04)})
    (seed_0, *second) = next_trials(rows)
    assert (seed_0.procedure, seed_0.seed, seed_0.judged_on) == ("plain", 0, "test")
    rows[seed_0.identity] = row(0.50, 0.10)
    # A weight of 2 with the bandwidth it had is known already.
    assert [(t.weight, dict(t.calibration_settings)) for t in second] == [(2.0, {"bandwidth": 0.2})]
    finish(rows, second, {2.0: row(0.89, 0.01)})
    third = next_trials(rows)
    assert {(t.weight, t.calibration_settings["bandwidth"], t.batch, t.judged_on) for t in third} \
        == {(2.0, 0.2, 512, "test"), (2.0, 0.2, 7, "test")}  # fmt: skip
    assert sorted(t.seed for t in third) == [0, 0, 1, 1, 2, 2]


def test_a_run_is_told_how_many_trials_follow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[tuple[int, int]] = []

    def at_once(missing: list[Trial], settings: RunSettings, *_: Any) -> None:
        rounds.append((len(missing), _[-1]))
        for trial in missing:
            Store(settings.store).append({"identity": trial.identity, **row(0.9, 0.1)})

    monkeypatch.setattr("calibrant.lab._run_study.run_trials", at_once)
    run_study("two", TWO_STAGES, TWO_STAGES.budgets["quick"], RunSettings(None, tmp_path))
    # A baseline, two of its finals and two weights; then its first final and the bandwidth that
    # was not tried with that weight; then three finals of two arms.
    assert rounds == [(5, 9), (2, 6), (6, 0)]
    assert trials(TWO_STAGES, "quick") == 5 + 9


def test_nothing_comes_of_an_arm_that_cannot_go_on() -> None:
    ends = {"error": "not finite.", "seconds": 1.0}
    current, _ = plan_and_page(lambda trial: row(0.9, 0.1) if trial.weight is None else ends)
    assert to_come(TWO_STAGES, TWO_STAGES.budgets["quick"], current) == 0


def tuned(accuracies: tuple[float, float], errors: tuple[float, float], test: float = 0.5) -> float:
    """The weight that is chosen, at a baseline of 90%."""
    rows: dict[str, Any] = {}
    for trial in next_trials(rows):
        if trial.weight is None:
            rows[trial.identity] = row(0.90, 0.10)
        else:
            i = int(trial.weight) - 1
            rows[trial.identity] = row(accuracies[i], errors[i], test * i)
    (choice,) = plan("two", TWO_STAGES, TWO_STAGES.budgets["quick"], rows).choices
    assert choice["baseline"] == 0.90
    return float(choice["value"])


def held_against(rows: dict[str, Any], study: Study = TWO_STAGES) -> Any:
    (choice,) = plan("two", study, study.budgets["quick"], rows).choices
    return choice["baseline"]


def test_settings_are_held_against_a_baseline_that_was_trained_as_they_were() -> None:
    """Two studies that test the same arms otherwise compare the same runs and choose alike."""
    other = replace(
        TWO_STAGES,
        budgets={"quick": Budget((("digits", "mlp"),), seeds=1, settings={"shift": (1,)})},
    )
    first = next_trials({})
    rows = {t.identity: row(0.90, 0.05) for t in first if t.judged_on == "validation"}
    assert held_against(rows) == held_against(rows, other) == 0.90
    for study in (TWO_STAGES, other):
        finals = plan("two", study, study.budgets["quick"], rows).finals["digits", "plain"]
        rows |= {trial.identity: row(0.95, 0.05) for trial in finals}
    assert held_against(rows) == held_against(rows, other) == 0.90


def test_a_baseline_that_was_only_tested_serves_and_is_not_trained_again() -> None:
    first = plan("two", TWO_STAGES, TWO_STAGES.budgets["quick"], {})
    apart = first.baselines["digits"]
    rows = {trial.identity: row(0.90, 0.05) for trial in first.missing if trial != apart}
    for trial in first.finals["digits", "plain"]:
        rows[trial.identity] = row(0.91 + 0.01 * trial.seed, 0.05)
    assert held_against(rows) == 0.91  # of the seed that the others have
    assert apart not in next_trials(rows)


def test_a_tuned_baseline_is_held_against_by_the_run_it_was_chosen_by() -> None:
    arms = {"plain": Arm({}, (Stage("lr", (1e-3, 1e-2)),)), "mmce": TWO_STAGES.arms["mmce"]}
    study = replace(TWO_STAGES, arms=arms)
    rows = {
        trial.identity: row(0.90 if trial.lr == 1e-2 else 0.88, 0.05 - trial.lr)
        for trial in next_trials({}, study)
    }
    assert not [trial for trial in next_trials(rows, study) if trial.judged_on == "validation"
                and trial.weight is None]  # fmt: skip
    of_mmce = plan("two", study, study.budgets["quick"], rows).choices[-1]
    assert (of_mmce["arm"], of_mmce["baseline"]) == ("mmce", 0.90)
    assert trials(study, "quick") == 2 + 4 + 2 * 3
    assert trials(TWO_STAGES, "quick") == 1 + 4 + 3 * 3


def test_rows_that_are_kept_beside_a_page_hold_its_baseline(tmp_path: Path) -> None:
    rows: dict[str, Any] = {}
    while missing := next_trials(rows):
        for trial in missing:
            apart = trial.judged_on == "validation" and trial.weight is None
            accuracy = 0.90 if apart else 0.95
            rows[trial.identity] = {"identity": trial.identity, **row(accuracy, 0.05)}
    write_results("two", TWO_STAGES, "quick", rows, tmp_path)
    kept = {each["identity"]: each for each in read_lines(tmp_path / "two-quick.jsonl")}
    assert kept.keys() == rows.keys()
    assert (tmp_path / "two-quick.md").read_text() == render("two", TWO_STAGES, "quick", kept)
    assert f"{len(rows) - 9} of tuning" in render("two", TWO_STAGES, "quick", rows)


def test_the_lowest_error_within_the_margin_is_chosen() -> None:
    assert tuned((0.90, 0.89), (0.05, 0.04)) == 2.0
    assert tuned((0.90, 0.88), (0.05, 0.04)) == 1.0


def test_figures_of_the_test_split_change_no_choice() -> None:
    for test in (0.0, 0.9):
        assert tuned((0.90, 0.89), (0.05, 0.04), test) == 2.0


def test_where_all_lose_too_much_the_most_accurate_is_taken_and_said_so() -> None:
    assert tuned((0.70, 0.71), (0.01, 0.04)) == 2.0


def test_a_value_that_diverged_is_no_candidate() -> None:
    rows: dict[str, Any] = {}
    for trial in next_trials(rows):
        rows[trial.identity] = row(0.9, 0.1) if trial.weight != 2.0 else {"error": "not finite"}
    (choice,) = plan("two", TWO_STAGES, TWO_STAGES.budgets["quick"], rows).choices
    assert [value for value, _, _ in choice["candidates"]] == [1.0]


NULLS = {"validation": {"none": {"accuracy": 0.1, "ece20": None}}, "seconds": 1.0}


def plan_and_page(ends: Callable[[Trial], dict[str, Any]]) -> tuple[Plan, str]:
    """Where the study stands once all that can run has run, and its page."""
    rows: dict[str, Any] = {}
    while trials := next_trials(rows):
        rows |= {trial.identity: ends(trial) for trial in trials}
    current = plan("two", TWO_STAGES, TWO_STAGES.budgets["quick"], rows)
    return current, render("two", TWO_STAGES, "quick", rows)


@pytest.mark.parametrize("end", [{"error": "not finite.", "seconds": 1.0}, NULLS])
def test_an_arm_whose_values_all_diverged_stays_open_and_the_rest_goes_on(
    end: dict[str, Any],
) -> None:
    current, page = plan_and_page(lambda trial: row(0.9, 0.1) if trial.weight is None else end)
    assert current.finals.keys() == {("digits", "plain")}
    assert current.stuck.keys() == {("digits", "mmce"), ("digits", "again")}
    assert "| plain | 50.00 ± 0.00 |" in page
    assert "- mmce on digits: every value of weight diverged: " in page
    assert "- again on digits: it repeats 'mmce', which cannot go on." in page
    assert "Not run yet" not in page


@pytest.mark.parametrize("end", [{"error": "not finite."}, NULLS])
def test_a_baseline_that_diverged_is_named_by_those_that_need_it(end: dict[str, Any]) -> None:
    said = {"seconds": 1.0, "finished": "today"}
    current, page = plan_and_page(
        lambda trial: row(0.9, 0.1) if trial.weight or trial.seed else end | said
    )
    assert "the baseline 'plain' has no accuracy: " in current.stuck["digits", "mmce"]
    assert "- mmce on digits: the baseline 'plain' has no accuracy: " in page
    assert "| plain | 50.00 ± 0.00 | 50.00 ± 0.00 | 2 |" in page
    assert " 1 diverged." in page


def test_a_page_without_a_tested_run_says_what_cannot_go_on() -> None:
    arms = {"mmce": TWO_STAGES.arms["mmce"]}
    study = replace(TWO_STAGES, arms=arms, rule=Rule("ece20", margin=0.015), claims=())
    rows = {trial.identity: NULLS for trial in next_trials({}, study)}
    page = render("two", study, "quick", rows)
    assert "No trial has finished yet." in page
    assert "- mmce on digits: every value of weight diverged: the figures of the" in page


@pytest.mark.parametrize(
    ("better", "worse", "outcome"),
    [
        ([3.0, 3.1, 2.9], [5.5, 5.4, 5.6], "confirmed"),
        ([5.5, 5.4, 5.6], [3.0, 3.1, 2.9], "refuted"),
        ([3.0, 6.0, 2.0], [5.5, 5.4, 3.0], "not confirmed"),
        ([3.0], [5.5], "not confirmed"),
        ([3.0, 3.0], [3.0, 3.0], "not confirmed"),
    ],
)
def test_verdicts(better: list[float], worse: list[float], outcome: str) -> None:
    verdict = judge(Claim("ECE", "a", "b"), better, worse)
    assert verdict.outcome == outcome
    assert verdict.n == len(better)
    if len(better) == 3:
        assert verdict.p_value == pytest.approx(ttest_rel(better, worse).pvalue)


def test_seeds_that_hardly_differ_are_judged_without_a_warning() -> None:
    verdict = judge(Claim("ECE", "a", "b"), [3.0, 3.0 + 1e-15, 3.0], [5.0] * 3)
    assert verdict.outcome == "confirmed"
    assert verdict.p_value == pytest.approx(0, abs=1e-9)


def test_a_claim_may_ask_for_a_share_or_allow_some_points() -> None:
    by_half = Claim("ECE", "a", "b", by=0.5)
    assert judge(by_half, [2.0, 2.1, 1.9], [5.0, 5.1, 5.0]).outcome == "confirmed"
    assert judge(by_half, [3.0, 3.1, 2.9], [5.0, 5.1, 5.0]).outcome == "refuted"
    within = Claim("Acc.", "a", "b", within=1.5)
    assert judge(within, [90.0, 90.1, 90.1], [91.0] * 3).outcome == "confirmed"
    assert judge(within, [88.0, 88.1, 88.1], [91.0] * 3).outcome == "refuted"
    higher = Claim("Acc.", "a", "b", higher=True)
    assert judge(higher, [92.0, 92.1, 92.1], [91.0] * 3).outcome == "confirmed"


def test_a_claim_may_hold_one_column_against_another() -> None:
    """Such as temperature scaling by one error against that by another, of the same runs."""
    scaled = {"none": 0.09, "temperature": 0.05, "temperature_sb_ece": 0.03}
    columns = {
        "ECE": Column("ece20"),
        "ECE+TS": Column("ece20", after="temperature"),
        "ECE+TS-SB-ECE": Column("ece20", after="temperature_sb_ece"),
    }
    claims = (
        Claim("ECE+TS-SB-ECE", "plain", "plain", against="ECE+TS"),
        Claim("ECE", "mmce", "plain", against="ECE+TS"),
        Claim("ECE", "mmce", "plain", against="ECE+TS", within=1.0),
    )
    study = replace(TWO_STAGES, columns=columns, claims=claims)
    rows: dict[str, Any] = {}
    while missing := next_trials(rows, study):
        for trial in missing:
            more = 0.9 + 0.1 * trial.seed
            test = {after: {"ece20": error * more} for after, error in scaled.items()}
            rows[trial.identity] = row(0.9, 0.1) | {"test": test}
    page = render("two", study, "quick", rows)
    assert "| ECE+TS-SB-ECE of plain below ECE+TS of plain | confirmed | -2.00 | " in page
    assert "| ECE of mmce below ECE+TS of plain | refuted | +4.00 | " in page
    assert "| ECE of mmce is less than 1 points below ECE+TS of plain | confirmed |" in page


def rendered(spread: Any) -> str:
    study = replace(
        TWO_STAGES,
        spread=spread,
        published={"digits": published("plain | 9.1 0.12 | 80.5 0.3\nmmce | 4.5 0.2 | 80 0.1")},
    )
    rows: dict[str, Any] = {}
    while trials := next_trials(rows, study):
        for trial in trials:
            error = 0.1 + 0.01 * trial.seed if trial.calibration is None else 0.05
            rows[trial.identity] = row(0.9, 0.1, test=error)
    return render("two", study, "quick", rows)


def test_the_page_has_our_means_and_spreads_beside_the_papers() -> None:
    page = rendered("std")
    assert "| plain | 11.00 ± 1.00 | 9.1 ± 0.12 | 11.00 ± 1.00 | 80.5 ± 0.3 | 3 |" in page
    assert "| mmce | 5.00 ± 0.00 | 4.5 ± 0.2 |" in page
    assert "| again | 5.00 ± 0.00 |  |" in page
    assert "| ECE: mmce below plain | confirmed | -6.00 | 0.0091 | 3 |" in page
    assert "| digits | mmce | `weight` | 1 |" in page
    assert "11.00 ± 0.58" in rendered("sem")


def test_a_column_may_tell_of_the_worst_group_or_how_far_groups_are_apart() -> None:
    groups = {
        "0": {"ece20": 0.02, "accuracy": 0.8, "mean_confidence": 0.85},
        "1": {"ece20": 0.03, "accuracy": 0.9, "mean_confidence": 0.89},
    }
    row = {"groups": {"sex": groups}}
    assert value_of(Column("ece20", groups="sex"), row) == pytest.approx(3.0)
    apart = Column("overconfidence", groups="sex", across="apart")
    assert value_of(apart, row) == pytest.approx(6.0)  # five points too sure, one too unsure
    assert value_of(Column("ece20", groups="race"), row) is None
    assert value_of(apart, {"groups": {"sex": {"0": {"accuracy": 0.5}}}}) is None


def test_a_column_may_tell_of_people() -> None:
    figures = {"accuracy": 0.8, "nll": 0.7, "entropy": 0.2, "ece20": 0.04}
    row = {"people": {"temperature": figures}, "test": {"temperature": {"nll": 0.1}}}
    column = Column("ece20", after="temperature", split="people")
    assert value_of(column, row) == pytest.approx(4.0)
    assert value_of(replace(column, measure="nll"), row) == 0.7
    assert value_of(replace(column, measure="entropy"), row) == 0.2  # in nats
    assert value_of(replace(column, after="none"), row) is None
    assert value_of(column, {"test": {"temperature": figures}}) is None


def test_a_column_may_be_a_quotient_of_two_splits() -> None:
    column = Column("ece15", over="train")
    epochs = [{"train": {"ece15": 0.5}}, {"train": {"ece15": 0.02}}]
    row = {"test": {"none": {"ece15": 0.06}}, "epochs": epochs}
    assert value_of(column, row) == pytest.approx(3.0)
    assert value_of(column, row | {"epochs": []}) is None
    assert value_of(column, row | {"epochs": [{"train": {"ece15": 0.0}}]}) is None


def test_a_temperature_is_told_as_it_is() -> None:
    row = {"test": {"temperature_ece": {"temperature": 2.3, "ece15": 0.01}}}
    assert value_of(Column("temperature", after="temperature_ece"), row) == 2.3
    assert value_of(Column("temperature"), row) is None


def test_kept_rows_tell_of_the_last_epoch_what_the_page_tells(tmp_path: Path) -> None:
    study = replace(
        TWO_STAGES,
        columns={"Train ECE": Column("ece20", split="train"), **TWO_STAGES.columns},
    )
    rows: dict[str, Any] = {}
    while missing := next_trials(rows, study):
        for trial in missing:
            epochs = [{"epoch": n, "train": {"ece20": 0.1 / (n + 1)}} for n in (0, 4)]
            rows[trial.identity] = {"identity": trial.identity, **row(0.9, 0.1), "epochs": epochs}
    write_results("two", study, "quick", rows, tmp_path)
    kept = {each["identity"]: each for each in read_lines(tmp_path / "two-quick.jsonl")}
    assert all(len(each["epochs"]) == 1 for each in kept.values())
    page = render("two", study, "quick", kept)
    assert "| plain | 2.00 ± 0.00 |" in page
    assert (tmp_path / "two-quick.md").read_text() == page


def test_what_people_said_is_told_of_the_runs_that_know_it() -> None:
    people = Column("ece20", split="people")
    study = replace(TWO_STAGES, columns={"People": people, **TWO_STAGES.columns})
    rows: dict[str, Any] = {}
    while missing := next_trials(rows, study):
        rows |= {trial.identity: row(0.9, 0.1) for trial in missing}
    head = "|  | ECE ± std | Acc. ± std | n |\n| :--- | ---: | ---: | ---: |\n"
    assert head + "| plain | 50.00 ± 0.00 | 50.00 ± 0.00 | 3 |" in render(
        "two", study, "quick", rows
    )
    tested = plan("two", study, study.budgets["quick"], rows).finals["digits", "mmce"][1]
    rows[tested.identity] = row(0.9, 0.1) | {"people": {"none": {"ece20": 0.04}}}
    page = render("two", study, "quick", rows)
    assert head in page
    asked = "| by people | People ± std | n |\n| :--- | ---: | ---: |\n| mmce | 4.00 | 1 |\n\n"
    assert asked in page


def test_data_sets_that_only_the_paper_has_are_shown_with_its_numbers_alone() -> None:
    table = published("plain | 3.81 0.043 | 75.8 0.036")
    study = replace(TWO_STAGES, spread="sem", published={"imagenet": table})
    shown = (
        "## imagenet, not run here\n\n"
        "|  | ECE, paper ± sem | Acc., paper ± sem |\n"
        "| :--- | ---: | ---: |\n"
        "| plain | 3.81 ± 0.043 | 75.8 ± 0.036 |\n"
    )
    assert shown in render("two", study, "quick", {})
    rows: dict[str, Any] = {}
    while missing := next_trials(rows, study):
        rows |= {trial.identity: row(0.9, 0.1) for trial in missing}
    page = render("two", study, "quick", rows)
    assert shown in page
    assert page.index("## digits") < page.index("## imagenet") < page.index("## What was chosen")
    assert "not run here" not in rendered("sem")  # a budget trains on it
    assert "| NLL + S-AvUC | 75.6 ± 0.053 |" in render(
        "soft-table-1", STUDIES["soft-table-1"], "quick", {}
    )


def test_every_study_that_trains_has_a_quick_budget_and_those_of_papers_the_papers_own() -> None:
    for name, study in STUDIES.items():
        assert "quick" in study.budgets or not study.budgets
        if name.startswith(("esd-", "soft-", "meta-")):
            assert "paper" in study.budgets or not study.budgets


def test_spreads_are_those_that_captions_name() -> None:
    for number in (2, 5, 8, 9):
        assert STUDIES[f"soft-figure-{number}"].spread == "sem"


def test_bars_stand_for_every_primary_with_every_secondary_loss() -> None:
    assert STUDIES["soft-figure-5"].arms.keys() == STUDIES["soft-table-2"].arms.keys()


def test_a_column_may_tell_of_a_set_from_elsewhere() -> None:
    column = Column("mean_confidence", after="temperature", split="out-of-scope")
    row = {"elsewhere": {"out-of-scope": {"temperature": {"mean_confidence": 0.4}}}}
    assert value_of(column, row) == pytest.approx(40.0)
    assert value_of(column, {"test": {"temperature": {"mean_confidence": 0.9}}}) is None


def test_a_page_of_rows_without_a_time_says_so() -> None:
    def timeless(trial: Trial) -> dict[str, Any]:
        lost = ("seconds", "finished") if trial.seed else ()
        return {key: value for key, value in row(0.9, 0.1).items() if key not in lost}

    _, page = plan_and_page(timeless)
    assert " hours without 6 whose time is not known. " in page
    _, page = plan_and_page(lambda trial: {"validation": row(0.9, 0.1)["validation"]})
    assert " of tuning, hours not known. " in page
    assert " —; torch —, calibrant —, commit —, last finished —." in page


def test_a_page_without_rows_says_so() -> None:
    assert "No trial has finished yet." in render("two", TWO_STAGES, "quick", {})


def test_published_numbers_are_read_as_they_stand() -> None:
    cifar = STUDIES["esd-table-1"].published["cifar10"]
    assert cifar.means["+ESD (ours)"] == (92.1, 3.08, 1.60, 92.1, 1.61)
    assert cifar.spreads["+ESD (ours)"] == (0.141, 0.692, 0.089, 0.314, 0.287)
    meta = STUDIES["meta-table-2"].published["cifar100"]
    assert meta.means["M3: Meta-MMCE"] == (26.38, 26.41)
    scaled = STUDIES["meta-table-1"].published["cifar10"]
    assert scaled.means["MMCE"] == (5.21, 4.41, 1.27, 2.27)
    memorised = STUDIES["soft-table-3"].published["cifar10"]
    assert memorised.means["NLL"] == (2.66, 0.05, 49.82)


def test_the_note_counts_lines_of_the_table_as_they_are_printed() -> None:
    study = STUDIES["soft-table-2"]
    lines = [line for table in study.published.values() for line in table.means.values()]
    lower = sum(by_sb_ece < by_nll for *_, by_nll, by_sb_ece in lines)  # type: ignore[operator]
    assert (lower, len(lines)) == (34, 42)
    assert f"there are {lower}." in study.note


def test_pages_of_stored_results_are_their_rows_rendered() -> None:
    folder = Path(__file__).parents[1] / "results"
    pages = [path for path in folder.glob("*-*.md") if path.with_suffix(".jsonl").exists()]
    assert pages
    for page in pages:
        name, _, budget = page.stem.rpartition("-")
        rows = {row["identity"]: row for row in read_lines(page.with_suffix(".jsonl"))}
        assert page.read_text().startswith(render(name, STUDIES[name], budget, rows))

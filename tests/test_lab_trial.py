"""A trial is what the package's own procedures do, and tests only what has been chosen."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import calibrant as cal
from calibrant.lab import (
    COLUMNS,
    RunSettings,
    Store,
    Task,
    Trial,
    open_task,
    run_trial,
    run_trials,
)
from calibrant.lab._parts import criterion_of, schedule_of, selection_of
from calibrant.lab._run_trial import Run
from calibrant.lab._store import read_lines
from calibrant.lab._task import _open
from calibrant.lab._training import drawn, loaders
from calibrant.lab.augment import Augmentation, Batches
from calibrant.lab.corruptions import CORRUPTIONS, corrupt
from calibrant.lab.data import DATASETS, Samples, Splits
from calibrant.lab.people import judged_by_people
from calibrant.recalibration import RECALIBRATORS
from calibrant.training import Epoch

BASE = Trial("digits", "mlp", epochs=2, batch=64, lr=2e-3, recalibrators=())
ESD: dict[str, Any] = {"procedure": "interleaved", "calibration": "rooted_esd", "weight": 2.0}


def test_identity_is_the_same_on_every_machine() -> None:
    # Written down once: a change would orphan every stored row.
    assert Trial("digits", "mlp").identity == "6e64f96573d1"


def test_survives_json() -> None:
    trial = BASE.but(**ESD, calibration_settings={}, shift=[1, 2], model_settings={"hidden": [8]})
    assert Trial.from_dict(json.loads(json.dumps(trial.to_dict()))) == trial


def test_every_setting_is_part_of_its_identity() -> None:
    changes: dict[str, Any] = {
        "data": "mnist", "model": "lenet5", "model_settings": {"hidden": [3]}, "seed": 1,
        "fit": "brier", "fit_settings": {"gamma": 1.0}, "held_out": 0.2, "leak": True,
        "knowledge_settings": {"lowest": -1.0}, "optimiser": "sgd", "lr": 0.1,
        "weight_decay": 0.1, "momentum": 0.5, "schedule": "constant", "steps": (0.5,),
        "clip": 1.0, "epochs": 3, "batch": 65, "augment": False, "flip": True,
        "precision": "bfloat16", "keep": "calibrated", "margin": 0.1, "bins": 15,
        "judged_on": "validation", "shift": (1,), "recalibrators": ("vector",),
        "history_every": 1, "weight_settings": {"start": 2.0},
    }  # fmt: skip
    identities = {BASE.but(**{name: value}).identity for name, value in changes.items()}
    assert len(identities | {BASE.identity}) == len(changes) + 1
    sliced = BASE.but(**ESD)
    assert sliced.but(calibration_groups="sex").identity != sliced.identity


def test_a_new_rule_of_the_adaptive_weight_makes_new_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settled, adaptive = BASE.but(**ESD), {**ESD, "weight": "adaptive"}
    before = BASE.but(**adaptive).identity, settled.identity
    monkeypatch.setattr(cal.AdaptiveWeight, "rule", cal.AdaptiveWeight.rule + 1)
    assert BASE.but(**adaptive).identity != before[0]
    assert BASE.but(**ESD).identity == before[1]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"procedure": "jont"}, "procedure must be one of plain, joint"),
        ({"procedure": "joint"}, "a joint trial must have a calibration; got None"),
        ({"calibration": "esd"}, "a plain trial must have no calibration; got 'esd'"),
        ({"weight": 1.0}, "weight must be left out for a plain trial"),
        ({**ESD, "weight": None}, "weight must be given for a interleaved trial"),
        ({**ESD, "procedure": "joint", "weight": "adaptive"}, "number for a joint trial"),
        ({**ESD, "held_out": 0.0}, "held_out must be above 0"),
        ({"calibration_groups": "sex"}, "got 'sex' for a plain one. Interleave"),
        ({"epochs": 0}, "epochs must be a whole number from 1 on; got 0"),
        ({"batch": 2.5}, "batch must be a whole number from 1 on; got 2.5"),
        ({"epoch": 3}, "a trial has no 'epoch'"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_refuses_what_cannot_be_run(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Trial.from_dict({"data": "digits", "model": "mlp", **settings})


@pytest.mark.parametrize(
    ("name", "settings", "by_hand"),
    [
        ("focal", {"gamma": 2.0}, lambda p: cal.focal(p, gamma=2.0)),
        ("mmce", {"bandwidth": 0.2}, cal.top_label(lambda c, y: cal.mmce(c, y, bandwidth=0.2))),
        ("rooted_esd", {}, cal.top_label(cal.rooted(cal.esd))),
        ("soft_avuc", {"threshold": 0.3}, lambda p: cal.soft_avuc(p, threshold=0.3)),
        (
            "rooted_soft_binned_ece",
            {"norm": 2, "temperature": 0.1},
            lambda p: cal.soft_binned_ece(p.confidence, p.correct, temperature=0.1).sqrt(),
        ),
    ],
)
def test_criteria_by_name_are_the_packages_own(
    name: str, settings: dict[str, Any], by_hand: Any, predictions: cal.Predictions
) -> None:
    torch.testing.assert_close(criterion_of(name, settings)(predictions), by_hand(predictions))


def test_the_released_weighted_mmce_divides_by_the_pairs_twice(
    predictions: cal.Predictions,
) -> None:
    c, right = predictions.confidence, predictions.correct == 1
    square = torch.zeros((), dtype=c.dtype)
    for weight_a, a in ((1 - c[right], right), (-c[~right], ~right)):
        for weight_b, b in ((1 - c[right], right), (-c[~right], ~right)):
            kernel = torch.exp(-(c[a][:, None] - c[b]).abs() / 0.4)
            pairs = int(a.sum()) * int(b.sum())
            square = square + (weight_a[:, None] * weight_b * kernel).mean() / pairs
    released = criterion_of("released_weighted_mmce", {})
    torch.testing.assert_close(released(predictions), (square + 1e-10).sqrt())
    certain = cal.Predictions(predictions.logits, predictions.logits.argmax(dim=1))
    assert float(released(certain)) == 0


def test_an_unknown_criterion_is_refused() -> None:
    with pytest.raises(ValueError, match=r"by name; got 'nlll'\. There are nll, "):
        criterion_of("nlll", {})


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return open_task(BASE, None).build(BASE, open_task(BASE, None).splits)


def test_a_plain_trial_is_fit_written_out(tmp_path: Path) -> None:
    row = run_trial(BASE.but(seed=1), None, Store(tmp_path))
    splits = open_task(BASE.but(seed=1), None).splits
    model = network(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    cal.fit(
        model,
        Batches(splits.train, 64, None, drawn(1, 0)),
        objective=nn.CrossEntropyLoss(),
        optimiser=optimiser,
        epochs=2,
        lr_schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 2),
    )
    test = splits.test()
    with torch.no_grad():
        predictions = cal.Predictions(model.eval()(test.inputs).double(), test.labels)
    for name, criterion in COLUMNS.items():
        assert row["test"]["none"][name] == pytest.approx(float(criterion(predictions)), abs=1e-6)


def test_an_interleaved_trial_is_fit_interleaved_written_out(tmp_path: Path) -> None:
    row = run_trial(BASE.but(**ESD, schedule="constant"), None, Store(tmp_path))
    splits = open_task(BASE, None).splits
    majority, held_out = splits.hold_out(0.1)
    model = network(0)
    history = cal.fit_interleaved(
        model,
        Batches(majority, 64, None, drawn(0, 0)),
        Batches(held_out, 64, None, drawn(0, 1)),
        calibration=cal.top_label(cal.rooted(cal.esd)),
        weight=2.0,
        optimiser=torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2),
        epochs=2,
    )
    assert [each["fit"] for each in row["history"]] == [each.fit for each in history.epochs]
    assert [each["calibration"] for each in row["history"]] == [
        each.calibration for each in history.epochs
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {"procedure": "joint", "calibration": "mmce", "weight": 1.0},
        {"procedure": "two_phase", "calibration": "soft_avuc", "weight": 1.0, "optimiser": "sgd"},
        {"procedure": "interleaved", "calibration": "esd", "weight": "adaptive"},
        {"procedure": "meta", "calibration": "dece", "optimiser": "sgd", "lr": 0.1},
        {"procedure": "meta", "calibration": "dece", "leak": True, "optimiser": "sgd", "lr": 0.1},
    ],
    ids=["joint", "two_phase", "adaptive", "meta", "meta, leak"],
)
def test_every_procedure_gives_a_row(settings: dict[str, Any], tmp_path: Path) -> None:
    plain = run_trial(BASE.but(epochs=1), None, Store(tmp_path))
    row = run_trial(BASE.but(epochs=1, **settings), None, Store(tmp_path))
    assert row["test"]["none"].keys() == COLUMNS.keys()
    assert row["test"]["none"]["nll"] != plain["test"]["none"]["nll"]
    assert ("coefficients" in row) == (settings["procedure"] == "meta")


def test_a_slice_is_kept_from_the_fit_and_the_rest_is_fitted_in_the_seeds_order() -> None:
    splits = open_task(BASE, None).splits
    to_fit, to_judge, _ = loaders(BASE.but(**ESD), splits, None, torch.device("cpu"))
    assert to_judge is not None
    fitted = {tuple(row.tolist()) for inputs, _ in to_fit for row in inputs.flatten(1)}
    judged = {tuple(row.tolist()) for inputs, _ in to_judge for row in inputs.flatten(1)}
    assert len(fitted) == 1077
    assert len(judged) == 120
    assert not fitted & judged


def test_epochs_are_kept_as_the_trial_says() -> None:
    epochs = [
        Epoch(0, 0.0, accuracy=0.90, error=0.05),
        Epoch(1, 0.0, accuracy=0.92, error=0.04),
        Epoch(2, 0.0, accuracy=0.91, error=0.01),
        Epoch(3, 0.0, accuracy=0.92, error=0.06),
    ]
    kept = {
        keep: selection_of(BASE.but(keep=keep)).best(epochs).number
        for keep in ("last", "calibrated", "accurate")
    }
    assert kept == {"last": 3, "calibrated": 2, "accurate": 1}


def test_steps_divide_the_rate_by_ten() -> None:
    trial = BASE.but(schedule="steps", steps=(0.5, 0.75), epochs=8, lr=1.0)
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = schedule_of(trial, optimiser)
    assert schedule is not None
    rates = []
    for _ in range(8):
        rates.append(round(float(schedule.get_last_lr()[0]), 6))
        optimiser.step()
        schedule.step()
    assert rates == [1.0] * 4 + [0.1] * 2 + [0.01] * 2


def test_the_test_split_opens_only_after_the_choice_is_on_disk(tmp_path: Path) -> None:
    task = open_task(BASE, None)
    read = task.splits.test
    opened = []

    def watching() -> Samples:
        written = (tmp_path / "selections.jsonl").read_text()
        assert json.loads(written)["identity"] == BASE.identity
        opened.append(True)
        return read()

    watched = replace(task, splits=replace(task.splits, test=watching))
    run_trial(BASE, None, Store(tmp_path), task=watched)
    assert opened


def test_reading_the_test_split_during_training_is_refused(tmp_path: Path) -> None:
    task = open_task(BASE, None)
    seen: list[Splits[Samples]] = []

    def build(trial: Trial, splits: Splits[Samples]) -> nn.Module:
        seen.append(splits)
        return task.build(trial, splits)

    with pytest.raises(PermissionError, match="opens once the selection is written"):
        run_trial(
            BASE,
            None,
            Store(tmp_path),
            task=replace(task, build=build),
            after_epoch=lambda epoch: seen[0].test(),
        )


def test_a_trial_judged_on_validation_data_never_opens_the_test_split(tmp_path: Path) -> None:
    task = open_task(BASE, None)

    def forbidden() -> Samples:
        raise AssertionError("the test split was read")

    watched = replace(task, splits=replace(task.splits, test=forbidden))
    row = run_trial(BASE.but(judged_on="validation"), None, Store(tmp_path), task=watched)
    assert "test" not in row
    assert row["validation"]["none"]["accuracy"] > 0.2


def test_a_run_that_diverges_is_a_row_with_a_sentence(tmp_path: Path) -> None:
    row = run_trial(BASE.but(lr=1e20), None, Store(tmp_path))
    assert "must be finite" in row["error"]
    assert Store(tmp_path).rows()[row["identity"]]["error"] == row["error"]


@pytest.mark.parametrize("judged_on", ["validation", "test"])
def test_a_run_that_explodes_in_its_last_step_diverged_as_well(
    judged_on: str, tmp_path: Path
) -> None:
    # One batch, so the only loss is that of the weights at the start.
    one_step = {"epochs": 1, "batch": 4000, "schedule": "constant", "lr": 1e30}
    trial = BASE.but(**one_step, judged_on=judged_on)
    row = run_trial(trial, None, Store(tmp_path))
    assert "must be finite" in row["error"]
    assert row.keys().isdisjoint({"validation", "test", "choice"})
    assert not (tmp_path / "selections.jsonl").exists()


def test_logits_that_explode_on_the_test_split_alone_are_told(tmp_path: Path) -> None:
    task = open_task(BASE, None)

    def test_split() -> Samples:
        samples = task.splits.test()
        return replace(samples, inputs=torch.full_like(samples.inputs, torch.inf))

    watched = replace(task, splits=replace(task.splits, test=test_split))
    row = run_trial(BASE, None, Store(tmp_path), task=watched)
    assert "logits of the test split must be finite" in row["error"]
    assert "validation" not in row


def test_recalibrators_are_fitted_on_validation_data(tmp_path: Path) -> None:
    trial = BASE.but(recalibrators=("temperature",))
    row = run_trial(trial, None, Store(tmp_path), out=tmp_path)
    test = np.load(tmp_path / "test.npz")
    temperature = row["test"]["temperature"]["temperature"]
    scaled = torch.from_numpy(test["logits"]) / temperature
    truth = torch.from_numpy(test["labels"])
    nll = cal.nll(cal.Predictions(scaled.double(), truth))
    assert row["test"]["temperature"]["nll"] == pytest.approx(float(nll), rel=1e-4)
    on_test = cal.TemperatureScaling().fit(torch.from_numpy(test["logits"]), truth)
    assert on_test.temperature_.item() != pytest.approx(temperature, rel=1e-3)
    assert (tmp_path / "model.safetensors").stat().st_size > 0


def test_history_judges_the_weights_of_each_epoch(tmp_path: Path) -> None:
    row = run_trial(BASE.but(epochs=4, history_every=2), None, Store(tmp_path))
    assert [each["epoch"] for each in row["epochs"]] == [1, 3]
    assert row["epochs"][-1]["test"] == row["test"]["none"]
    assert row["epochs"][0]["test"] != row["test"]["none"]


@pytest.fixture
def forty_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with CIFAR-10 of forty images to train on and ten to test on."""
    rng = torch.Generator().manual_seed(0)
    folder = tmp_path / "data" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name, n in (*((f"data_batch_{i}", 8) for i in range(1, 6)), ("test_batch", 10)):
        pixels = torch.randint(256, (n, 3073), generator=rng)
        pixels[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(bytes(pixels.flatten().tolist()))
    small = replace(DATASETS["cifar10"], sizes=(30, 10, 10))
    monkeypatch.setitem(DATASETS, "cifar10", small)
    return tmp_path / "data"


TINY = Trial("cifar10", "mlp", epochs=1, batch=10, recalibrators=("temperature",))


def run_together_or_alone(together: bool, folder: Path, store: Path, *trials: Trial) -> None:
    settings = RunSettings(folder, store, together=together)
    run_trials(trials, settings, lambda line: None)


@pytest.mark.parametrize("together", [False, True])
def test_a_store_keeps_its_splits_and_refuses_data_that_have_changed(
    together: bool, forty_images: Path, tmp_path: Path
) -> None:
    run_together_or_alone(together, forty_images, tmp_path / "runs", TINY, TINY.but(seed=1))
    kept = sorted((tmp_path / "runs/splits").iterdir())
    assert [path.name for path in kept] == [f"cifar10-seed-{i}.split.safetensors" for i in (0, 1)]
    written = [path.read_bytes() for path in kept]
    more = TINY.but(epochs=2), TINY.but(epochs=2, seed=1)
    _open.cache_clear()  # as in another process
    run_together_or_alone(together, forty_images, tmp_path / "runs", *more)
    assert [path.read_bytes() for path in kept] == written
    first = forty_images / "cifar-10-batches-bin/data_batch_1.bin"
    first.write_bytes(first.read_bytes()[3073:] + first.read_bytes()[:3073])
    _open.cache_clear()
    again = TINY.but(epochs=3), TINY.but(epochs=3, seed=1)
    with pytest.raises(ValueError, match=r"split of this data; .* which a study has in its store"):
        run_together_or_alone(together, forty_images, tmp_path / "runs", *again)


SURER = 2.0


class Sharpened:
    """A recalibrator that makes answers surer, whatever it is fitted to."""

    def fit(self, *_: Any, **__: Any) -> "Sharpened":
        return self

    def transform(self, logits: torch.Tensor) -> torch.Tensor:
        return SURER * logits


def test_people_judge_the_test_split_where_they_were_asked(
    forty_images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECALIBRATORS, "temperature", Sharpened)
    without = run_trial(TINY, forty_images, Store(tmp_path / "without"))
    assert "people" not in without
    counts = np.random.default_rng(0).integers(1, 20, size=(10, 10))
    (forty_images / "cifar10").mkdir()
    np.savez(forty_images / "cifar10/human-labels.npz", counts=counts)
    _open.cache_clear()
    row = run_trial(TINY, forty_images, Store(tmp_path), out=tmp_path)
    assert row["test"] == without["test"]
    logits = torch.from_numpy(np.load(tmp_path / "test.npz")["logits"]).double()
    shares = torch.from_numpy(counts / counts.sum(axis=1, keepdims=True))
    assert row["people"].keys() == {"none", "temperature"}
    for name, own in (("none", logits), ("temperature", SURER * logits)):
        expected = judged_by_people(own, shares, bins=20)
        expected["ece20"] = expected.pop("ece")
        assert row["people"][name] == pytest.approx(expected, rel=1e-5)
    # Answers that are surer fall into bins whose number matters.
    assert judged_by_people(SURER * logits, shares, bins=15)["ece"] != pytest.approx(
        row["people"]["temperature"]["ece20"], rel=1e-3
    )


def test_what_people_said_is_sealed_as_the_test_split_is(
    forty_images: Path, tmp_path: Path
) -> None:
    np.save(forty_images / "cifar10h-counts.npy", np.ones((10, 10)))
    _open.cache_clear()
    task = open_task(TINY, forty_images)
    run = Run(TINY, task, Store(tmp_path), "cpu")
    assert run.task.people is not None
    with pytest.raises(PermissionError, match="opens once the selection is written"):
        run.task.people()


def test_a_row_tells_how_many_threads_it_was_trained_by(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            row = run_trial(BASE.but(epochs=1, seed=threads), None, Store(tmp_path))
            assert row["threads"] == threads
    finally:
        torch.set_num_threads(before)


def images(n: int, seed: int) -> Samples:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    pixels = torch.randint(80, (n, 3, 32, 32), generator=rng) + 70 * labels[:, None, None, None]
    return Samples(pixels.byte(), labels)


def test_shift_is_judged_at_every_severity_and_corruption(tmp_path: Path) -> None:
    test = images(30, 2)
    splits = Splits(images(60, 0), images(30, 1), lambda: test, 3)
    augmentation = Augmentation((0.5,) * 3, (0.5,) * 3)
    trial = Trial("made up", "mlp", epochs=1, batch=30, shift=(1, 5), recalibrators=())
    kept: list[nn.Module] = []
    task = Task(splits, augmentation)

    def build(given: Trial, own: Splits[Samples]) -> nn.Module:
        kept.append(task.build(given, own))
        return kept[-1]

    row = run_trial(trial, None, Store(tmp_path), task=replace(task, build=build))
    assert row["shift"].keys() == CORRUPTIONS.keys()
    assert all(list(each) == ["1", "5"] for each in row["shift"].values())
    worse = augmentation(corrupt(test.inputs, "contrast", 5))
    with torch.no_grad():
        logits = kept[0].eval()(worse)
    by_hand = cal.nll(cal.Predictions(logits.double(), test.labels))
    assert row["shift"]["contrast"]["5"]["none"]["nll"] == pytest.approx(float(by_hand))


def test_groups_are_judged_apart(tmp_path: Path) -> None:
    task = open_task(BASE, None)
    whole = task.splits.test()
    sides = torch.arange(len(whole)) % 2
    grouped = Samples(whole.inputs, whole.labels, {"side": sides})
    watched = replace(task, splits=replace(task.splits, test=lambda: grouped))
    row = run_trial(BASE, None, Store(tmp_path), task=watched)
    halves = [row["groups"]["side"][side]["accuracy"] for side in ("0", "1")]
    assert sum(halves) / 2 == pytest.approx(row["test"]["none"]["accuracy"])
    assert halves[0] != halves[1]


def test_every_seed_and_stream_draws_numbers_of_its_own() -> None:
    firsts = {
        int(torch.randint(2**40, (), generator=drawn(seed, stream)))
        for seed in range(10)
        for stream in (0, 1)
    }
    assert len(firsts) == 20


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seed": 1.5}, "seed must be a whole number from 0 on; got 1.5"),
        ({"history_every": 0}, "history_every must be a whole number from 1 on; got 0"),
        ({"fit": None}, "fit must be a name; got None"),
        ({"recalibrators": ["foo"]}, "got 'foo'"),
    ],
)
def test_a_trial_that_could_not_run_is_refused_before_it_does(
    settings: dict[str, Any], said: str, unchecked_types: None
) -> None:
    with pytest.raises(ValueError, match=said):
        Trial.from_dict({"data": "digits", "model": "mlp", **settings})


def test_whole_numbers_and_floats_make_one_trial() -> None:
    assert Trial("digits", "mlp", lr=1).identity == Trial("digits", "mlp", lr=1.0).identity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"fit_settings": {"gamma": 2}}, {"fit_settings": {"gamma": 2.0}}),
        ({"calibration_settings": {"bins": 15.0}}, {"calibration_settings": {"bins": 15}}),
        ({"weight_decay": -0.0}, {"weight_decay": 0.0}),
        ({"epochs": 20.0}, {"epochs": 20}),
        ({"augment": 0}, {"augment": False}),
        ({"shift": [1.0]}, {"shift": [1]}),
        ({"steps": [1]}, {"steps": [1.0]}),
    ],
)
def test_equal_trials_have_one_identity(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = (Trial.from_dict({"data": "digits", "model": "mlp", **x}) for x in (one, other))
    assert first == second
    assert first.identity == second.identity
    # Types are right as well: a count may be used as one.
    assert first.to_dict() == second.to_dict()
    assert str(first.to_dict()) == str(second.to_dict())


def test_stored_rows_keep_their_identities() -> None:
    folder = Path(__file__).parents[1] / "results"
    rows = [row for path in folder.glob("*-*.jsonl") for row in read_lines(path)]
    assert len(rows) > 100
    for row in rows:
        assert Trial.from_dict(row["trial"]).identity == row["identity"]

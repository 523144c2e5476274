"""Tables of people: calibration by group in training, and trees beside networks."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import nn
from torch.testing import assert_close

import calibrant as cal
from calibrant.lab import Store, Task, Trial, run_trial
from calibrant.lab._by_group import ByGroup
from calibrant.lab.augment import Augmentation, Batches
from calibrant.lab.data import Samples, Splits
from calibrant.lab.models import Boosting, build

ESD: dict[str, Any] = {"procedure": "interleaved", "calibration": "rooted_esd", "weight": 2.0}
NETWORK = Trial("people", "mlp", epochs=2, batch=64, lr=1e-2, recalibrators=())
TREES = Trial("people", "boosting", model_settings={"rounds": 5}, recalibrators=("temperature",))


def people(n: int, seed: int, classes: int = 2) -> Samples:
    """Rows whose class follows their first number, less surely so in the second group."""
    rng = torch.Generator().manual_seed(seed)
    rows = torch.randn(n, 4, generator=rng)
    group = torch.arange(n) % 3 // 2
    noise = torch.randn(n, generator=rng) * (0.5 + group)
    edges = torch.linspace(-0.5, 0.5, classes + 1)[1:-1]
    return Samples(rows, torch.bucketize(rows[:, 0] + noise, edges), {"side": group})


def task_of(groups: torch.Tensor | None = None, classes: int = 2) -> Task:
    train, test = people(600, 0, classes), people(300, 2, classes)
    if groups is not None:
        train = Samples(train.inputs, train.labels, {"side": groups})
    return Task(Splits(train, people(200, 1, classes), lambda: test, classes))


def test_batches_carry_the_group_of_each_of_their_samples() -> None:
    samples = people(10, 0)
    rng = torch.Generator().manual_seed(3)
    for inputs, labels, groups in Batches(samples, 4, None, rng, groups="side"):
        for row, label, group in zip(inputs, labels, groups, strict=True):
            (place,) = (samples.inputs == row).all(dim=1).nonzero()[:, 0]
            assert samples.labels[place] == label
            assert samples.groups["side"][place] == group


def test_a_criterion_by_group_is_the_mean_over_the_groups_of_the_last_held_out_batch() -> None:
    torch.manual_seed(0)
    esd = cal.top_label(cal.esd)
    model, criterion = nn.Linear(4, 2), ByGroup(esd)
    samples, fitted = people(60, 0), people(50, 1)
    judged = cal.Predictions(
        *criterion.forward(model, (samples.inputs, samples.labels, samples.groups["side"]))
    )
    criterion.forward(model, (fitted.inputs, fitted.labels))  # which changes nothing
    apart = [
        esd(cal.Predictions(model(own.inputs), own.labels))
        for side in (0, 1)
        for own in [samples[samples.groups["side"] == side]]
    ]
    assert apart[0] != apart[1]
    assert_close(criterion(judged), torch.stack(apart).mean())


def test_training_by_group_sees_the_groups(tmp_path: Path) -> None:
    def figures(groups: torch.Tensor | None, **settings: Any) -> dict[str, float]:
        trial = NETWORK.but(**ESD, **settings)
        row = run_trial(trial, None, Store(tmp_path), task=task_of(groups))
        found: dict[str, float] = row["test"]["none"]
        return found

    whole = figures(None)
    # One group is everybody, whatever its number; two groups are not.
    alone = figures(torch.full((600,), 7), calibration_groups="side")
    assert alone == pytest.approx(whole, rel=1e-4, abs=1e-6)
    assert figures(None, calibration_groups="side")["nll"] != pytest.approx(whole["nll"], rel=1e-3)


def test_groups_that_the_data_lack_are_refused(tmp_path: Path) -> None:
    trial = NETWORK.but(**ESD, calibration_groups="race")
    with pytest.raises(ValueError, match="groups must be those the data have: side; got 'race'"):
        run_trial(trial, None, Store(tmp_path), task=task_of())


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_of_trees_are_scikit_learns_probabilities(classes: int) -> None:
    samples = people(300, 0, classes)
    model = build("boosting", classes=classes, rounds=4)
    assert isinstance(model, Boosting)
    logits = model.fit(samples.inputs, samples.labels)(samples.inputs)
    assert logits.shape == (300, classes)
    # All samples are grown on, whichever number the global generator gave.
    alone = HistGradientBoostingClassifier(max_iter=4, early_stopping=False, random_state=0)
    expected = alone.fit(samples.inputs.numpy(), samples.labels.numpy())
    shares = torch.from_numpy(expected.predict_proba(samples.inputs.numpy()))
    assert_close(logits.softmax(dim=1), shares.float())


def test_trees_are_tested_once_the_choice_is_on_disk(tmp_path: Path) -> None:
    task, opened = task_of(), []
    read = task.splits.test

    def watching() -> Samples:
        assert TREES.identity in (tmp_path / "selections.jsonl").read_text()
        opened.append(True)
        return read()

    watched = replace(task, splits=replace(task.splits, test=watching))
    unseen = TREES.but(judged_on="validation")
    assert "test" not in run_trial(unseen, None, Store(tmp_path), task=watched)
    assert not opened
    row = run_trial(TREES, None, Store(tmp_path), task=watched, out=tmp_path)
    assert opened
    assert row["test"]["none"]["accuracy"] > 0.6
    assert row["test"]["temperature"]["nll"] > 0
    assert row["groups"]["side"].keys() == {"0", "1"}
    kept = np.load(tmp_path / "test.npz")
    nll = cal.nll(cal.Predictions(*(torch.from_numpy(kept[k]) for k in ("logits", "labels"))))
    assert row["test"]["none"]["nll"] == pytest.approx(nll.item(), rel=1e-5)
    assert not (tmp_path / "model.safetensors").exists()  # trees are no weights


def test_trees_are_grown_on_the_majority_alone(tmp_path: Path) -> None:
    rows = [
        run_trial(TREES.but(held_out=share), None, Store(tmp_path), task=task_of())
        for share in (0.0, 0.5)
    ]
    half = task_of().splits.hold_out(0.5)[0]
    torch.manual_seed(0)
    model = build("boosting", classes=2, rounds=5)
    assert isinstance(model, Boosting)
    fitted = cal.Predictions(model.fit(half.inputs, half.labels)(half.inputs), half.labels)
    assert rows[1]["history"][0]["fit"] == pytest.approx(cal.nll(fitted).item(), rel=1e-5)
    assert rows[0]["history"][0]["fit"] != pytest.approx(cal.nll(fitted).item(), rel=1e-3)


@pytest.mark.parametrize("settings", [ESD, {"fit": "focal"}, {"history_every": 1}])
def test_trees_refuse_what_needs_gradients(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"boosting must be fitted by likelihood .* Recalibrate"):
        run_trial(TREES.but(**settings), None, Store(tmp_path), task=task_of())


def test_trees_that_never_saw_a_class_are_refused() -> None:
    model = build("boosting", classes=3)
    assert isinstance(model, Boosting)
    samples = people(100, 0)
    with pytest.raises(ValueError, match="samples of all 3 classes; got those of 2"):
        model.fit(samples.inputs, samples.labels)


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[sklearn\]'"):
        build("boosting", classes=2)


def test_trees_see_images_in_training_as_they_do_in_tests(tmp_path: Path) -> None:
    def bright(n: int) -> Samples:  # one class dark, one bright, far from what is normalised
        labels = torch.arange(n) % 2
        return Samples((100 + 100 * labels[:, None, None, None]).expand(n, 1, 4, 4).byte(), labels)

    splits = Splits(bright(100), bright(50), lambda: bright(50), 2)
    task = Task(splits, Augmentation((0.5,), (0.5,), padding=1))
    row = run_trial(TREES.but(recalibrators=()), None, Store(tmp_path), task=task)
    assert row["test"]["none"]["accuracy"] == 1

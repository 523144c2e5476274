"""`calibrant train` and what `calibrant study` lists."""

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant.cli import main
from calibrant.lab import STUDIES, Trial

DIGITS = ["train", "digits", "mlp", "--epochs", "1", "--batch", "64"]


def test_training_leaves_a_row_weights_and_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objective = ["--procedure", "interleaved", "--calibration", "rooted_esd", "--weight", "2"]
    assert main([*DIGITS, *objective, "--out", str(tmp_path), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["trial"]["weight"] == 2.0
    assert row["test"].keys() == {"none", "temperature", "vector", "temperature_sb_ece"}
    stored = np.load(tmp_path / "test.npz")
    right = (stored["logits"].argmax(1) == stored["labels"]).mean()
    assert row["test"]["none"]["accuracy"] == pytest.approx(right)
    assert json.loads((tmp_path / "rows.jsonl").read_text()) == row


def test_any_setting_of_a_trial_can_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--fit", "focal", "--set", 'fit_settings={"gamma": 2.0}', "--set", "recalibrators=[]"]
    assert main([*DIGITS, *more, "--out", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "digits mlp focal[gamma=2.0] seed 0" in told.out
    assert "epoch 0, fit " in told.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--weight", "heavy"], "--weight must be a number or adaptive; got 'heavy'."),
        (["--set", "flip"], "--set must be like flip=true; got 'flip'."),
        (["--calibration", "esd"], "a plain trial must have no calibration; got 'esd'."),
        (["--fit", "nlll"], "a criterion must be a score or a measure by name; got 'nlll'."),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*DIGITS, *arguments, "--out", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err


def test_data_in_no_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "mnist", "lenet5", "--out", str(tmp_path)]) == 2
    assert "mnist must be read from a folder; got none." in capsys.readouterr().err


def test_a_run_that_diverges_is_told_and_ends_in_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*DIGITS, "--lr", "1e20", "--out", str(tmp_path)]) == 1
    assert "loss must be finite" in capsys.readouterr().err


def test_every_study_is_listed_with_its_trials(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed.keys() == STUDIES.keys()
    # Two weights at one seed, and two arms at two.
    assert listed["digits"]["budgets"]["quick"] == 2 + 2 * 2


def test_pending_trials_are_lines_a_worker_can_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from calibrant.lab.worker import main as work

    assert main(["study", "pending", "digits", "--store", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    trials = [Trial.from_dict(json.loads(line)) for line in lines]
    assert {trial.weight for trial in trials} == {None, 2.0, 4.0}
    few = tmp_path / "trials.jsonl"
    few.write_text(json.dumps(trials[-1].but(epochs=1).to_dict()) + "\n")
    assert work([str(few), "--store", str(tmp_path / "store"), "--device", "cpu"]) == 0
    assert (tmp_path / "store" / "rows.jsonl").exists()


@pytest.mark.parametrize("name", ["soft-figure-3", "soft-figure-4"])
def test_figures_of_the_soft_functions_need_no_run(name: str, tmp_path: Path) -> None:
    assert main(["study", "render", name, "--results", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"({name}.png)" in (tmp_path / f"{name}.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "NAME must be a study; got 'nothing'."),
        (["digits", "--budget", "huge"], "one of the study's: paper, quick; got 'huge'."),
        (["digits", "--data-set", "mnist"], "--data-set must be one of digits; got 'mnist'."),
    ],
)
def test_an_unknown_study_or_part_of_one_is_refused_in_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "run", *arguments]) == 2
    assert sentence in capsys.readouterr().err

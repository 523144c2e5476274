"""`calibrant train` and what `calibrant study` lists."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrant.cli import main
from calibrant.lab import STUDIES, Store, Trial, plan

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
    assert told.err == ""
    assert told.out.endswith(f"written to {tmp_path}: rows.jsonl, model.safetensors, test.npz\n")


def test_a_terminal_is_told_of_every_epoch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main([*DIGITS, "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "epoch 0, fit " in told
    assert ", calibration error " in told


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--weight", "heavy"], "--weight must be a finite number or adaptive; got 'heavy'."),
        (["--set", "flip"], "--set must be like flip=true; got 'flip'."),
        (["--calibration", "esd"], "a plain trial must have no calibration; got 'esd'."),
        (["--weight", "nan"], "--weight must be a finite number or adaptive; got 'nan'."),
        (["--set", "lr=NaN"], "lr must be a finite number; got nan."),
        (["--set", "shift=5"], "shift must be a list, such as [1, 3]; got 5."),
        (["--set", 'recalibrators="vector"'], "recalibrators must be a list"),
        (["--fit", "nlll"], "a criterion must be a score or a measure by name; got 'nlll'."),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*DIGITS, *arguments, "--out", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (("digits", "mpl"), "MODEL must be one of boosting, encoder, lenet5, mlp, "),
        (("digits", "mpl"), "got 'mpl'. Did you mean 'mlp'?"),
        (("dgits", "mlp"), "DATA_SET must be one of adult, "),
        (("digits", "lenet5"), "MODEL must be one that can be trained on digits; lenet5 cannot: "),
    ],
)
def test_data_and_models_that_do_not_go_together_are_refused(
    pair: tuple[str, str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *pair, "--epochs", "1", "--out", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_a_file_that_is_no_text_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tabular").mkdir()
    for name in ("adult.data", "adult.test"):
        (tmp_path / "tabular" / name).write_bytes(b"caf\xe9, 3\n")
    assert main(["train", "adult", "mlp", "--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "adult.data must hold text as UTF-8; got other bytes" in capsys.readouterr().err


def test_a_database_that_does_not_open_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["study", "run", "digits", "--store", str(tmp_path), "--workers", "0"]
    assert main([*asked, "--storage", "bogus://x"]) == 2
    assert "storage must be the URL of a database that opens here" in capsys.readouterr().err


def test_a_study_runs_where_optuna_is_not_installed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search is a grid and a rule, and both are ours."""
    monkeypatch.setattr("calibrant.lab._run_study.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "optuna", None)
    settings = {"epochs": 2, "batch": 64, "recalibrators": ()}
    study = STUDIES["digits"]
    short = replace(study.budgets["quick"], settings=settings, seeds=1)
    monkeypatch.setitem(STUDIES, "digits", replace(study, budgets={"quick": short}))
    assert main(["study", "run", "digits", "--store", str(tmp_path), "--workers", "0"]) == 0
    assert "Without Optuna no journal of searches is kept" in capsys.readouterr().err
    assert not (tmp_path / "optuna.journal").exists()
    written = (tmp_path / "selections.jsonl").read_text().splitlines()
    assert [line for line in map(json.loads, written) if line.get("setting") == "weight"]
    # Where nothing is left to be searched there is nothing to be said.
    assert main(["study", "run", "digits", "--store", str(tmp_path), "--workers", "0"]) == 0
    assert "Optuna" not in capsys.readouterr().err


def test_what_was_left_for_lack_of_time_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["study", "run", "digits", "--store", str(tmp_path), "--workers", "0", "--together"]
    assert main(["study", "pending", "digits", "--store", str(tmp_path)]) == 0
    pending = len(capsys.readouterr().out.splitlines())
    assert main([*asked, "--stop-after", "0"]) == 1
    assert f"{pending} trials were left for another time." in capsys.readouterr().err


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
    # Two weights and what they are held against at one seed, and two arms at two.
    assert listed["digits"]["budgets"]["quick"] == 2 + 1 + 2 * 2


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


def test_a_worker_runs_a_last_line_that_does_not_end(tmp_path: Path) -> None:
    from calibrant.lab.worker import main as work

    trials = [Trial("digits", "mlp", epochs=1, batch=64, seed=seed) for seed in (0, 1)]
    file = tmp_path / "trials.jsonl"
    file.write_text("\n".join(json.dumps(trial.to_dict()) for trial in trials))
    assert work([str(file), "--store", str(tmp_path / "store"), "--device", "cpu"]) == 0
    assert Store(tmp_path / "store").rows().keys() == {trial.identity for trial in trials}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "TRIALS must be a file of trials; there is none at"),
        ('{"data": "digits", "mod', "line 1 is not one: Unterminated string"),
        ('{"data": "digits", "model": "mlp", "size": 3}', "a trial has no 'size'"),
    ],
)
def test_a_worker_refuses_what_is_no_file_of_trials(
    content: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from calibrant.lab.worker import main as work

    file = tmp_path / "trials.jsonl"
    if content is not None:
        file.write_text(content)
    assert work([str(file), "--store", str(tmp_path / "store"), "--device", "cpu"]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("command", ["status", "pending", "render"])
def test_a_store_that_is_not_there_is_told_and_not_made(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "nowhere"
    assert main(["study", command, "digits", "--store", str(nowhere)]) == 0
    assert f"There is no store at {nowhere}, so nothing has run yet." in capsys.readouterr().err
    assert not nowhere.exists()


def test_an_arm_that_cannot_go_on_is_told_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["digits", "--store", str(tmp_path)]
    study = STUDIES["digits"]
    figures = {"none": {"accuracy": 0.9, "ece20": 0.1, "nll": 1.0}}
    for trial in plan("digits", study, study.budgets["quick"], {}).missing:
        end = {"test": figures, "validation": figures} if trial.weight is None else {"error": "x"}
        told = {"identity": trial.identity, "trial": trial.to_dict(), "seconds": 1.0}
        Store(tmp_path).append({**told, "finished": "today", **end})
    why = "every value of weight diverged: x"
    assert main(["study", "run", *store, "--workers", "0", "--json"]) == 1
    stuck = [{"data": "digits", "arm": "NLL + ESD", "reason": why}]
    assert json.loads(capsys.readouterr().out)["cannot_go_on"] == stuck
    assert main(["study", "status", *store]) == 0
    assert f"digits, NLL + ESD cannot go on: {why}\n" in capsys.readouterr().out
    assert main(["study", "status", *store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cannot_go_on"] == stuck
    assert main(["study", "render", *store]) == 0
    assert f"- NLL + ESD on digits: {why}." in capsys.readouterr().out
    assert main(["study", "pending", *store]) == 0
    assert capsys.readouterr().out == ""


def test_a_stored_page_as_json_has_its_figures_and_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = Path(__file__).parents[1] / "results" / "frontier-quick.jsonl"
    (tmp_path / "rows.jsonl").write_text(stored.read_text())
    assert main(["study", "render", "frontier", "--store", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    own = told["data"]["cifar10"]
    page = stored.with_suffix(".md").read_text()
    values = own["arms"]["NLL"]["ECE"].values()
    assert f"| NLL | 89.91 ± 0.15 | {sum(values) / len(values):.2f} ±" in page
    for claim in own["claims"]:
        assert f"| {claim['claim']} | {claim['outcome']} | {claim['difference']:+.2f} |" in page
    assert main(["study", "render", "soft-figure-3", "--results", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [Path(name).suffix for name in told["files"]] == [".md", ".png"]


@pytest.mark.parametrize("name", ["soft-figure-3", "soft-figure-4"])
def test_figures_of_the_soft_functions_need_no_run(name: str, tmp_path: Path) -> None:
    assert main(["study", "render", name, "--results", str(tmp_path)]) == 0
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"({name}.png)" in (tmp_path / f"{name}.md").read_text()


@pytest.mark.parametrize("command", ["run", "status", "pending", "render"])
def test_a_study_that_trains_nothing_says_how_it_is_drawn(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", command, "soft-figure-3"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("calibrant: soft-figure-3 draws functions and trains nothing; draw it: ")
    assert said.endswith("calibrant study render soft-figure-3 --results FOLDER\n")


def test_every_study_that_trains_is_planned_without_naming_a_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["study", "pending", "soft-figure-8", "--store", str(tmp_path)]
    assert main(asked) == 0
    assert '"data": "imagenet100"' in capsys.readouterr().out


def test_a_data_set_is_downloaded_from_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, Path]] = []

    def fetched(name: str, folder: Path) -> list[Path]:
        asked.append((name, folder))
        return [folder / "a.bin", folder / "b.bin"]

    monkeypatch.setattr("calibrant.cli._study_data.download", fetched)
    command = ["study", "data", "cifar10", "--data", str(tmp_path)]
    assert main(command) == 0
    assert capsys.readouterr() == (f"{tmp_path / 'a.bin'}\n{tmp_path / 'b.bin'}\n", "")
    monkeypatch.setattr("calibrant.cli._study_data.download", lambda name, folder: [])
    assert main(command) == 0
    assert capsys.readouterr() == ("", f"All of cifar10 is in {tmp_path} already.\n")
    assert asked == [("cifar10", tmp_path)]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cifar1", "DATA_SET must be one of adult, anli, "),
        ("adult", "adult cannot be downloaded by a program; "),
        ("adult", "must hold tabular/adult.data, tabular/adult.test. Put it there, from"),
    ],
)
def test_what_cannot_be_downloaded_is_refused_in_a_sentence(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "data", name, "--data", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err


def test_a_missing_file_is_told_with_the_command_that_fetches_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my data"
    command = ["train", "cifar10", "mlp", "--data", str(folder), "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert f"network: calibrant study data cifar10 --data '{folder}';" in capsys.readouterr().err


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

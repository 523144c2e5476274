"""The command line: what it prints, what it refuses, and the exit codes that pipelines rely on."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor

import calibrant as cal
from calibrant.cli import _evaluate, main
from calibrant.logs import open_log

ROOT = Path(__file__).parents[1]


@pytest.fixture
def told(tmp_path: Path) -> tuple[Path, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(1)
    logits = 3 * torch.randn(60, 3, generator=rng)
    labels = torch.randint(3, (60,), generator=rng)
    group = np.array(["north", "south"])[np.arange(60) % 2]
    np.savez(tmp_path / "told.npz", logits=logits, labels=labels, region=group, w=np.ones(60))
    return tmp_path / "told.npz", logits, labels


def test_evaluate_prints_the_evaluation_and_the_tests(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = told
    assert main(["evaluate", str(file), "--draws", "39", "--groups", "region"]) == 0
    out, err = capsys.readouterr()
    groups = np.load(file)["region"]
    assert str(cal.evaluate(logits, labels, groups=groups, draws=39)) in out
    tests = cal.calibration_tests(cal.Predictions(logits, labels))
    assert (
        "\n\nIs it calibrated? Each p-value is the chance that a calibrated model would look\n"
        "at least this far off:\n\n"
    ) in out
    assert re.search(rf"kuiper +{tests.kuiper.statistic:.4f} +< 0\.0001\n", out)
    assert out.startswith("told.npz: logits of 3 classes\n")
    assert max(map(len, out.splitlines())) <= 80
    assert err == ""


def test_json_is_the_whole_result(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = told
    assert main(["evaluate", str(file), "--draws", "39", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    direct = json.loads(cal.evaluate(logits, labels, draws=39).to_json())
    assert {name: found[name] for name in direct} == direct
    tests = cal.calibration_tests(cal.Predictions(logits, labels))
    assert found["tests"]["esd"]["p_value"] == tests.esd.p_value
    assert (found["file"], found["kind"], found["streamed"]) == ("told.npz", "logits", False)


def test_the_level_is_that_of_the_intervals(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = told
    assert main(["evaluate", str(file), "--draws", "39", "--level", "0.8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    direct = json.loads(cal.evaluate(logits, labels, draws=39, level=0.8).to_json())
    assert {name: found[name] for name in direct} == direct
    assert main(["evaluate", str(file), "--level", "0.9985"]) == 0  # drawn often enough for it
    out = capsys.readouterr().out
    assert str(cal.evaluate(logits, labels, draws=1333, level=0.9985)) in out
    assert "99.85% interval" in out


def test_a_file_that_is_read_is_not_written_over(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    file, _, _ = told
    before = file.read_bytes()
    assert main(["evaluate", str(file), "--out", str(file)]) == 2
    assert "--out must not be a file that is read" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_no_part_of_a_folder_that_is_read_is_written_over(
    told: tuple[Path, Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, logits, labels = told
    (tmp_path / "parts").mkdir()
    part = tmp_path / "parts" / "0.parquet"
    columns = {f"logit_{k}": column for k, column in enumerate(logits.T.tolist())}
    pq.write_table(pa.table({**columns, "label": labels.tolist()}), part)
    asked = ["evaluate", str(tmp_path / "parts"), "--draws", "39"]
    kept = tmp_path / "kept.bin"
    part.rename(kept)
    part.symlink_to(kept)  # as stores of large files do
    (tmp_path / "link.txt").symlink_to(part)
    (tmp_path / "same").symlink_to(tmp_path / "parts")
    before = part.read_bytes()
    for out in (
        part,
        kept,
        tmp_path / "link.txt",
        tmp_path / "same" / "0.parquet",
        tmp_path / "same" / "found.PARQUET",  # which would be read with the others from then on
        tmp_path / "parts" / "found.pq",
    ):
        assert main([*asked, "--out", str(out)]) == 2, out
        err = capsys.readouterr().err
        assert "--out must not be a Parquet file of a folder that is read; got" in err
        assert err.endswith("/parts'. Write to another folder.\n")
        assert part.read_bytes() == before
    assert sorted(tmp_path.joinpath("parts").iterdir()) == [part]


def test_a_folder_that_is_read_may_hold_the_result(
    told: tuple[Path, Tensor, Tensor], tmp_path: Path
) -> None:
    _, logits, labels = told
    columns = {f"logit_{k}": column for k, column in enumerate(logits.T.tolist())}
    pq.write_table(pa.table({**columns, "label": labels.tolist()}), tmp_path / "0.parquet")
    out = tmp_path / "found.txt"
    for _ in range(2):  # the second time it is there already
        asked = [str(tmp_path), "--draws", "39", "--out", str(out)]
        assert main(["evaluate", *asked]) == 0
        assert f"{len(labels):,} samples" in out.read_text()


def test_markdown_goes_whole_into_a_file(
    told: tuple[Path, Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = told
    out = tmp_path / "found.md"
    asked = ["evaluate", str(file), "--draws", "39", "--format", "markdown", "--out", str(out)]
    assert main(asked) == 0
    assert cal.evaluate(logits, labels, draws=39).to_markdown() in out.read_text()
    assert "| ks | " in out.read_text()
    assert capsys.readouterr().out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.md", "told.npz"]


def test_streamed_values_are_those_of_the_summary(
    events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["evaluate", str(events), "--confidence", "sure", "--outcome", "right", "--stream"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    summary = open_log(events, confidence="sure", outcome="right").summary()
    assert found["streamed"]
    assert found["n"] == 90
    assert {name: row["value"] for name, row in found["rows"].items()} == {
        name: bounded.value for name, bounded in summary.values().items()
    }
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert "answers.csv: confidence and outcome" in out
    assert "90 samples, streamed: no intervals and no tests." in out
    assert re.search(r"ece +0\.\d{4} +exact\n", out)


def test_streamed_groups_are_told_apart(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = told
    assert main(["evaluate", str(file), "--stream", "--groups", "region", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    south = cal.Summary(3).update(logits[1::2], labels[1::2]).values()
    whole = cal.Summary(3).update(logits, labels).values()
    assert found["groups"]["south"]["rows"]["ece"]["value"] == pytest.approx(south["ece"].value)
    assert found["rows"]["ece"]["value"] == pytest.approx(whole["ece"].value)


def test_a_streamed_group_of_too_few_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log.csv"
    file.write_text("confidence,correct,team\n" + "0.5,1,red\n" * 4 + "0.5,0,blue\n")
    for way in ("--stream", "--no-stream"):
        assert main(["evaluate", str(file), "--groups", "team", way]) == 2
        said = capsys.readouterr()
        assert "at least 3 samples in every group, also in 'blue'; got 1" in said.err
        assert not said.out


def test_a_folder_that_is_not_ours_is_refused_before_the_work(
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    monkeypatch.setattr(_evaluate, "_measured", None)
    assert main(["evaluate", str(told[0]), "--out", str(told[0].parent / "found.txt")]) == 2
    assert "--out must be in a folder that you may write to" in capsys.readouterr().err


@pytest.mark.parametrize("known", [True, False])
def test_a_long_file_is_streamed_and_says_so(
    known: bool,
    told: tuple[Path, Tensor, Tensor],
    events: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_evaluate, "MOST_ROWS", 50)
    csv = [str(events), "--confidence", "sure", "--outcome", "right"]
    asked = ["evaluate", *([str(told[0])] if known else csv), "--draws", "39"]
    assert main(asked) == 0
    assert "streamed" in capsys.readouterr().out
    assert main([*asked, "--fail-above", "auroc=0"]) == 2
    err = capsys.readouterr().err
    assert "got 'auroc'. There are " in err
    no_others = "Streaming finds no other rows and no intervals: --no-stream reads the file whole."
    assert err.endswith(f"{no_others}\n")
    assert main([*asked, "--no-stream", "--fail-above", "auroc=0"]) == 1
    assert main([*asked, "--no-stream"]) == 0
    assert "39 draws" in capsys.readouterr().out
    monkeypatch.setattr(_evaluate, "MOST_ROWS", 1000)
    monkeypatch.setattr(_evaluate, "MOST_NUMBERS", 179 if known else 89)
    assert main(asked) == 0
    assert "streamed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "classes", "whole"),
    [
        (10_000_000, None, True),
        (10_000_001, None, False),
        (5_000_000, 10, True),
        (50_000, 1_000, True),
        (50_001, 1_000, False),
    ],
)
def test_what_a_machine_of_some_gigabytes_holds_is_read_whole(
    rows: int, classes: int | None, whole: bool, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(events, confidence="sure", outcome="right")
    batch = log.read()
    log.rows, log.classes = rows, classes
    monkeypatch.setattr(log, "batches", lambda **_: iter([batch]))
    assert (_evaluate._read(log, at_any_length=False) is not None) is whole
    assert _evaluate._read(log, at_any_length=True) is not None


def test_a_streamed_file_has_no_intervals_to_ask_about(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    for option in (["--draws", "39"], ["--level", "0.9"]):
        assert main(["evaluate", str(told[0]), "--stream", *option]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"calibrant: --stream must go without {option[0]}, since rows")


def test_a_defect_is_no_crossed_limit(
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_evaluate, "_measured", lambda *_: [][0])
    assert main(["evaluate", str(told[0])]) == 3
    out, err = capsys.readouterr()
    assert err.endswith("IndexError: list index out of range\n")
    assert out == ""


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--labels", "truth"], r"told\.npz has no column 'truth'; found logits, labels"),
        (["--probabilities", "logits"], r"must not be negative; got .* in row \d+"),
        (["--stream", "--fail-above", "nope=1"], r"must name a row of the table; got 'nope'"),
        (["--stream", "--weights", "w"], r"counts every row once"),
        (["--draws", "0"], r"draws must be a whole number, at least 1; got 0"),
        (["--draws", "38"], r"draws must be at least 39 for a level of 0\.95: .* got 38"),
        (["--draws", "few"], r"Invalid value for '--draws'"),
        (["--level", "0"], r"level must lie between 0 and 1; got 0\.0"),
        (["--stream", "--level", "95"], r"level must lie between 0 and 1; got 95\.0"),
        (["--draws", "99", "--level", "0.99"], r"draws must be at least 199 for a level of 0\.99"),
        (["--colour"], r"No such option: --colour"),
        (["--format", "pdf"], r"Invalid value for '--format'"),
        (["--out", "nowhere/found.txt"], r"--out must be a file in a folder that exists"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_else(
    more: list[str],
    sentence: str,
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["evaluate", str(told[0]), *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.match(rf"calibrant: .*{sentence}", err)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["evalute", "FILE"], "evaluate"),
        (["evaluate", "FILE", "--lables", "y"], "--labels"),
        (["evaluate", "FILE", "--groups", "Regions"], "region"),
        (["evaluate", "FILE", "--fail-above", "eec=0.1", "--draws", "39"], "ece"),
        (
            ["recalibrate", "FILE", "--method", "temprature", "--out", "x.safetensors"],
            "temperature",
        ),
        (["compare", "FILE", "FILE", "--criterion", "breir"], "brier"),
        (["study", "rendr", "digits"], "render"),
        (["study", "render", "digit"], "digits"),
        (["study", "render", "digits", "--budget", "quik"], "quick"),
    ],
)
def test_a_mistyped_name_is_asked_about(
    given: list[str],
    meant: str,
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(told[0]) if word == "FILE" else word for word in given]) == 2
    said = capsys.readouterr().err
    assert f". Did you mean '{meant}'?" in said
    assert "?." not in said


def test_weights_leave_no_tests_and_a_long_weighted_file_asks(
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ["evaluate", str(told[0]), "--weights", "w", "--draws", "39"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert (
        "No tests: they need equally weighted rows. Use the interval of ks_error instead: if it "
        "begins above zero, the model is probably not calibrated."
    ) in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    monkeypatch.setattr(_evaluate, "MOST_ROWS", 50)
    assert main(asked) == 2
    assert "add --no-stream" in capsys.readouterr().err


def test_certainty_has_no_tests_and_an_infinite_loss_is_null(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sure = np.where(np.eye(2)[[0, 1, 0, 1]] > 0, 0.0, -np.inf)
    np.savez(tmp_path / "sure.npz", logits=sure, labels=[0, 1, 0, 0])
    asked = ["evaluate", str(tmp_path / "sure.npz"), "--stream", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"]["nll"]["value"] is None
    assert found["rows"]["ece"]["value"] == 0.25
    np.savez(tmp_path / "sure.npz", confidence=[1.0, 1.0, 0.0], correct=[1, 1, 0])
    assert main(["evaluate", str(tmp_path / "sure.npz"), "--draws", "39"]) == 0
    out = capsys.readouterr().out
    assert "No tests: a test of calibration needs" in out
    assert max(map(len, out.splitlines())) <= 80


def test_certainty_that_was_contradicted_has_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "sure.npz", confidence=[1.0, 1.0, 0.0], correct=[1, 0, 0])
    asked = ["evaluate", str(tmp_path / "sure.npz"), "--draws", "39"]
    assert main(asked) == 0
    out = capsys.readouterr().out
    assert re.search(r"^kuiper +0\.3333 +< 0\.0001$", out, re.MULTILINE)
    assert re.search(r"^spiegelhalter +inf +< 0\.0001$", out, re.MULTILINE)
    assert main([*asked, "--json"]) == 0
    tests = json.loads(capsys.readouterr().out)["tests"]
    assert (tests["kuiper"]["p_value"], tests["spiegelhalter"]["statistic"]) == (0, None)


def test_help_has_examples_that_parse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--help"]) == 0
    text = capsys.readouterr().out
    examples = re.findall(r"^ +calibrant (evaluate .*)$", text, flags=re.MULTILINE)
    assert len(examples) >= 4
    for example in examples:
        assert main(example.split()) == 2  # understood: what is missing is the file
        assert "there is no file" in capsys.readouterr().err
    assert main([]) == 0
    assert "evaluate" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"calibrant {cal.__version__}\n"


def test_doctor_says_what_is_here_and_how_to_get_the_rest(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ['pyarrow>=15; extra == "files"', 'nowhere>1; extra == "moon"', "torch>=2"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"torch        {torch.__version__}" in out
    assert re.search(r"files +present\n +moon +missing: pip install 'calibrant\[moon\]'", out)
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["extras"]["moon"] == {"nowhere": None}


def test_without_typer_the_extra_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "calibrant.cli._app")
    assert main(["doctor"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "calibrant: the command line needs typer and rich: pip install 'calibrant[cli]'\n"
    )


def test_the_script_is_this_function() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["calibrant"].partition(":")
    assert getattr(importlib.import_module(module), function) is main


def test_a_shell_sees_the_exit_codes_and_a_pipe_sees_no_colour(
    told: tuple[Path, Tensor, Tensor], tmp_path: Path
) -> None:
    file = told[0]
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(b"PAR1" + bytes(100))
    stream = ["evaluate", str(file), "--stream"]
    commands = [stream, [*stream, "--fail-above", "ece=0.01"], ["evaluate", str(cut)]]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "calibrant", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    texts = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 1, 2]
    assert "\x1b" not in "".join(out + err for out, err in texts)
    assert texts[0][0] == texts[1][0] != ""
    assert texts[0][1] == ""
    assert texts[1][1].startswith("calibrant: ece is ")
    assert texts[2][0] == ""
    assert re.fullmatch(r"calibrant: cut\.parquet must be a whole Parquet file; .*\n", texts[2][1])


def test_an_empty_name_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", ""]) == 2
    assert "must name a file; got an empty name" in " ".join(capsys.readouterr().err.split())

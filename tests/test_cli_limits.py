"""Limits that a pipeline sets on a row of `calibrant evaluate`, or on an end of its interval."""

import os
import re
import subprocess
import sys
from math import nan
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import calibrant as cal
from calibrant.cli import _evaluate, main
from calibrant.cli._limits import crossed, parse_limits
from calibrant.logs import open_log


@pytest.fixture
def told(tmp_path: Path) -> tuple[Path, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(1)
    logits, labels = 3 * torch.randn(60, 3, generator=rng), torch.arange(60) % 3
    np.savez(tmp_path / "told.npz", logits=logits, labels=labels)
    return tmp_path / "told.npz", logits, labels


def test_a_crossed_limit_is_exit_code_one_and_is_named(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = told
    ece = cal.Summary(3).update(logits, labels).values()["ece"].value
    asked = ["evaluate", str(file), "--stream", "--fail-above"]
    assert main([*asked, f"ece={ece + 1e-9}"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*asked, "ece=0.01", "--fail-above", "accuracy=1"]) == 1
    out, err = capsys.readouterr()
    assert err == f"calibrant: ece is {ece:.4g}, above the limit of 0.01.\n"
    assert "accuracy" in out


def test_of_several_limits_on_a_row_the_strictest_counts() -> None:
    limits = parse_limits(["ece=0.5", "ece=0.01", "ece=0.5"], ["accuracy=0.9", "accuracy=0.1"])
    assert limits.above == {"ece": 0.01}
    assert limits.below == {"accuracy": 0.9}


@pytest.mark.parametrize(
    ("limit", "code"), [([], 0), (["--fail-above", "ece=0"], 1), (["--fail-above", "nope=0"], 2)]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_who_reads_no_output_gets_the_same_exit_code(
    limit: list[str], code: int, unbuffered: str, told: tuple[Path, Tensor, Tensor]
) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "calibrant", "evaluate", str(told[0]), "--draws=39", *limit]
    found = subprocess.run(
        command,
        stdout=write,
        stderr=write,
        check=False,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )
    os.close(write)
    assert found.returncode == code


@pytest.mark.parametrize("way", [[], ["--stream"]])
@pytest.mark.parametrize("kind", ["classes", "events"])
def test_a_limit_of_no_row_is_refused_before_the_work(
    way: list[str],
    kind: str,
    told: tuple[Path, Tensor, Tensor],
    events: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = [str(events), "--confidence", "sure", "--outcome", "right"]
    asked = ["evaluate", *([str(told[0])] if kind == "classes" else pair), *way]
    known = (
        open_log(told[0])
        if kind == "classes"
        else open_log(events, confidence="sure", outcome="right")
    )
    for work in ("_read", "_streamed"):
        monkeypatch.setattr(_evaluate, work, lambda *_, **__: pytest.fail("rows were read"))
    assert main([*asked, "--fail-above", "nope=1"]) == 2
    rows = capsys.readouterr().err.partition("There are ")[2].partition(". ")[0].strip(".\n")
    found = known.summary().values() if way else known.evaluate(draws=39)
    assert rows == ", ".join(found)


@pytest.mark.parametrize("option", ["--fail-above", "--fail-below"])
@pytest.mark.parametrize("name", ["ece", "ece.low", "ece.high"])
def test_a_limit_is_on_a_value_or_on_an_end_of_its_interval(
    option: str,
    name: str,
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, logits, labels = told
    row = cal.evaluate(logits, labels, draws=39)["ece"]
    number = {"ece": row.value, "ece.low": row.low, "ece.high": row.high}[name]
    side = option.removeprefix("--fail-")
    inside = number + (1e-9 if side == "above" else -1e-9)
    outside = number - (0.01 if side == "above" else -0.01)
    asked = ["evaluate", str(file), "--draws", "39", option]
    assert main([*asked, f"{name}={inside}"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*asked, f"{name}={outside}"]) == 1
    said = f"calibrant: {name} is {number:.4g}, {side} the limit of {outside:g}.\n"
    assert capsys.readouterr().err == said


def test_every_limit_that_is_crossed_is_told(
    told: tuple[Path, Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    limits = [
        "--fail-above",
        "ece.low=0.01",
        "--fail-below",
        "accuracy=0.9",
        "--fail-below",
        "nll=0",
    ]
    assert main(["evaluate", str(told[0]), "--draws", "39", *limits]) == 1
    said = re.findall(r"(?m)^calibrant: (\S+) is \S+, (\w+) the limit", capsys.readouterr().err)
    assert said == [("ece.low", "above"), ("accuracy", "below")]


def test_the_lower_end_is_crossed_only_where_chance_is_not_the_reason(tmp_path: Path) -> None:
    """The error itself is biased upwards, so that small samples of any model cross a limit."""
    file, crossed = tmp_path / "rows.npz", {"ece": 0, "ece.low": 0}
    for seed in range(10):
        rng = torch.Generator().manual_seed(seed)
        calibrated = torch.randn(200, 3, generator=rng)
        labels = torch.multinomial(calibrated.softmax(dim=1), 1, generator=rng)[:, 0]
        np.savez(file, logits=calibrated, labels=labels)
        for name in crossed:
            limit = ["--fail-above", f"{name}=0.05"]
            crossed[name] += main(["evaluate", str(file), "--draws", "200", *limit])
    assert crossed["ece"] > 5
    assert crossed["ece.low"] == 0
    np.savez(file, logits=5 * calibrated, labels=labels)
    assert main(["evaluate", str(file), "--draws", "200", "--fail-above", "ece.low=0.05"]) == 1


@pytest.mark.parametrize("asked", ["--stream", None])
@pytest.mark.parametrize("option", ["--fail-above", "--fail-below"])
def test_rows_that_are_counted_have_no_ends_to_set_a_limit_on(
    asked: str | None,
    option: str,
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_evaluate, "_streamed", lambda *_, **__: pytest.fail("rows were read"))
    monkeypatch.setattr(_evaluate, "MOST_ROWS", 50)
    command = ["evaluate", str(told[0]), *([asked] if asked else []), option, "ece.low=0.05"]
    assert main(command) == 2
    assert capsys.readouterr().err == (
        f"calibrant: {option} must name a row alone where there are no intervals; got 'ece.low'. "
        "Streaming finds no other rows and no intervals: --no-stream reads the file whole.\n"
    )


def test_a_fit_has_no_intervals_to_set_a_limit_on(
    told: tuple[Path, Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "map.safetensors"
    asked = ["recalibrate", str(told[0]), "--out", str(out), "--fail-above", "ece.low=0.05"]
    assert main(asked) == 2
    assert "got 'ece.low'. Set a limit on ece." in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("name", ["nope", "nope.low", "ece.middle", ".low", "ece.low.low"])
@pytest.mark.parametrize("option", ["--fail-above", "--fail-below"])
def test_there_is_no_limit_on_what_is_not_there(
    option: str,
    name: str,
    told: tuple[Path, Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_evaluate, "_measured", lambda *_: pytest.fail("rows were read"))
    assert main(["evaluate", str(told[0]), option, f"{name}=1"]) == 2
    said = f"calibrant: {option} must name a row of the table; got {name!r}. There are accuracy, "
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("text", ["ece", "ece=", "=0.1", "ece=high", "ece=nan", "ece.low"])
def test_a_limit_must_be_a_row_and_a_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"--fail-above must be like ece=0\.05; got"):
        parse_limits([text])
    with pytest.raises(ValueError, match=r"--fail-below must be like accuracy=0\.9; got"):
        parse_limits([], [text])


def test_what_is_not_a_number_crosses_every_limit() -> None:
    limits = parse_limits(["nll=1"], ["nll=0"])
    assert [said.split(", ")[1] for said in crossed(limits, {"nll": nan})] == [
        "above the limit of 1.",
        "below the limit of 0.",
    ]
    assert crossed(limits, {"nll": 0.5}) == []

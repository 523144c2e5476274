"""`calibrant recalibrate`: what it fits, prints, writes and refuses."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.testing import assert_close

import calibrant as cal
from calibrant.cli import main


@pytest.fixture
def held_out(tmp_path: Path, rng: torch.Generator) -> tuple[Path, Tensor, Tensor]:
    """Over-confident predictions of three classes, each class in one row in three or so."""
    logits = torch.randn(240, 3, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    np.savez(tmp_path / "held_out.npz", logits=3 * logits, labels=labels, w=np.ones(240))
    return tmp_path / "held_out.npz", 3 * logits, labels


@pytest.mark.parametrize("method", cal.RECALIBRATORS)
def test_every_method_is_fitted_and_kept(
    method: str,
    held_out: tuple[Path, Tensor, Tensor],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, logits, labels = held_out
    out = tmp_path / "map.safetensors"
    asked = ["recalibrate", str(file), "--method", method, "--out", str(out), "--folds", "0"]
    assert main(asked) == 0
    direct = cal.RECALIBRATORS[method]().fit(logits, labels, folds=0)
    loaded = cal.Recalibrator.load(out)
    assert_close(loaded.transform(logits), direct.transform(logits))
    printed = capsys.readouterr().out
    assert printed.startswith(str(direct.report_))
    assert printed.endswith(f"written to {out}\n")


def test_the_report_and_the_temperature_are_printed(
    held_out: tuple[Path, Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = held_out
    asked = ["recalibrate", str(file), "--out", str(tmp_path / "t.safetensors")]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    direct = cal.TemperatureScaling().fit(logits, labels)
    assert str(direct.report_) in out
    assert f"temperature_ = {direct.temperature_.item():.4g}\n" in out
    assert err == ""
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nll_after"] == direct.report_.nll_after
    assert found["learnt"] == {"temperature_": pytest.approx(direct.temperature_.item())}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--objective", "sb_ece"], cal.TemperatureScaling("sb_ece")),
        (["--method", "histogram", "--bins", "4"], cal.HistogramBinning(bins=4)),
        (["--method", "matrix", "--strength", "0.5"], cal.MatrixScaling(strength=0.5)),
        (
            ["--method", "best_of", "--candidate", "platt", "--score", "brier"],
            cal.BestOf([cal.PlattScaling()], score="brier"),
        ),
    ],
)
def test_settings_reach_the_method(
    asked: list[str],
    expected: cal.Recalibrator,
    held_out: tuple[Path, Tensor, Tensor],
    tmp_path: Path,
) -> None:
    out = tmp_path / "map.safetensors"
    assert main(["recalibrate", str(held_out[0]), "--out", str(out), "--folds", "0", *asked]) == 0
    assert repr(cal.Recalibrator.load(out)) == repr(expected)


def test_probabilities_and_events_are_recalibrated_too(
    held_out: tuple[Path, Tensor, Tensor], tmp_path: Path
) -> None:
    file, logits, labels = held_out
    out = tmp_path / "map.safetensors"
    chances = logits.softmax(dim=1)
    np.savez(file, probs=chances, labels=labels)
    assert main(["recalibrate", str(file), "--out", str(out), "--folds", "0"]) == 0
    direct = cal.TemperatureScaling().fit(cal.as_logits(chances), labels, folds=0)
    assert_close(cal.TemperatureScaling.load(out).temperature_, direct.temperature_)
    sure, right = chances.amax(dim=1), (chances.argmax(dim=1) == labels).long()
    np.savez(file, confidence=sure, correct=right)
    assert main(["recalibrate", str(file), "--out", str(out), "--method", "platt"]) == 0
    of_events = cal.PlattScaling().fit(cal.as_logits(sure), right, folds=0)
    odds = cal.as_logits(sure)
    assert_close(cal.Recalibrator.load(out).transform(odds), of_events.transform(odds))


def test_events_are_judged_and_gated_as_evaluate_judges_them(
    tmp_path: Path, rng: torch.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    sure = torch.randint(10, 100, (500,), generator=rng).double() / 100  # many below one half
    right = torch.bernoulli((sure / 2 + 0.5), generator=rng).long()
    np.savez(tmp_path / "answers.npz", sure=sure, right=right)
    columns = ["--confidence", "sure", "--outcome", "right", "--json"]
    assert main(["evaluate", str(tmp_path / "answers.npz"), *columns, "--draws", "39"]) == 0
    raw = json.loads(capsys.readouterr().out)["rows"]["ece"]["value"]
    out = tmp_path / "map.safetensors"
    asked = ["recalibrate", str(tmp_path / "answers.npz"), *columns, "--out", str(out)]
    assert main([*asked, "--method", "identity", "--fail-above", f"ece={raw - 0.01}"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["ece_before"] == pytest.approx(raw)
    assert json.loads(told.out)["ece_after"] == pytest.approx(raw)
    assert f"calibrant: ece is {raw:.4g}, above the limit" in told.err
    assert main([*asked, "--method", "identity", "--fail-above", f"ece={raw + 0.01}"]) == 0


def test_a_limit_that_no_fold_can_be_held_against_is_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logits, labels = 5 * torch.eye(3).repeat(4, 1), torch.arange(12) % 3
    labels[0] = 1  # the one mistake: without it no temperature fits
    np.savez(tmp_path / "held_out.npz", logits=logits, labels=labels)
    asked = ["recalibrate", str(tmp_path / "held_out.npz")]
    asked += ["--out", str(tmp_path / "t.safetensors")]
    assert main(asked) == 0
    capsys.readouterr()
    assert main([*asked, "--fail-above", "ece=0.1"]) == 1
    out, err = capsys.readouterr()
    assert "one could not be fitted" in " ".join(out.split())
    assert err == (
        "calibrant: ece must be at most 0.1 on held-out folds; it is not known, since one of them "
        "could not be fitted, for the reason given.\n"
    )


def test_a_map_that_harms_is_written_with_a_warning(
    held_out: tuple[Path, Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, logits, labels = held_out
    np.savez(file, logits=logits / 3, labels=labels)
    asked = ["recalibrate", str(file), "--out", str(tmp_path / "h.safetensors")]
    assert main([*asked, "--method", "histogram", "--bins", "60"]) == 0
    assert "By the likelihood this is worse than no map" in capsys.readouterr().out


def test_every_word_is_printed_however_narrow_the_terminal(
    held_out: tuple[Path, Tensor, Tensor],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    names = ("platt", "temperature_sb_ece", "dirichlet")
    asked = ["recalibrate", str(held_out[0]), "--out", str(tmp_path / "b.safetensors")]
    candidates = [word for name in names for word in ("--candidate", name)]
    assert main([*asked, "--method", "best_of", *candidates, "--folds", "0"]) == 0
    out = capsys.readouterr().out
    method = repr(cal.BestOf([cal.RECALIBRATORS[name]() for name in names]))
    assert re.match(
        rf"{re.escape(method)}: 240 samples, 3 classes; converged in \d+ iterations? Ch",
        " ".join(out.split()),
    )
    assert all(len(line) <= 80 for line in out.splitlines() if "written to" not in line)


def test_the_predictions_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "held_out.safetensors"
    told = {"logits": torch.randn(20, 3), "labels": torch.arange(20) % 3}
    save_file(told, file)
    other = tmp_path / "other.safetensors"
    other.symlink_to(file)
    for out in (file, other):
        assert main(["recalibrate", str(file), "--out", str(out)]) == 2
        assert "--out must not be a file that is read" in capsys.readouterr().err
    assert torch.equal(load_file(file)["logits"], told["logits"])


def test_weights_count(held_out: tuple[Path, Tensor, Tensor], tmp_path: Path) -> None:
    file, logits, labels = held_out
    out = tmp_path / "map.safetensors"
    heavy = torch.where(labels == 0, 3.0, 1.0)
    np.savez(file, logits=logits, labels=labels, w=heavy)
    asked = ["recalibrate", str(file), "--out", str(out), "--weights", "w", "--folds", "0"]
    assert main(asked) == 0
    weighted = cal.TemperatureScaling().fit(logits, labels, weights=heavy, folds=0)
    plain = cal.TemperatureScaling().fit(logits, labels, folds=0)
    found = cal.TemperatureScaling.load(out).temperature_
    assert_close(found, weighted.temperature_)
    assert found.item() != pytest.approx(plain.temperature_.item(), rel=1e-3)


def test_a_crossed_limit_is_exit_code_one(
    held_out: tuple[Path, Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["recalibrate", str(held_out[0]), "--out", str(tmp_path / "t.safetensors")]
    assert main([*asked, "--fail-above", "ece=0.9"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*asked, "--fail-above", "nll=0.1"]) == 1
    assert re.fullmatch(
        r"calibrant: nll is 0\.\d+, above the limit of 0\.1\.\n", capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--method", "magic"], r"method must be one of identity, temperature, .*; got 'magic'"),
        (["--bins", "4"], r"TemperatureScaling has no setting 'bins'; got 4"),
        (["--objective", "joy"], r"got 'joy'"),
        (["--out", "map.bin"], r"--out must end in \.safetensors; got 'map\.bin'"),
        (["--out", "nowhere/map.safetensors"], r"--out must be a file in a folder that exists"),
        (["--fail-above", "brier=1"], r"must name a row of the table; got 'brier'"),
        (["--folds", "0", "--fail-above", "ece=1"], r"must name a row .* There are none"),
        (["--folds", "1"], r"folds must be 0 or at least 2; got 1"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_no_file(
    more: list[str],
    sentence: str,
    held_out: tuple[Path, Tensor, Tensor],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = tmp_path / "map.safetensors"
    assert main(["recalibrate", str(held_out[0]), "--out", str(kept), *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.match(rf"calibrant: .*{sentence}", err)
    assert err.count("\n") == 1
    assert not kept.exists()

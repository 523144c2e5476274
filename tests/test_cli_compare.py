"""`calibrant compare`: two files, one set of samples."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import calibrant as cal
from calibrant.cli import main


@pytest.fixture
def two(tmp_path: Path, rng: torch.Generator) -> tuple[list[str], Tensor, Tensor]:
    """Files of a boastful and of an honest model, with the honest logits and the labels."""
    logits = torch.randn(150, 3, generator=rng)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    np.savez(tmp_path / "new.npz", logits=4 * logits, labels=labels)
    np.savez(tmp_path / "old.npz", logits=logits, labels=labels)
    return [str(tmp_path / "new.npz"), str(tmp_path / "old.npz")], logits, labels


def test_the_comparison_is_printed_within_eighty_columns(
    two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, logits, labels = two
    assert main(["compare", *files, "--draws", "50"]) == 0
    out, err = capsys.readouterr()
    direct = cal.compare(4 * logits, logits, labels, draws=50)
    assert str(direct) in out
    assert out.startswith("first new.npz, second old.npz\n150 samples, 50 draws, 95% intervals\n")
    assert max(map(len, out.splitlines())) <= 80
    assert err == ""


def test_json_and_markdown_hold_the_same_numbers(
    two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, logits, labels = two
    asked = ["compare", *files, "--draws", "50", "--seed", "3", "--criterion", "mmce"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    criteria = {"mmce": cal.CRITERIA["mmce"]}
    direct = cal.compare(4 * logits, logits, labels, criteria=criteria, draws=50, seed=3)
    assert found["rows"] == direct.to_dict()["rows"]
    assert (found["first"], found["second"]) == ("new.npz", "old.npz")
    assert main([*asked, "--format", "markdown"]) == 0
    assert direct.to_markdown() in capsys.readouterr().out


def test_logits_are_compared_with_probabilities(
    two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, logits, labels = two
    np.savez(files[1], probs=logits.softmax(dim=1), labels=labels)
    assert main(["compare", *files, "--draws", "40", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]["nll"]
    direct = cal.compare(4 * logits, logits, labels, draws=40)["nll"]
    assert found["difference"] == pytest.approx(direct.difference, rel=1e-4)


def test_a_difference_above_its_limit_is_exit_code_one(
    two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, _, _ = two
    asked = ["compare", "--draws", "40", "--fail-above", "nll=0.05"]
    assert main([*asked, *files]) == 1
    assert re.match(
        r"calibrant: the difference in nll is [\d.]+, above the limit", capsys.readouterr().err
    )
    assert main([*asked, *files[::-1]]) == 0  # old less new is below zero
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("labels", r"must have the same labels .* differ in 2 rows, first in row 4 .*: 0 and 1\."),
        ("rows", r"must hold the same samples and classes; got 150 by 3 and 149 by 3"),
        ("classes", r"must hold the same samples and classes; got 150 by 3 and 150 by 4"),
        ("events", r"old\.npz must have logits or probabilities and labels"),
        ("criterion", r"criterion must be one of .*; got 'joy'"),
        ("draws", r"draws must be a whole number, at least 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    change: str,
    sentence: str,
    two: tuple[list[str], Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files, logits, labels = two
    labels = labels.clone()
    labels[[4, 90]] = 0
    np.savez(files[0], logits=logits, labels=labels)
    more = []
    match change:
        case "labels":
            labels[[4, 90]] = 1
            np.savez(files[1], logits=logits, labels=labels)
        case "rows":
            np.savez(files[1], logits=logits[:-1], labels=labels[:-1])
        case "classes":
            np.savez(files[1], logits=torch.zeros(150, 4), labels=labels)
        case "events":
            np.savez(files[1], confidence=np.full(150, 0.5), correct=labels == 0)
        case "criterion":
            more = ["--criterion", "joy"]
        case "draws":
            np.savez(files[1], logits=logits, labels=labels)
            more = ["--draws", "0"]
    assert main(["compare", *files, *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.match(rf"calibrant: .*{sentence}", err)
    assert err.count("\n") == 1

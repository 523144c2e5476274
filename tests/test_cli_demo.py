"""The demo: every way to train, the table, the report; with far fewer steps than it takes."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import calibrant as cal
from calibrant.cli import main
from calibrant.demo import _digits, _run, _show, _ways


@pytest.fixture(scope="module")
def small() -> dict[str, _run.Judged]:
    """Every way, on one fold, for a step or two."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_ways, "STEPS", 20)
        patched.setattr(_run, "_DRAWS", 50)
        return _run.run(most_folds=1)


def test_it_prints_a_table_of_every_way_and_writes_the_report(
    small: dict[str, _run.Judged],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = {name: small[name] for name in ("NLL", "NLL + ESD")}
    monkeypatch.setattr(_show, "run", lambda advance: some)
    monkeypatch.setattr(_show, "DRAWS", 39)
    out = tmp_path / "digits.html"
    assert main(["demo", "--out", str(out)]) == 0
    printed, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, printed.split("The report is")[0].splitlines())) <= 80
    for name, judged in some.items():
        assert re.search(rf"^{re.escape(name)} +{_cell(judged.rows['accuracy'])}", printed, re.M)
        assert len(judged.labels) == 599
    assert f"The report is {out}" in printed.replace("\n", "")
    page = out.read_text(encoding="utf-8")
    assert all(name in page for name in some)


def test_every_way_is_trained_judged_and_in_the_table(small: dict[str, _run.Judged]) -> None:
    assert list(small) == list(_ways.WAYS)
    table = _show.table(small)
    assert max(map(len, table.splitlines())) <= 80
    assert [line[:20].rstrip() for line in table.splitlines()[1:]] == list(_ways.WAYS)
    logits = [judged.logits for judged in small.values()]
    assert all(bool((one != other).any()) for one, other in pairwise(logits))
    for judged in small.values():  # one fold has one temperature
        scale = judged.logits / judged.repaired
        assert_close(scale, scale[0, 0].expand_as(scale))
        assert abs(scale[0, 0].item() - 1) > 1e-3
    accuracy = [judged.rows["accuracy"].value for judged in small.values()]
    assert min(accuracy) > 0.1
    assert max(accuracy) > 0.5  # which is much for twenty steps


def _cell(row: cal.Estimate) -> str:
    return re.escape(_show.cell(row))


def test_json_has_every_number_before_and_after_repair(
    small: dict[str, _run.Judged],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some = {name: small[name] for name in ("NLL", "NLL + ESD")}
    monkeypatch.setattr("calibrant.demo.run", lambda: some)
    monkeypatch.setattr(_show, "report", lambda found, out: None)
    assert main(["demo", "--json", "--out", str(tmp_path / "digits.html")]) == 0
    found = json.loads(capsys.readouterr().out)["ways"]["NLL + ESD"]
    judged = small["NLL + ESD"]
    ece = cal.CRITERIA["ece"]
    for state, logits in (("trained", judged.logits), ("temperature", judged.repaired)):
        direct = ece(cal.Predictions(logits, judged.labels)).item()
        assert found[state]["ece"]["value"] == pytest.approx(direct, rel=1e-6)
        assert found[state]["ece"]["low"] <= found[state]["ece"]["high"]
    assert found["temperature"]["nll"]["value"] < found["trained"]["nll"]["value"] + 0.2


def test_parts_of_a_fold_share_no_image_and_every_image_is_tested_once() -> None:
    tested = []
    for fold in _digits.folds():
        parts = [part.tensors[0] for part in (fold.majority, fold.slice_, fold.validation)]
        everything = torch.cat([*parts, fold.test.tensors[0]])
        assert len(everything) == len(everything.unique(dim=0)) == 1797
        assert len(parts[1]) == len(parts[2]) == round(0.1 * sum(map(len, parts)))
        assert_close(fold.everything.tensors[0], torch.cat(parts[:2]))
        tested.append(fold.test.tensors[0])
    assert len(torch.cat(tested).unique(dim=0)) == 1797


def test_a_folder_that_is_not_there_is_said_before_anything_is_trained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo", "--out", "nowhere/digits.html"]) == 2
    assert "--out must be a file in a folder that exists" in capsys.readouterr().err

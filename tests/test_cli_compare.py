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
from calibrant.evaluation._named import OF_EVENTS
from calibrant.evaluation._named import named as criterion
from calibrant.report._against import differences
from calibrant.report._models import told
from calibrant.report._settings import Settings

Rows = dict[str, dict[str, float]]


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


@pytest.fixture
def pair(tmp_path: Path, rng: torch.Generator) -> tuple[Path, Path, tuple[Tensor, ...]]:
    """Files of two models as tables and as what their tables said, with weights, and the numbers.

    Of each file: logits, labels, confidence, correct and a weight `w`.
    """
    second = torch.randn(120, 3, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(second.softmax(dim=1), 1, generator=rng)[:, 0]
    first = 3 * second + torch.randn(120, 3, generator=rng, dtype=torch.float64)
    w = torch.randint(1, 5, (120,), generator=rng).double()
    for name, logits in (("new", first), ("old", second)):
        sure, said = logits.softmax(dim=1).max(dim=1)
        right = (said == labels).long()
        file = tmp_path / f"{name}.npz"
        np.savez(file, logits=logits, labels=labels, confidence=sure, correct=right, w=w)
    return tmp_path / "new.npz", tmp_path / "old.npz", (first, second, labels, w)


TABLE = ["--logits", "logits"]
EVENTS = ["--outcome", "correct"]


def rows_of(asked: list[str], capsys: pytest.CaptureFixture[str]) -> Rows:
    """What the command says of each criterion."""
    assert main(["compare", *asked, "--json"]) == 0
    rows: Rows = json.loads(capsys.readouterr().out)["rows"]
    return rows


def assert_same_rows(found: Rows, expected: Rows) -> None:
    """But for the p-value of accuracies, which is a matter of last digits.

    A resample that is exactly twice their difference brings an end of an interval to zero.
    """
    assert list(found) == list(expected)
    for name, row in expected.items():
        for part in row.keys() - ({"p_value"} if name == "accuracy" else set()):
            assert found[name][part] == pytest.approx(row[part], rel=1e-6, abs=1e-9), (name, part)


def named(names: tuple[str, ...]) -> list[str]:
    return [word for name in names for word in ("--criterion", name)]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_level_is_that_of_the_intervals(
    level: float,
    two: tuple[list[str], Tensor, Tensor],
    capsys: pytest.CaptureFixture[str],
) -> None:
    files, logits, labels = two
    direct = cal.compare(4 * logits, logits, labels, draws=50, level=level)
    asked = [*files, "--draws", "50", "--level", str(level)]
    assert_same_rows(rows_of(asked, capsys), direct.to_dict()["rows"])
    assert main(["compare", *asked]) == 0
    assert f"150 samples, 50 draws, {100 * level:g}% intervals\n" in capsys.readouterr().out


def test_a_high_level_is_drawn_for_and_printed_whole(
    two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, _, _ = two
    assert main(["compare", *files, "--level", "0.9985", "--criterion", "nll"]) == 0
    assert "150 samples, 1,333 draws, 99.85% intervals\n" in capsys.readouterr().out


def test_weights_of_one_and_events_are_compared_as_tables_are(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Three ways to the same numbers: what draws, bins and rays see is the same."""
    a, b, (first, second, labels, _) = pair
    criteria = {name: criterion(name) for name in OF_EVENTS}
    direct = cal.compare(
        first, second, labels, criteria=criteria, draws=60, level=0.9, seed=2
    ).to_dict()["rows"]
    asked = [*named(OF_EVENTS), "--draws", "60", "--level", "0.9", "--seed", "2"]
    assert_same_rows(rows_of([str(a), str(b), *TABLE, *asked], capsys), direct)
    events = rows_of([str(a), str(b), *EVENTS, *asked], capsys)
    told_alike = [name for name in OF_EVENTS if name not in ("nll", "brier")]
    assert_same_rows(
        {name: events[name] for name in told_alike}, {name: direct[name] for name in told_alike}
    )
    for file in (a, b):
        np.savez(file, **{**np.load(file), "w": np.ones(120)})
    assert_same_rows(rows_of([str(a), str(b), *TABLE, *asked, "--weights", "w"], capsys), direct)


def test_many_events_are_compared_as_tables_are(
    tmp_path: Path, rng: torch.Generator, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond 16,384 samples both ways draw lots, and find the same."""
    second = torch.randn(17_000, 2, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(second.softmax(dim=1), 1, generator=rng)[:, 0]
    for name, scale in (("new", 1.2), ("old", 1.0)):
        sure, said = (scale * second).softmax(dim=1).max(dim=1)
        np.savez(tmp_path / f"{name}.npz", confidence=sure, correct=said == labels)
    names = ("ece", "ks_error", "esd")
    criteria = {name: cal.CRITERIA[name] for name in names}
    direct = cal.compare(1.2 * second, second, labels, criteria=criteria, draws=39)
    files = [str(tmp_path / f"{name}.npz") for name in ("new", "old")]
    found = rows_of([*files, *named(names), "--draws", "39"], capsys)
    assert_same_rows(found, direct.to_dict()["rows"])


@pytest.mark.parametrize("form", ["table", "events"])
def test_values_of_a_weighted_comparison_are_those_of_evaluate(
    form: str,
    pair: tuple[Path, Path, tuple[Tensor, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a table nll and Brier score are of every class; of events, of right or wrong."""
    a, b, (first, second, labels, w) = pair
    columns = TABLE if form == "table" else EVENTS
    asked = [*columns, *named(OF_EVENTS), "--weights", "w", "--bins", "7", "--draws", "39"]
    found = rows_of([str(a), str(b), *asked], capsys)
    assert list(found) == list(OF_EVENTS)
    for side, logits in (("first", first), ("second", second)):
        if form == "table":
            evaluation = cal.evaluate(logits, labels, weights=w, bins=7, draws=39)
        else:
            sure, said = logits.softmax(dim=1).max(dim=1)
            right = (said == labels).double()
            evaluation = cal.evaluate_events(sure, right, weights=w, bins=7, draws=39)
        for name, row in found.items():
            assert row[side] == pytest.approx(evaluation[name].value), name
    for row in found.values():
        assert row["difference"] == pytest.approx(row["first"] - row["second"])


def test_scores_by_weight_are_resampled_by_definition(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The basic bootstrap of the weighted means, both models drawn together."""
    a, b, (first, second, labels, w) = pair
    found = rows_of([str(a), str(b), *TABLE, "--weights", "w", "--draws", "39"], capsys)["brier"]
    happened = torch.nn.functional.one_hot(labels, 3)
    one, other = ((x.softmax(dim=1) - happened).square().sum(dim=1) for x in (first, second))
    drawn = torch.randint(120, (39, 120), generator=torch.Generator().manual_seed(0))
    apart = [(w * (one - other))[rows].sum() / w[rows].sum() for rows in drawn]
    delta = (w * (one - other)).sum() / w.sum()
    assert found["difference"] == pytest.approx(delta.item())
    # Of 39 draws the middle 95% end at the least and at the most.
    assert found["low"] == pytest.approx((2 * delta - max(apart)).item())
    assert found["high"] == pytest.approx((2 * delta - min(apart)).item())


def test_more_bins_are_those_of_the_binned_measures_only(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, (first, second, labels, _) = pair
    asked = [str(a), str(b), *TABLE, "--draws", "39"]
    usual, few = rows_of(asked, capsys), rows_of([*asked, "--bins", "4"], capsys)
    for side, logits in (("first", first), ("second", second)):
        predictions = cal.Predictions(logits, labels)
        expected = cal.ece(predictions.confidence, predictions.correct, bins=4)
        assert few["ece"][side] == pytest.approx(expected.item())
    assert few["ece"]["low"] != pytest.approx(usual["ece"]["low"])
    without = [name for name in usual if name != "ece"]
    assert_same_rows({name: few[name] for name in without}, {name: usual[name] for name in without})
    assert_same_rows(rows_of([*asked, "--bins", "15"], capsys), usual)


def test_the_command_says_what_the_report_says(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, (first, second, labels, w) = pair
    models = [told(name, (x, labels), weights=w) for name, x in (("a", first), ("b", second))]
    shown = differences(models[0], models[1], Settings(10, 50, 0.8, 4))
    asked = ["--weights", "w", "--bins", "10", "--draws", "50", "--level", "0.8", "--seed", "4"]
    found = rows_of([str(a), str(b), *TABLE, *named(tuple(shown)), *asked], capsys)
    assert_same_rows(found, {name: vars(row) for name, row in shown.items()})


def test_the_other_way_round_every_difference_is_its_opposite(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, _ = pair
    asked = [*EVENTS, "--weights", "w", "--draws", "39"]
    there, back = (rows_of([str(x), str(y), *asked], capsys) for x, y in ((a, b), (b, a)))
    assert there["nll"]["difference"] > 0  # the first is the boastful one
    for name, row in there.items():
        assert row["difference"] == pytest.approx(-back[name]["difference"])
        assert (row["low"], row["high"]) == pytest.approx((-back[name]["high"], -back[name]["low"]))


def test_logits_and_probabilities_are_compared_by_weight(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, (_, second, labels, w) = pair
    for file in (a, b):
        kept = np.load(file)
        np.savez(file, **{name: kept[name] for name in ("logits", "labels", "w")})
    asked = [str(a), str(b), "--weights", "w", "--draws", "39"]
    expected = rows_of(asked, capsys)
    np.savez(b, probs=second.softmax(dim=1), labels=labels, w=w)
    assert_same_rows(rows_of(asked, capsys), expected)


def test_a_model_and_itself_are_no_distance_apart_however_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor where it was certain of what did not happen, which costs infinitely much."""
    file = tmp_path / "certain.csv"
    file.write_text("sure,right\n" + "1.0,0\n0.7,1\n0.6,1\n0.9,1\n" * 10)
    asked = [str(file), str(file), "--confidence", "sure", "--outcome", "right", "--draws", "39"]
    assert main(["compare", *asked]) == 0
    rows = capsys.readouterr().out.split("p-value\n")[1].splitlines()
    assert len(rows) == 6
    for line in rows:
        assert re.search(r"0\.0000 +0\.0000 +0\.0000 +1\.0000$", line), line


def test_losses_that_are_both_infinite_are_no_distance_apart(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    a, _, (first, _, labels, w) = pair
    ruled_out = first.clone()
    ruled_out[:5, :] = 0
    ruled_out[range(5), labels[:5]] = -torch.inf
    np.savez(a, logits=ruled_out, labels=labels, w=w)
    asked = [str(a), str(a), "--weights", "w", "--draws", "39", "--criterion", "nll"]
    assert main(["compare", *asked]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\nnll +inf +inf +0\.0000 +0\.0000 +0\.0000 +1\.0000$", out)


def test_last_digits_are_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Though every one of them is larger in the first model."""
    sure = np.linspace(0.1, 0.9, 30)
    for name, confidence in (("a", np.nextafter(sure, 1)), ("b", sure)):
        np.savez(tmp_path / f"{name}.npz", confidence=confidence, correct=np.zeros(30))
    files = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    found = rows_of([*files, "--draws", "39"], capsys)
    for name, row in found.items():
        assert row["p_value"] == 1, name
        assert row["low"] <= 0 <= row["high"], name


def test_differences_of_events_are_within_what_two_models_can_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, sure in (("worst", 1.0), ("best", 0.0)):
        lines = [f"{abs(sure - (k < 2)):.1f},0\n" for k in range(9)]
        (tmp_path / f"{name}.csv").write_text("sure,right\n" + "".join(lines))
    files = [str(tmp_path / "worst.csv"), str(tmp_path / "best.csv")]
    asked = [*files, "--confidence", "sure", "--outcome", "right", "--draws", "199"]
    found = rows_of([*asked, "--criterion", "brier", "--level", "0.99"], capsys)["brier"]
    assert found["difference"] == pytest.approx(5 / 9)
    assert found["high"] == 1


def test_files_of_one_name_are_told_apart_by_their_folders(
    pair: tuple[Path, Path, tuple[Tensor, ...]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b, _ = pair
    for folder, file in (("x", a), ("y", b)):
        (tmp_path / folder).mkdir()
        file.rename(tmp_path / folder / "test.npz")
    files = [str(tmp_path / folder / "test.npz") for folder in "xy"]
    assert main(["compare", *files, *TABLE, "--draws", "39", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found["first"], found["second"]] == files


def test_weights_in_single_precision_are_the_same_weights(
    pair: tuple[Path, Path, tuple[Tensor, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, _ = pair
    for file, kind in ((a, np.float64), (b, np.float32)):
        kept = dict(np.load(file))
        np.savez(file, **{**kept, "w": (kept["w"] / 7).astype(kind)})
    assert rows_of([str(a), str(b), *TABLE, "--weights", "w", "--draws", "39"], capsys)


def test_the_result_goes_whole_into_a_file(
    two: tuple[list[str], Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, _, _ = two
    asked = ["compare", *files, "--draws", "39", "--format", "markdown"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert main([*asked, "--out", str(tmp_path / "found.md"), "--fail-above", "nll=0.05"]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("above the limit")) == ("", 1)
    assert (tmp_path / "found.md").read_text() == printed


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("labels", r"same labels .* got 0 and 1 in row 4 \(.*\), the first of 2 .* files alike\.$"),
        ("rows", r"must hold the same samples and classes; got 150 by 3 and 149 by 3\. Leave out "),
        ("classes", r"must hold the same samples and classes; got 150 by 3 and 150 by 4"),
        ("events", r"both files must .*; old\.npz has a confidence .*, new\.npz has logits\. "),
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


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--level", "1"], r"level must lie between 0 and 1; got 1\.0"),
        (["--level", "nan"], r"level must lie between 0 and 1; got nan"),
        (["--level", "high"], r"Invalid value for '--level'"),
        (["--draws", "39", "--level", "0.99"], r"draws must be at least 199 for a level of 0\.99"),
        (["--bins", "0"], r"bins must be a whole number, at least 1; got 0"),
        ([*EVENTS, "--criterion", "focal"], r"one of accuracy, nll, brier, ece, .* got 'focal'\."),
        ([*EVENTS, "--criterion", "per_class_ece"], r"one of .*; got 'per_class_ece'\. Compare "),
        (["--weights", "v"], r"new\.npz has no column 'v'"),
        (["--weights", "only"], r"old\.npz has no column 'only'"),
        (["--weights", "other"], r"same weights .* got 1 and 2 in row 7 .* leave --weights out\."),
        (["--weights", "zero"], r"weights must not all be zero"),
        (["--fail-above", "mmce=1"], r"must name a row of the table; got 'mmce'"),
        (["--fail-above", "ece"], r"--fail-above must be like ece=0\.05; got 'ece'"),
        (["--out", "nowhere/found.txt"], r"--out must be a file in a folder that exists"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(
    more: list[str],
    sentence: str,
    pair: tuple[Path, Path, tuple[Tensor, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b, _ = pair
    other = np.ones(120)
    np.savez(a, **np.load(a), only=other, other=other, zero=0 * other)
    other[7] = 2
    np.savez(b, **np.load(b), other=other, zero=0 * other)
    out = a.parent / "found.txt"
    columns = [] if "--outcome" in more else TABLE
    assert main(["compare", str(a), str(b), *columns, "--out", str(out), *more]) == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert re.match(rf"calibrant: .*{sentence}", err)
    assert err.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--fail-above", "mmce=1"], "--fail-above must name a row of the table; got 'mmce'."),
        (["--criterion", "joy"], "criterion must be one of "),
        (["--level", "2"], "level must lie between 0 and 1; got 2.0."),
        (["--out", "nowhere/found.txt"], "--out must be a file in a folder that exists"),
    ],
)
def test_what_is_asked_is_checked_before_files_are_opened(
    asked: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "none.npz", "nor.npz", *asked]) == 2
    assert capsys.readouterr().err.startswith(f"calibrant: {sentence}")


@pytest.mark.parametrize("way", [1, -1])
def test_as_many_events_must_be_in_both_files(
    way: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, rows in (("a", 20), ("b", 21)):
        lines = [f"0.5,{k % 2}\n" for k in range(rows)]
        (tmp_path / f"{name}.csv").write_text("sure,right\n" + "".join(lines))
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")][::way]
    assert main(["compare", *files, "--confidence", "sure", "--outcome", "right"]) == 2
    got = " and ".join(["20 rows", "21 rows"][::way])
    assert f"must hold the same samples; got {got}." in capsys.readouterr().err


@pytest.mark.parametrize("read", [0, 1])
def test_a_file_that_is_read_is_not_written_over(
    read: int, two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, _, _ = two
    before = Path(files[read]).read_bytes()
    link = Path(files[read]).with_name("found.txt")
    link.symlink_to(files[read])
    for out in (files[read], str(link)):
        assert main(["compare", *files, "--out", out]) == 2
        assert "--out must not be a file that is read" in capsys.readouterr().err
        assert Path(files[read]).read_bytes() == before


def test_a_limit_may_be_on_an_end_of_the_interval(
    two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, _, _ = two
    asked = ["compare", *files, "--criterion", "nll", "--draws", "60"]
    assert main([*asked, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"]["nll"]
    above, below = (f"nll.low={row['low'] + step}" for step in (-1e-6, 1e-6))
    assert main([*asked, "--fail-above", above]) == 1
    assert "the difference in nll.low is " in capsys.readouterr().err
    assert main([*asked, "--fail-above", below]) == 0
    assert main([*asked, "--fail-below", below]) == 1
    assert main([*asked, "--fail-below", f"nll.high={row['high'] - 1e-6}"]) == 0


def test_rows_that_are_no_criteria_are_compared_by_name(
    two: tuple[list[str], Tensor, Tensor], capsys: pytest.CaptureFixture[str]
) -> None:
    files, _, _ = two
    assert main(["compare", *files, "--criterion", "ece_mass", "--bins", "5", "--draws", "39"]) == 0
    assert "ece_mass" in capsys.readouterr().out

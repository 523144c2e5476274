"""`calibrant monitor`: windows of time, the alarm and its exit code."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from torch import Tensor

import calibrant as cal
from calibrant.cli import _monitor, _times, main
from calibrant.cli._times import beginning, parse_length, window_of
from calibrant.logs import _log

START = datetime(2026, 11, 2, tzinfo=UTC)  # a Monday


@pytest.fixture
def days(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Confidence and outcome of eight days, of which the last three are over-confident."""
    confidence = 0.5 + 0.5 * torch.rand(8, 400, generator=rng, dtype=torch.float64)
    drift = torch.tensor([0.0] * 5 + [0.2] * 3)[:, None]
    outcome = torch.rand(8, 400, generator=rng, dtype=torch.float64) < confidence - drift
    return confidence, outcome.long()


def log(path: Path, days: tuple[Tensor, Tensor]) -> Path:
    """All events in a random order, each at a moment of its day."""
    confidence, outcome = (each.reshape(-1) for each in days)
    order = torch.randperm(len(confidence), generator=torch.Generator().manual_seed(1))
    moments = [
        START + timedelta(days=k // 400, seconds=200 * (k % 400)) for k in range(len(confidence))
    ]
    table: dict[str, Any] = {
        "when": [moments[k] for k in order.tolist()],
        "sure": confidence[order].numpy(),
        "right": outcome[order].numpy(),
    }
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.table(table), path)
    elif path.suffix == ".npz":
        table["when"] = np.array([each.timestamp() for each in table["when"]])
        np.savez(path, id=np.arange(len(table["sure"])), **table)
    else:
        lines = (
            f"{when.isoformat()},{sure!r},{right}"
            for when, sure, right in zip(table["when"], table["sure"], table["right"], strict=True)
        )
        path.write_text(
            "when,sure,right\n" + "\n".join(lines).replace("np.float64(", "").replace(")", "")
        )
    return path


COLUMNS = ["--time", "when", "--confidence", "sure", "--outcome", "right"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz"])
def test_each_window_is_summarised_and_the_drift_raises_the_alarm(
    suffix: str,
    days: tuple[Tensor, Tensor],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_log, "_NUMBERS", 300)  # a dozen batches, each with rows of many days
    file = log(tmp_path / f"log{suffix}", days)
    assert main(["monitor", str(file), *COLUMNS, "--json"]) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ("calibrant: Alarm in window 2026-11-07: over-confident since 2026-11-07.\n")
    watch = cal.CalibrationMonitor()
    for k, (row, confidence, outcome) in enumerate(zip(found["windows"], *days, strict=True)):
        seen = watch.update((confidence, outcome))
        assert row["window"] == f"2026-11-{2 + k:02d}"
        assert row["n"] == 400
        assert row["accuracy"] == pytest.approx(outcome.double().mean().item())
        assert row["confidence"] == pytest.approx(confidence.mean().item())
        assert row["ece"] == pytest.approx(cal.ece(confidence, outcome).item())
        assert row["evidence"] == pytest.approx(seen.evidence, rel=1e-9)
        assert row["alarm"] == seen.alarm
    assert watch.alarm is not None
    assert watch.alarm.window == watch.alarm.since == 5
    assert found["alarm"]["window"] == found["alarm"]["since"] == found["windows"][5]["window"]
    assert found["bar"] == 20


def test_the_table_fits_and_ends_in_a_verdict(
    days: tuple[Tensor, Tensor], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = log(tmp_path / "log.npz", days)
    assert main(["monitor", str(file), *COLUMNS]) == 1
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"2026-11-07 +400 +0\.\d{4} +0\.\d{4} +0\.\d{4} +> 1,000,000 +alarm\n", out)
    assert out.count("Alarm in window 2026-11-07") == 1
    assert err == ""  # once is enough
    assert main(["monitor", str(file), *COLUMNS, "--tolerance", "0.4"]) == 0
    out, err = capsys.readouterr()
    assert re.search(
        r"No alarm in 8 windows: evidence of at most [\d.]+, the bar is 20\.", " ".join(out.split())
    )
    assert err == ""
    assert main(["monitor", str(file), *COLUMNS, "--format", "markdown"]) == 1
    assert "| 2026-11-02 | 400 |" in capsys.readouterr().out


def test_windows_have_the_length_asked_for_and_logits_are_judged_by_top_label(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rng: torch.Generator
) -> None:
    logits, labels = torch.randn(48, 3, generator=rng), torch.randint(3, (48,), generator=rng)
    hours = np.array("2026-11-02T00:30", dtype="datetime64[m]") + np.arange(48) * 60
    np.savez(tmp_path / "log.npz", logits=logits, labels=labels, t=hours)
    asked = ["monitor", str(tmp_path / "log.npz"), "--time", "t", "--json", "--every"]
    main([*asked, "6h"])
    found = json.loads(capsys.readouterr().out)["windows"]
    assert [row["n"] for row in found] == [6] * 8
    assert found[1]["window"] == "2026-11-02 06:00"
    predictions = cal.Predictions(logits[:6], labels[:6])
    assert found[0]["accuracy"] == pytest.approx(cal.accuracy(predictions).item())
    assert found[0]["confidence"] == pytest.approx(predictions.confidence.mean().item())
    main([*asked, "1w"])
    assert [row["n"] for row in json.loads(capsys.readouterr().out)["windows"]] == [48]


def test_windows_are_in_the_order_of_time_whatever_that_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_log, "_NUMBERS", 1)
    (tmp_path / "log.csv").write_text("day,confidence,correct\n2026-11-04,0.9,1\n2026-11-02,0.8,0")
    assert main(["monitor", str(tmp_path / "log.csv"), "--time", "day", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["windows"]
    assert [row["window"] for row in rows] == ["2026-11-02", "2026-11-04"]
    assert [row["accuracy"] for row in rows] == [0.0, 1.0]


def test_a_window_of_two_rows_has_no_error_but_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.csv").write_text("day,confidence,correct\n2026-11-02,0.9,1\n2026-11-02,0.8,0")
    assert main(["monitor", str(tmp_path / "log.csv"), "--time", "day", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["windows"][0]
    assert row["ece"] is None
    assert row["n"] == 2
    assert main(["monitor", str(tmp_path / "log.csv"), "--time", "day"]) == 0
    assert re.search(r"2026-11-02 +2 +0\.5000 +0\.8500 +too few +", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("text", "length", "window"),
    [
        ("2026-11-02", "1d", "2026-11-02"),
        ("2026-11-08T23:59:59", "1w", "2026-11-02"),
        ("2026-11-09", "1w", "2026-11-09"),
        ("2026-11-02T01:30:00+02:00", "1d", "2026-11-01"),
        ("1793577600", "1h", "2026-11-02 00:00"),
        ("1793577599.5", "10s", "2026-11-01 23:59:50"),
    ],
)
def test_moments_fall_into_their_windows(text: str, length: str, window: str) -> None:
    seconds = parse_length(length)
    assert beginning(int(window_of([text], seconds, 0, "")[0]), seconds) == window


@pytest.mark.parametrize(
    "times",
    [
        ["2026-11-02T10:00:00.25", "2026-11-03 23:59:59", "2026-11-04"],
        ["2026-11-02T10:00:00Z", "2026-11-03T00:00:00Z"],
        ["1793577600", "1.7935776e9", "1793577599.5"],
    ],
)
def test_moments_read_at_once_are_those_read_one_by_one(times: list[str]) -> None:
    at_once = _times._at_once(np.array(times))
    assert at_once is not None
    assert at_once.tolist() == [_times._one(text, 0, "") for text in times]


def test_moments_without_a_zone_are_in_utc_wherever_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        mixed = ["2026-11-02T00:30", "2026-11-02T01:30:00+01:00"]
        assert len(set(window_of(mixed, 60, 0, "").tolist())) == 1
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["today", "NaT", "2026", "", "-5", "2026-13-01", "nan", "inf"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must hold ISO times .* in row 8 \(counted from 0\)"):
        window_of(["2026-11-02", text], 60, 7, "column 't'")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--time", ""], r"--time must be the name of the column of times; got ''\. Name one"),
        (["--every", "day"], r"--every must be a number and a unit, such as 1d.*; got 'day'"),
        (["--every", "0d"], r"--every must be a number and a unit"),
        (["--time", "nope"], r"has no column 'nope'"),
        (["--time", "sure"], r"must have a column of their own in log\.npz; got 'sure'"),
        (["--time", "id"], r"column 'id' of log\.npz must hold ISO times .*; got '0' in row 0"),
        (["--false-alarms", "2"], r"false_alarms must lie between 0 and 1"),
        (["--tolerance", "1"], r"tolerance must lie"),
    ],
)
def test_bad_input_is_one_sentence(
    more: list[str],
    sentence: str,
    days: tuple[Tensor, Tensor],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = log(tmp_path / "log.npz", days)
    assert main(["monitor", str(file), *COLUMNS, *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.match(rf"calibrant: .*{sentence}", err)
    assert err.count("\n") == 1


def test_milliseconds_and_too_many_windows_are_refused(
    days: tuple[Tensor, Tensor],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = log(tmp_path / "log.npz", days)
    monkeypatch.setattr(_monitor, "_MOST_WINDOWS", 7)
    assert main(["monitor", str(file), *COLUMNS]) == 2
    assert "must fall into at most 7 windows" in capsys.readouterr().err
    monkeypatch.setattr(_log, "_NUMBERS", 4)
    np.savez(file, when=[1793577600.0] * 5 + [1793577600000.0], sure=[0.5] * 6, right=[1] * 6)
    assert main(["monitor", str(file), *COLUMNS]) == 2
    assert "or seconds since 1970; got '1793577600000.0' in row 5" in capsys.readouterr().err

"""Results that are looked up by name are kept, read and shown in one way."""

import json
from math import inf, isnan
from pathlib import Path

import pytest

from calibrant import Comparison, Difference, Predictions, compare


def test_a_comparison_is_kept_and_read_like_an_evaluation(
    predictions: Predictions, tmp_path: Path
) -> None:
    found = compare(predictions.logits, 2 * predictions.logits, predictions.labels, draws=40)
    path = tmp_path / "comparison.json"
    text = found.to_json(path)
    assert path.read_text() == text == found.to_json()
    assert Comparison.from_dict(json.loads(text)) == found
    assert Comparison.from_dict(found.to_dict()) == found
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match=r"to_dict gave; got nothing under 'draws'\. For text"):
        Comparison.from_dict({"rows": {}, "n": 3, "level": 0.95})
    endless = Comparison({"nll": Difference(inf, 0.5, inf, inf, inf, 0.05)}, 9, 40, 0.95)
    read = Comparison.from_dict(json.loads(endless.to_json()))
    assert isnan(read["nll"].first)
    assert read["nll"].p_value == 0.05


def test_a_frame_of_a_comparison_has_a_line_for_every_row(predictions: Predictions) -> None:
    pytest.importorskip("pandas")
    found = compare(predictions.logits, 2 * predictions.logits, predictions.labels, draws=40)
    frame = found.to_frame()
    assert list(frame["row"]) == list(found)
    assert list(frame["p_value"]) == [row.p_value for row in found.values()]
    assert list(frame) == ["row", *vars(found["ece"])]


def test_an_unknown_criterion_is_named() -> None:
    found = Comparison({"nll": Difference(0.5, 0.5, 0.0, 0.0, 0.0, 1.0)}, 9, 40, 0.95)
    with pytest.raises(KeyError, match="no row is called 'ece'; there are nll"):
        found["ece"]
    assert len(found) == 1
    assert dict(found) == found.rows

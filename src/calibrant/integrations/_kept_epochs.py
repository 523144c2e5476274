"""Every epoch so far, and the weights of those that may yet be chosen, in one file; no pickle."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from .._writing import written_whole
from ..training._history import Epoch

_JUDGED = "judged"  # the place of accuracies and errors in the file's head


def judged_epochs(pairs: Iterable[Sequence[float]]) -> list[Epoch]:
    """Epochs of which accuracy and error are known, and nothing else."""
    return [
        Epoch(number, float("nan"), accuracy=right, error=wrong)
        for number, (right, wrong) in enumerate(pairs)
    ]


def write_epochs(
    path: Path, epochs: Iterable[Epoch], kept: Mapping[int, Mapping[str, Tensor]]
) -> None:
    """All of it or nothing, as safetensors."""
    weights = {
        f"{number}.{name}": part.contiguous()
        for number, parts in kept.items()
        for name, part in parts.items()
    }
    told = {_JUDGED: json.dumps([(epoch.accuracy, epoch.error) for epoch in epochs])}
    with written_whole(path) as file:
        file.write(save(weights, metadata=told))


def read_epochs(path: Path) -> tuple[list[Epoch], dict[int, dict[str, Tensor]]]:
    """What `write_epochs` wrote."""
    kept: dict[int, dict[str, Tensor]] = {}
    try:
        with safe_open(path, framework="pt") as file:
            epochs = judged_epochs(json.loads(file.metadata()[_JUDGED]))
            for key in file.keys():  # noqa: SIM118
                number, name = key.split(".", 1)
                kept.setdefault(int(number), {})[name] = file.get_tensor(key)
    except SafetensorError as wrong:
        raise ValueError(
            f"{path} must be a whole safetensors file; got one that cannot be read ({wrong}). "
            "Resume from an earlier checkpoint."
        ) from wrong
    return epochs, kept

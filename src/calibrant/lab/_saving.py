"""What a trial leaves behind besides its row: weights and predictions, in plain formats."""

from pathlib import Path

import numpy as np
import safetensors.torch
from torch import Tensor, nn

from .._writing import written_whole


def save_model(model: nn.Module, path: Path) -> None:
    """The weights, as safetensors; read them with `safetensors.torch.load_model`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {name: part.detach().cpu().contiguous() for name, part in model.state_dict().items()}
    with written_whole(path) as file:
        file.write(safetensors.torch.save(state))


def save_predictions(logits: Tensor, labels: Tensor, path: Path) -> None:
    """Logits and labels, as `calibrant evaluate` reads them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as file:
        np.savez(file, logits=logits.cpu().numpy(), labels=labels.cpu().numpy())

"""Language models with a classifier on top, from a folder on disk."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._samples import Samples, Texts


class Encoder(nn.Module):
    """A BERT-style encoder that classifies sentences or pairs of them.

    - `folder`: with the configuration and the weights of any model that transformers can make a
      classifier of: BERT, RoBERTa, MiniLM. Nothing is downloaded.
    - `pretrained`: whether to read the weights, or begin with new ones.

    Takes what `encode` makes: token numbers and segments, in an array of shape (n, 2, length).
    A batch is cut to its longest text, since most are much shorter than the limit. The layers on
    top of the encoder are those of transformers, and the last of them gives the logits.
    """

    def __init__(
        self, classes: int, folder: str | os.PathLike[str], *, pretrained: bool = True
    ) -> None:
        super().__init__()
        transformers, place = _transformers(), _checked(folder)
        config = transformers.AutoConfig.from_pretrained(
            place, num_labels=classes, local_files_only=True
        )
        kind = transformers.AutoModelForSequenceClassification
        self.network: nn.Module
        if pretrained:
            self.network = kind.from_pretrained(place, config=config, local_files_only=True).float()
        else:
            self.network = kind.from_config(config)
        self.padding: int = config.pad_token_id or 0

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits."""
        present = inputs[:, 0] != self.padding
        longest = int(present.sum(dim=1).max())
        numbers, segments = inputs[:, :, :longest].long().unbind(dim=1)
        told: Any = {"token_type_ids": segments} if bool(segments.any()) else {}
        logits: Tensor = self.network(
            input_ids=numbers, attention_mask=present[:, :longest].long(), **told
        ).logits
        return logits


def encode(texts: Texts, folder: str | os.PathLike[str], length: int) -> Samples:
    """Texts as token numbers, for an `Encoder` of the same folder.

    - `length`: in tokens, to which longer texts are cut, the longer of a pair first, and shorter
      ones are filled up.

    Inputs have the shape (n, 2, length): the numbers, and 1 where a token is of the second
    sentence and the model can tell.
    """
    tokenizer = _transformers().AutoTokenizer.from_pretrained(
        _checked(folder), local_files_only=True
    )
    columns = [list(column) for column in zip(*texts.texts, strict=True)]
    if not columns:
        return Samples(torch.empty(0, 2, length, dtype=torch.int32), texts.labels)
    given = tokenizer(
        *columns, padding="max_length", truncation=True, max_length=length, return_tensors="np"
    )
    numbers = torch.from_numpy(given["input_ids"]).int()
    segments = given.get("token_type_ids")
    second = torch.zeros_like(numbers) if segments is None else torch.from_numpy(segments).int()
    return Samples(torch.stack([numbers, second], dim=1), texts.labels)


def _checked(folder: str | os.PathLike[str]) -> Path:
    place = Path(folder)
    if not (place / "config.json").is_file():
        raise ValueError(
            f"folder must hold a model that transformers can read, with its config.json; got "
            f"{place}. Nothing is downloaded: put the model there first."
        )
    return place


def _transformers() -> Any:
    try:
        return import_module("transformers")
    except ImportError as missing:
        raise ImportError(
            "language models need transformers: pip install 'calibrant[transformers]'"
        ) from missing

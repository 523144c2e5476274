"""What a trial trains on: splits, their augmentation, and the models that fit them."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ._digits import digits
from ._trial import Trial
from .augment import Augmentation
from .corruptions import corrupt
from .data import (
    DATASETS,
    Samples,
    Splits,
    load,
    load_texts,
    read_human_labels,
    read_imagenet_c,
)
from .data._folders import imagenet100
from .data._human import has_human_labels
from .models import MODELS, build, encode

Build = Callable[[Trial, Splits[Samples]], nn.Module]
Corrupted = Callable[[Samples, str, int], Samples]


def made_worse(samples: Samples, name: str, severity: int) -> Samples:
    """Images of CIFAR's size with a corruption of CIFAR-C's, made on the fly."""
    return Samples(corrupt(samples.inputs, name, severity), samples.labels, samples.groups)


def build_for(trial: Trial, splits: Splits[Samples]) -> nn.Module:
    """The model of a trial, with as many inputs and classes as its data have."""
    known = inspect.signature(MODELS[trial.model]).parameters if trial.model in MODELS else {}
    first = splits.train.inputs[0]
    told: dict[str, Any] = {"features": first.numel(), "channels": first.shape[0]}
    told = {name: value for name, value in told.items() if name in known}
    return build(trial.model, classes=splits.classes, **told | dict(trial.model_settings))


@dataclass(frozen=True, eq=False)
class Task:
    """A data set as a trial sees it.

    - `splits`: train, validation, and a test set that is read when asked for.
    - `augmentation`: how its images become a network's inputs; `None` for other data.
    - `build`: makes the model of a trial for these splits.
    - `corrupted`: the test set under a corruption at a severity, given both and the set.
    - `people`: reads of each test sample the share of people who gave it each class, where people
      were asked.
    """

    splits: Splits[Samples]
    augmentation: Augmentation | None = None
    build: Build = field(default=build_for)
    corrupted: Corrupted = field(default=made_worse)
    people: Callable[[], Tensor] | None = None

    def flipped(self, flip: bool | None) -> "Task":
        """The same task with reflections of its images or without."""
        if self.augmentation is None or flip is None:
            return self
        return replace(self, augmentation=replace(self.augmentation, flip=flip))


def open_task(
    trial: Trial,
    folder: str | os.PathLike[str] | None,
    split_folder: str | os.PathLike[str] | None = None,
) -> Task:
    """What a trial trains on; the same data again are not read twice.

    - `folder`: where the data sets are; the digits need none.
    - `split_folder`: where the split of every seed is kept, as for `load`.

    Texts become token numbers by the tokenizer in the folder of the trial's encoder, which is
    looked for among the data sets first, so that a trial means the same on every machine.
    """
    place = None if folder is None else os.fspath(folder)
    kept = None if split_folder is None else os.fspath(split_folder)
    return _open(trial.data, place, trial.seed, trial.model_settings.get("folder"), kept)


@lru_cache(maxsize=4)
def _open(data: str, folder: str | None, seed: int, encoder: str | None, kept: str | None) -> Task:
    if data == "digits":
        return Task(digits(seed, None if kept is None else Path(kept)))
    if folder is None:
        raise ValueError(f"{data} must be read from a folder; got none. Say which: --data FOLDER.")
    known = DATASETS.get(data)
    if known is None or known.length is None:
        splits = load(data, folder, seed=seed, split_folder=kept)
        return Task(splits, DATASETS[data].augmentation, **_more(data, Path(folder)))
    if encoder is None:
        raise ValueError(
            f"a trial on {data} must say where its encoder is; got no folder. "
            "Say so in model_settings: {'folder': 'path/to/bert'}."
        )
    length, place = known.length, Path(folder) / encoder
    if not place.is_dir():
        place = Path(encoder)

    def build(trial: Trial, splits: Splits[Samples]) -> nn.Module:
        found = {**trial.model_settings, "folder": os.fspath(place)}
        return build_for(trial.but(model_settings=found), splits)

    texts = load_texts(data, folder, seed=seed, split_folder=kept)
    return Task(texts.map(lambda each: encode(each, place, length)), build=build)


def _more(data: str, folder: Path) -> dict[str, Any]:
    """What others have published about a test set, where it lies beside it."""
    if data == "imagenet100":
        return {"corrupted": partial(_imagenet_c, folder)}
    if data == "cifar10" and has_human_labels(folder):
        return {"people": partial(read_human_labels, folder)}
    return {}


def _imagenet_c(folder: Path, _: Samples, name: str, severity: int) -> Samples:
    """ImageNet-C's own files, of the classes that are trained on."""
    root, classes = imagenet100(folder)
    return read_imagenet_c(root.parent / "imagenet-c", name, severity, classes)

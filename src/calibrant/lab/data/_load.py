"""A data set by its name, split as the papers split it."""

from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from .._samples import Content, Samples, Splits, Texts
from ._catalogue import DATASETS
from ._dataset import Dataset
from ._splitting import split_indices


def load(
    dataset: str | Dataset[Samples],
    folder: str | PathLike[str],
    *,
    seed: int,
    split_folder: str | PathLike[str] | None = None,
) -> Splits[Samples]:
    """Images or tables, split as the papers state.

    - `dataset`: a name in `DATASETS`, or a `Dataset` of your own.
    - `folder`: where its files are.
    - `seed`: which samples are kept for validation, and in what order.
    - `split_folder`: where the split is kept, so that a study goes on with the one it began
      with; nothing is written without it.

    The test set is not read before `splits.test()` is called; only that its files are there is
    made certain.
    """
    return _load(_known(dataset, Samples), Path(folder), seed, split_folder)


def load_texts(
    dataset: str | Dataset[Texts],
    folder: str | PathLike[str],
    *,
    seed: int,
    split_folder: str | PathLike[str] | None = None,
) -> Splits[Texts]:
    """Sentences or pairs of them; arguments as for `load`.

    `splits.map(encode)` makes numbers of them, once there is a tokenizer. Samples that nobody
    could agree on a label for are left out, as the authors of SNLI advise.
    """
    splits = _load(_known(dataset, Texts), Path(folder), seed, split_folder)

    def labelled(texts: Texts) -> Texts:
        return texts[texts.labels >= 0]

    test = splits.test
    return Splits(
        labelled(splits.train),
        labelled(splits.validation),
        lambda: labelled(test()),
        splits.classes,
        splits.shifts,
    )


def _known(dataset: str | Dataset[Any], kind: type) -> Dataset[Any]:
    if isinstance(dataset, Dataset):
        return dataset
    if dataset not in DATASETS:
        raise ValueError(
            f"dataset must be one of {', '.join(sorted(DATASETS))}; got {dataset!r}. For another, "
            "pass a Dataset."
        )
    known = DATASETS[dataset]
    if (known.length is not None) != (kind is Texts):
        name = "load_texts" if known.length is not None else "load"
        raise TypeError(f"{dataset} must be read by {name}; got {kind.__name__.lower()} asked for.")
    return known


def _load(
    dataset: Dataset[Content], folder: Path, seed: int, split_folder: str | PathLike[str] | None
) -> Splits[Content]:
    dataset.check_files(folder)
    train, validation, test = dataset.sizes

    def read(part: str, expected: int | None) -> Content:
        content = dataset.read(folder, part)
        if expected is not None and len(content) != expected:
            raise ValueError(
                f"the {part} files of {dataset.name} must hold {expected:,} samples; got "
                f"{len(content):,}. They are not whole; for a data set of your own, say its sizes "
                "in a Dataset."
            )
        return content

    if "validation" in dataset.files:
        pool, kept = read("train", train), read("validation", validation)
        order, _ = split_indices(
            pool.labels, 0, dataset=dataset.name, seed=seed, folder=_path(split_folder)
        )
        parts = pool[order], kept
    else:
        pool = read("train", train + validation)
        chosen = split_indices(
            pool.labels, validation, dataset=dataset.name, seed=seed, folder=_path(split_folder)
        )
        parts = pool[chosen[0]], pool[chosen[1]]
    return Splits(
        *parts,
        partial(read, "test", test),
        dataset.classes,
        {part: partial(read, part, None) for part in dataset.shifts},
    )


def _path(folder: str | PathLike[str] | None) -> Path | None:
    return None if folder is None else Path(folder)

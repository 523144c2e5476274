"""`calibrant study data`: the data sets that studies train on, downloaded."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..lab.data import DATASETS
from ..lab.download import download
from ._named import check_named


def data(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DATA_SET",
            help="mnist, cifar10, ...",
            autocompletion=lambda: [name for name, known in DATASETS.items() if known.sources],
        ),
    ],
    folder: Annotated[
        Path, typer.Option("--data", metavar="FOLDER", help="Where the data sets are to be.")
    ],
) -> int:
    """Download a data set to where studies look for it.

    What is there already is left alone, and what was interrupted goes on where it stopped. Every
    file must have its published checksum. Writes the paths of what was fetched.
    """
    check_named("DATA_SET", name, sorted(DATASETS))
    fetched = download(name, folder)
    for path in fetched:
        print(path)
    if not fetched:
        print(f"All of {name} is in {folder} already.", file=sys.stderr)
    return 0

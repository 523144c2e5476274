"""Optuna's storage in a database that many machines share."""

import os
import time
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

# How often to try again where several machines make the tables at the same moment.
ATTEMPTS = 5


def is_database(storage: str | os.PathLike[str]) -> bool:
    """Whether a storage is the URL of a database, and not the path of a file."""
    return "://" in str(storage)


def open_database(optuna: Any, url: str) -> Any:
    """The storage of a database; its tables are made if it has none.

    `postgresql://` means the driver psycopg, whatever the version of SQLAlchemy would take.
    """
    kind, _, rest = url.partition("://")
    address = f"postgresql+psycopg://{rest}" if kind in ("postgresql", "postgres") else url
    clashes = import_module("sqlalchemy.exc")
    # A connection for each question: they are few, and none is left open between them.
    kept = {"poolclass": import_module("sqlalchemy.pool").NullPool}
    try:
        for left in reversed(range(ATTEMPTS)):
            try:
                return optuna.storages.RDBStorage(address, engine_kwargs=kept)
            except (clashes.ProgrammingError, clashes.IntegrityError):
                if not left:
                    raise
                time.sleep(0.5)
    except ImportError as missing:
        raise ImportError(
            f"a database at {kind}:// needs its driver; that of PostgreSQL: "
            "pip install 'calibrant[postgresql]'"
        ) from missing
    except Exception as wrong:  # of the URL, the database or the server
        raise ValueError(
            "storage must be the URL of a database that opens here, such as "
            f"sqlite:///searches.db; got {_without_password(url)!r}, and "
            f"{type(wrong).__name__}: {str(wrong).splitlines()[0]}."
        ) from wrong
    raise AssertionError("the last attempt returns or raises")


def _without_password(url: str) -> str:
    try:
        secret = urlsplit(url).password
    except ValueError:  # no URL at all
        secret = None
    return url.replace(f":{secret}@", ":***@") if secret else url

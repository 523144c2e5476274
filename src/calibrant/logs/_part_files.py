"""The files of a folder that are the parts of one log, and what their folders say of them."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ENDINGS = (".parquet", ".pq")

# What Hive, Spark and others call the folder of rows without a value.
_VOID = "__HIVE_DEFAULT_PARTITION__"
# Folders that keep a journal of which of their files still count.
_JOURNALS = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata": "Iceberg"}


def part_files(folder: Path) -> list[Path]:
    """Every Parquet file in a folder and its folders called `key=value`, in order of their names.

    What starts with `_` or `.` is a note of the writer's.
    """
    _check_no_journal(folder)
    found = sorted(parts_in(folder))
    if not found:
        raise ValueError(
            f"a folder must hold Parquet files, which end in {' or '.join(ENDINGS)}, to be a log; "
            f"{folder.name} has none. Name the file itself if it is in another format."
        )
    return found


def parts_in(folder: Path) -> Iterator[Path]:
    """The same in no order, which may be none."""
    for one in folder.iterdir():
        if one.is_dir() and "=" in one.name:
            yield from parts_in(one)
        elif one.is_dir():
            _check_apart(one)
        elif _is_part(one):
            yield one


def _is_part(file: Path) -> bool:
    return file.name.lower().endswith(ENDINGS) and not file.name.startswith(("_", "."))


def _check_apart(inner: Path) -> None:
    """Another log may lie beside this one, and nobody has said that they are to be one."""
    if inner.name.startswith(("_", ".")):
        return
    inside = next(filter(_is_part, inner.iterdir()), None)
    if inside is not None:
        raise ValueError(
            f"the parts of a log must lie in its folder, or in folders called key=value; found "
            f"{inner.parent.name}/{inner.name}/{inside.name}. Open {inner.name} by itself, or move "
            "it elsewhere."
        )


def keys_of(file: Path, folder: Path) -> dict[str, str | None]:
    """What the folders between say of every row, as Hive writes it.

    >>> keys_of(Path("log/day=2026-11-18/who=a%20b/part-0.parquet"), Path("log"))
    {'day': '2026-11-18', 'who': 'a b'}
    """
    names = file.relative_to(folder).parts[:-1]
    told = [name.partition("=") for name in names if "=" in name]
    return {unquote(key): None if value == _VOID else unquote(value) for key, _, value in told}


def _check_no_journal(folder: Path) -> None:
    for name, kind in _JOURNALS.items():
        journal = folder / name
        if journal.is_dir() and (kind != "Iceberg" or any(journal.glob("*.metadata.json"))):
            raise ValueError(
                f"a folder of Parquet files must hold one version of each row; {folder.name} is a "
                f"{kind} table, where files that were replaced still lie. Write what counts to a "
                "file, or read it where it is by summarise_table."
            )

"""The section on what objectives cost on a CPU."""

from collections.abc import Callable
from itertools import groupby

from record import RESULTS, Row, read

OBJECTIVES = """\
Forward and backward from float32 logits to one number and back, eager, all forms by turns. *By
default* is what a user gets, *definition* is `kernels.use("definition")`, torch operators, and
`F.cross_entropy` alone is the yardstick. Before it is timed every form is checked to have the
gradient of the definition, to one part in a hundred thousand. Memory is the growth of resident
memory in a process of its own, beyond the logits and their gradient.

On one thread the time is processor time, so that other work on the machine does not count; on
several it is the clock's, which tells nothing where they share their cores with others. Tables of
up to 32 MiB are handed out again by the allocator, or are new pages that take longer to come by
than the arithmetic takes: quartiles far apart are calls of either kind, and the lower one is that
without new pages. Such calls fall on who makes most tables.
"""


def objectives_section(setting: Callable[[Row], str], table: Callable[..., str]) -> list[str]:
    """Title, text, and a table for each number of threads, where they were measured."""
    path = RESULTS / "objectives-cpu.csv"
    if not path.exists():
        return []
    header = ["n", "classes", "objective", "form", "ms", "of the definition"]
    header += ["of `F.cross_entropy`", "MiB"]
    parts = ["## Objectives on a CPU\n", OBJECTIVES]
    for _, group in groupby(read(path), lambda row: row["threads"]):
        rows = list(group)
        parts += [setting(rows[0]), table(header, [_cells(row) for row in rows], left=0)]
    return parts


def _cells(row: Row) -> list[str]:
    quartiles = f"{_digits(row['ms_quartile_low'])} to {_digits(row['ms_quartile_high'])}"
    return [
        f"{int(row['n']):,}",
        f"{int(row['classes']):,}",
        f"`{row['objective']}`",
        row["form"],
        f"{_digits(row['ms_median'])} ({quartiles})",
        f"{float(row['over_definition']):.2f}\u00d7",
        f"{float(row['over_cross_entropy']):.2f}\u00d7",
        _digits(row["extra_mib"]),
    ]


def _digits(text: str) -> str:
    """Three significant digits, with separators from a thousand on."""
    if not text:
        return ""
    x = float(text)
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:#.3g}".rstrip(".")

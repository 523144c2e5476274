"""The part of `benchmarks/README.md` that sets our evaluation beside the peers'."""

from collections.abc import Callable, Iterable, Sequence

from record import RESULTS, Row, read

TEXT = """\
Quantities as a user asks for them, checks included: ours by `Predictions.from_probabilities` (or
`Predictions` of logits) and a criterion, the peers' by their public call, each on the same float32
arrays. The *floor* is the least that could do: the maximum of each row for top-label ECE, one
log-sum-exp pass in cache-sized blocks for logits, and one read of the array for the others. All
take turns, each after a rest of 10 ms, so that none pays for threads that still spin after another;
times are medians. *Memory* is the growth of resident memory in a process of its own, as a share of
the input. *Differs* is the peer's value less ours: docs/decisions/peers.md says why.
Ours takes less than a twentieth of every input but the smallest. At 10k by 10 a twentieth is 24 kB,
and one number for each row, which is what the floor makes and what confidence is, comes to more; so
there speed is preferred: tables of up to a quarter of a million numbers and fewer than 64 columns
are copied column by column, since rows that short are slow to go through, and events are read in
room for up to 16,384 of them. That stays within some megabytes, whatever the size.
A size whose quantities are not all here belongs to a run that was stopped before its end.

Two cores that share a memory read a large table hardly faster than one, while rivals that compute
more gain by the second: the tables after the first are of one thread. No way that reads a table
can be further ahead of a peer than its floor is, and that depends on the machine: the last table is
of another.
"""

_RECORDS = ("evaluation-cpu", "evaluation-one-thread", "evaluation-one-thread-earlier")


def evaluation_section(
    setting: Callable[[Row], str],
    table: Callable[[Sequence[str], Iterable[Sequence[str]], int], str],
) -> list[str]:
    """Title, text, and for each run its circumstances and table, if results exist."""
    header = ["quantity", "size", "who", "ms", "× floor", "× ours", "memory", "differs"]  # noqa: RUF001
    parts = ["## Evaluation beside the peers\n", TEXT]
    for path in (RESULTS / f"{name}.csv" for name in _RECORDS):
        if path.exists():
            rows = read(path)
            parts += [*_settings(rows, setting), table(header, [_cells(row) for row in rows], 3)]
            parts.append(_versions(rows))
    return parts if len(parts) > 2 else []


def _settings(rows: Sequence[Row], setting: Callable[[Row], str]) -> list[str]:
    """Of each run, named by its sizes where there were several."""
    sizes: dict[str, list[str]] = {}
    for row in rows:
        sizes.setdefault(setting(row), []).append(row["size"])
    if len(sizes) == 1:
        return list(sizes)
    return [f"{', '.join(dict.fromkeys(some))}: {told}" for told, some in sizes.items()]


def _cells(row: Row) -> list[str]:
    time = _digits(row["ms_median"]) or row["note"]
    if row["rounds"] == "1":
        time += " (once)"
    memory = f"{float(row['peak_percent']):.1f} %" if row["peak_percent"] else ""
    ratios = [_digits(row["times_floor"]), _digits(row["times_ours"])]
    return [row["quantity"], row["size"], row["who"], time, *ratios, memory, row["minus_ours"]]


def _versions(rows: Sequence[Row]) -> str:
    seen = {row["who"]: row["version"] for row in rows if row["version"]}
    return "Versions: " + ", ".join(f"{who} {version}" for who, version in seen.items()) + ".\n"


def _digits(text: str) -> str:
    """Three significant digits, with separators from a thousand on."""
    if not text:
        return ""
    x = float(text)
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:#.3g}".rstrip(".")

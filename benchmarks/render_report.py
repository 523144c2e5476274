"""The part of `benchmarks/README.md` on the report."""

from collections.abc import Callable, Iterable, Sequence

from record import RESULTS, Row, read

TEXT = """\
From over-confident float32 predictions to a page. *Command* is `calibrant report FILE.npz`, the
whole process from its start; *function* is the call of `write_report` on arrays in memory, and its
peak is of the process that holds them. One thread, and the time is processor time, so that other
work on the machine does not count.
"""


def report_section(
    setting: Callable[[Row], str],
    table: Callable[[Sequence[str], Iterable[Sequence[str]], int], str],
) -> list[str]:
    """Title, circumstances, text and table, if results exist."""
    path = RESULTS / "report-cpu.csv"
    if not path.exists():
        return []
    rows = read(path)
    header = ["way", "n", "classes", "seconds", "peak, MiB", "page, KiB"]
    body = [
        [
            row["way"],
            f"{int(row['n']):,}",
            f"{int(row['classes']):,}",
            f"{float(row['processor_seconds']):.1f}",
            f"{float(row['peak_mib']):,.0f}",
            f"{float(row['page_kib']):,.0f}",
        ]
        for row in rows
    ]
    return ["## The report\n", setting(rows[0]), TEXT, table(header, body, 1)]


LOG = """\
A prediction log of confidences and outcomes in Parquet, measured by `calibrant evaluate --stream`
as a user runs it: the whole process, libraries included, of which the short log shows the share.
"""


def log_section(
    setting: Callable[[Row], str],
    table: Callable[[Sequence[str], Iterable[Sequence[str]], int], str],
) -> list[str]:
    """Time and memory of logs, if results exist."""
    path = RESULTS / "prediction-log-cpu.csv"
    if not path.exists():
        return []
    rows = read(path)
    header = ["rows", "seconds", "of the processor", "peak, MiB", "file, MiB"]
    names = ("clock_seconds", "processor_seconds", "peak_mib", "file_mib")
    body = [[f"{int(row['rows']):,}", *(f"{float(row[n]):,.0f}" for n in names)] for row in rows]
    return ["## Prediction logs\n", setting(rows[0]), LOG, table(header, body, 0)]

"""Write `benchmarks/README.md` from the tables in `benchmarks/results/`.

`python benchmarks/render.py`
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from record import RESULTS, Row, read
from render_evaluation import evaluation_section
from render_fits import fits_section, procedures_section
from render_linear import language_model_section, linear_section
from render_objectives import objectives_section
from render_report import log_section, report_section
from statistics_page import sections

README = Path(__file__).parent / "README.md"
UNSEEN = "< 1"

INTRODUCTION = """\
# Benchmarks

<!-- Written by benchmarks/render.py from benchmarks/results/. Do not edit. -->

What the measures cost, forward and backward, beside the forms their papers define. *Definition* is
that form in torch operators and plain autograd, written from the equations (`references.py`): n by
n matrices for ESD and MMCE, n by bins memberships kept on the graph for SB-ECE, and n by classes by
classes comparisons for DECE. Before anything is timed, both forms are checked to agree in value and
gradient, in float64, to one part in a thousand million.

```bash
python benchmarks/measures.py --device cpu    # about three minutes; --quick for ten seconds
python benchmarks/measures.py --device cuda   # about two minutes
python benchmarks/step.py                     # one minute, on a GPU
python benchmarks/procedures.py               # two minutes, on a GPU
python benchmarks/temperature.py              # ten seconds, on a GPU
python benchmarks/kernels.py                  # two minutes, on a GPU
python benchmarks/linear.py                   # one minute, on a GPU
python benchmarks/language_model.py           # one minute, on a GPU
python benchmarks/card_tests.py               # two minutes, on a GPU: results/card-tests.log
python benchmarks/objectives_cpu.py           # ten minutes
python benchmarks/evaluation.py               # half an hour, where the peers are installed
python benchmarks/resampling.py               # one minute
python benchmarks/report.py                   # two minutes
python benchmarks/recalibration.py            # eight minutes, where the peers are installed
python benchmarks/monitor.py                  # seven minutes, on one core
python benchmarks/render.py                   # this page
```

Inputs are float32, drawn at random, several sets in rotation; the two forms take turns. Times are
medians with quartiles in brackets. Peaks are above what the inputs hold. *Faster* and *smaller*
are definition over ours: below 1 the definition is the better choice, and the row says so.
"""

ON_CPU = """\
Eager mode. On one thread the time is processor time, so that other work on the machine does not
count; on several it is the clock's. The definition's matrices are fresh pages at every call, and
where they are large the kernel takes more of that time to hand them out than the arithmetic does:
expect other ratios on other machines. Memory is the growth of resident memory in a fresh process;
below 1 MiB it is not trusted, and the ratio is at least what is given.
"""

ON_GPU = """\
Time between two events in eager mode, launches included, as a user gets it; *replayed* is the same
work as a captured CUDA graph, which leaves the launches out. Memory is torch's peak.
"""

STEP = """\
One training step of ResNet-18 on 32 by 32 pixels, in bf16 autocast, channels last, with SGD and
momentum: forward, objective, backward, update. Overhead is over plain `F.cross_entropy` in the same
round, and over our own `nll` in it, with quartiles over rounds; the second row is that very
objective again, and shows the noise. *Graphed* is torch's `make_graphed_callables`.
"""

KERNELS = """\
Forward and backward from bf16 logits to one number and back, eager: one call by itself, which waits
for the host, and per call of ten *in a row*, as training queues them. *Kernels* is
`kernels.use("fused")`, *definition* is `kernels.use("definition")`, torch operators, *by
default* is `kernels.use("auto")`, *captured* is `kernels.captured`, and *in place* writes the
gradient over a copy of the logits, the copy included. Memory is torch's peak beyond the logits and
their gradient.

The method has two floors. One is bytes: no form that reads the logits twice and writes their
gradient once can beat one and a half times a copy of them, which is what calls in a row are set
against. The other is arithmetic: in each pass an exponential and some ten further operations for
every logit. In a clock of 1.98 GHz each of an H200's 132 multiprocessors makes 16 exponentials and
128 other operations, so that both passes over 8,192 times 128,256 logits take 0.50 ms of the one
and 0.63 ms of the other, side by side. That is less than half of what the bytes take.
"""


def main() -> None:
    """Render every table whose results exist."""
    parts = [INTRODUCTION]
    for title, text, name in (("CPU", ON_CPU, "cpu"), ("GPU", ON_GPU, "cuda")):
        path = RESULTS / f"measures-{name}.csv"
        if path.exists():
            rows = read(path)
            parts += [f"## {title}\n", _setting(rows[0]), text, _measures(rows), _verdict(rows)]
    path = RESULTS / "step-cuda.csv"
    if path.exists():
        rows = read(path)
        parts += ["## A training step\n", _setting(rows[0]), STEP, _steps(rows)]
    parts += procedures_section(_setting, _table)
    path = RESULTS / "kernels-cuda.csv"
    if path.exists():
        rows = read(path)
        parts += ["## Large outputs\n", _setting(rows[0]), KERNELS, _kernels(rows)]
    parts += linear_section(_setting, _table)
    parts += language_model_section(_setting, _table)
    parts += objectives_section(_setting, _table)
    parts += evaluation_section(_setting, _table)
    parts += fits_section(_setting, _table)
    parts += report_section(_setting, _table)
    parts += log_section(_setting, _table)
    parts += sections(_setting, _table)
    README.write_text("\n".join(parts))
    print(f"wrote {README}")


def _setting(row: Row) -> str:
    count = int(row["threads"])
    threads = f"{count} thread{'s' * (count > 1)}, " if row.get("device") == "cpu" else ""
    commit = f", commit {row['commit']}" if row["commit"] else ""
    return f"{row['machine']}, {threads}torch {row['torch']}, {row['date']}{commit}.\n"


def _pairs(rows: Sequence[Row]) -> Iterable[tuple[Row, Row]]:
    return zip(rows[::2], rows[1::2], strict=True)


def _measures(rows: Sequence[Row]) -> str:
    replays = any(row["ms_replayed"] for row in rows)
    header = ["measure", "n", "classes", "ours, ms", "definition, ms", "faster"]
    header += ["replayed: ours", "definition"] * replays
    header += ["ours, MiB", "definition, MiB", "smaller"]
    body = []
    for ours, definition in _pairs(rows):
        classes = _count(ours["classes"])
        cells = [f"`{ours['measure']}`", _count(ours["n"]), classes, _time(ours), _time(definition)]
        cells += [_times(ours["time_ratio"], "slower")]
        cells += [_digits(ours["ms_replayed"]), _digits(definition["ms_replayed"])] * replays
        cells += [_peak(ours), _peak(definition), _smaller(ours, definition)]
        body.append(cells)
    return _table(header, body, left=1)


def _verdict(rows: Sequence[Row]) -> str:
    """Say where ours loses, so that nobody has to look for it."""
    compared = [ours for ours, _ in _pairs(rows) if ours["time_ratio"]]
    slower = [row for row in compared if float(row["time_ratio"]) < 1]
    if not slower:
        return f"Ours is faster in all {len(compared)} rows in which both were run.\n"
    names = ", ".join(
        f"`{row['measure']}` at n = {_count(row['n'])}"
        + (f" with {_count(row['classes'])} classes" if row["classes"] else "")
        for row in slower
    )
    return f"Ours is slower in {len(slower)} of the {len(compared)} rows compared: {names}.\n"


def _kernels(rows: Sequence[Row]) -> str:
    header = ["n", "classes", "objective", "form", "ms", "in a row, ms", "of the floor"]
    header += ["replayed, ms", "MiB"]
    body = [
        [
            _count(row["n"]),
            _count(row["classes"]),
            row["objective"] and f"`{row['objective']}`",
            row["form"],
            _time(row),
            _digits(row["ms_queued"]),
            f"{_digits(row['over_floor'])}\u00d7",
            _digits(row["ms_replayed"]),
            _digits(row["peak_mib"]),
        ]
        for row in rows
    ]
    return _table(header, body, left=0)


def _steps(rows: Sequence[Row]) -> str:
    header = ["objective", "batch", "ms per step", "overhead", "quartiles", "over `nll`"]
    body = [
        [
            f"`{row['objective']}`",
            row["batch"],
            _time(row),
            f"{float(row['overhead_percent']):+.1f} %",
            "{:+.1f} to {:+.1f} %".format(
                float(row["overhead_quartile_low"]), float(row["overhead_quartile_high"])
            ),
            f"{float(over):+.1f} %" if (over := row.get("over_nll_percent")) else "",
        ]
        for row in rows
    ]
    return _table(header, body, left=1)


def _table(header: Sequence[str], body: Iterable[Sequence[str]], left: int) -> str:
    rule = [":---"] * left + ["---:"] * (len(header) - left)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (header, rule, *body))


def _count(text: str) -> str:
    return f"{int(text):,}" if text else ""


def _digits(text: str) -> str:
    """Three significant digits, with separators from a thousand on."""
    if not text:
        return ""
    x = float(text)
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:#.3g}".rstrip(".")


def _time(row: Row) -> str:
    if not row["ms_median"]:
        return row.get("note", "")
    low, high = _digits(row["ms_quartile_low"]), _digits(row["ms_quartile_high"])
    return f"{_digits(row['ms_median'])} ({low} to {high})"


def _peak(row: Row) -> str:
    if row["device"] == "cpu" and row["peak_mib"] and float(row["peak_mib"]) < 1:
        return UNSEEN
    return _digits(row["peak_mib"])


def _smaller(ours: Row, definition: Row) -> str:
    if _peak(ours) == UNSEEN and definition["peak_mib"] and _peak(definition) != UNSEEN:
        return f"> {_times(definition['peak_mib'], 'larger')}"
    return _times(ours["memory_ratio"], "larger")


def _times(ratio: str, if_worse: str) -> str:
    if not ratio:
        return ""
    return f"{_digits(ratio)}\u00d7" + (f" ({if_worse})" if float(ratio) < 1 else "")


if __name__ == "__main__":
    main()

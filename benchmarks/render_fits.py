"""The parts of `benchmarks/README.md` on training procedures and on fitted recalibrators."""

from collections.abc import Callable, Iterable, Sequence

from record import RESULTS, Row, read

Setting = Callable[[Row], str]
Table = Callable[[Sequence[str], Iterable[Sequence[str]], int], str]

PROCEDURES = """\
One epoch of ResNet-18 on images of CIFAR-10's shape that lie on the device, bf16 autocast,
channels last: {steps} batches of {batch} are fitted in every procedure, and one batch of {batch}
of a held-out slice is drawn per step where there is one. So an interleaved epoch goes through
twice the samples of a plain one, and a meta epoch through twice as many forwards.
"""

FITS = """\
Every library fits the same over-confident float32 logits; the likelihood is judged on them, and
on as many others. One thread, processor time. A library whose likelihood is plainly worse did not
find the optimum of its own family, or stopped before it: compare its time with care. Where a
method has a regulariser of its own, its optimum is another one: probmetrics' vector scaling has a
ridge, and ours and torch-uncertainty's Dirichlet calibration differ in theirs, ours being chosen
by cross-validation within the time given. Isotonic levels of ours are kept from 0 and 1, which
costs a little on the fitting set and gains on other data.
"""

TEMPERATURE = """\
A temperature on the GPU. With `folds=0` only the fit, as the peers' above; by default also five
more fits to parts, by which `report_` judges it on held-out samples. NLL above the best that a
search in double precision finds: {excess}.
"""


def procedures_section(setting: Setting, table: Table) -> list[str]:
    """What an epoch of each procedure costs, where it was measured."""
    path = RESULTS / "procedures-cuda.csv"
    if not path.exists():
        return []
    rows = read(path)
    body = [
        [
            row["procedure"],
            "{:.2f} ({:.2f} to {:.2f})".format(
                *(float(row[f"seconds_{k}"]) for k in ("median", "quartile_low", "quartile_high"))
            ),
            f"{float(row['ratio']):.2f}\u00d7",
            row["epochs"],
        ]
        for row in rows
    ]
    text = PROCEDURES.format(steps=rows[0]["steps"], batch=rows[0]["batch"])
    header = ["procedure", "seconds an epoch", "of a plain one", "epochs timed"]
    return ["## Training procedures\n", setting(rows[0]), text, table(header, body, 1)]


def fits_section(setting: Setting, table: Table) -> list[str]:
    """What fitting a recalibrator costs, ours beside the peers'."""
    parts: list[str] = []
    path = RESULTS / "recalibration-cpu.csv"
    if path.exists():
        rows = read(path)
        header = ["method", "n", "classes", "library", "ms", "times ours", "NLL", "on other data"]
        body = [
            [
                row["method"],
                f"{int(row['n']):,}",
                f"{int(row['classes']):,}",
                f"{row['library']} {row['version']}".strip(),
                f"{float(row['ms_median']):,.1f}" if row["ms_median"] else row["note"],
                f"{float(row['times_ours']):.1f}" if row["times_ours"] else "",
                f"{float(row['nll']):.5f}" if row["nll"] else "",
                f"{float(row['nll_held_out']):.5f}" if row["nll_held_out"] else "",
            ]
            for row in sorted(rows, key=lambda row: row["method"])
        ]
        parts += ["## Fitting a recalibrator\n", setting(rows[0]), FITS, table(header, body, 1)]
    path = RESULTS / "temperature-cuda.csv"
    if path.exists():
        rows = read(path)
        excess = next(row["excess_nll"] for row in rows if row["excess_nll"])
        body = [
            [row["work"], f"{int(row['n']):,}", f"{int(row['classes']):,}", row["ms_median"]]
            for row in rows
        ]
        text = TEMPERATURE.format(excess=excess)
        parts += [setting(rows[0]), text, table(["work", "n", "classes", "ms"], body, 1)]
    return parts

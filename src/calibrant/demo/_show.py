"""The table of the demo, its verdict and its report."""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from calibrant import CRITERIA, Estimate, compare
from calibrant.evaluation._table import spoken_p

from ._digits import FOLDS
from ._run import Judged, run
from ._ways import WAYS

# Resamples behind the intervals of the report.
DRAWS = 500

HONEST = """\
Every image is judged once, by networks that have not seen it, in three folds.
Nothing was tuned to these results: the price of ESD is that of its authors'
script, the rest are defaults and round numbers fixed beforehand, those of the
adaptive price in sight of digits with more noise and of three other data sets.
In brackets 95% intervals for the population; T is a temperature fitted to other
images."""


def main(out: Path | None = Path("calibrant-demo.html")) -> dict[str, Judged]:
    """Train, print the table, write the report and say where it is."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError as missing:
        raise ImportError("the demo needs rich: pip install 'calibrant[demo]'") from missing
    started = time.perf_counter()
    console = Console(highlight=False)
    shown = Console(stderr=True)
    with Progress(console=shown, transient=True, disable=not shown.is_terminal) as progress:
        task = progress.add_task("training", total=FOLDS * len(WAYS))
        found = run(lambda: progress.advance(task))
    said = f"{table(found)}\n\n{HONEST}\n\n{verdict(found)}"
    console.print(said, soft_wrap=True, markup=False)
    if out is not None:
        with shown.status("writing the report") if shown.is_terminal else nullcontext():
            report(found, out)
        console.print(f"\nThe report is {out.resolve()}", soft_wrap=True, markup=False)
    console.print(f"{time.perf_counter() - started:.0f} seconds.")
    return found


def table(found: Mapping[str, Judged]) -> str:
    """Names, accuracy and the calibration error before and after repair, in 80 columns."""
    n = len(next(iter(found.values())).labels)
    lines = [
        f"{f'{n:,} noisy digits':<20} {'accuracy, %':>19} {'ECE, %':>19} {'ECE after T, %':>19}"
    ]
    for name, judged in found.items():
        cells = (judged.rows["accuracy"], judged.rows["ece"], judged.repaired_rows["ece"])
        lines.append(f"{name:<20} " + " ".join(f"{cell(each):>19}" for each in cells))
    return "\n".join(lines)


def cell(row: Estimate) -> str:
    """A percentage with its interval.

    >>> cell(Estimate(0.1, 0.085, 0.112, 1000))
    '10.0 (8.5 to 11.2)'
    """
    return f"{100 * row.value:z.1f} ({100 * row.low:z.1f} to {100 * row.high:z.1f})"


def verdict(found: Mapping[str, Judged]) -> str:
    """What interleaved ESD did to calibration and accuracy, and whether it could be chance."""
    plain, penalised = found["NLL"], found["NLL + ESD"]
    criteria = {name: CRITERIA[name] for name in ("ece", "accuracy")}
    paired = compare(penalised.logits, plain.logits, plain.labels, criteria=criteria, draws=1000)
    return "\n".join(
        _change(name, row.second, row.first, row.p_value)
        for name, row in (("ECE", paired["ece"]), ("accuracy", paired["accuracy"]))
    )


def _change(name: str, before: float, after: float, p_value: float) -> str:
    """A sentence.

    >>> _change("ECE", 0.1, 0.05, 0.002)
    'With interleaved ESD ECE falls from 10.0% to 5.0% (p = 0.0020, paired).'
    >>> _change("accuracy", 0.9, 0.91, 0.4)
    'With interleaved ESD accuracy goes from 90.0% to 91.0% (p = 0.4000: may be chance).'
    """
    clear = p_value < 0.05
    verb = "goes" if not clear else "falls" if after < before else "rises"
    doubt = "paired)" if clear else "may be chance)"
    doubt = f"{spoken_p(p_value)}{', ' if clear else ': '}{doubt}"
    return f"With interleaved ESD {name} {verb} from {before:.1%} to {after:.1%} ({doubt}."


def report(found: Mapping[str, Judged], out: Path) -> None:
    """One page on every way, and on plain training after repair."""
    from calibrant.report import write_report

    models = {name: (judged.logits, judged.labels) for name, judged in found.items()}
    models["NLL, then temperature"] = (found["NLL"].repaired, found["NLL"].labels)
    write_report(
        out,
        models,
        class_names=list(range(10)),
        title="Handwritten digits through noise",
        draws=DRAWS,
    )

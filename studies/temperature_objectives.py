"""What should a temperature be fitted to: likelihood, soft bins or hard bins?

The comparison of Karandikar et al., section 5.3, on published networks' logits: temperature
scaling by NLL (TS), by label-binned SB-ECE (TS-SB-ECE) and by ECE (TS-HB-ECE), each fitted on the
validation logits and judged once on the test logits.

    python studies/temperature_objectives.py FOLDER_OF_NPZ_FILES

A file holds, for each network, `NAME_val_logits`, `NAME_val_labels`, `NAME_test_logits` and
`NAME_test_labels`; a file of one network may leave out the name. Writes `results/`.
"""

import argparse
import json
import platform
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibrant import TemperatureScaling, compare, evaluate

RESULTS = Path(__file__).parents[1] / "results"
METHODS = {"TS": "nll", "TS-SB-ECE": "sb_ece", "TS-HB-ECE": "ece"}
ROWS = ("ece", "ece_mass", "nll", "accuracy")
DRAWS, SEED = 1000, 0

Split = tuple[Tensor, Tensor]


def networks(folder: Path) -> Iterator[tuple[str, Split, Split]]:
    """Every network's validation and test logits with their labels."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            for key in arrays.files:
                if key.endswith("val_logits"):
                    own = key.removesuffix("val_logits")
                    val, test = (
                        (
                            torch.from_numpy(arrays[f"{own}{part}_logits"]).float(),
                            torch.from_numpy(arrays[f"{own}{part}_labels"]).long().reshape(-1),
                        )
                        for part in ("val", "test")
                    )
                    yield own.strip("_") or path.stem, val, test


def study(name: str, val: Split, test: Split) -> Iterator[dict[str, Any]]:
    """One row for the network as it is, and one for each objective."""
    reference: Tensor | None = None
    for method, objective in {"none": None, **METHODS}.items():
        logits, temperature = test[0], 1.0
        if objective is not None:
            fitted = TemperatureScaling(objective=objective).fit(*val, folds=0)
            logits, temperature = fitted.transform(test[0]), fitted.temperature_.item()
        found = evaluate(logits, test[1], draws=DRAWS, seed=SEED)
        row: dict[str, Any] = {"network": name, "method": method, "temperature": temperature}
        row |= {each: vars(found[each]) for each in ROWS}
        row |= {"n_val": len(val[1]), "n_test": len(test[1]), "classes": test[0].shape[1]}
        if method == "TS":
            reference = logits
        elif reference is not None:
            against = compare(logits, reference, test[1], draws=DRAWS, seed=SEED)["ece"]
            row["ece_less_ts"] = vars(against)
        yield row | _circumstances()


def render(rows: Sequence[dict[str, Any]]) -> str:
    """The table, and how often an objective's ECE differs from that of likelihood."""
    head = ["network", "method", "T", "ECE, %", "ECE by mass, %", "NLL", "accuracy, %", "p"]
    lines = [head, [":---", ":---", *["---:"] * 6]]
    for row in rows:
        p = f"{row['ece_less_ts']['p_value']:.3f}" if "ece_less_ts" in row else ""
        lines.append(
            [
                row["network"],
                row["method"],
                f"{row['temperature']:.3f}",
                _percent(row["ece"]),
                _percent(row["ece_mass"]),
                f"{row['nll']['value']:.4f}",
                f"{100 * row['accuracy']['value']:.2f}",
                p,
            ]
        )
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    first = rows[0]
    setting = f"{first['machine']}, torch {first['torch']}, {first['date']}, commit "
    return (
        "# What should a temperature be fitted to?\n\n"
        "<!-- Written by studies/temperature_objectives.py from temperature_objectives.jsonl. -->\n"
        "\nEach temperature is fitted on validation logits and judged once on test logits. In "
        "brackets\nthe 95% interval for the population; *p* is of the difference in ECE from TS "
        f"(paired, two-sided,\nnot corrected for the number of rows). {setting}"
        f"{first['commit']}.\n\n{table}\n\n{_verdict(rows)}\n"
    )


def _verdict(rows: Sequence[dict[str, Any]]) -> str:
    sentences = []
    for method in list(METHODS)[1:]:
        own = [row["ece_less_ts"] for row in rows if row["method"] == method]
        better = sum(each["difference"] < 0 for each in own)
        clear = [each for each in own if each["p_value"] < 0.05]
        lower = sum(each["difference"] < 0 for each in clear)
        sentences.append(
            f"{method} has the lower test ECE for {better} of {len(own)} networks; the difference "
            f"is clear (p < 0.05) for {len(clear)}, and in its favour for {lower}."
        )
    return "\n".join(sentences)


def _percent(row: dict[str, float]) -> str:
    return f"{100 * row['value']:.2f} ({100 * row['low']:.2f} to {100 * row['high']:.2f})"


def _circumstances() -> dict[str, str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "torch": torch.__version__,
        "machine": platform.processor() or platform.machine(),
        "commit": commit,
        "date": datetime.now(UTC).date().isoformat(),
    }


def main() -> None:
    """Fit, judge, write the rows as they come, and render them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    RESULTS.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    with (RESULTS / "temperature_objectives.jsonl").open("w") as file:
        for name, val, test in networks(folder):
            for row in study(name, val, test):
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(name, row["method"], _percent(row["ece"]), flush=True)
    if not rows:
        raise SystemExit(f"{folder} must hold .npz files with val_logits; there are none.")
    (RESULTS / "temperature_objectives.md").write_text(render(rows))


if __name__ == "__main__":
    main()

"""Tables made of recorded results, never typed."""

import csv
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown: the first column to the left, the others to the right."""
    rule = [":---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def temperature_evidence() -> str:
    """What a temperature fitted to one thing or another did to published networks."""
    rows = [
        json.loads(line)
        for line in (ROOT / "results/temperature_objectives.jsonl").read_text().splitlines()
    ]
    of: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        of[row["method"]][row["network"]] = row
    networks = list(of["none"])

    def mean(method: str, name: str, scale: float) -> str:
        return f"{scale * sum(r[name]['value'] for r in of[method].values()) / len(networks):.3g}"

    body = []
    for method in of:
        better = sum(
            of[method][net]["ece"]["value"] < of["TS"][net]["ece"]["value"] for net in networks
        )
        beats = "" if method in ("none", "TS") else f"{better} of {len(networks)}"
        body.append([method, mean(method, "ece", 100), mean(method, "nll", 1), beats])
    said = f"{len(networks)} published networks, recorded {rows[0]['date']}"
    head = ["fitted to", "mean ECE, %", "mean NLL", "lower ECE than TS"]
    return f"{table(head, body)}\n\n*{said}, commit {rows[0]['commit']}.*"


def training_evidence() -> str:
    """What every objective did to one network, under one protocol."""
    page = (ROOT / "results/objectives-quick.md").read_text()
    start = page.index("|  | Acc.")
    evidence = next(line for line in page.splitlines() if "tested runs and" in line)
    return f"{page[start : page.index(chr(10) * 2, start)]}\n\n*{evidence}*"


def recalibration_cost() -> str:
    """What fitting costs, and what it leaves of the likelihood on held-out samples."""
    with (ROOT / "benchmarks/results/recalibration-cpu.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    body = [
        [
            row["method"],
            f"{int(row['n']):,} by {row['classes']}",
            f"{row['library']} {row['version']}",
            row["ms_median"],
            f"{float(row['nll_held_out']):.4f}" if row["nll_held_out"] else row["note"][:60],
        ]
        for row in rows
    ]
    head = ["method", "samples by classes", "library", "fit, ms", "held-out NLL"]
    machine = f"{rows[0]['machine']}, {rows[0]['threads']} thread, recorded {rows[0]['date']}"
    return f"{table(head, body)}\n\n*{machine}.*"


def monitor_promise() -> str:
    """How often the monitor alarms falsely, and how soon rightly."""
    with (ROOT / "benchmarks/results/monitor.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    false = [
        [
            row["confidences"],
            f"{int(row['n']):,}",
            row["tolerance"],
            f"{float(row['value']):.1%} (±{float(row['error']):.1%})",
        ]
        for row in rows
        if row["what"] == "false alarms"
    ]
    late = [[row["tolerance"], row["gap"], row["value"]] for row in rows if row["what"] == "delay"]
    first = table(["confidences", "rows per window", "tolerance", "sequences with an alarm"], false)
    second = table(["tolerance", "gap after the drift", "windows until the alarm, median"], late)
    said = (
        f"*{rows[0]['sequences']} calm sequences of {rows[0]['windows']} windows each, and "
        f"{rows[-1]['sequences']} that drift after ten, recorded {rows[0]['date']} by "
        "`benchmarks/monitor.py`.*"
    )
    return f"{first}\n\n{second}\n\n{said}"


TABLES = {
    "temperature evidence": temperature_evidence,
    "training evidence": training_evidence,
    "recalibration cost": recalibration_cost,
    "monitor promise": monitor_promise,
}
"""By the name that a page calls them."""

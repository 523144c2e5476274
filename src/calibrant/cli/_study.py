"""`calibrant study`: the papers' tables and figures, re-run."""

import json as plain_json
import sys
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import typer

from .._json import as_json
from ..lab import (
    STUDIES,
    Engine,
    Plan,
    RunSettings,
    Store,
    figures_and_claims,
    run_study,
    write_results,
)
from ..lab import plan as plan_of
from ..lab import render as page_of
from ._output import write
from ._study_choice import devices, study_at, study_called, trials
from ._study_data import data as download_data

_EXAMPLES = {
    "list": ["calibrant study list"],
    "data": ["calibrant study data cifar10 --data ~/data"],
    "run": [
        "calibrant study run digits --budget quick --workers 2",
        "calibrant study run esd-table-1 --budget minutes --data ~/data --workers 2",
    ],
    "status": ["calibrant study status esd-table-1 --budget quick"],
    "pending": ["calibrant study pending objectives > trials.jsonl  # for another machine"],
    "render": [
        "calibrant study render esd-table-1 --budget quick --results results",
        "calibrant study render digits --json",
    ],
}


def _examples(*commands: str) -> str:
    lines = [f"  {line}" for command in commands for line in _EXAMPLES[command]]
    return "\n".join(["", "\b", "Examples:", *lines, ""])


study_app = typer.Typer(
    help="Run the papers' tables and figures again.",
    epilog=_examples(*_EXAMPLES),
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A study; see `calibrant study list`.")]
BudgetName = Annotated[str, typer.Option("--budget", metavar="NAME", help="How much of it.")]
StoreFolder = Annotated[Path, typer.Option("--store", metavar="FOLDER", help="Of results so far.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
STORE = Path("runs")


@study_app.command("list", epilog=_examples("list"))
def list_studies(json: Json = False) -> int:
    """Every study with its place in its paper and its budgets."""
    told: dict[str, dict[str, Any]] = {
        name: {
            "place": study.place,
            "paper": study.paper,
            "title": study.title,
            "budgets": {key: trials(study, key) for key in study.budgets},
        }
        for name, study in STUDIES.items()
    }
    if json:
        write(as_json(told), None)
        return 0
    width = max(map(len, told))
    for name, about in told.items():
        budgets = ", ".join(
            f"{key}: {count} trial{'s' * (count != 1)}" for key, count in about["budgets"].items()
        )
        line = f"{name:{width}}  {STUDIES[name].heading} ({budgets or 'no training'})"
        print(fill(line, 80, subsequent_indent=" " * (width + 2)))
    return 0


study_app.command("data", epilog=_examples("data"))(download_data)


@study_app.command(epilog=_examples("run"))
def run(
    name: Name,
    budget: BudgetName = "quick",
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the data sets are.")
    ] = None,
    store: StoreFolder = STORE,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes at once; 0: none.")] = 1,
    device: Annotated[
        str | None, typer.Option(help="Such as cuda, or cuda:0,cuda:1 to deal out.")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="Beyond one machine: ray.")] = Engine.local,
    together: Annotated[
        bool, typer.Option("--together", help="Train small models of a grid as one.")
    ] = False,
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="Of searches shared by many machines.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--data-set", metavar="NAME", help="Only these data sets.")
    ] = None,
    stop_after: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Begin nothing that ends later.")
    ] = None,
    json: Json = False,
) -> int:
    """Run what is not in the store yet; again to go on.

    Settings are tuned and chosen on validation data, then models are trained and tested. Every
    finished trial is on disk before the next begins. Exit code 1 if some are left, or cannot be
    run since others diverged.
    """
    study = study_at(name, budget, only)
    settings = RunSettings(
        data=data,
        store=store,
        workers=workers,
        devices=devices(device),
        stop_after=stop_after,
        engine=engine,
        together=together,
    )
    done = run_study(
        name,
        study,
        study.budgets[budget],
        settings,
        storage=storage,
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )
    if json:
        told = {
            "missing": len(done.missing),
            "choices": done.choices,
            "cannot_go_on": _stuck(done),
        }
        write(as_json(told), None)
    else:
        write(page_of(name, study, budget, Store(store).rows()), None)
    return 1 if done.missing or done.stuck else 0


@study_app.command(epilog=_examples("status"))
def status(
    name: Name, budget: BudgetName = "quick", store: StoreFolder = STORE, json: Json = False
) -> int:
    """What is done, what was chosen, and what can run now."""
    study = study_at(name, budget)
    rows = _rows(store)
    current = plan_of(name, study, study.budgets[budget], rows)
    wanted = {each for own in current.finals.values() for each in own}
    wanted |= {each for own in current.tuning.values() for each in own}
    wanted |= set(current.baselines.values())
    done = sum(each.identity in rows for each in wanted)
    told: dict[str, Any] = {
        "done": done,
        "can_run_now": [str(each) for each in current.missing],
        "choices": current.choices,
        "cannot_go_on": _stuck(current),
    }
    if json:
        write(as_json(told), None)
        return 0
    print(f"{done} trials of {name} are done; {len(current.missing)} can run now.")
    for choice in current.choices:
        print(f"  {choice['data']}, {choice['arm']}: {choice['setting']} = {choice['value']:g}")
    for each in told["cannot_go_on"]:
        print(f"  {each['data']}, {each['arm']} cannot go on: {each['reason']}")
    return 0


@study_app.command(epilog=_examples("pending"))
def pending(name: Name, budget: BudgetName = "quick", store: StoreFolder = STORE) -> int:
    """The trials that can run now, as lines of JSON.

    `python -m calibrant.lab.worker` runs them, here or on another machine.
    """
    study = study_at(name, budget)
    current = plan_of(name, study, study.budgets[budget], _rows(store))
    for trial in current.missing:
        print(plain_json.dumps(trial.to_dict()))
    return 0


@study_app.command(epilog=_examples("render"))
def render(
    name: Name,
    budget: BudgetName = "quick",
    store: StoreFolder = STORE,
    results: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write page, rows and figures there.")
    ] = None,
    json: Json = False,
) -> int:
    """Our table beside the paper's, from stored rows.

    It says of each claim of the paper whether it was confirmed.
    """
    study = study_called(name)
    if study.budgets or not (results or json):
        study = study_at(name, budget)
    rows = _rows(store) if study.budgets else {}
    written = [] if results is None else write_results(name, study, budget, rows, results)
    if json:
        # A study of which nothing is trained has a figure and no numbers.
        told = figures_and_claims(name, study, budget, rows) if study.budgets else {}
        write(as_json({"files": [str(path) for path in written], "data": told}), None)
    elif results is None:
        write(page_of(name, study, budget, rows), None)
    else:
        for path in written:
            print(path)
    return 0


def _rows(store: Path) -> dict[str, dict[str, Any]]:
    """Those of a store that may not be there yet; that is said, since the name may be a slip."""
    if not store.exists():
        print(f"There is no store at {store}, so nothing has run yet.", file=sys.stderr)
        return {}
    return Store(store).rows()


def _stuck(current: Plan) -> list[dict[str, str]]:
    return [
        {"data": data, "arm": arm, "reason": reason}
        for (data, arm), reason in current.stuck.items()
    ]

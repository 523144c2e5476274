"""Stored rows as a page: our table beside the paper's, and what became of its claims."""

from collections.abc import Mapping, Set
from typing import Any

from ._evidence import evidence_of
from ._plan import Plan, Rows, plan
from ._study import Budget, Column, Study
from ._tables import markdown, paper_alone, table_of
from ._under_shift import columns_under_shift, corruptions_of
from ._values import figures_of
from ._verdicts import claims_of, verdicts


def render(name: str, study: Study, budget_name: str, rows: Rows) -> str:
    """The page of a study in Markdown, from the rows of its finished trials."""
    budget = study.budgets[budget_name]
    current = plan(name, study, budget, rows)
    parts = [
        f"# {study.heading}",
        f"<!-- Written by `calibrant study render {name}` from stored rows. -->",
        f"{study.paper}. Budget `{budget_name}`. {study.note}".strip(),
    ]
    used = [rows[t.identity] for own in current.finals.values() for t in own if t.identity in rows]
    if not used:
        parts += ["No trial has finished yet.", _stuck(current), paper_alone(study)]
        return "\n\n".join(part for part in parts if part) + "\n"
    ran = {key for key, own in current.finals.items() if any(t.identity in rows for t in own)}
    for data, model in budget.pairs:
        if not any(data == each for each, _ in ran):
            continue
        parts.append(f"## {data}, {model}")
        parts.append(table_of(study, _columns(study), data, current, rows))
        parts.append(_by_people(study, data, current, rows))
        parts.append(claims_of(study, data, current, rows))
        parts.append(_under_shift(study, data, current, rows))
    parts += [paper_alone(study), _choices(current), evidence_of(study, used, current, rows)]
    told = ran | current.stuck.keys()
    parts += [_stuck(current), _not_run(study, budget, {data for data, _ in ran}, told)]
    return "\n\n".join(part for part in parts if part) + "\n"


def figures_and_claims(
    name: str, study: Study, budget_name: str, rows: Rows
) -> dict[str, dict[str, Any]]:
    """The page's numbers by data set: figures by arm, column and seed, also under shift; claims."""
    budget = study.budgets[budget_name]
    current = plan(name, study, budget, rows)

    def by_arm(data: str, columns: Mapping[str, Column]) -> dict[str, Any]:
        return {
            arm: {
                label: figures_of(column, current.finals.get((data, arm), []), rows)
                for label, column in columns.items()
            }
            for arm in study.arms
        }

    return {
        data: {
            "arms": by_arm(data, study.columns),
            "shift": {
                label: by_arm(data, columns)
                for label, columns in columns_under_shift(study, data, current, rows).items()
            },
            "claims": [
                {
                    "claim": str(each.claim),
                    "outcome": each.outcome,
                    "difference": each.difference,
                    "p_value": each.p_value,
                    "n": each.n,
                }
                for each in verdicts(study, data, current, rows)
            ],
        }
        for data, _ in budget.pairs
    }


def _columns(study: Study, *, by_people: bool = False) -> dict[str, Column]:
    return {
        label: column
        for label, column in study.columns.items()
        if (column.split == "people") == by_people
    }


def _by_people(study: Study, data: str, current: Plan, rows: Rows) -> str:
    """A table of its own, since only runs that found the file of what people said have figures."""
    columns = _columns(study, by_people=True)
    trials = [trial for arm in study.arms for trial in current.finals.get((data, arm), [])]
    if not any(figures_of(column, trials, rows) for column in columns.values()):
        return ""
    table = table_of(study, columns, data, current, rows, corner="by people")
    return (
        "Judged by what people said the test images show, of the runs that were made where that "
        f"is known: the truth is the share of people who gave a class.\n\n{table}"
    )


def _under_shift(study: Study, data: str, current: Plan, rows: Rows) -> str:
    tables = [
        table_of(study, columns, data, current, rows, corner=f"{label} at severity")
        for label, columns in columns_under_shift(study, data, current, rows).items()
    ]
    if not tables:
        return ""
    said = (
        f"Under shift: of every run the mean over {len(corruptions_of(data, current, rows))} "
        "corruptions of the test split at each severity, and last the mean over all severities. "
        "In the figure severity 0 is the test split as it is."
    )
    return "\n\n".join([said, *tables])


def _choices(current: Plan) -> str:
    if not current.choices:
        return ""
    lines = [["data", "arm", "setting", "chosen", "tried: accuracy, error"], [":---"] * 5]
    for each in current.choices:
        tried = "; ".join(
            f"{value:g}: {100 * accuracy:.2f}, {100 * error:.2f}"
            for value, accuracy, error in each["candidates"]
        )
        chosen = f"{each['value']:g}" + (" (all lost too much)" if "fallback" in each else "")
        lines.append([each["data"], each["arm"], f"`{each['setting']}`", chosen, tried])
    return f"## What was chosen, by validation data alone\n\n{markdown(lines)}"


def _stuck(current: Plan) -> str:
    lines = [f"- {arm} on {data}: {why.rstrip('.')}." for (data, arm), why in current.stuck.items()]
    return "\n".join(["Cannot go on, since runs diverged:", "", *lines]) if lines else ""


def _not_run(study: Study, budget: Budget, begun: Set[str], told: Set[tuple[str, str]]) -> str:
    """What the page tells nothing of, so that nobody takes it for a result."""
    whole = [f"all of {data}, {model}" for data, model in budget.pairs if data not in begun]
    arms = [
        f"{arm} on {data}"
        for data, _ in budget.pairs
        if data in begun
        for arm in study.arms
        if (data, arm) not in told
    ]
    return f"Not run yet: {'; '.join(arms + whole)}." if arms or whole else ""


def budget_of(study: Study, name: str) -> Budget:
    """The budget of that name, or a sentence on which there are."""
    if name not in study.budgets:
        there = ", ".join(study.budgets) or "none, since nothing is trained"
        raise ValueError(f"budget must be one of {there}; got {name!r}.")
    return study.budgets[name]

"""A study's claims held against its rows."""

from ..evaluation._table import p_value
from ._claims import LEVEL, Verdict, judge
from ._plan import Plan, Rows
from ._study import Study
from ._tables import markdown
from ._values import figures_of


def verdicts(study: Study, data: str, current: Plan, rows: Rows) -> list[Verdict]:
    """Every claim that our rows can be held against, by the seeds both arms have."""
    found = []
    for claim in study.claims:
        better, worse = (
            figures_of(study.columns[column], current.finals.get((data, arm), []), rows)
            for column, arm in zip(claim.columns, (claim.better, claim.worse), strict=True)
        )
        seeds = sorted(better.keys() & worse.keys())
        if seeds:
            found.append(
                judge(claim, [better[seed] for seed in seeds], [worse[seed] for seed in seeds])
            )
    return found


def claims_of(study: Study, data: str, current: Plan, rows: Rows) -> str:
    """A line for each claim: what became of it, by how much, and how sure that is."""
    found = verdicts(study, data, current, rows)
    if not found:
        return ""
    lines = [["claim", "", "difference", "p", "n"], [":---", ":---", "---:", "---:", "---:"]]
    for each in found:
        p = "" if each.p_value is None else p_value(each.p_value)
        lines.append([str(each.claim), each.outcome, f"{each.difference:+z.2f}", p, str(each.n)])
    return (
        f"{markdown(lines)}\n\nA claim is confirmed, or refuted, where a two-sided paired t-test "
        f"over seeds has p < {LEVEL:g}; *difference* is in the units of the column, below zero on "
        "the claimed side."
    )

"""Figures under shift: means over corruptions, severity by severity."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from ._plan import Plan, Rows
from ._study import Column, Study
from ._trial import Trial

Figures = Mapping[str, Mapping[str, float | None]]
"""By recalibrator and measure."""


def shift_means(shift: Mapping[str, Any]) -> dict[str, Any]:
    """What a row has under shift in its short form, whichever form it comes in.

    - `shift`: figures by corruption and severity, as a trial measures them, or the short form:
      the names of the corruptions, and means over them by severity.

    >>> found = {"fog": {"1": {"none": {"nll": 0.5}}}, "snow": {"1": {"none": {"nll": 1.5}}}}
    >>> shift_means(found)
    {'corruptions': ['fog', 'snow'], 'means': {'1': {'none': {'nll': 1.0}}}}
    >>> shift_means(shift_means(found)) == shift_means(found)
    True
    """
    if "means" in shift:
        return dict(shift)
    severities = next(iter(shift.values()))
    means = {each: _mean([own[each] for own in shift.values()]) for each in severities}
    return {"corruptions": sorted(shift), "means": means}


def figures_at(shift: Mapping[str, Any], severity: int | None) -> Figures:
    """Means over corruptions at a severity, or over all severities too; none where none ran."""
    means = shift_means(shift)["means"] if shift else {}
    if severity is None and means:
        return _mean(list(means.values()))
    found: Figures = means.get(str(severity), {})
    return found


def _mean(sets: Sequence[Figures]) -> Figures:
    """The mean of every measure after every recalibrator; none where one has none."""
    return {
        after: {name: _of([each[after][name] for each in sets]) for name in measures}
        for after, measures in sets[0].items()
    }


def _of(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def columns_under_shift(
    study: Study, data: str, current: Plan, rows: Rows
) -> dict[str, dict[str, Column]]:
    """Of each column that the study draws under shift, one at every severity and one over all.

    Nothing where no row of the data set was judged under shift.
    """
    if study.figure != "shift" or not corruptions_of(data, current, rows):
        return {}
    severities = sorted({each for trial in _tested(data, current) for each in trial.shift})
    found = {}
    for label in (label for panel in study.figure_settings["panels"] for label in panel):
        over_all = replace(study.columns[label], split="shift")
        found[label] = {str(each): replace(over_all, severity=each) for each in severities}
        found[label]["mean"] = over_all
    return found


def corruptions_of(data: str, current: Plan, rows: Rows) -> list[str]:
    """The corruptions behind every mean of a data set; none where no row was judged so.

    Means over different corruptions are not alike, so a `ValueError` says where they differ.
    """
    shifts = [rows.get(trial.identity, {}).get("shift") for trial in _tested(data, current)]
    sets = {frozenset(shift_means(shift)["corruptions"]) for shift in shifts if shift}
    if len(sets) > 1:
        some = ", ".join(sorted(frozenset.union(*sets) - frozenset.intersection(*sets)))
        raise ValueError(
            f"rows of {data} under shift must have the same corruptions to be compared; only some "
            f"have {some}. Run the others again, or keep them in a store of their own."
        )
    return sorted(frozenset().union(*sets))


def _tested(data: str, current: Plan) -> list[Trial]:
    return [trial for (own, _), trials in current.finals.items() if own == data for trial in trials]

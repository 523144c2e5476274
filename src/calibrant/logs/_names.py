"""The names of the columns of a file, and those that people usually give."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from .._checks import did_you_mean

Kind: TypeAlias = Literal["logits", "probabilities", "confidence"]
Asked: TypeAlias = str | Sequence[str] | None
"""A column, or the stem of numbered columns; several columns, one per class; or nothing."""

FORECASTS: dict[Kind, tuple[str, ...]] = {
    "logits": ("logits", "logit"),
    "probabilities": ("probabilities", "probability", "probs", "prob"),
    "confidence": ("confidence", "confidences"),
}
TRUTHS: dict[str, tuple[str, ...]] = {
    "labels": ("labels", "label", "targets", "target", "y", "y_true"),
    "outcome": ("outcome", "outcomes", "correct"),
}
_SHOWN = 12


def check_asked(asked: Mapping[str, object]) -> None:
    """Columns are named, by text that is not empty; `None` names none."""
    for role, given in asked.items():
        names: object = [given] if isinstance(given, str) else given
        if given is not None and not (
            isinstance(names, Sequence)
            and len(names) > 0
            and all(isinstance(name, str) and name for name in names)
        ):
            raise TypeError(
                f"{role} must be the name of a column, or of several; got {given!r}. "
                "Name one that is there, or leave it out."
            )


class Names:
    """The names of the columns of a file."""

    def __init__(self, found: Sequence[str], where: str) -> None:
        self.found, self.where = list(found), where

    def __str__(self) -> str:
        if not self.found:
            return "no columns"
        shown = ", ".join(self.found[:_SHOWN])
        left = len(self.found) - _SHOWN
        return f"{shown} and {left} more" if left > 0 else shown

    def told(self, role: str, asked: Asked) -> tuple[str, ...]:
        """The columns somebody named."""
        one_each = role in FORECASTS and role != "confidence"
        if isinstance(asked, str):
            if asked in self.found:
                return (asked,)
            if one_each and (numbered := self._numbered(asked)):
                return numbered
        given = (asked,) if isinstance(asked, str) else tuple(asked or ())
        missing = [name for name in given if name not in self.found]
        if missing:
            near = did_you_mean(missing[0], self.found)
            raise ValueError(f"{self.where} has no column {missing[0]!r}; found {self}.{near}")
        if len(given) > 1 and not one_each:
            raise ValueError(f"{role} must be one column; got {', '.join(given)}.")
        return given

    def known(self, role: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """The columns that bear one of the usual names; empty where none does."""
        hits: list[tuple[str, ...]] = [
            (column,) for column in self.found if column.casefold() in names
        ]
        if role in FORECASTS and role != "confidence":
            hits += [numbered for stem in names if (numbered := self._numbered(stem))]
        if len(set(hits)) > 1:
            raise ValueError(
                f"{self.where} has more than one column that may hold {role}: "
                f"{listed([hit[0] for hit in hits])}. Name the one to use as {role}."
            )
        return hits[0] if hits else ()

    def _numbered(self, stem: str) -> tuple[str, ...]:
        pattern = re.compile(rf"{re.escape(stem)}[_.]?(\d+)", re.IGNORECASE)
        hits = [hit for name in self.found if (hit := pattern.fullmatch(name))]
        place = {int(hit[1]): hit[0] for hit in hits}
        if not place:
            return ()
        for hit in hits:
            if hit[0] != (other := place[int(hit[1])]):
                raise ValueError(
                    f"{self.where} must have one column for class {int(hit[1])}; found {hit[0]} "
                    f"and {other}. Name the columns in order, one per class."
                )
        missing = next((k for k in range(max(2, *place)) if k not in place), None)
        if missing is not None:
            raise ValueError(
                f"{self.where} must number its classes from 0 without a gap; found "
                f"{listed([place[k] for k in sorted(place)])} but no {stem}_{missing}. "
                "Name the columns in order, one per class."
            )
        return tuple(place[k] for k in sorted(place))

    def check_unique(self, chosen: Sequence[str]) -> None:
        times = Counter(self.found)
        twice = [name for name in chosen if times[name] > 1]
        if twice:
            raise ValueError(
                f"{self.where} must have one column called {twice[0]!r}; found {times[twice[0]]}. "
                "Rename one of them."
            )


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, ..."

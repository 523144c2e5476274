"""What a summary keeps of every row of a table, as expressions that a database evaluates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .._checks import EXCESS


@dataclass(frozen=True)
class Rows:
    """A table with a row per sample: statistics to be added up, and what to check them by.

    - `table`: with columns `confidence`, `correct`, `nll`, `brier`, `last` (what the summary's
      totals end with), `truth`, and of the forecasts `low`, `top` and `total`, to check them by.
      With classes also `predicted` and `chance_0`, `chance_1`, ...
    - `classes`: how many, `None` for events.
    - `narrow`: whether chances are float32 numbers as they were given.
    - `names`: what the columns of the forecasts are called, by class.
    - `own`: the columns that tell a row from others, which are `own_0`, `own_1`, ... here.
    """

    table: Any
    classes: int | None
    narrow: bool
    names: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


def of_logits(ibis: Any, told: Any, classes: int) -> Rows:
    """From a table of `truth` and logits `given_0`, `given_1`, ... in double precision."""
    own = _Columns(told, classes)
    table = told.mutate(top=ibis.greatest(*own("given")))
    own = _Columns(table, classes)
    table = table.mutate(**{f"lead_{j}": x - table.top for j, x in enumerate(own("given"))})
    own = _Columns(table, classes)
    # The largest exponent is zero: nothing overflows, and the sum is at least one.
    table = table.mutate(log_sum=_sum(x.exp() for x in own("lead")).ln())
    own = _Columns(table, classes)
    logs = {f"log_{j}": x - table.log_sum for j, x in enumerate(own("lead"))}
    table = table.mutate(
        **logs, confidence=(-table.log_sum).exp(), predicted=_first(ibis, own("given"), table.top)
    )
    own = _Columns(table, classes)
    table = table.mutate(**{f"chance_{j}": x.exp() for j, x in enumerate(own("log"))})
    return Rows(_judged(ibis, table, classes), classes, narrow=False)


def of_probabilities(ibis: Any, told: Any, classes: int, *, narrow: bool) -> Rows:
    """From a table of `truth` and probabilities `given_0`, `given_1`, ... in double precision."""
    own = _Columns(told, classes)
    table = told.mutate(top=ibis.greatest(*own("given")))
    own = _Columns(table, classes)
    table = table.mutate(
        **{f"chance_{j}": x for j, x in enumerate(own("given"))},
        **{f"log_{j}": _log(ibis, x, narrow) for j, x in enumerate(own("given"))},
        confidence=table.top,
        predicted=_first(ibis, own("given"), table.top),
    )
    return Rows(_judged(ibis, table, classes), classes, narrow)


def of_events(ibis: Any, told: Any, *, narrow: bool) -> Rows:
    """From a table of `given_0`, how sure, and `truth`, whether it happened: 0 or 1."""
    sure, happened = within(ibis, told.given_0), told.truth
    true_chance = ibis.ifelse(happened == 1, sure, complement(sure, narrow=narrow))
    table = told.mutate(
        top=sure,
        confidence=sure,
        correct=happened.cast("float64"),
        nll=-_log(ibis, true_chance, narrow),
        brier=(happened - sure) * (happened - sure),
        last=sure,
        low=sure,
        total=sure,
    )
    return Rows(table, None, narrow)


def within(ibis: Any, chance: Any) -> Any:
    """A chance without what rounding has left beyond 0 or 1; what is further out stays there."""
    above, below = (chance > 1) & (chance <= 1 + EXCESS), (chance < 0) & (chance >= -EXCESS)
    return ibis.cases((above, 1.0), (below, 0.0), else_=chance)


def complement(chance: Any, *, narrow: bool) -> Any:
    """One less the chance, rounded as its own precision rounds it."""
    rest = 1.0 - chance
    return rest.cast("float32").cast("float64") if narrow else rest


class _Columns:
    """The columns `stem_0`, `stem_1`, ... of a table."""

    def __init__(self, table: Any, classes: int) -> None:
        self.table, self.classes = table, classes

    def __call__(self, stem: str) -> list[Any]:
        return [self.table[f"{stem}_{j}"] for j in range(self.classes)]


def _judged(ibis: Any, table: Any, classes: int) -> Any:
    own = _Columns(table, classes)
    chances, logs = own("chance"), own("log")

    def true(columns: Sequence[Any]) -> Any:
        return ibis.cases(*((table.truth == j, x) for j, x in enumerate(columns)))

    pairs = zip(chances, logs, strict=True)
    # A class that is ruled out has no share in the entropy.
    entropy = _sum(ibis.ifelse(p > 0, -p * log, 0.0) for p, log in pairs)
    return table.mutate(
        correct=(table.predicted == table.truth).cast("float64"),
        nll=-true(logs),
        brier=_sum(p * p for p in chances) - 2.0 * true(chances) + 1.0,
        last=entropy,
        low=ibis.least(*own("given")),
        total=_sum(own("given")),
    )


def _first(ibis: Any, columns: Sequence[Any], top: Any) -> Any:
    """The index of the first column that has the largest value."""
    return ibis.cases(*((x == top, j) for j, x in enumerate(columns)))


def _log(ibis: Any, chance: Any, narrow: bool) -> Any:
    """The logarithm, a zero's being that of the smallest positive number."""
    tiny = torch.finfo(torch.float32 if narrow else torch.float64).tiny
    return ibis.greatest(chance, tiny).ln()


def _sum(terms: Iterable[Any]) -> Any:
    """Added up in pairs, and these in pairs.

    A thousand terms one after the other would go deeper than Ibis and databases do.
    """
    left = list(terms)
    while len(left) > 1:
        pairs = zip(left[::2], left[1::2], strict=False)
        left = [one + other for one, other in pairs] + left[len(left) // 2 * 2 :]
    return left[0]

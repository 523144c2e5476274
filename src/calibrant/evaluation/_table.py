"""An evaluation as text: rows of names and numbers, at most 80 columns wide."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import floor, isclose, isfinite, log10

from .._text import left, right, short_apart, shown, width
from ._estimates import Estimate

_WIDEST = 80
_NAME = 28
# Where two digits need an exponent, what is but rounding, and where no decimals are left.
_SMALL, _ZERO, _ENORMOUS = 5e-5, 1e-9, 1e15
# Last digits by which a value and the end of its interval may differ and be one.
_ROUNDED = 1e-6

OUTSIDE = """\
* The value lies outside its interval. Chance makes such errors look too large
(and esd, which has no bias, at times negative); the interval allows for that."""


def number(x: float) -> str:
    """Four decimals; more where a small number would lose its second digit.

    Below 5e-5 two digits and an exponent, as squared errors of many samples need; below 1e-9,
    where there is but rounding, zero without a sign.

    >>> number(0.04751), number(0.0), number(-0.000087), number(-5.3e-6), number(123456.7)
    ('0.0475', '0.0000', '-0.000087', '-5.3e-06', '123,457')
    """
    size = abs(x)
    if not isfinite(x) or size >= _ENORMOUS:
        return f"{x:.3g}"
    if _ZERO <= size < _SMALL:
        return f"{x:.1e}"
    if _SMALL <= size < 1e-3:
        return f"{x:.{1 - floor(log10(size))}f}"
    return f"{x:,.0f}" if size >= 1e4 else f"{x:z.4f}"


def bound(error: float) -> str:
    """How far a number may be off, which is zero only where it is exact.

    >>> bound(0.0), bound(3e-6), bound(0.0021), bound(1e4)
    ('exact', '< 0.0001', '0.0021', '10,000')
    """
    if error == 0:
        return "exact"
    return number(error) if error >= 1e4 else p_value(error)


def counted(n: int, what: str) -> str:
    """How many of what, one being no plural.

    >>> counted(1, "event"), counted(1_200, "event")
    ('1 event', '1,200 events')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def p_value(p: float) -> str:
    """A p-value in a table, which is never zero.

    >>> p_value(0.0312), p_value(4.7e-178)
    ('0.0312', '< 0.0001')
    """
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def spoken_p(p: float) -> str:
    """The same in a sentence.

    >>> spoken_p(0.0312), spoken_p(4.7e-178)
    ('p = 0.0312', 'p < 0.0001')
    """
    told = p_value(p)
    return f"p {told}" if told.startswith("<") else f"p = {told}"


def lines(rows: Mapping[str, Estimate], *, draws: int) -> list[list[str]]:
    """Name, value, interval, and what is unusual: the resamples, or where the value lies."""
    found = []
    for name, row in rows.items():
        unusual = [f"{row.draws} draws"] if row.draws != draws else []
        unusual += ["*"] if is_outside(row) else []
        interval = f"{number(row.low)} to {number(row.high)}"
        found.append([name, number(row.value), interval, " ".join(unusual)])
    return found


def is_outside(row: Estimate) -> bool:
    """Whether a value lies beside its own interval, which needs a word of explanation.

    >>> [is_outside(Estimate(value, 0.0, 0.04, 1000)) for value in (0.05, 0.04 + 1e-9)]
    [True, False]
    """
    nearest = min(max(row.value, row.low), row.high)
    return not isclose(row.value, nearest, rel_tol=_ROUNDED, abs_tol=_ROUNDED**2)


def plain(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Columns by spaces: names to the left, numbers, of which none is cut, to the right.

    >>> print(plain(["row", "value"], [["ece", "0.0475"]]))
    row   value
    ece  0.0475
    """
    table = [[shown(cell) for cell in row] for row in (head, *body)]
    numbers = [max(width(row[k]) for row in table) for k in range(1, len(head))]
    room = min(_NAME, _WIDEST - sum(numbers) - 2 * len(numbers))
    names = short_apart([row[0] for row in table], room)
    longest = max(map(width, names))
    found = []
    for name, (_, *row) in zip(names, table, strict=True):
        cells = (right(cell, most) for cell, most in zip(row, numbers, strict=True))
        found.append("  ".join([left(name, longest), *cells]).rstrip())
    return "\n".join(found)


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table that GitHub renders."""
    rule = [":---", *["---:"] * (len(head) - 1)]
    top, *rows = ([as_it_is(shown(cell)) for cell in row] for row in (head, *body))
    return "\n".join(f"| {' | '.join(row)} |" for row in (top, rule, *rows))


def as_it_is(text: str) -> str:
    r"""Markdown that shows a text as it is, also in a cell.

    >>> print(as_it_is("<unknown> | < 0.0001 *"))
    \<unknown> \| < 0.0001 \*
    """
    return re.sub(r"([\\|*`]|<(?=[a-zA-Z/!?]))", r"\\\1", text)


def name(given: str, among: Iterable[str]) -> str:
    """A name on one line, which leaves room for numbers; as a table of all of them has it."""
    known = [shown(one) for one in among]
    return dict(zip(known, short_apart(known, _NAME), strict=True))[shown(given)]

"""An evaluation as text: rows of names and numbers, at most 80 columns wide."""

from collections.abc import Mapping, Sequence

from ._estimates import Estimate

_WIDEST = 80
_NAME = 28


def number(x: float) -> str:
    """Four decimals, or the exponent where four decimals would say nothing.

    >>> number(0.04751), number(0.000012), number(0.0)
    ('0.0475', '1.20e-05', '0.0000')
    """
    return f"{x:.2e}" if x != 0 and (abs(x) < 5e-4 or abs(x) >= 1e4) else f"{x:.4f}"


def lines(rows: Mapping[str, Estimate], *, draws: int) -> list[list[str]]:
    """Name, value, interval, and the number of resamples where it is not the usual one."""
    return [
        [
            name,
            number(row.value),
            f"{number(row.low)} to {number(row.high)}",
            f"{row.draws} draws" if row.draws != draws else "",
        ]
        for name, row in rows.items()
    ]


def plain(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Columns by spaces: the first to the left, the others to the right, no line too long.

    >>> print(plain(["row", "value"], [["ece", "0.0475"]]))
    row   value
    ece  0.0475
    """
    table = [[short(row[0]), *row[1:]] for row in (head, *body)]
    widths = [max(len(row[k]) for row in table) for k in range(len(head))]
    aligned = (
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    )
    return "\n".join(line.rstrip()[:_WIDEST] for line in aligned)


def markdown(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table that GitHub renders."""
    rule = [":---", *["---:"] * (len(head) - 1)]
    escaped = ([cell.replace("|", "\\|") for cell in row] for row in (head, rule, *body))
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def short(name: str) -> str:
    """A name that leaves room for its numbers."""
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"

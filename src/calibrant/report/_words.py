"""How names and numbers are written on a page."""

import json
import re
from math import isfinite, isnan
from typing import Any

from ..evaluation import _table as table

# Characters that no page may hold: controls, and halves of a pair without the other.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def shown(text: str) -> str:
    """Text without the characters that no page may hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def number(x: float) -> str:
    """As in a terminal, with a true minus sign.

    >>> number(-0.25), number(-1e-10), number(float("inf"))
    ('−0.2500', '0.0000', '∞')
    """
    if not isfinite(x):
        return "undefined" if isnan(x) else "∞" if x > 0 else "\N{MINUS SIGN}∞"
    return table.number(x).replace("-", "\N{MINUS SIGN}")


def compact(count: int) -> str:
    """A count in four characters or so.

    >>> compact(950), compact(1_234), compact(56_789)
    ('950', '1.2k', '57k')
    """
    if count < 1_000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1e3:.1f}k" if count < 9_950 else f"{count / 1e3:.0f}k"
    return f"{count / 1e6:.1f}M" if count < 9_950_000 else f"{count / 1e6:.0f}M"


def short(text: str, most: int) -> str:
    """A name cut to what a drawing has room for."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def script_json(value: Any) -> str:
    r"""JSON that can stand inside a script element, whatever strings it holds.

    >>> script_json("</script>\u2028")
    '"\\u003c/script\\u003e\\u2028"'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text

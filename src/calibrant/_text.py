"""Names that people give, as a line of a terminal can hold them."""

import unicodedata
from collections.abc import Sequence

# What breaks a line, turns its direction, or moves the cursor; and half characters.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Of those, what the spelling of some languages and emoji needs.
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


def shown(text: str) -> str:
    r"""The same text on one line: what cannot be seen is spelt as in Python.

    >>> print(shown("north\nsouth\t漢字"))
    north\nsouth\t漢字
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if _is_unseen(c) else c for c in text)


def width(text: str) -> int:
    """Columns of a terminal: two for a wide letter, none for a mark on the letter before it.

    >>> width("abc"), width("漢字"), width("e\N{COMBINING ACUTE ACCENT}")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def short(text: str, most: int) -> str:
    """As much of a text as so many columns hold, with a sign where it was cut.

    >>> short("calibration", 8), short("漢字漢字", 6), short("ece", 8)
    ('calibra…', '漢字…', 'ece')
    """
    if width(text) <= most:
        return text
    taken, kept = 0, []
    for c in text:
        taken += _columns(c)
        if taken > most - 1:
            break
        kept.append(c)
    return "".join(kept) + "…"


def short_apart(texts: Sequence[str], most: int) -> list[str]:
    """Several cut so; those that begin alike keep their ends too, which tell them apart.

    >>> short_apart(["calibration", "ece"], 8), short_apart(["seed number 1", "seed number 2"], 8)
    (['calibra…', 'ece'], ['see…er 1', 'see…er 2'])
    """
    cut = [short(text, most) for text in texts]
    if len(set(cut)) == len(set(texts)):
        return cut
    return [_ends(text, most) for text in texts]


def _ends(text: str, most: int) -> str:
    """The beginning and the end of a text, where it does not fit."""
    if width(text) <= most:
        return text
    begins, start = short(text, most // 2), len(text)
    while width(begins + text[start - 1 :]) <= most:
        start -= 1
    return begins + text[start:]


def left(text: str, columns: int) -> str:
    """A text to the left of so many columns."""
    return text + " " * (columns - width(text))


def right(text: str, columns: int) -> str:
    """A text to the right of so many columns."""
    return " " * (columns - width(text)) + text


def _is_unseen(c: str) -> bool:
    return unicodedata.category(c) in _UNSEEN and c not in _JOINERS


def _columns(c: str) -> int:
    # The later parts of a Korean syllable stand in the square of the first.
    if c in _JOINERS or unicodedata.category(c) in ("Mn", "Me") or "\u1160" <= c <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1

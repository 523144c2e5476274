"""Names that people give, as a line of a terminal can hold them."""

import unicodedata
from collections.abc import Sequence

# What breaks a line, turns its direction, or moves the cursor; and half characters.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# The columns of a wide letter between two signs of a cut: fewer show no difference.
_LEAST = 4
# Of those that are unseen, what the spelling of some languages and emoji needs.
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
    """Several cut so; those that begin alike keep what tells them apart.

    That is their ends, or else what is around their first difference.

    >>> short_apart(["calibration", "ece"], 8), short_apart(["seed number 1", "seed number 2"], 8)
    (['calibra…', 'ece'], ['see…er 1', 'see…er 2'])
    >>> short_apart(["long path/seed=1/last.pt", "long path/seed=2/last.pt"], 12)
    ['…eed=1/last…', '…eed=2/last…']
    """
    best: list[str] = []
    for way in (_beginnings, _both_ends, _around_differences):
        cut = way(texts, most)
        if len(set(cut)) == len(set(texts)):
            return cut
        best = max(best, cut, key=lambda some: len(set(some)))
    return best


def _beginnings(texts: Sequence[str], most: int) -> list[str]:
    return [short(text, most) for text in texts]


def _both_ends(texts: Sequence[str], most: int) -> list[str]:
    return [_ends(text, most) for text in texts]


def _around_differences(texts: Sequence[str], most: int) -> list[str]:
    """From a little before the place where those that begin alike differ."""
    cut = dict(zip(texts, _beginnings(texts, most), strict=True))
    alike = [{text for text in cut if cut[text] == seen} for seen in set(cut.values())]
    before = min(most // 3, most - _LEAST)
    while before >= 0 and alike:
        if len(some := alike.pop()) < 2:
            continue
        start = _back(max(some), _alike(min(some), max(some)), before)
        cut |= {text: "…" + short(text[start:], most - 1) for text in some if start}
        seen_as = {cut[text] for text in some}
        if len(seen_as) > 1:
            alike += [{text for text in some if cut[text] == seen} for seen in seen_as]
    return [cut[text] for text in texts]


def _alike(one: str, other: str) -> int:
    """How many letters two texts begin with alike, and all that are between them in order."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(one), len(other)))


def _back(text: str, place: int, columns: int) -> int:
    """The place that many columns before another, at no mark on the letter before it."""
    start = place
    while start and (width(text[start - 1 : place]) <= columns or not _columns(text[start])):
        start -= 1
    return start


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

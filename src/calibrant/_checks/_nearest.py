"""What somebody who mistyped a name probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A question that ends a sentence, with a space before it; nothing where no name is near.

    >>> did_you_mean("temprature", ["platt", "temperature"]), did_you_mean("x", ["platt"])
    (" Did you mean 'temperature'?", '')
    """
    folded = {name.casefold(): name for name in known}
    near = get_close_matches(given.casefold(), folded, n=1)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""

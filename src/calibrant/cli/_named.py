"""Names typed in a shell."""

from collections.abc import Collection

from .._checks import did_you_mean


def check_named(what: str, given: str, known: Collection[str]) -> None:
    """Refuse a name that is not known, and say which are."""
    if given not in known:
        near = did_you_mean(given, known)
        raise ValueError(f"{what} must be one of {', '.join(known)}; got {given!r}.{near}")

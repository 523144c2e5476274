"""Moments in a column of a file, and the windows of time they fall into."""

import re
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
# Windows begin at midnight, weeks on a Monday; time began on a Thursday.
_MONDAY = 4 * 86_400
# Seconds outside of these years are milliseconds, or no time at all.
_EARLIEST = datetime(1971, 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


def parse_length(text: str) -> int:
    """Seconds in a length of time.

    >>> parse_length("1d"), parse_length("90m")
    (86400, 5400)
    """
    found = re.fullmatch(r"(\d+)([smhdw])", text.strip())
    if not found or int(found[1]) == 0:
        raise ValueError(
            f"--every must be a number and a unit, such as 1d, 6h, 30m, 10s or 1w; got {text!r}."
        )
    return int(found[1]) * _UNITS[found[2]]


def window_of(
    times: Sequence[str] | NDArray[Any], length: int, first: int, where: str
) -> NDArray[np.int64]:
    """The number of the window each moment falls into.

    - `times`: ISO dates or times, in UTC unless they say otherwise; or seconds since 1970.
    - `first`: the number of the first row, `where`: its column and file, for the sentence.

    >>> window_of(["1970-01-06", "1970-01-06T23:59:59Z", "1970-01-07"], 86400, 0, "").tolist()
    [5, 5, 6]
    """
    seconds = _at_once(np.asarray(times, dtype=str))
    if seconds is None:
        seconds = np.array([_one(str(text), first + k, where) for k, text in enumerate(times)])
    return np.floor((seconds - _origin(length)) / length).astype(np.int64)


def _at_once(times: NDArray[Any]) -> NDArray[np.float64] | None:
    """Seconds of moments that are all of one plain kind, in a fraction of the time; or nothing."""
    seconds: NDArray[np.float64] | None
    try:
        seconds = times.astype(np.float64)
    except ValueError:
        seconds = _of_plain_dates(times)
    if seconds is None or not bool(((seconds >= _EARLIEST) & (seconds < _LATEST)).all()):
        return None
    return seconds


def _of_plain_dates(times: NDArray[Any]) -> NDArray[np.float64] | None:
    # NumPy also knows words, such as today, and bare years.
    whole = np.char.isdigit(times.astype("U1")) & (np.char.str_len(times) >= len("2026-11-15"))
    if not whole.all():
        return None
    bare = np.char.rstrip(times, "Z") if np.char.endswith(times, "Z").all() else times
    try:
        with warnings.catch_warnings(action="error"):
            return bare.astype("datetime64[us]").astype(np.int64) / 1e6
    except (ValueError, Warning):
        return None


def _one(text: str, row: int, where: str) -> float:
    try:
        return _seconds(text)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{where} must hold ISO times such as 2026-11-15T12:00, or seconds since 1970; "
            f"got {text!r} in row {row} (counted from 0)."
        ) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not _EARLIEST <= seconds < _LATEST:
        raise ValueError("no time since 1970")
    return seconds


def _origin(length: int) -> int:
    return _MONDAY if length % _UNITS["w"] == 0 else 0


def beginning(window: int, length: int) -> str:
    """When a window begins, as precisely as windows need.

    >>> beginning(20_000, 86_400), beginning(480_001, 3_600)
    ('2024-10-04', '2024-10-04 01:00')
    """
    first = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        begins = first + timedelta(seconds=_origin(length) + window * length)
    except OverflowError as wrong:
        raise ValueError(
            "times must lie in the years 1 to 9999, windows included; got one at the very edge."
        ) from wrong
    if length % _UNITS["d"] == 0:
        return f"{begins:%Y-%m-%d}"
    return f"{begins:%Y-%m-%d %H:%M}" if length % 60 == 0 else f"{begins:%Y-%m-%d %H:%M:%S}"

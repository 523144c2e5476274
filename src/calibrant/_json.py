"""Results as JSON, which has no word for infinity."""

import json
from math import isfinite, nan
from typing import Any


def as_json(result: Any) -> str:
    """What is not a finite number becomes null.

    >>> print(as_json({"nll": float("inf"), "ece": 0.05}))
    {
      "nll": null,
      "ece": 0.05
    }
    """
    return json.dumps(_plain(result), indent=2, allow_nan=False)


def as_number(read: float | None) -> float:
    """A number that was read from JSON: NaN where it had no word for it.

    >>> as_number(0.05), as_number(None)
    (0.05, nan)
    """
    return nan if read is None else read


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(name): _plain(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(value) for value in x]
    return None if isinstance(x, float) and not isfinite(x) else x

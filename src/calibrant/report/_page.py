"""The page: one HTML file with its drawings, styles and script inside."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import import_module
from math import isfinite
from typing import Any

import torch

from .. import __version__
from ..evaluation import Estimate
from ..evaluation import _table as table
from ._account import Account
from ._against import Against
from ._classes import COLUMNS, MOST_CLASSES
from ._frame import Frame
from ._groups import FEWEST, MOST_GROUPS
from ._repair import Repair
from ._settings import Settings
from ._verdict import points
from ._words import compact, number, script_json, short, shown

# A mail server's patience, and what is left out where a page would try it.
MOST_BYTES, _FEWER_CLASSES = 2_000_000, 5
# Models beyond which there is no room for all choices.
_FEW = 8


def page(
    accounts: Sequence[Account],
    against: Sequence[Against],
    settings: Settings,
    *,
    title: str,
    command: str | None,
) -> str:
    """The whole page as text; with fewer choices and classes where it would grow too large."""
    template, script = _environment().get_template("report.html.j2"), _script()
    # How many ways to cut bins, and how many classes of each model, are drawn.
    sizes = ((None, MOST_CLASSES), (1, MOST_CLASSES), (1, _FEWER_CLASSES))
    for choices, classes in sizes if len(accounts) <= _FEW else sizes[1:]:
        text: str = template.render(
            accounts=accounts,
            choices=choices,
            most_classes=classes,
            against=against,
            settings=settings,
            title=title,
            command=command,
            version=__version__,
            torch_version=torch.__version__,
            date=datetime.now(UTC).date().isoformat(),
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
            data=script_json(_numbers(accounts, settings)),
            columns=COLUMNS,
            most_groups=MOST_GROUPS,
            fewest=FEWEST,
        )
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


def needed() -> Any:
    """jinja2, or the sentence that says how to get it."""
    try:
        return import_module("jinja2")
    except ImportError as missing:
        raise ImportError("a report needs jinja2: pip install 'calibrant[report]'") from missing


@cache
def _environment() -> Any:
    """The templates, each compiled once."""
    jinja2 = needed()
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("calibrant.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # What any name may hold is settled once, on the way to the page.
        finalize=lambda x: shown(x) if isinstance(x, str) and not hasattr(x, "__html__") else x,
    )
    made.filters |= {
        "px": lambda x: f"{x:.1f}".rstrip("0").rstrip("."),
        "points": points,
        "p": table.spoken_p,
        "pvalue": table.p_value,
        "n4": number,
        "percent": lambda x: f"{100 * x:.1f}%",
        "count": lambda x: f"{x:,}",
        "compact": compact,
        "pyrepr": repr,
        "tick": lambda x: f"{x:g}",
        "short": short,
    }
    made.globals |= {
        "Frame": Frame,
        "is_repair": lambda x: isinstance(x, Repair),
        "is_outside": table.is_outside,
        "outside": " ".join(table.OUTSIDE.split()),
    }
    made.tests |= {"sentence": lambda x: isinstance(x, str), "outside": table.is_outside}
    return made


def _script() -> Any:
    """The page's own script, the only one that its policy lets a browser run."""
    source, _, _ = _environment().loader.get_source(_environment(), "report.js")
    return needed().utils.markupsafe.Markup(source)


def _numbers(accounts: Sequence[Account], settings: Settings) -> dict[str, Any]:
    """What a program may want to read out of the page."""
    return {
        "calibrant": __version__,
        "settings": vars(settings),
        "models": {
            one.name: {
                "n": one.n,
                "classes": one.classes,
                "verdict": one.verdict.to_dict(),
                "rows": {name: _finite(row) for name, row in one.rows.items()},
                "bins": [part.to_dict() for part in one.binned[0].parts],
            }
            for one in accounts
        },
    }


def _finite(row: Estimate) -> dict[str, float | None]:
    """An estimate, with nothing where JSON has no word for a number."""
    found = {"value": row.value, "low": row.low, "high": row.high}
    return {name: x if isfinite(x) else None for name, x in found.items()}

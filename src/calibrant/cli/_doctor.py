"""`calibrant doctor`: what is installed, and what runs here."""

import os
import platform
import re
from importlib import metadata
from typing import Annotated, Any

import torch
import typer

from .. import __version__
from .._json import as_json
from ._output import write

DOCTOR_EXAMPLES = """
\b
Examples:
  calibrant doctor
  calibrant doctor --json
"""

_NEEDED = ("torch", "numpy", "scipy", "safetensors")
# For those who work on the package itself.
_NOT_SHOWN = ("test", "docs")


def doctor(
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> int:
    """Say which versions, devices and extras are here."""
    found = {"versions": _versions(), "devices": _devices(), "extras": _extras()}
    write(as_json(found) if json else "\n\n".join(_parts(found)), None)
    return 0


def _versions() -> dict[str, str]:
    here = {"calibrant": __version__, "python": platform.python_version()}
    return here | {name: _version(name) or "missing" for name in _NEEDED}


def _devices() -> dict[str, str]:
    found = {"cpu": f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"}
    for k in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(k)
        found[f"cuda:{k}"] = f"{card.name}, {card.total_memory / 2**30:.0f} GiB"
    if torch.backends.mps.is_available():
        found["mps"] = "available"
    return found


def _extras() -> dict[str, dict[str, str | None]]:
    """The packages of each extra with their versions, `None` where one is missing."""
    found: dict[str, dict[str, str | None]] = {}
    for line in metadata.requires("calibrant") or []:
        package, _, condition = line.partition(";")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", condition)
        name = re.match(r"[\w.-]+", package)
        if extra and name and extra[1] not in _NOT_SHOWN:
            packages = found.setdefault(extra[1], {})
            if name[0] != "calibrant":
                packages[name[0]] = _version(name[0])
    return dict(sorted(found.items()))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _parts(found: dict[str, Any]) -> list[str]:
    extras = {}
    for extra, packages in found["extras"].items():
        missing = None in packages.values()
        extras[extra] = f"missing: pip install 'calibrant[{extra}]'" if missing else "present"
    return [
        _aligned("versions", found["versions"]),
        _aligned("devices", found["devices"]),
        _aligned("extras", extras),
    ]


def _aligned(head: str, body: dict[str, str]) -> str:
    width = max(map(len, body), default=0)
    return "\n".join([head, *(f"  {name:<{width}}  {said}" for name, said in body.items())])

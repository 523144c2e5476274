"""A fitted recalibrator as one safetensors file, with its settings as JSON; no pickle."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from .._writing import written_whole
from ..measures import MEASURES
from ..scores import SCORES
from ._report import FitReport

if TYPE_CHECKING:
    from ._recalibrator import Recalibrator

FORMAT = "calibrant-recalibrator"
VERSION = 1


def write(recalibrator: "Recalibrator", path: str | PathLike[str]) -> None:
    """All of it or nothing: a reader never meets half a file."""
    report = getattr(recalibrator, "report_", None)
    told = {
        "format": FORMAT,
        "version": str(VERSION),
        "recalibrator": json.dumps(_described(recalibrator)),
        "report": json.dumps(None if report is None else asdict(report)),
    }
    state = {name: part.contiguous() for name, part in recalibrator.state_dict().items()}
    with written_whole(path) as file:
        file.write(save(state, metadata=told))


def read(kind: type, path: str | PathLike[str]) -> Any:
    """The recalibrator that `write` wrote; `kind` is what it must be an instance of."""
    told, state = contents(path)
    if told.get("format") != FORMAT:
        raise ValueError(
            f"{path} must be a file that Recalibrator.save wrote; got another safetensors file. "
            "For a state_dict make the recalibrator and call load_state_dict."
        )
    version = told.get("version", "")
    if version != str(VERSION):
        raise ValueError(
            f"{path} must have version {VERSION} of the format; got {version!r}. "
            "Update calibrant to read it."
        )
    try:
        recalibrator = _made(json.loads(told["recalibrator"]), kind, path)
        recalibrator.load_state_dict(state)
        report = json.loads(told["report"])
        if report is not None:
            recalibrator.report_ = FitReport(**report)
    except (KeyError, TypeError, RuntimeError, json.JSONDecodeError) as wrong:
        raise ValueError(
            f"{path} must hold a whole recalibrator; got {wrong}. Save it again."
        ) from wrong
    if not isinstance(recalibrator, kind):
        raise ValueError(
            f"{path} must hold a {kind.__name__}; got a {type(recalibrator).__name__}. "
            "Recalibrator.load reads any."
        )
    return recalibrator


def contents(path: str | PathLike[str]) -> tuple[dict[str, str], dict[str, Any]]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} must be a file; there is none.")
    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as wrong:
        raise ValueError(
            f"{path} must be a whole safetensors file; got one that cannot be read ({wrong}). "
            "Save it again."
        ) from wrong


def _described(recalibrator: "Recalibrator") -> dict[str, Any]:
    settings = recalibrator.get_params(deep=False)
    return {
        "class": type(recalibrator).__name__,
        "settings": {name: _told(name, value) for name, value in settings.items()},
    }


def _told(name: str, value: Any) -> Any:
    """A setting as JSON: a number, a name, a list of them, a criterion, a recalibrator."""
    if hasattr(value, "get_params"):
        return {"recalibrator": _described(value)}
    if isinstance(value, list | tuple):
        return [_told(name, each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    for known, criterion in (SCORES | MEASURES).items():
        if value is criterion:
            return {"criterion": known}
    raise ValueError(
        f"{name} must be a number, a name or a criterion of the catalogue to be saved; "
        f"got {value!r}. Save the state_dict instead, and make the recalibrator in code."
    )


def _made(told: dict[str, Any], kind: type, path: str | PathLike[str]) -> Any:
    from . import RECALIBRATORS  # the catalogue imports every method, and they this

    known = {each.__name__: each for each in (*_classes(RECALIBRATORS.values()), kind)}
    if told["class"] not in known:
        raise ValueError(
            f"{path} must hold a method of the catalogue; got {told['class']!r}. "
            "For a class of your own call its own load."
        )
    settings = {name: _set(value, kind, path) for name, value in told["settings"].items()}
    return known[told["class"]](**settings)


def _set(value: Any, kind: type, path: str | PathLike[str]) -> Any:
    if isinstance(value, list):
        return [_set(each, kind, path) for each in value]
    if isinstance(value, dict) and "recalibrator" in value:
        return _made(value["recalibrator"], kind, path)
    if isinstance(value, dict):
        return (SCORES | MEASURES)[value["criterion"]]
    return value


def _classes(makers: Iterable[Callable[..., Any]]) -> list[Any]:
    return [maker.func if isinstance(maker, partial) else maker for maker in makers]

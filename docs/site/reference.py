"""Pages made of docstrings, which are Markdown already."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from pictures import drawn

import calibrant
from calibrant import (
    MEASURES,
    RECALIBRATORS,
    evaluation,
    logs,
    measures,
    objectives,
    predictions,
    recalibration,
    scores,
    top_label,
    training,
)
from calibrant.criteria import Criterion

PARTS = {
    "predictions": ("Predictions and objectives", [predictions, objectives]),
    "criteria": ("Lifts", [calibrant.criteria]),
    "scores": ("Scores", [scores]),
    "recalibration": ("Around recalibrators", [recalibration]),
    "training": ("Training", [training]),
    "evaluation": ("Evaluation", [evaluation]),
    "logs": ("Files and tables", [logs]),
}
"""The parts of the package whose names share a page."""

CAPTION = (
    "The measure of 200 predictions of four classes, as their logits are multiplied: the line is "
    "the mean of twelve samples, the band their range, the dashed line one sample of 2,000. At 1 "
    "the model is calibrated; what the line shows there is the bias of the estimate."
)


def measure_pages() -> Iterator[tuple[str, str]]:
    """A page for every measure, with its picture."""
    for name, function in vars(measures).items():
        if not inspect.isfunction(function) or not _is_measure(name, function):
            continue
        of_events = "confidence" in inspect.signature(function).parameters
        criterion: Criterion = top_label(function) if of_events else function
        known = [key for key, each in MEASURES.items() if re.search(rf"\b{name}\b", repr(each))]
        picture = f"```{{raw}} html\n{drawn(name, criterion)}\n```\n\n*{CAPTION}*"
        called = ", ".join(f"`{key}`" for key in known)
        catalogue = f"In the catalogue: {called}." if known else ""
        yield f"measures/{name}", "\n\n".join([page(name, function, 1), picture, catalogue])


def _is_measure(name: str, function: Any) -> bool:
    """Public, and not a lift that the catalogue uses."""
    return getattr(calibrant, name, None) is function and "measures" in function.__module__


def recalibrator_pages() -> Iterator[tuple[str, str]]:
    """A page for every recalibrator of the catalogue."""
    for name, one in vars(recalibration).items():
        if inspect.isclass(one) and issubclass(one, recalibration.Recalibrator):
            known = [key for key, make in RECALIBRATORS.items() if type(make()) is one]
            called = ", ".join(f"`{key}`" for key in known)
            catalogue = f"On the command line and in the catalogue: {called}." if known else ""
            yield f"recalibrators/{name}", "\n\n".join([page(name, one, 1), catalogue])


def part_pages() -> Iterator[tuple[str, str]]:
    """A page for each part of the rest."""
    for key, (title, modules) in PARTS.items():
        public = {
            name: each
            for module in modules
            for name, each in vars(module).items()
            if getattr(calibrant, name, None) is each
            and _documented(each)
            and not _has_a_page(each)
        }
        body = "\n\n".join(page(name, each, 2) for name, each in public.items())
        yield f"reference/{key}", f"# {title}\n\n{body}"


def _has_a_page(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, recalibration.Recalibrator)


def _documented(thing: Any) -> bool:
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return bool(thing.__doc__)
    # A score is an object that is called; its words are on the object.
    return (
        callable(thing) and bool(vars(thing).get("__doc__"))
        if hasattr(thing, "__dict__")
        else False
    )


def page(name: str, thing: Any, level: int) -> str:
    """A heading, how it is called, and its docstring."""
    parts = [f"{'#' * level} {name}", signature(name, thing), markdown(thing.__doc__ or "")]
    if inspect.isclass(thing):
        for key, method in vars(thing).items():
            if not key.startswith("_") and inspect.isfunction(method) and method.__doc__:
                parts += [f"{'#' * (level + 1)} {name}.{key}", signature(key, method)]
                parts.append(markdown(method.__doc__))
    return "\n\n".join(parts)


def signature(name: str, thing: Any) -> str:
    """How it is called, one argument to a line where it is long."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name != "self"]
    text = f"{name}{found.replace(parameters=bare, return_annotation=found.empty)}"
    text = re.sub(r"<(?:function|class) '?([\w.]+)[^>]*>", lambda hit: hit[1].split(".")[-1], text)
    text = re.sub(r"<[^>]*>", "...", text)
    if len(text) > 80:
        inside = ",\n    ".join(str(p) for p in text[len(name) + 1 : -1].split(", "))
        text = f"{name}(\n    {inside},\n)"
    return f"```python\n{text}\n```"


def markdown(docstring: str) -> str:
    """The docstring with its examples fenced and its links to documents made real.

    >>> markdown("See docs/decisions/weights.md.")
    'See [decisions/weights.md](../decisions/weights.md).'
    """
    lines: list[str] = []
    inside = False
    for line in inspect.cleandoc(docstring).splitlines():
        if line.startswith(">>>") and not inside:
            lines.append("```pycon")
            inside = True
        elif not line.strip() and inside:
            lines.append("```")
            inside = False
        lines.append(line)
    text = "\n".join([*lines, "```"] if inside else lines)
    text = re.sub(r"(?<![/\w])docs/((?:decisions|derivations)/[\w-]+\.md)", r"[\1](../\1)", text)
    return text.strip()

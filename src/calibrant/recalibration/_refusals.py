"""Sentences for strengths that are none, and for data without a finite optimum."""

from typing import NoReturn

from ..predictions import Predictions


def check_strength(**strengths: float) -> None:
    """Strengths of a penalty, zero included."""
    for name, value in strengths.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} must be finite and not negative; got {value!r}.")


def refuse(predictions: Predictions, what: str, remedy: str) -> NoReturn:
    """The sentence for labels that no finite coefficients fit best."""
    missing = int((predictions.labels.bincount(minlength=predictions.classes) == 0).sum())
    why = (
        f"{missing} of {predictions.classes} classes are missing"
        if missing
        else ("some class can be told from the rest without a mistake")
    )
    raise ValueError(
        f"labels must leave the likelihood a finite optimum; got {len(predictions)} samples of "
        f"which {why}, and it keeps rising as {what} grows without end. Pass {remedy}, or hold "
        "out more of the data."
    )

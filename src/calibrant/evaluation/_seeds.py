"""Figures from several seeds or subjects: mean, spread and size of effect."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_not_masked
from ._arrays import tensor


def cohens_d(a: Any, b: Any) -> float:
    r"""How far apart two groups lie, in units of their spread.

    $$d = \frac{\bar a - \bar b}{s}, \qquad
      s^2 = \frac{(n_a - 1) s_a^2 + (n_b - 1) s_b^2}{n_a + n_b - 2}$$

    with the *pooled* standard deviation, each $s^2$ having $n - 1$ below it. About 0.2 is called
    small, 0.8 large. Infinite where neither group varies but their means differ.

    - `a`, `b`: one figure per seed, two at least.

    >>> round(cohens_d([3.0, 5.0], [1.0, 3.0]), 3)
    1.414

    Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd edition, 1988.
    """
    first, second = _figures("a", a), _figures("b", b)
    freedom = len(first) + len(second) - 2
    squares = sum((x - _mean(x)).square().sum() for x in (first, second))
    apart = _mean(first) - _mean(second)
    return float(torch.where(apart == 0, 0.0, apart / (squares / freedom) ** 0.5))


def mean_and_sem(values: Any) -> tuple[float, float]:
    r"""The mean, and its standard error $s / \sqrt n$ with $n - 1$ in $s^2$.

    >>> mean, sem = mean_and_sem([1.0, 2.0, 3.0])
    >>> mean, round(sem, 4)
    (2.0, 0.5774)
    """
    figures = _figures("values", values)
    variance = (figures - _mean(figures)).square().sum() / (len(figures) - 1)
    return figures.mean().item(), (variance / len(figures)).sqrt().item()


def within_subject_sem(
    table: Any, *, pooled: bool = True, corrected: bool = True
) -> Float[Tensor, " conditions"]:
    r"""Standard errors of the columns' means, without what subjects differ in overall.

    Some subjects are harder under every condition. With the mean of each of the $n$ rows moved
    to the grand mean, the variance $s_j^2$ left in column $j$ is that of the condition's effect:

    $$\mathrm{SEM}_j = \sqrt{\frac{J}{J - 1} \cdot \frac{s_j^2}{n}}$$

    - `table`: one row per subject (a type of corruption, a seed), one column per condition (a
      method), two at least of each.
    - `pooled`: the same for all $J$ conditions, from the mean of the $s_j^2$: then it is
      Masson and Loftus's $\sqrt{MS_{S \times C} / n}$, with the mean square of the interaction
      of subject and condition. Otherwise one per condition, as Cousineau plots them.
    - `corrected`: Morey's factor $J / (J - 1)$; moving the rows has used up that share.

    The soft-calibration paper cites Masson and Loftus for its bars of one SEM (Figures 2 and
    9; subjects are the types of corruption): that is the default. It does not say whether they
    were pooled.

    >>> within_subject_sem([[1.0, 2.0], [11.0, 14.0], [21.0, 22.0]])
    tensor([0.4714, 0.4714], dtype=torch.float64)

    Masson & Loftus, "Using confidence intervals for graphically based data interpretation",
    Canadian Journal of Experimental Psychology, 2003; Morey, "Confidence Intervals from
    Normalized Data", Tutorials in Quantitative Methods for Psychology, 2008.
    """
    figures = _numbers("table", table)
    if figures.ndim != 2 or min(figures.shape) < 2:
        raise ValueError(
            "table must have a row for each of at least two subjects and a column for each of "
            f"at least two conditions; got shape {tuple(figures.shape)}."
        )
    subjects, conditions = figures.shape
    variance = (figures - figures.mean(dim=1, keepdim=True)).var(dim=0)
    if corrected:
        variance = variance * conditions / (conditions - 1)
    if pooled:
        variance = variance.mean().expand(conditions)
    return (variance / subjects).sqrt()


def _mean(figures: Float[Tensor, " n"]) -> Float[Tensor, ""]:
    """To the last digit where all are equal, so that their spread is nothing."""
    return figures[0] + (figures - figures[0]).mean()


def _figures(name: str, values: Any) -> Float[Tensor, " n"]:
    figures = _numbers(name, values)
    if figures.ndim != 1 or len(figures) < 2:
        raise ValueError(
            f"{name} must hold at least two figures, one per seed; "
            f"got shape {tuple(figures.shape)}."
        )
    return figures


def _numbers(name: str, values: Any) -> Tensor:
    """In double precision from the start: figures of seeds differ in their last digits."""
    if isinstance(values, Iterable) and not hasattr(values, "__array__"):
        values = list(values)
    check_not_masked(name, values)
    if not isinstance(values, list):
        held = values if isinstance(values, Tensor) else np.asarray(values)
        return tensor(name, held).double()
    try:
        return torch.tensor(values, dtype=torch.float64)
    except (TypeError, ValueError) as wrong:
        raise TypeError(
            f"{name} must hold numbers, as many in every row; got {str(values)[:60]}."
        ) from wrong

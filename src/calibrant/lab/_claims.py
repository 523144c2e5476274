"""What became of a paper's claims: confirmed, not confirmed, or refuted."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ._study import Claim

LEVEL = 0.05


@dataclass(frozen=True)
class Verdict:
    """A claim held against our figures, seed by seed.

    - `outcome`: `"confirmed"` where the figures are on the claimed side and a paired test says
      that this is no chance; `"refuted"` where the same holds of the other side; else
      `"not confirmed"`.
    - `difference`: mean of what is compared, below zero on the claimed side. `p_value`: of a
      two-sided paired t-test that it is zero; `None` for fewer than two seeds. `n`: seeds.
    """

    claim: Claim
    outcome: str
    difference: float
    p_value: float | None
    n: int


def judge(claim: Claim, better: Sequence[float], worse: Sequence[float]) -> Verdict:
    """Hold a claim against the figures of both arms, one of each per seed.

    >>> claim = Claim("ECE", "ESD", "NLL")
    >>> judge(claim, [3.0, 3.1, 2.9], [5.5, 5.4, 5.6]).outcome
    'confirmed'
    """
    if len(better) != len(worse) or not better:
        raise ValueError(
            "a claim must be judged by as many figures of one arm as of the other, one a seed; "
            f"got {len(better)} and {len(worse)}."
        )
    apart = [claim.excess(b, w) for b, w in zip(better, worse, strict=True)]
    difference = sum(apart) / len(apart)
    p_value = _p_value(apart)
    outcome = "not confirmed"
    if p_value is not None and p_value < LEVEL and difference != 0:
        outcome = "confirmed" if difference < 0 else "refuted"
    return Verdict(claim, outcome, difference, p_value, len(apart))


def _p_value(apart: Sequence[float]) -> float | None:
    if len(apart) < 2:
        return None
    if len(set(apart)) == 1:  # no spread at all, for which the test has no answer
        return 1.0 if apart[0] == 0 else 0.0
    # Half a second to import, so not before it is needed.
    stats: Any = import_module("scipy.stats")
    with warnings.catch_warnings():
        # Seeds that hardly differ leave few digits of their spread, and a p near zero all the same.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        return float(stats.ttest_1samp(apart, 0.0).pvalue)

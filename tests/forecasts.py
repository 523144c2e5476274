"""Forecasts for property tests: confidences on a coarse grid, so that ties are common."""

from typing import TypeAlias

import torch
from hypothesis import strategies as st
from torch import Tensor

Forecasts: TypeAlias = list[tuple[int, int]]


def forecasts(min_size: int = 1, max_size: int = 30) -> st.SearchStrategy[Forecasts]:
    pair = st.tuples(st.integers(0, 10), st.integers(0, 1))
    return st.lists(pair, min_size=min_size, max_size=max_size)


def as_tensors(given: Forecasts) -> tuple[Tensor, Tensor]:
    tenths, outcome = torch.tensor(given, dtype=torch.float64).reshape(-1, 2).T
    return (tenths / 10).contiguous(), outcome.contiguous()


def calibrated(shape: tuple[int, ...], rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Forecasts that come true as often as they say."""
    confidence = torch.rand(shape, generator=rng, dtype=torch.float64)
    return confidence, torch.bernoulli(confidence, generator=rng)

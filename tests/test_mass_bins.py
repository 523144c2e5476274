"""Bins of equal mass of long columns, found by counting, are those of the rule for ranks."""

import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from calibrant import Measure, debiased_ece, ece, mce
from calibrant._tables import events_of
from calibrant.measures import _mass_bins, _mass_cells, _mass_windows
from calibrant.measures._mass_bins import mass_totals
from calibrant.measures._mass_cells import OddsCells, bits_of

N = 100_003
both_precisions = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


def totals_by_definition(confidence: Tensor, outcome: Tensor, bins: int) -> Tensor:
    """How many each bin holds, its gaps and its outcomes, one event after the other."""
    totals = torch.zeros(3, bins, dtype=torch.float64)
    for sure, came in zip(confidence, outcome, strict=True):
        lowest_rank = int((confidence < sure).sum())
        own = totals[:, lowest_rank * bins // len(confidence)]
        own += torch.stack([torch.ones(()).double(), (came - sure).double(), came.double()])
    return totals


def totals(confidence: Tensor, outcome: Tensor, bins: int) -> Tensor:
    events = events_of(confidence, outcome, None)
    assert events is not None
    found = mass_totals(events, bins)
    assert found is not None
    return torch.stack(found)


@pytest.fixture(params=[(1, 2**12), (7, 16), (1, 8)], ids=["fine", "coarse", "coarsest"])
def narrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few events take the way of many, whose windows are cut again and again."""
    few, cells = request.param
    monkeypatch.setattr(_mass_bins, "_LONG", 0)
    monkeypatch.setattr(_mass_windows, "_FEW", few)
    monkeypatch.setattr(_mass_cells, "_CELLS", cells)
    for module in (_mass_bins, _mass_cells, _mass_windows):
        monkeypatch.setattr(module, "SOME", 16)


SPECIAL = [0.0, -0.0, 1e-45, 1e-40, 2.0**-126, 0.5, 0.7, 1 - 2.0**-24, 1 - 2.0**-23, 1.0]
confidences = st.one_of(
    st.sampled_from(SPECIAL),
    st.integers(0, 10).map(lambda tenths: tenths / 10),
    st.integers(0, 50).map(lambda steps: 1 - steps * 2.0**-24),
    st.floats(0, 1, width=32),
)


@both_precisions
@given(
    drawn=st.lists(st.tuples(confidences, st.integers(0, 1)), min_size=1, max_size=80),
    bins=st.integers(1, 100),
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_totals_agree_with_their_definition(
    narrow: None, dtype: torch.dtype, drawn: list[tuple[float, int]], bins: int
) -> None:
    confidence = torch.tensor([sure for sure, _ in drawn], dtype=dtype)
    outcome = torch.tensor([came for _, came in drawn])
    bins = min(bins, _mass_cells._CELLS // 4 + 1)  # each window has some cells
    expected = totals_by_definition(confidence, outcome, bins)
    assert_close(totals(confidence, outcome, bins), expected, rtol=1e-12, atol=1e-12)


def crowds(dtype: torch.dtype, rng: torch.Generator) -> dict[str, Tensor]:
    """Long columns that cells find easy, hard, and hardest."""
    even = torch.rand(N, generator=rng, dtype=dtype)
    half, third = torch.arange(N) % 2 == 0, torch.arange(N) % 3 == 0
    return {
        "even": even,
        "ascending": even.sort().values,
        "near one": 1 - even**4 / 1000,
        "nearer": 1 - 10 ** (-8 - 7 * even),
        "near zero": 10 ** (-30 * even),
        "close together": 0.7 + even / 100_000,
        "grid": (100 * even).round() / 100,
        "alike": torch.full_like(even, 0.7),
        "half ones": torch.where(half, 1.0, even),
        "two crowds": torch.where(half, 0.3 + even / 2**20, 0.6 + even / 2**20),
        "crowd and tie": torch.where(third, 0.6, 0.6 + even / 2**10),
        "a little above one": even * 1.0005,
        "all but nothing": torch.where(half, -0.0, even * 1e-38),
    }


@both_precisions
@pytest.mark.parametrize("bins", [1, 2, 15, 64, 1000])
def test_long_columns_are_cut_where_their_ranks_say(
    dtype: torch.dtype, bins: int, rng: torch.Generator
) -> None:
    for name, confidence in crowds(dtype, rng).items():
        outcome = torch.bernoulli(confidence.clamp(0, 1) ** 2, generator=rng).long()
        lowest = torch.searchsorted(confidence.sort().values, confidence)
        own, expected = lowest * bins // N, torch.zeros(3, bins, dtype=torch.float64)
        columns = torch.ones(N), outcome - confidence, outcome
        for row, column in zip(expected, columns, strict=True):
            row.index_add_(0, own, column.double())
        found = totals(confidence, outcome, bins)
        assert_close(found, expected, rtol=1e-10, atol=1e-9, msg=name)  # of so many sums


@both_precisions
def test_neighbours_that_come_one_after_the_other_are_no_tie(dtype: torch.dtype) -> None:
    lower = torch.tensor(0.6, dtype=dtype)
    upper = torch.nextafter(lower, torch.ones_like(lower))
    confidence = torch.cat([lower.expand(50_000), upper.expand(49_000)])
    confidence[:2] = torch.tensor([0, 1])
    mass, _, _ = totals(confidence, torch.arange(99_000) % 2, bins=2)
    assert mass.tolist() == [49_999, 49_001]


@both_precisions
def test_odds_of_larger_confidences_are_in_no_lower_cell(
    dtype: torch.dtype, rng: torch.Generator
) -> None:
    even = torch.rand(20_000, generator=rng, dtype=dtype)
    around = torch.tensor(SPECIAL, dtype=dtype).repeat(200).abs().numpy().view(f"i{even.itemsize}")
    off = np.repeat(np.arange(-100, 100, dtype=around.dtype), len(SPECIAL))
    near = torch.from_numpy(np.maximum(around + off, 0).view(even.numpy().dtype))
    columns = [even, 1 - even**8, even**8, near.clamp(max=1)]
    for largest in (1.0, 1.0009, 2 - 2.0**-22):
        every = torch.cat([*columns, largest * even]).sort().values.numpy()
        cells = OddsCells(float(every[-1])).cell_of(every)
        assert cells[0] >= 0
        assert cells[-1] < OddsCells.shape[1]
        assert (np.diff(cells) >= 0).all()
        assert (np.diff(bits_of(every)) >= 0).all()


MEASURES: dict[str, Measure] = {
    "ece": partial(ece, binning="mass"),
    "mce": partial(mce, binning="mass"),
    "debiased": debiased_ece,
    "ece of many bins": partial(ece, binning="mass", bins=100),
}


@both_precisions
@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_extra_memory_is_a_twentieth_of_a_million_events(
    measure: Any, dtype: torch.dtype, rng: torch.Generator
) -> None:
    for name, some in crowds(dtype, rng).items():
        confidence = some.repeat(10)[:1_000_000]
        if name not in ("grid", "alike", "a little above one"):  # no more ties than there were
            confidence = confidence - torch.rand(1_000_000, generator=rng, dtype=dtype) / 2**21
        confidence, outcome = confidence.clamp(0, 1.0005), torch.arange(1_000_000) % 2
        measure(confidence, outcome)
        tracemalloc.start()
        measure(confidence, outcome)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.05 * (confidence.nbytes + outcome.nbytes), name

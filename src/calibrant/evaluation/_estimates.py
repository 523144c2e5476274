"""Every row's value with its interval, from one set of resamples."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ._interval import fewest_draws, percentile
from ._resampled import AlongRay
from ._rows import Row
from ._weights import multinomial_weights


@dataclass(frozen=True)
class Estimate:
    """A number, and the interval that holds its true value at the level asked for.

    - `value`: measured on the sample. `low`, `high`: the interval for the population.
    - `draws`: resamples behind the interval.

    The value of a measure that is biased upwards may lie above its interval.
    """

    value: float
    low: float
    high: float
    draws: int


@torch.no_grad()
def estimates(
    rows: Mapping[str, Row], weights: Float[Tensor, " n"], *, draws: int, level: float, seed: int
) -> dict[str, Estimate]:
    """All rows share the resamples, of which a slow one may use only as many as tell the level."""
    enough = fewest_draws(level)
    limits = {
        name: min(draws, max(row.resampled.most or draws, enough)) for name, row in rows.items()
    }
    kept: dict[str, list[Tensor]] = {name: [] for name in rows}
    for at_once in {row.resampled.at_once for row in rows.values()}:
        some = {name: row for name, row in rows.items() if row.resampled.at_once == at_once}
        most = max(limits[name] for name in some)
        done = 0
        for block in multinomial_weights(weights, most, seed, at_once):
            # One tensor for all that use as much of it: rows can share what they make of it.
            parts = {left: block[:left] for name in some if (left := limits[name] - done) > 0}
            for name, row in some.items():
                if limits[name] > done:
                    kept[name].append(_of_block(row, parts[limits[name] - done]))
            done += len(block)
    found = {}
    for name, row in rows.items():
        value, resamples = row.value().item(), torch.cat(kept[name])
        if isinstance(row.resampled, AlongRay):
            scales = row.resampled.scales_like(weights)
            # What rounding leaves of a truth of zero is zero.
            truths = torch.where((at := row.resampled.truths(scales)) > 1e-8, at, 0)
            ends = row.resampled.ends(value, resamples, truths, level)
            # Beyond its last place the ray goes on, also where no truth can be.
            low, high = (min(end, row.resampled.highest) for end in ends)
        else:
            low, high = percentile(resamples, level)
        found[name] = Estimate(value, low, high, limits[name])
    return found


def _of_block(row: Row, weights: Tensor) -> Tensor:
    if isinstance(row.resampled, AlongRay):
        return row.resampled.rays(weights, row.resampled.scales_like(weights))
    return row.resampled.draw(weights)

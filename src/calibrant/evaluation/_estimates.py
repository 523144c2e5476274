"""Every row's value with its interval, from one set of resamples."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ._bin_rays import OfBins
from ._class_draws import OverClasses
from ._coins import Coins
from ._interval import fewest_draws, percentile
from ._resampled import AlongRay, OfWeights, OnRays
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
    for name, row in rows.items():
        if isinstance(row.resampled, OverClasses):
            scales = row.resampled.scales_like(weights)
            kept[name].append(row.resampled.rays(limits[name], seed, scales))
    done = 0
    coins = {
        id(row.resampled.events): Coins(row.resampled.events.confidence, seed)
        for row in rows.values()
        if isinstance(row.resampled, AlongRay)
    }
    for block in multinomial_weights(weights, draws, seed):
        tossed = {events: some.gaps(len(block)) for events, some in coins.items()}
        for name, row in rows.items():
            left = limits[name] - done
            if left > 0 and isinstance(row.resampled, OfWeights):
                # The very block where it is used whole, so that rows can share totals of it.
                some = block if left >= len(block) else block[:left]
                kept[name].append(_of_block(row.resampled, some, tossed))
        done += len(block)
    found = {}
    for name, row in rows.items():
        value, resamples = row.value().item(), torch.cat(kept[name])
        if isinstance(row.resampled, OnRays):
            scales = row.resampled.scales_like(weights)
            if isinstance(row.resampled, OfBins):
                resamples = row.resampled.along(resamples, scales, seed)
            # What rounding leaves of a truth of zero is zero.
            truths = torch.where((at := row.resampled.truths(scales)) > 1e-8, at, 0)
            ends = row.resampled.ends(value, resamples, truths, level)
            # Beyond its last place the ray goes on, also where no truth can be.
            low, high = (min(end, row.resampled.highest) for end in ends)
        else:
            low, high = percentile(resamples, level)
        found[name] = Estimate(value, low, high, limits[name])
    return found


def _of_block(resampled: OfWeights, weights: Tensor, tossed: dict[int, Tensor]) -> Tensor:
    if isinstance(resampled, AlongRay):
        gaps = tossed[id(resampled.events)]
        gaps = gaps if len(gaps) == len(weights) else gaps[: len(weights)]
        if isinstance(resampled, OfBins):
            return resampled.drawn(gaps)
        return resampled.rays(weights, resampled.scales_like(weights), gaps)
    return resampled.draw(weights)

"""Every row's value with its interval, from one set of resamples."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ._bin_rays import OfBins
from ._class_draws import OverClasses
from ._coins import coins_of
from ._interval import fewest_draws, percentile
from ._ranking import auroc
from ._ranking_draws import RankingDraws
from ._resampled import AlongRay, OfWeights, OnRays, Resampled, without_rounding
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


Drawn = dict[str, Tensor]


@torch.no_grad()
def estimates(
    rows: Mapping[str, Row], weights: Float[Tensor, " n"], *, draws: int, level: float, seed: int
) -> dict[str, Estimate]:
    """All rows share the resamples, of which a slow one may use only as many as tell the level."""
    enough = fewest_draws(level)
    limits = {
        name: min(draws, max(row.resampled.most or draws, enough)) for name, row in rows.items()
    }
    kept: Drawn = {}
    for name, row in rows.items():
        if isinstance(row.resampled, OverClasses):
            scales = row.resampled.scales_like(weights)
            kept[name] = row.resampled.rays(limits[name], seed, scales)
    for alike in _by_what_is_drawn(rows):
        kept |= _drawn(alike, weights, limits, seed)
    found = {}
    for name, row in rows.items():
        value, resamples = row.value().item(), kept[name]
        if isinstance(row.resampled, OnRays):
            scales = row.resampled.scales_like(weights)
            if isinstance(row.resampled, OfBins):
                resamples = row.resampled.along(resamples, scales, seed)
            truths = without_rounding(row.resampled.truths(scales))
            ends = row.resampled.ends(value, resamples, truths, level)
            # Beyond its last place the ray goes on, also where no truth can be.
            low, high = (min(end, row.resampled.highest) for end in ends)
        else:
            low, high = _middle(row.resampled, resamples, level)
        found[name] = Estimate(value, low, high, limits[name])
    return found


def _middle(resampled: Resampled, draws: Tensor, level: float) -> tuple[float, float]:
    """The middle of the draws; all that can be, where there was nothing to tell apart."""
    if isinstance(resampled, RankingDraws) and resampled.statistic is auroc:
        events = resampled.events
        outcome = events.outcome[events.weights > 0]
        if bool((outcome == 0).all()) or bool((outcome == 1).all()):
            return 0.0, 1.0
    return percentile(draws, level)


def _by_what_is_drawn(rows: Mapping[str, Row]) -> list[dict[str, OfWeights]]:
    """Rows that draw single samples, and those that draw the same crowds of them."""
    found: dict[int, dict[str, OfWeights]] = {}
    for name, row in rows.items():
        if isinstance(row.resampled, OfWeights):
            found.setdefault(id(row.resampled.crowds), {})[name] = row.resampled
    return list(found.values())


def _drawn(
    alike: Mapping[str, OfWeights], weights: Tensor, limits: Mapping[str, int], seed: int
) -> Drawn:
    """What the same resamples give of several statistics."""
    draws = max(limits[name] for name in alike)
    crowds = next(iter(alike.values())).crowds
    blocks = (
        multinomial_weights(weights, draws, seed) if crowds is None else crowds.blocks(draws, seed)
    )
    coins = {
        id(one.events): coins_of(one.events, seed)
        for one in alike.values()
        if isinstance(one, AlongRay)
    }
    kept: dict[str, list[Tensor]] = {name: [] for name in alike}
    done = 0
    for block in blocks:
        tossed = {events: some.gaps(len(block)) for events, some in coins.items()}
        for name, resampled in alike.items():
            left = limits[name] - done
            if left > 0:
                # The very block where it is used whole, so that rows can share totals of it.
                some = block if left >= len(block) else block[:left]
                kept[name].append(_of_block(resampled, some, tossed))
        done += len(block)
    return {name: torch.cat(parts) for name, parts in kept.items()}


def _of_block(resampled: OfWeights, weights: Tensor, tossed: dict[int, Tensor]) -> Tensor:
    if isinstance(resampled, AlongRay):
        gaps = tossed[id(resampled.events)]
        gaps = gaps if len(gaps) == len(weights) else gaps[: len(weights)]
        if isinstance(resampled, OfBins):
            return resampled.drawn(gaps)
        return resampled.rays(weights, resampled.scales_like(weights), gaps)
    return resampled.draw(weights)

"""Two models resampled together, each sample as often for the one as for the other."""

from collections.abc import Mapping
from functools import partial
from math import isinf

import torch
from jaxtyping import Float
from torch import Tensor

from ._apart import Alone, apart
from ._class_draws import OverClasses
from ._differences import Difference
from ._interval import p_value_of, percentile
from ._judged import Judged
from ._lots import Lots
from ._paired import Ray, paired_interval
from ._resampled import AlongRay
from ._weights import Population, multinomial_weights

Pair = tuple[Judged, Judged]


def differences(
    pairs: Mapping[str, Pair],
    mass: Float[Tensor, " n"],
    lots: Lots | None,
    *,
    draws: int,
    level: float,
    seed: int,
    precision: float,
) -> dict[str, Difference]:
    """The first of each pair less the second, from resamples that all pairs share.

    - `mass`: how much samples count. `lots`: of them, where they are many.
    - `precision`: of the values, as a share of them.
    """
    shared = {name: pair for name, pair in pairs.items() if not _draw_labels(pair)}
    drawn = _drawn(shared, mass, lots, draws, seed)
    found = {}
    for name, pair in pairs.items():
        if name in shared:
            row = _less(pair, drawn[name], level)
        else:
            one, other = (_alone(each, draws, level, seed) for each in pair)
            row = apart(one, other, level)
        found[name] = row.within(pair[0].furthest).beyond_rounding(precision)
    return found


def _draw_labels(pair: Pair) -> bool:
    """Whether each model draws labels of its own, by which nothing can be shared."""
    return any(isinstance(each.resampled, OverClasses) for each in pair)


def _alone(model: Judged, draws: int, level: float, seed: int) -> Alone:
    assert isinstance(model.resampled, OverClasses)
    return Alone.of(float(model.value()), model.resampled, draws, level, seed)


Drawn = Population | None  # crowds, or samples one by one
Kept = dict[str, list[Tensor]]


def _drawn(
    pairs: Mapping[str, Pair], mass: Tensor, lots: Lots | None, draws: int, seed: int
) -> dict[str, Float[Tensor, "two draws *scales"]]:
    """The resamples of both: of samples one by one, or of the lots that they were dealt into.

    A lot holds the same samples for both models, so that it says how much is drawn of the crowds
    of either.
    """
    kept: Kept = {name: [] for name in pairs}
    single = {name: pair for name, pair in pairs.items() if pair[0].crowds is None}
    if single:
        for weights in multinomial_weights(mass, draws, seed):
            _judge(single, {None: weights}, kept)
    crowded = {name: pair for name, pair in pairs.items() if name not in single}
    if crowded:
        assert lots is not None
        both = {each.crowds for pair in crowded.values() for each in pair}
        for counts in lots.counts(draws, seed):
            weights_of: dict[Drawn, Tensor] = {
                crowds: lots.drawn(counts, crowds) for crowds in both if crowds is not None
            }
            _judge(crowded, weights_of, kept)
    return {name: torch.cat(parts, dim=1) for name, parts in kept.items()}


def _judge(pairs: Mapping[str, Pair], weights_of: Mapping[Drawn, Tensor], kept: Kept) -> None:
    """Both models of each pair by one block of weights, to what is kept."""
    for name, pair in pairs.items():
        both = [each.drawn(weights_of[each.crowds]) for each in pair]
        kept[name].append(torch.stack(both))


def _less(pair: Pair, drawn: Float[Tensor, "two draws *scales"], level: float) -> Difference:
    one, other = pair
    value, other_value = float(one.value()), float(other.value())
    if isinstance(one.resampled, AlongRay) and isinstance(other.resampled, AlongRay):
        first = Ray.of(value, one.resampled, drawn[0])
        return _of_rays(first, Ray.of(other_value, other.resampled, drawn[1]), level)
    # Two losses that are both infinite are no distance apart.
    apart = torch.where(drawn[0] == drawn[1], 0, drawn[0] - drawn[1])
    return _difference(value, other_value, apart, level)


def _of_rays(first: Ray, second: Ray, level: float) -> Difference:
    difference = first.value - second.value
    alike = torch.equal(*(each.moved.nan_to_num() for each in (first, second)))
    if difference == 0 and alike:
        return Difference(first.value, second.value, 0.0, 0.0, 0.0, 1.0)
    interval, draws = partial(paired_interval, first, second), len(first.moved)
    p_value = p_value_of(interval, level, draws)
    return Difference(first.value, second.value, difference, *interval(level), p_value)


def _difference(
    first: float, second: float, drawn: Float[Tensor, " draws"], level: float
) -> Difference:
    delta = 0.0 if first == second else first - second  # also where both are infinite

    def interval(level: float) -> tuple[float, float]:
        if isinf(delta):  # what was ruled out and happens, however rarely, costs infinitely much
            return delta, delta
        least, most = percentile(drawn, level)
        return 2 * delta - most, 2 * delta - least

    p_value = p_value_of(interval, level, len(drawn))
    return Difference(first, second, delta, *interval(level), p_value)

"""Every source of randomness a training run draws from, kept and put back."""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Generator

State = dict[str, Any]
"""States of generators, in types that `torch.load(weights_only=True)` reads."""


def random_state(generators: Iterable[Generator] = ()) -> State:
    """The state of torch's, NumPy's and Python's global generators, and of those given."""
    name, keys, *place = np.random.get_state(legacy=True)
    version, words, spare = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": [str(name), torch.from_numpy(np.asarray(keys).astype(np.int64)), *place],
        "python": [version, torch.tensor(words), spare],
        "own": [generator.get_state() for generator in generators],
    }


def restore_random_state(state: State, generators: Iterable[Generator] = ()) -> None:
    """Put every generator back to where `random_state` found it."""
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, *place = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *place))
    version, words, spare = state["python"]
    random.setstate((version, tuple(words.tolist()), spare))
    for generator, own in zip(generators, state["own"], strict=True):
        generator.set_state(own)


def generators_of(loader: object) -> list[Generator]:
    """The generators a loader draws its order from, each once."""
    found = (getattr(place, "generator", None) for place in (loader, *samplers_of(loader)))
    return list({id(own): own for own in found if isinstance(own, Generator)}.values())


def samplers_of(loader: object) -> list[object]:
    """Whatever a loader takes its order from, and whatever that takes it from in turn."""
    found: dict[int, object] = {}
    inside = [loader]
    for part in inside:  # which grows on the way
        for name in ("batch_sampler", "sampler"):
            sampler = getattr(part, name, None)
            if sampler is not None and id(sampler) not in found:
                found[id(sampler)] = sampler
                inside.append(sampler)
    return list(found.values())


@contextmanager
def undisturbed(*loaders: object) -> Iterator[None]:
    """Whatever is drawn inside, the run outside draws as though it had not been."""
    generators = [own for loader in loaders for own in generators_of(loader)]
    before = random_state(generators)
    try:
        yield
    finally:
        restore_random_state(before, generators)

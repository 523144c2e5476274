"""Inputs that anyone can draw again: NumPy's legacy generator keeps its stream for ever."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SEED = 20261115
# Fifteen bins of equal mass hold the same number of samples each.
SAMPLES, CLASSES, BINS = 1995, 5, 15


def table() -> tuple[Array, Array]:
    """Over-confident probabilities of five classes, in double precision, and labels."""
    random = np.random.RandomState(SEED)
    logits = 2 * random.standard_normal((SAMPLES, CLASSES))
    truth = _softmax(logits / 1.5).cumsum(axis=1)
    labels = (random.random_sample((SAMPLES, 1)) > truth[:, :-1]).sum(axis=1)
    return _softmax(logits), labels


def chances(n: int = 20_000) -> tuple[Array, Array]:
    """Chances of an event, all different, and whether it happened: a little less often."""
    random = np.random.RandomState(SEED + 1)
    chance = random.random_sample(n)
    return chance, (random.random_sample(n) < chance**1.05).astype(np.int64)


def asked() -> Array:
    """Chances to ask a fitted map about."""
    return np.linspace(0.02, 0.98, 11)


def saturated() -> tuple[Array, Array]:
    """Answers at 0.95 that are always right, and as many at 1.0 of which one in ten is wrong."""
    probs = np.zeros((1000, CLASSES))
    probs[:500] = (1 - 0.95) / (CLASSES - 1)
    probs[:500, 0], probs[500:, 0] = 0.95, 1.0
    labels = np.zeros(1000, dtype=np.int64)
    labels[500::10] = 1 + np.arange(50) % (CLASSES - 1)
    return probs, labels


def million() -> tuple[Array, Array]:
    """A million chances in float32, nearly all in the last bin."""
    random = np.random.RandomState(SEED + 2)
    chance = (0.95 + 0.05 * random.random_sample(1_000_000)).astype(np.float32)
    return chance, (random.random_sample(1_000_000) < 0.97).astype(np.int64)


def improbable() -> tuple[Array, Array]:
    """Certain answers in float32, one of them wrong."""
    probs = np.tile(np.array([[1 - 2**-24, 1e-12]], dtype=np.float32), (10, 1))
    labels = np.zeros(10, dtype=np.int64)
    labels[0] = 1
    return probs, labels


def _softmax(logits: Array) -> Array:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))

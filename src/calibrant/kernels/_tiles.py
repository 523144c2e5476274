"""How much of the logits a program takes at once, and which of them a table holds."""

from typing import NamedTuple

_WIDEST = 2048


class Part(NamedTuple):
    """Some columns of the logits: the class of the first, and how many classes there are."""

    first: int = 0
    classes: int | None = None


ALL = Part()
"""Every column."""


def plan(classes: int) -> tuple[int, int, int]:
    """Rows of a tile, its columns, and warps: many rows of few classes, or a part of one row."""
    block = min(1 << (classes - 1).bit_length(), _WIDEST)
    return max(1, min(64, _WIDEST // block)), block, 4


def narrow_plan(classes: int) -> tuple[int, int, int]:
    """The same for a pass that keeps sums for every column of its tile."""
    return (1, _WIDEST // 2, 4) if classes > _WIDEST // 2 else plan(classes)

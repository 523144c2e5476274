"""How much of the logits a program takes at once."""

_WIDEST = 2048


def plan(classes: int) -> tuple[int, int, int]:
    """Rows of a tile, its columns, and warps: many rows of few classes, or a part of one row."""
    block = min(1 << (classes - 1).bit_length(), _WIDEST)
    if block == _WIDEST:
        return 1, block, 8
    return max(1, min(64, _WIDEST // block)), block, 4

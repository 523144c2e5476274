"""How gradients reach the logits."""

from torch import Tensor


def ways_to_the_logits(loss: Tensor, logits: Tensor) -> list[str]:
    """The nodes that give the logits a gradient each."""
    ways, left, seen = [], [loss.grad_fn], set()
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for following, _ in node.next_functions:
            if getattr(following, "variable", None) is logits:
                ways.append(node.name())
            left.append(following)
    return ways

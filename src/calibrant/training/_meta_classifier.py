"""The layer that gives the logits, and the features it gives them from."""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ._parallel import unwrapped

Call = tuple[Tensor, Tensor]
"""What a layer was given, and what it made of it."""


def find_classifier(model: nn.Module, classifier: str | nn.Module | None) -> tuple[str, nn.Module]:
    """The classifier layer and its name: the one asked for, or the last `Linear`."""
    model = unwrapped(model)
    if isinstance(model, DistributedDataParallel):
        model = unwrapped(model.module)
    layers = dict(model.named_modules())
    if classifier is None:
        linear = [name for name, layer in layers.items() if isinstance(layer, nn.Linear)]
        if not linear:
            raise ValueError(
                "model must have a Linear layer to be its classifier; got none. Name the layer "
                "that gives the logits: classifier='head'."
            )
        name = linear[-1]
    elif isinstance(classifier, str):
        if classifier not in layers:
            near = get_close_matches(classifier, layers, n=3, cutoff=0.0)
            raise ValueError(
                f"classifier must name a layer of model; got {classifier!r}. "
                f"Near it are {', '.join(map(repr, near))}."
            )
        name = classifier
    else:
        names = [name for name, layer in layers.items() if layer is classifier]
        if not names:
            raise ValueError(
                f"classifier must be a layer of model; got a {type(classifier).__name__} that is "
                "not part of it. Name it: classifier='head'."
            )
        name = names[0]
    if not trained_parameters(layers[name]):
        raise ValueError(
            f"classifier must have parameters that require a gradient; got none in {name!r}. "
            "Unfreeze it, or name the layer that gives the logits."
        )
    return name, layers[name]


def trained_parameters(classifier: nn.Module) -> dict[str, nn.Parameter]:
    """Its parameters that are trained, by name."""
    return {name: own for name, own in classifier.named_parameters() if own.requires_grad}


@contextmanager
def watched(classifier: nn.Module) -> Iterator[list[Call]]:
    """Every call of the layer inside, in order."""
    calls: list[Call] = []

    def note(layer: nn.Module, given: tuple[Any, ...], made: Tensor) -> None:
        calls.append((given[0], made))

    handle = classifier.register_forward_hook(note)
    try:
        yield calls
    finally:
        handle.remove()


def features_of(calls: list[Call], name: str) -> Tensor:
    """What the classifier was given in the one call of a forward pass."""
    if len(calls) != 1:
        raise ValueError(
            f"classifier must be called once in each forward pass; got {len(calls)} calls of "
            f"{name!r}. Name the layer that gives the logits; a compiled model hides its layers, "
            "so pass the model as it was before."
        )
    return calls[0][0]


def check_gives_logits(calls: list[Call], logits: Tensor, name: str) -> None:
    """Nothing may happen to the logits after the classifier, since it would not be simulated."""
    made = calls[0][1]
    if not _same(made, logits):
        raise ValueError(
            f"classifier must be the layer whose output is the logits; got {name!r}, whose output "
            f"of shape {tuple(made.shape)} is not the logits of shape {tuple(logits.shape)}. Name "
            "another layer, or make what follows part of it."
        )


def _same(made: Tensor, logits: Tensor) -> bool:
    """Equal, and missing in the same places: of missing values the step itself will tell."""
    if made.shape != logits.shape:
        return False
    return bool(((made == logits) | (made.isnan() & logits.isnan())).all())

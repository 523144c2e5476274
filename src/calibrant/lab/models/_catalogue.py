"""Every network, and the name a study or a command gives it."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from ._blocks import BasicBlock, Bottleneck
from ._boosting import Boosting
from ._encoder import Encoder
from ._lenet import LeNet5
from ._mlp import MLP
from ._resnet import ResNet
from ._wide import WideResNet


def _resnet(
    classes: int,
    channels: int = 3,
    *,
    block: type[BasicBlock] | type[Bottleneck],
    depths: tuple[int, ...],
    large: bool = False,
) -> ResNet:
    return ResNet(classes, channels, block, depths, large=large)


def _resnet110(classes: int, channels: int = 3) -> ResNet:
    """The paper's own for CIFAR: 6n + 2 layers with n = 18, no parameters on the way round."""
    return ResNet(classes, channels, BasicBlock, (18, 18, 18), (16, 32, 64), projected=False)


MODELS: dict[str, Callable[..., nn.Module]] = {
    "boosting": Boosting,
    "encoder": Encoder,
    "lenet5": LeNet5,
    "mlp": MLP,
    "resnet18": partial(_resnet, block=BasicBlock, depths=(2, 2, 2, 2)),
    "resnet34": partial(_resnet, block=BasicBlock, depths=(3, 4, 6, 3)),
    "resnet50": partial(_resnet, block=Bottleneck, depths=(3, 4, 6, 3)),
    "resnet110": _resnet110,
    "wrn-28-10": partial(WideResNet, depth=28, factor=10),
    "resnet18-imagenet": partial(_resnet, block=BasicBlock, depths=(2, 2, 2, 2), large=True),
    "resnet50-imagenet": partial(_resnet, block=Bottleneck, depths=(3, 4, 6, 3), large=True),
}


def build(name: str, *, classes: int, **settings: Any) -> nn.Module:
    """A network by its name, with new weights.

    - `name`: one of `MODELS`.
    - `classes`: logits that it gives.
    - `settings`: what that network can be told besides: `channels` of the images, `features` of
      an `mlp`, `folder` of an `encoder`, `dropout` of some.

    Every network gives logits from one batch of inputs, by a last linear layer, which all but the
    encoder call `classifier`; `boosting` gives them too, but is no network. Weights come from
    torch's global generator: seed it first.

    >>> model = build("lenet5", classes=10)
    >>> sum(each.numel() for each in model.parameters())
    61706
    """
    if name not in MODELS:
        raise ValueError(f"name must be one of {', '.join(sorted(MODELS))}; got {name!r}.")
    known = inspect.signature(MODELS[name]).parameters
    required = {
        each.name
        for each in known.values()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    missing = sorted(required - {"classes"} - set(settings))
    strange = sorted(set(settings) - set(known))
    if missing or strange:
        raise ValueError(
            f"settings of {name} must be among {', '.join(sorted(set(known) - {'classes'}))}"
            + (f"; got none for {missing[0]}." if missing else f"; got {strange[0]!r}.")
        )
    return MODELS[name](classes, **settings)

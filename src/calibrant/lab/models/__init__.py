"""The networks that the papers train."""

from ._boosting import Boosting as Boosting
from ._catalogue import MODELS as MODELS
from ._catalogue import build as build
from ._encoder import Encoder as Encoder
from ._encoder import encode as encode
from ._lenet import LeNet5 as LeNet5
from ._mlp import MLP as MLP
from ._resnet import ResNet as ResNet
from ._wide import WideResNet as WideResNet

"""The corruptions of CIFAR-C, for images in memory."""

from ._catalogue import CORRUPTIONS as CORRUPTIONS
from ._catalogue import Corruption as Corruption
from ._corrupt import corrupt as corrupt

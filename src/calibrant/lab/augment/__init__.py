"""From stored samples to batches on the device."""

from ._augmentation import Augmentation as Augmentation
from ._batches import Batches as Batches
from ._resized_crop import ResizedCrop as ResizedCrop

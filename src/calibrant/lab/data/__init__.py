"""Data sets in their official formats, split as the papers split them."""

from .._samples import Samples as Samples
from .._samples import Splits as Splits
from .._samples import Texts as Texts
from ._catalogue import DATASETS as DATASETS
from ._dataset import Dataset as Dataset
from ._dataset import Source as Source
from ._folders import read_image_folders as read_image_folders
from ._human import read_human_labels as read_human_labels
from ._load import load as load
from ._load import load_texts as load_texts
from ._shifted import read_cifar_c as read_cifar_c
from ._shifted import read_imagenet_c as read_imagenet_c

"""Every data set, and the name a study or a command gives it."""

from pathlib import Path
from typing import Any

from .._samples import Samples
from ..augment import Augmentation, ResizedCrop
from ._adult import FILES as ADULT_FILES
from ._adult import read_adult
from ._cifar import read_cifar
from ._dataset import Dataset, Source
from ._folders import imagenet100, read_image_folders
from ._idx import read_idx_pair
from ._texts import TEXTS

# As the ESD paper states: no reflection is mentioned there. The two other papers train with it,
# which is dataclasses.replace(augmentation, flip=True).
CIFAR_AUGMENTATION = Augmentation(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), padding=4)
# The paper resizes to 32 x 32 and says nothing of normalisation; these are the set's own.
MNIST_AUGMENTATION = Augmentation(mean=(0.1307,), std=(0.3081,), side=32)
FASHION_AUGMENTATION = Augmentation(mean=(0.2860,), std=(0.3530,), side=32)

CIFAR10_FILES = {
    "train": tuple(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)),
    "test": ("cifar-10-batches-bin/test_batch.bin",),
}
CIFAR100_FILES = {"train": ("cifar-100-binary/train.bin",), "test": ("cifar-100-binary/test.bin",)}


def _cifar10(folder: Path, part: str) -> Samples:
    return read_cifar(folder, CIFAR10_FILES[part], classes=10, label_bytes=1)


def _cifar100(folder: Path, part: str) -> Samples:
    return read_cifar(folder, CIFAR100_FILES[part], classes=100, label_bytes=2)


IMAGENET_ADVICE = (
    "ImageNet is given only to those who ask for it, at https://image-net.org. Put the folders of "
    "a hundred classes in imagenet100/train and imagenet100/val; if they are not the usual "
    "hundred, put their names, such as n01440764, a line each, in imagenet100/classes.txt."
)


def _imagenet100(folder: Path, part: str) -> Samples:
    root, classes = imagenet100(folder)
    place = root / {"train": "train", "test": "val"}[part]
    missing = [name for name in classes if not (place / name).is_dir()]
    if missing:
        raise FileNotFoundError(
            f"{place} must hold a folder for each of {len(classes)} classes; there is none for "
            f"{missing[0]}. {IMAGENET_ADVICE}"
        )
    return read_image_folders(place, classes)


def _idx_files(folder: str) -> dict[str, tuple[str, ...]]:
    return {
        part: (f"{folder}/{prefix}-images-idx3-ubyte", f"{folder}/{prefix}-labels-idx1-ubyte")
        for part, prefix in {"train": "train", "test": "t10k"}.items()
    }


def _idx(
    name: str, folder: str, url: str, digests: dict[str, str], **more: Any
) -> Dataset[Samples]:
    files = _idx_files(folder)
    sources = tuple(
        Source(f"{url}/{stem}.gz", f"md5:{digest}", f"{folder}/{stem}.gz")
        for stem, digest in digests.items()
    )
    return Dataset(
        name,
        classes=10,
        sizes=(54_000, 6_000, 10_000),
        files=files,
        read=lambda place, part: read_idx_pair(place, *files[part], classes=10),
        model="lenet5",
        sources=sources,
        **more,
    )


IMAGES: dict[str, Dataset[Samples]] = {
    "mnist": _idx(
        "mnist",
        "MNIST/raw",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        {
            "train-images-idx3-ubyte": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "train-labels-idx1-ubyte": "d53e105ee54ea40749a09fcbcd1e9432",
            "t10k-images-idx3-ubyte": "9fb629c4189551a2d022fa330f9573f3",
            "t10k-labels-idx1-ubyte": "ec29112dd5afa0611ce80d1b7f02629c",
        },
        augmentation=MNIST_AUGMENTATION,
    ),
    "fashion-mnist": _idx(
        "fashion-mnist",
        "FashionMNIST/raw",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        {
            "train-images-idx3-ubyte": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "train-labels-idx1-ubyte": "25c81989df183df01b3e8a0aad5dffbe",
            "t10k-images-idx3-ubyte": "bef4ecab320f06d8554ea6380940ec79",
            "t10k-labels-idx1-ubyte": "bb300cfdad3c16e7a12a480ee83cd310",
        },
        augmentation=FASHION_AUGMENTATION,
    ),
    "cifar10": Dataset(
        "cifar10",
        classes=10,
        sizes=(45_000, 5_000, 10_000),
        files=CIFAR10_FILES,
        read=_cifar10,
        model="resnet50",
        sources=(
            Source(
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                "cifar-10-binary.tar.gz",
                (*CIFAR10_FILES["train"], *CIFAR10_FILES["test"]),
            ),
        ),
        augmentation=CIFAR_AUGMENTATION,
    ),
    "cifar100": Dataset(
        "cifar100",
        classes=100,
        sizes=(45_000, 5_000, 10_000),
        files=CIFAR100_FILES,
        read=_cifar100,
        model="resnet34",
        sources=(
            Source(
                "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                "md5:03b5dce01913d631647c71ecec9e9cb8",
                "cifar-100-binary.tar.gz",
                (*CIFAR100_FILES["train"], *CIFAR100_FILES["test"]),
            ),
        ),
        augmentation=CIFAR_AUGMENTATION,
    ),
    "imagenet100": Dataset(
        "imagenet100",
        classes=100,
        sizes=(117_000, 13_000, 5_000),
        files={"train": (), "test": ()},  # folders, looked for when they are read
        read=_imagenet100,
        model="resnet18-imagenet",
        augmentation=ResizedCrop(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), flip=True),
        advice=IMAGENET_ADVICE,
    ),
}

ADULT: Dataset[Samples] = Dataset(
    "adult",
    classes=2,
    sizes=(29_305, 3_256, 16_281),
    files=ADULT_FILES,
    read=read_adult,
    model="mlp",
    advice="Put it there, from https://archive.ics.uci.edu/dataset/2/adult",
)

DATASETS: dict[str, Dataset[Any]] = {**IMAGES, **TEXTS, "adult": ADULT}

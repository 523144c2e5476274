import gzip
import hashlib
import io
import json
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import calibrant as cal
from calibrant.lab import Trial, open_task
from calibrant.lab.augment import Augmentation, Batches, ResizedCrop
from calibrant.lab.data import (
    DATASETS,
    Dataset,
    Samples,
    Source,
    Splits,
    Texts,
    load,
    load_texts,
    read_cifar_c,
    read_human_labels,
    read_image_folders,
    read_imagenet_c,
)
from calibrant.lab.data._files import contents
from calibrant.lab.data._imagenet100 import CLASSES
from calibrant.lab.download import download
from calibrant.lab.people import judged_by_people

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
with_shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason="no data beside the checkout")


def write_cifar(path: Path, images: np.ndarray[Any, Any], *labels: np.ndarray[Any, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [bytes([*own, *image.reshape(-1)]) for image, *own in zip(images, *labels, strict=True)]
    path.write_bytes(b"".join(rows))


def write_idx(path: Path, values: np.ndarray[Any, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(head + values.astype(np.uint8).tobytes())


def some_images(n: int, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(n).integers(256, size=(n, *shape), dtype=np.uint8)


def of_size(name: str, train: int, validation: int, test: int) -> Dataset[Any]:
    return replace(DATASETS[name], sizes=(train, validation, test))


@pytest.fixture
def small_cifar(tmp_path: Path) -> Path:
    """Forty images to train on, in five files of eight, and ten to test on."""
    for number in range(5):
        images = some_images(8 + number, 3, 32, 32)[:8]
        labels = (np.arange(8) + number) % 10
        write_cifar(tmp_path / f"cifar-10-batches-bin/data_batch_{number + 1}.bin", images, labels)
    write_cifar(
        tmp_path / "cifar-10-batches-bin/test_batch.bin", some_images(10, 3, 32, 32), np.arange(10)
    )
    return tmp_path


def load_small(folder: Path, seed: int = 0, **settings: Any) -> Splits[Samples]:
    return load(of_size("cifar10", 36, 4, 10), folder, seed=seed, **settings)


def test_cifar_is_read_pixel_by_pixel(small_cifar: Path) -> None:
    splits = load_small(small_cifar)
    seen = {image.numpy().tobytes(): int(label) for image, label in _pairs(splits)}
    for number in range(5):
        for place, image in enumerate(some_images(8 + number, 3, 32, 32)[:8]):
            assert seen[image.tobytes()] == (place + number) % 10
    assert splits.train.inputs.dtype == torch.uint8
    assert splits.train.inputs.shape == (36, 3, 32, 32)


def _pairs(splits: Splits[Samples]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    parts = (splits.train, splits.validation)
    return [pair for part in parts for pair in zip(part.inputs, part.labels, strict=True)]


def test_fine_labels_of_cifar100_are_the_second_byte(tmp_path: Path) -> None:
    fine = np.array([99, 0, 50, 7])
    for name in ("train", "test"):
        path = tmp_path / f"cifar-100-binary/{name}.bin"
        write_cifar(path, some_images(4, 3, 32, 32), np.array([19, 1, 2, 3]), fine)
    test = load(of_size("cifar100", 3, 1, 4), tmp_path, seed=0).test()
    assert test.labels.tolist() == fine.tolist()
    assert_close(test.inputs, torch.from_numpy(some_images(4, 3, 32, 32)))


@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")]
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_files_are_read_packed_or_not(
    tmp_path: Path, name: str, folder: str, ending: str
) -> None:
    for prefix in ("train", "t10k"):
        for kind, values in (
            ("images-idx3", some_images(6, 28, 28)),
            ("labels-idx1", np.arange(6)),
        ):
            path = tmp_path / folder / f"raw/{prefix}-{kind}-ubyte"
            write_idx(path, values)
            if ending:
                path.with_name(path.name + ending).write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
    test = load(of_size(name, 5, 1, 6), tmp_path, seed=0).test()
    assert_close(test.inputs[:, 0], torch.from_numpy(some_images(6, 28, 28)))
    assert test.labels.tolist() == list(range(6))


def test_the_test_set_is_not_read_before_it_is_asked_for(small_cifar: Path) -> None:
    path = small_cifar / "cifar-10-batches-bin/test_batch.bin"
    path.write_bytes(b"not yet")
    splits = load_small(small_cifar)
    with pytest.raises(ValueError, match="must hold whole images of 3073 bytes"):
        splits.test()


def test_the_seed_draws_the_split_and_nothing_is_in_both_parts(small_cifar: Path) -> None:
    one, again, other = (load_small(small_cifar, seed) for seed in (0, 0, 1))
    assert_close(one.train.inputs, again.train.inputs)
    assert not torch.equal(one.train.inputs, other.train.inputs)
    train = {image.numpy().tobytes() for image in one.train.inputs}
    assert len(train) == 36
    assert not train & {image.numpy().tobytes() for image in one.validation.inputs}


def test_the_slice_is_held_out_of_the_training_set(small_cifar: Path) -> None:
    splits = load_small(small_cifar)
    for share, expected in ((0.25, 9), (4, 4)):
        majority, held_out = splits.hold_out(share)
        assert (len(majority), len(held_out)) == (36 - expected, expected)
        assert_close(torch.cat([held_out.inputs, majority.inputs]), splits.train.inputs)
    with pytest.raises(ValueError, match="share must leave samples on both sides; got 36"):
        splits.hold_out(36)


def test_a_stored_split_is_taken_again_and_only_for_the_same_data(
    small_cifar: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "splits"
    first = load_small(small_cifar, split_folder=kept)
    (file,) = kept.iterdir()
    written = file.read_bytes()
    again = load_small(small_cifar, split_folder=kept)
    assert_close(again.train.inputs, first.train.inputs)
    assert_close(again.validation.labels, first.validation.labels)
    assert file.read_bytes() == written
    batch = small_cifar / "cifar-10-batches-bin/data_batch_1.bin"
    rows = batch.read_bytes()
    batch.write_bytes(rows[3073:] + rows[:3073])
    with pytest.raises(ValueError, match=r"must be the split of this data; its labels_sha256"):
        load_small(small_cifar, split_folder=kept)
    file.write_bytes(written[: len(written) // 2])
    with pytest.raises(ValueError, match="must hold a split; could not be read"):
        load_small(small_cifar, split_folder=kept)


def test_a_stored_split_rules_whatever_the_seed_would_draw_today(
    small_cifar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_small(small_cifar, split_folder=tmp_path / "splits")
    monkeypatch.setattr(torch, "randperm", lambda n, **_: torch.arange(n))
    again = load_small(small_cifar, split_folder=tmp_path / "splits")
    assert_close(again.train.inputs, first.train.inputs)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda stored: stored[:-1], r"must hold whole images of 3073 bytes.*got 24583 bytes"),
        (lambda stored: b"", "must hold whole images"),
        (lambda stored: bytes([200]) + stored[1:], "labels from 0 to 9; got 200 for image 0"),
        (lambda stored: stored[:3073], r"train files of cifar10 must hold 40 samples; got 33"),
    ],
)
def test_damaged_cifar_gets_a_sentence(
    small_cifar: Path, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    path = small_cifar / "cifar-10-batches-bin/data_batch_2.bin"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=sentence):
        load_small(small_cifar)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda stored: stored[:-1], "must hold 4704 bytes after its head"),
        (lambda stored: stored + b"?", "must hold 4704 bytes after its head"),
        (lambda stored: b"PNG" + stored, "must begin with the bytes 00 00 08 03"),
        (lambda stored: b"", "got nothing"),
    ],
)
def test_damaged_idx_gets_a_sentence(
    tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    for prefix in ("train", "t10k"):
        write_idx(tmp_path / f"MNIST/raw/{prefix}-images-idx3-ubyte", some_images(6, 28, 28))
        write_idx(tmp_path / f"MNIST/raw/{prefix}-labels-idx1-ubyte", np.arange(6))
    path = tmp_path / "MNIST/raw/train-images-idx3-ubyte"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=sentence):
        load(of_size("mnist", 5, 1, 6), tmp_path, seed=0)
    path.unlink()
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(b"x" * 5000)[:-9])
    with pytest.raises(ValueError, match=r"must be a whole \.gz file; could not be unpacked"):
        load(of_size("mnist", 5, 1, 6), tmp_path, seed=0)


def test_the_folder_may_be_that_of_the_files_but_no_other(tmp_path: Path) -> None:
    for folder in ("MNIST/raw", "elsewhere"):
        for prefix in ("train", "t10k"):
            write_idx(tmp_path / folder / f"{prefix}-images-idx3-ubyte", some_images(6, 28, 28))
            write_idx(tmp_path / folder / f"{prefix}-labels-idx1-ubyte", np.arange(6))
    small = of_size("mnist", 5, 1, 6)
    one, other = (load(small, place, seed=0) for place in (tmp_path, tmp_path / "MNIST/raw"))
    assert_close(one.train.inputs, other.train.inputs)
    for name, folder in (("mnist", "elsewhere"), ("fashion-mnist", "MNIST/raw")):
        with pytest.raises(FileNotFoundError, match="train-images-idx3-ubyte must be there"):
            load(name, tmp_path / folder, seed=0)


def test_a_packed_file_with_a_damaged_middle_gets_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    stored = bytearray(gzip.compress(bytes(range(200))))
    stored[12] ^= 0xFF
    path.write_bytes(stored)
    with pytest.raises(
        ValueError, match=r"labels\.gz must be a whole \.gz file; .* Fetch it again"
    ):
        contents(path)


def test_images_and_labels_of_different_splits_are_refused(tmp_path: Path) -> None:
    for prefix, n in (("train", 6), ("t10k", 4)):
        write_idx(tmp_path / f"MNIST/raw/{prefix}-images-idx3-ubyte", some_images(6, 28, 28))
        write_idx(tmp_path / f"MNIST/raw/{prefix}-labels-idx1-ubyte", np.arange(n))
    splits = load(of_size("mnist", 5, 1, 6), tmp_path, seed=0)
    with pytest.raises(ValueError, match="as many images as labels; got 6 and 4"):
        splits.test()


@pytest.mark.parametrize("name", DATASETS)
def test_a_missing_file_is_asked_for_by_name_and_place(tmp_path: Path, name: str) -> None:
    read = load_texts if DATASETS[name].length is not None else load
    with pytest.raises(FileNotFoundError) as caught:
        read(name, tmp_path, seed=0)
    said = str(caught.value)
    first = (*DATASETS[name].files["train"], f"{name}/train")[0]  # a file, or a folder of images
    assert str(tmp_path / first) in said
    assert "http" in said or "Put it there" in said


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_knows_its_model_and_its_sizes(name: str) -> None:
    from calibrant.lab.models import MODELS

    dataset = DATASETS[name]
    assert dataset.name == name
    assert dataset.model in MODELS
    assert all(size > 0 for size in dataset.sizes)
    assert {"train", "test"} <= set(dataset.files)
    assert (dataset.length is None) == (name not in TEXT_SETS)
    for source in dataset.sources:
        kind, _, digest = source.checksum.partition(":")
        assert len(digest) == {"md5": 32, "sha256": 64}[kind]
        assert set(digest) <= set("0123456789abcdef")


TEXT_SETS = {"snli", "anli", "lingnli", "clinc150", "banking77", "trec"}


def test_splits_have_the_sizes_that_the_papers_state() -> None:
    assert DATASETS["mnist"].sizes == (54_000, 6_000, 10_000)
    assert DATASETS["cifar10"].sizes == DATASETS["cifar100"].sizes == (45_000, 5_000, 10_000)
    assert DATASETS["imagenet100"].sizes == (117_000, 13_000, 5_000)
    assert (DATASETS["snli"].sizes, DATASETS["snli"].length) == ((550_152, 10_000, 10_000), 158)
    assert (DATASETS["anli"].sizes, DATASETS["anli"].length) == ((162_865, 3_200, 3_200), 128)


def test_a_name_nobody_knows_and_the_wrong_reader_get_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"dataset must be one of .*mnist.*; got 'cifar'"):
        load("cifar", tmp_path, seed=0)
    with pytest.raises(TypeError, match="snli must be read by load_texts"):
        load("snli", tmp_path, seed=0)
    with pytest.raises(TypeError, match="cifar10 must be read by load;"):
        load_texts("cifar10", tmp_path, seed=0)


# Texts


def write_lines(path: Path, rows: list[dict[str, Any]], *, packed: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if packed:
        path.with_name(path.name + ".xz").write_bytes(lzma.compress(stored))
    else:
        path.write_bytes(stored)


def test_snli_pairs_are_read_and_those_without_a_label_left_out(tmp_path: Path) -> None:
    rows = [
        {"gold_label": label, "sentence1": f"premise {place}", "sentence2": f"claim {place}"}
        for place, label in enumerate(["neutral", "-", "entailment", "contradiction"])
    ]
    for name in ("train", "dev", "test"):
        write_lines(tmp_path / f"snli_1.0/snli_1.0_{name}.jsonl", rows)
    splits = load_texts(of_size("snli", 4, 4, 4), tmp_path, seed=0)
    assert splits.test().labels.tolist() == [1, 0, 2]
    assert splits.validation.texts[1] == ("premise 2", "claim 2")
    assert sorted(splits.train.labels.tolist()) == [0, 1, 2]


def test_anli_joins_its_three_rounds(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        rows = [{"context": f"round {number}", "hypothesis": "so", "label": "nec"[number - 1]}]
        for name in ("train", "dev", "test"):
            write_lines(tmp_path / f"anli_v1.0/R{number}/{name}.jsonl", rows)
    test = load_texts(of_size("anli", 3, 3, 3), tmp_path, seed=0).test()
    assert test.texts == (("round 1", "so"), ("round 2", "so"), ("round 3", "so"))
    assert test.labels.tolist() == [1, 0, 2]


def test_a_file_with_every_part_gives_each_its_own_lines(tmp_path: Path) -> None:
    rows = [
        {"split": "oos_test", "label": "oos", "text": "who won"},
        {"split": "train", "label": "weather", "text": "rain?"},
        {"split": "train", "label": "alarm", "text": "wake me"},
        {"split": "val", "label": "alarm", "text": "at seven"},
        {"split": "test", "label": "weather", "text": "snow?"},
        {"split": "oos_train", "label": "oos", "text": "a poem"},
    ]
    write_lines(tmp_path / "text/clinc150_full.jsonl", rows, packed=True)
    splits = load_texts(of_size("clinc150", 2, 1, 1), tmp_path, seed=0)
    assert (splits.test().texts, splits.test().labels.tolist()) == ((("snow?",),), [1])
    assert splits.validation.labels.tolist() == [0]
    elsewhere = splits.shifts["out-of-scope"]()
    assert (elsewhere.texts, elsewhere.labels.tolist()) == ((("who won",),), [-1])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", r"line 2 of .*jsonl must be a JSON object with the fields split, label, text"),
        ("[]", "could not be read: TypeError"),
        ('{"split": "train", "label": 0}', r"could not be read: KeyError\('text'\)"),
        ('{"split": "test", "label": "9", "text": ""}', "one of 1 labels, such as '0'; got '9'"),
    ],
)
def test_damaged_lines_get_a_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "text/trec.jsonl"
    path.parent.mkdir()
    path.write_text('{"split": "train", "label": 0, "text": "why"}\n' + line)
    with pytest.raises(ValueError, match=sentence):
        load_texts(of_size("trec", 1, 0, 1), tmp_path, seed=0).test()


def test_damaged_xz_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text/trec.jsonl.xz").write_bytes(lzma.compress(b"{}" * 100)[:-20])
    with pytest.raises(ValueError, match=r"must be a whole \.xz file"):
        load_texts("trec", tmp_path, seed=0)


def test_mapping_changes_every_part_and_reads_the_test_set_no_sooner() -> None:
    read = []

    def test() -> Texts:
        read.append("test")
        return Texts((("c",),), torch.tensor([2]))

    some = Splits(Texts((("a",),), torch.tensor([0])), Texts((("b",),), torch.tensor([1])), test, 3)

    def counted(texts: Texts) -> Samples:
        return Samples(torch.tensor([[len(text[0])] for text in texts.texts]), texts.labels)

    mapped = some.map(counted)
    assert read == []
    assert mapped.test().labels.tolist() == [2]
    assert mapped.train.inputs.tolist() == [[1]]


# Tables and people


def test_adult_is_encoded_by_the_training_file(tmp_path: Path) -> None:
    (tmp_path / "tabular").mkdir()
    head = "age, workclass, fnlwgt, education, education-num, marital-status, occupation, "
    line = "{age}, {work}, 1, HS-grad, 9, Divorced, Sales, Wife, White, {sex}, 0, 0, 40, ?, {end}"
    rows = [
        line.format(age=20, work="Private", sex="Male", end="<=50K"),
        line.format(age=40, work="State-gov", sex="Female", end=">50K"),
    ]
    (tmp_path / "tabular/adult.data").write_text(head + "\n" + "\n".join(rows) + "\n")
    strange = line.format(age=50, work="Never", sex="Female", end=">50K.")
    (tmp_path / "tabular/adult.test").write_text("|1x3 Cross validator\n" + strange + "\n\n")
    splits = load(of_size("adult", 1, 1, 1), tmp_path, seed=0)
    test = splits.test()
    assert (test.labels.tolist(), test.groups["sex"].tolist()) == ([1], [1])
    numbers, names = test.inputs[0, :5], test.inputs[0, 5:]
    assert_close(numbers, torch.tensor([2.0, 0, 0, 0, 0]))  # mean 30, deviation 10
    # Columns: two kinds of work, neither of them here, six columns with one name, both sexes.
    assert names.tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 0, 1]
    assert sorted(splits.train.groups) == ["race", "sex"]
    (tmp_path / "tabular/adult.data").write_text("39, State-gov, 77516")
    with pytest.raises(ValueError, match=r"line 1 of .*adult\.data must hold 15 cells"):
        load(of_size("adult", 1, 1, 1), tmp_path, seed=0)


def test_people_are_read_as_shares(tmp_path: Path) -> None:
    (tmp_path / "cifar10").mkdir()
    counts = np.zeros((3, 10), dtype=np.uint8)
    counts[:, 3], counts[1, 5] = 30, 10
    np.savez(tmp_path / "cifar10/human-labels.npz", counts=counts)
    shares = read_human_labels(tmp_path)
    assert_close(shares[1, [3, 5]], torch.tensor([0.75, 0.25], dtype=torch.float64))
    np.savez(tmp_path / "cifar10/human-labels.npz", counts=counts[:, :4])
    with pytest.raises(ValueError, match=r"row of ten counts .* got shape \(3, 4\)"):
        read_human_labels(tmp_path)
    np.savez(tmp_path / "cifar10/human-labels.npz", others=counts)
    with pytest.raises(ValueError, match="must hold an array of counts"):
        read_human_labels(tmp_path)
    (tmp_path / "cifar10/human-labels.npz").unlink()
    with pytest.raises(FileNotFoundError, match="must be there for human labels"):
        read_human_labels(tmp_path)


def test_people_judge_as_the_mean_over_labels_drawn_from_them(rng: torch.Generator) -> None:
    logits = torch.randn(40, 3, generator=rng, dtype=torch.float64)
    shares = torch.randn(40, 3, generator=rng, dtype=torch.float64).softmax(1)
    found = judged_by_people(logits, shares)
    for name, criterion in (("nll", cal.nll), ("brier", cal.brier), ("accuracy", cal.accuracy)):
        expected = sum(
            shares[place, label]
            * criterion(cal.Predictions(logits[[place]], torch.tensor([label])))
            for place in range(40)
            for label in range(3)
        )
        assert found[name] == pytest.approx(float(expected) / 40)
    entropy = -(shares * shares.log()).sum(1).mean()
    assert found["entropy"] == pytest.approx(float(entropy))
    own = judged_by_people(shares.log(), shares)
    assert own["nll"] == pytest.approx(own["entropy"])
    assert own["ece"] == pytest.approx(0, abs=1e-12)
    assert found["ece"] > 0.01
    with pytest.raises(ValueError, match="shares must be probabilities that add up to one"):
        judged_by_people(logits, 2 * shares)
    with pytest.raises(ValueError, match=r"shape \(40, 3\); got \(40, 2\)"):
        judged_by_people(logits, torch.full((40, 2), 0.5))


# Folders of images


def test_folders_of_images_are_read_in_the_order_of_their_classes(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    for name, colour in (("n02", (200, 0, 0)), ("n01", (0, 100, 0)), ("n03", (0, 0, 9))):
        (tmp_path / name).mkdir()
        pillow.new("RGB", (60, 40), colour).save(tmp_path / name / "a.png")
    samples = read_image_folders(tmp_path, side=16)
    assert samples.inputs.shape == (3, 3, 16, 16)
    assert samples.inputs[:, :, 8, 8].tolist() == [[0, 100, 0], [200, 0, 0], [0, 0, 9]]
    chosen = read_image_folders(tmp_path, ["n03", "n01"], side=16)
    assert chosen.labels.tolist() == [0, 1]
    assert chosen.inputs[:, :, 0, 0].tolist() == [[0, 0, 9], [0, 100, 0]]
    with pytest.raises(ValueError, match="a folder for each class; got 3 and none for n04"):
        read_image_folders(tmp_path, ["n04"])
    (tmp_path / "n03/b.jpeg").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"b\.jpeg must be an image"):
        read_image_folders(tmp_path)


def test_imagenet100_takes_its_classes_from_a_list(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    for part in ("train", "val"):
        for name in ("n01", "n02", "n03"):
            (tmp_path / "imagenet100" / part / name).mkdir(parents=True)
            pillow.new("RGB", (8, 9)).save(tmp_path / "imagenet100" / part / name / "a.png")
    (tmp_path / "imagenet100/classes.txt").write_text("n03 shark\nn01 hen\n")
    splits = load(of_size("imagenet100", 1, 1, 2), tmp_path, seed=0)
    assert splits.test().inputs.shape == (2, 3, 256, 256)
    itself = load(of_size("imagenet100", 1, 1, 2), tmp_path / "imagenet100", seed=0)
    assert_close(itself.test().inputs, splits.test().inputs)
    (tmp_path / "imagenet100/classes.txt").write_text("n03\nn03\n")
    with pytest.raises(ValueError, match="must name each class once; got 2 lines and 1 names"):
        splits.test()


@pytest.mark.parametrize("inside", ["", "imagenet100"])
def test_without_a_list_imagenet100_has_its_usual_classes(inside: str, tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    assert len(set(CLASSES)) == DATASETS["imagenet100"].classes
    assert list(CLASSES) == sorted(CLASSES)
    for part in ("train", "val"):
        for name in (*CLASSES, "n00000001"):
            (tmp_path / "imagenet100" / part / name).mkdir(parents=True)
            image = tmp_path / "imagenet100" / part / name / "a.png"
            pillow.new("RGB", (8, 8)).save(image)
    splits = load(of_size("imagenet100", 90, 10, 100), tmp_path / inside, seed=0)
    assert splits.test().labels.tolist() == list(range(100))
    (tmp_path / "imagenet100/val" / CLASSES[7]).rename(tmp_path / "elsewhere")
    with pytest.raises(
        FileNotFoundError, match=rf"none for {CLASSES[7]}\. ImageNet is given .*classes\.txt\."
    ):
        splits.test()
    with pytest.raises(FileNotFoundError, match=r"none for n01440764\. ImageNet is given"):
        load("imagenet100", tmp_path / "imagenet100/train", seed=0)


@pytest.mark.parametrize("inside", ["", "imagenet100"])
def test_imagenet_c_is_read_of_the_classes_that_are_trained_on(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    for place, name in enumerate(("n01", "n02", "n03")):
        for part in ("imagenet100/train", "imagenet100/val", "imagenet-c/fog/2"):
            (tmp_path / part / name).mkdir(parents=True)
            pillow.new("RGB", (8, 9), (place,) * 3).save(tmp_path / part / name / "a.png")
    (tmp_path / "imagenet100/classes.txt").write_text("n03 great white shark\nn01 hen\n")
    monkeypatch.setitem(DATASETS, "imagenet100", of_size("imagenet100", 1, 1, 2))
    monkeypatch.chdir(tmp_path / inside)  # a relative folder, which has no name of its own
    # Another seed each time, since what has been opened once is not read again.
    task = open_task(Trial("imagenet100", "resnet18-imagenet", seed=len(inside)), Path())
    shifted = task.corrupted(task.splits.test(), "fog", 2)
    assert shifted.labels.tolist() == [0, 1]
    assert shifted.inputs[:, 0, 0, 0].tolist() == [2, 0]


def test_published_corrupted_sets_are_read_one_severity_at_a_time(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    images = some_images(15, 32, 32, 3)
    np.save(tmp_path / "fog.npy", images)
    np.save(tmp_path / "labels.npy", np.tile(np.array([4, 0, 9], dtype=np.uint8), 5))
    third = read_cifar_c(tmp_path, "fog", 3)
    assert_close(third.inputs.permute(0, 2, 3, 1), torch.from_numpy(images[6:9]))
    assert third.labels.tolist() == [4, 0, 9]
    np.save(tmp_path / "fog.npy", images[:14])
    with pytest.raises(ValueError, match=r"five times as many images .* shape \(14, 32, 32, 3\)"):
        read_cifar_c(tmp_path, "fog", 3)
    (tmp_path / "fog.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"fog\.npy must hold an array"):
        read_cifar_c(tmp_path, "fog", 3)
    with pytest.raises(FileNotFoundError, match=r"snow\.npy must be there"):
        read_cifar_c(tmp_path, "snow", 1)
    (tmp_path / "snow/2/n01").mkdir(parents=True)
    pillow.new("RGB", (224, 224), (9, 8, 7)).save(tmp_path / "snow/2/n01/a.png")
    assert read_imagenet_c(tmp_path, "snow", 2).inputs[0, :, 0, 0].tolist() == [9, 8, 7]
    with pytest.raises(ValueError, match="severity must be 1, 2, 3, 4 or 5; got 6"):
        read_imagenet_c(tmp_path, "snow", 6)


# Augmentation and batches


def moved_slowly(
    image: np.ndarray[Any, Any], padding: int, down: int, across: int, reflected: int
) -> np.ndarray[Any, Any]:
    framed = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    height, width = image.shape[1:]
    cut = framed[:, down : down + height, across : across + width]
    return cut[:, :, ::-1] if reflected else cut


@pytest.mark.parametrize("flip", [True, False])
def test_each_image_is_framed_cut_and_reflected_by_its_own_draw(
    flip: bool, rng: torch.Generator
) -> None:
    images = torch.from_numpy(some_images(50, 3, 9, 7))
    augment = Augmentation((0.5, 0.4, 0.3), (0.2, 0.3, 0.4), padding=2, flip=flip)
    draws = augment.draw(50, rng)
    made = augment(images, draws)
    mean, std = np.array([0.5, 0.4, 0.3])[:, None, None], np.array([0.2, 0.3, 0.4])[:, None, None]
    for image, draw, got in zip(images.numpy(), draws.tolist(), made, strict=True):
        expected = (moved_slowly(image, 2, *draw) / 255 - mean) / std
        assert_close(got, torch.from_numpy(expected).float())
    assert set(draws[:, 0].tolist()) == set(draws[:, 1].tolist()) == set(range(5))
    assert set(draws[:, 2].tolist()) == ({0, 1} if flip else {0})


def test_without_draws_images_are_only_resized_and_normalised() -> None:
    images = torch.from_numpy(some_images(3, 1, 28, 28))
    augment = Augmentation((0.1307,), (0.3081,), padding=4, flip=True, side=32)
    made = augment(images)
    assert made.shape == (3, 1, 32, 32)
    plain = replace(augment, side=None)(images)
    assert_close(plain, (images.float() / 255 - 0.1307) / 0.3081)
    assert_close(made.mean(), plain.mean(), atol=0.02, rtol=0)
    with pytest.raises(ValueError, match=r"images must be bytes .* got torch.float32"):
        augment(images.float())
    with pytest.raises(ValueError, match="mean and std must hold one number for each channel"):
        Augmentation((0.5,), (0.0,))


def test_a_resized_crop_of_the_whole_is_the_image_and_every_crop_lies_inside(
    rng: torch.Generator,
) -> None:
    images = torch.from_numpy(some_images(20, 3, 16, 16))
    augment = ResizedCrop((0.0,), (1 / 255,), flip=True, size=16)
    whole = torch.tensor([[1.0, 1.0, 0.5, 0.5, 0.0], [1.0, 1.0, 0.5, 0.5, 1.0]])
    made = augment(images[:2], whole)
    assert_close(made[0], images[0].float(), atol=1e-3, rtol=0)
    assert_close(made[1], images[1].float().flip(2), atol=1e-3, rtol=0)
    right = torch.arange(16.0).expand(20, 3, 16, 16).byte()
    quarters = augment(right[:2], torch.tensor([[0.25, 1, 0, 0.5, 0], [0.25, 1, 1, 0.5, 0]]))
    for quarter, first in zip(quarters, (0.0, 12.0), strict=True):  # leftmost and rightmost
        expected = (first + (torch.arange(16) + 0.5) / 4 - 0.5).clamp(0, 15)
        assert_close(quarter, expected.expand(3, 16, 16), atol=1e-3, rtol=0)
    cut = augment(right, augment.draw(20, rng))
    assert (cut.diff(dim=3).abs() < 1.001).all()  # a part, enlarged
    assert cut.min() >= 0
    assert cut.max() <= 15
    assert cut.std(dim=0).mean() > 1
    assert augment(torch.zeros(1, 3, 20, 18, dtype=torch.uint8)).shape == (1, 3, 16, 16)
    with pytest.raises(ValueError, match="images must be at least 16 by 16"):
        augment(torch.zeros(1, 3, 20, 8, dtype=torch.uint8))


def numbered(n: int) -> Samples:
    return Samples(torch.arange(n)[:, None, None, None].expand(n, 1, 4, 4).byte(), torch.arange(n))


def test_every_pass_sees_every_sample_once_in_another_order() -> None:
    batches = Batches(numbered(10), 4, generator=torch.Generator().manual_seed(0))
    assert [len(labels) for _, labels in batches] == [4, 4, 2]
    first, second = (torch.cat([labels for _, labels in batches]) for _ in range(2))
    assert_close(first.sort().values, torch.arange(10))
    assert not torch.equal(first, second)
    for inputs, labels in batches:
        assert inputs[:, 0, 0, 0].tolist() == labels.tolist()
    whole = Batches(numbered(10), 4, drop_last=True)
    assert len(whole) == len(list(whole)) == 2
    in_order = [labels.tolist() for _, labels in Batches(numbered(10), 4)]
    assert in_order == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with pytest.raises(ValueError, match="size must be at least 1"):
        Batches(numbered(3), 0)


def test_the_seed_rules_order_and_augmentation() -> None:
    augment = Augmentation((0.5,), (0.5,), padding=1, flip=True)
    make = partial(Batches, numbered(20), 7, augment)
    one, again, other = (make(torch.Generator().manual_seed(seed)) for seed in (3, 3, 4))
    for _ in range(2):
        for (x, y), (x_again, y_again) in zip(one, again, strict=True):
            assert_close(x, x_again)
            assert_close(y, y_again)
    assert not torch.equal(next(iter(one))[1], next(iter(other))[1])


def test_each_sample_is_moved_by_its_own_draw_of_the_pass() -> None:
    images = Samples(torch.from_numpy(some_images(20, 1, 8, 8)), torch.arange(20))
    augment = Augmentation((0.5,), (0.5,), padding=2, flip=True)
    again = torch.Generator().manual_seed(3)
    order, draws = torch.randperm(20, generator=again), augment.draw(20, again)
    batches = Batches(images, 7, augment, torch.Generator().manual_seed(3))
    inputs = torch.cat([inputs for inputs, _ in batches])
    assert_close(inputs, augment(images.inputs[order], draws))


def test_judging_moves_nothing_about() -> None:
    augment = Augmentation((0.0,), (1 / 255,), padding=4, flip=True)
    samples = Samples(torch.from_numpy(some_images(5, 1, 8, 8)), torch.arange(5))
    inputs = torch.cat([inputs for inputs, _ in Batches(samples, 2, augment)])
    assert_close(inputs, samples.inputs.float())


def test_training_that_is_interrupted_ends_as_it_would_have(tmp_path: Path) -> None:
    images = Samples(torch.from_numpy(some_images(40, 1, 6, 6)), torch.arange(40) % 3)

    def run(checkpoint: Path | None, stop_at: int | None = None) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
        augment = Augmentation((0.5,), (0.5,), padding=1, flip=True)
        train, held_out = (
            Batches(part, 8, augment, torch.Generator().manual_seed(seed))
            for seed, part in enumerate((images[10:], images[:10]))
        )
        steps = 0

        def forward(model: nn.Module, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
            nonlocal steps
            steps += 1
            if steps == stop_at:
                raise KeyboardInterrupt
            return model(batch[0]), batch[1]

        cal.fit_interleaved(
            model,
            train,
            held_out,
            fit=cal.nll,
            calibration=cal.top_label(cal.esd),
            weight=1.0,
            optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
            epochs=3,
            checkpoint=checkpoint,
            checkpoint_every=1,
            forward=forward,
        )
        return torch.cat([each.detach().flatten() for each in model.parameters()])

    whole = run(None)
    place = tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        run(place, stop_at=13)
    assert torch.equal(run(place), whole)


def test_meta_learning_takes_batches(rng: torch.Generator) -> None:
    images = Samples(torch.from_numpy(some_images(40, 1, 6, 6)), torch.arange(40) % 3)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    augment = Augmentation((0.5,), (0.5,), padding=1)
    history = cal.fit_meta(
        model,
        Batches(images[10:], 8, augment, rng),
        Batches(images[:10], 8, augment, torch.Generator().manual_seed(1)),
        optimiser=torch.optim.SGD(model.parameters(), lr=0.1),
        epochs=1,
        validation_loader=Batches(images[:10], 8, augment),
    )
    assert len(history.epochs) == 1


# Downloading


class Server:
    """Files on this machine, as a server would give them: whole, or from a place onwards."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.at_most: int | None = None  # bytes of an answer, after which the connection ends
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append((self.path, self.headers["Range"]))
                if self.path not in files:
                    self.send_error(404)
                    return
                start = int((self.headers["Range"] or "bytes=0-")[6:-1])
                if start and start >= len(files[self.path]):
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(files[self.path]) - start))
                self.end_headers()
                self.wfile.write(files[self.path][start:][: server.at_most])

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def packed_cifar(folder: Path, kind: str) -> bytes:
    file = io.BytesIO()
    names = [name for names in DATASETS["cifar10"].files.values() for name in names]
    if kind == "tar":
        with tarfile.open(fileobj=file, mode="w:gz") as tape:
            for name in names:
                tape.add(folder / name, name)
    else:
        with zipfile.ZipFile(file, "w") as box:
            for name in names:
                box.write(folder / name, name)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_what_is_downloaded_is_checked_unpacked_and_read(
    small_cifar: Path, tmp_path: Path, kind: str
) -> None:
    stored = packed_cifar(small_cifar, kind)
    place = tmp_path / "new"
    with Server({"/cifar": stored}) as server:
        digest = hashlib.sha256(stored).hexdigest()
        (known,) = DATASETS["cifar10"].sources
        source = replace(known, url=f"{server.url}/cifar", checksum=f"sha256:{digest}")
        dataset = replace(of_size("cifar10", 36, 4, 10), sources=(source,))
        place.mkdir()
        (place / ".cifar-10-binary.tar.gz.part").write_bytes(stored[:1000])
        fetched = download(dataset, place)
        assert server.asked == [("/cifar", "bytes=1000-")]  # it goes on where it stopped
        assert len(fetched) == 6
        assert download(dataset, place) == []
        assert len(server.asked) == 1
    assert_close(load(dataset, place, seed=0).train.inputs, load_small(small_cifar).train.inputs)


def test_another_checksum_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with Server({"/a": b"other bytes"}) as server:
        source = Source(f"{server.url}/a", "md5:" + "0" * 32, "a.bin")
        dataset = replace(DATASETS["cifar10"], sources=(source,))
        with pytest.raises(ValueError, match="must have the md5 checksum 000"):
            download(dataset, tmp_path)
        assert list(tmp_path.iterdir()) == []
        gone = replace(dataset, sources=(replace(source, url=f"{server.url}/b"),))
        with pytest.raises(ConnectionError, match=r"must be reachable; it is not: .*404"):
            download(gone, tmp_path)
    with pytest.raises(ConnectionError, match=r"put it at .*a\.bin"):
        download(dataset, tmp_path)


def one_file(server: Server, content: bytes) -> Dataset[Any]:
    checksum = f"sha256:{hashlib.sha256(content).hexdigest()}"
    source = Source(f"{server.url}/a", checksum, "a.bin")
    return replace(DATASETS["cifar10"], sources=(source,))


def test_a_connection_that_ends_early_loses_nothing_of_what_came(tmp_path: Path) -> None:
    content = bytes(range(250)) * 20
    with Server({"/a": content}) as server:
        server.at_most = 1_200
        for have in ("1,200", "2,400"):
            said = rf"whole; .* ended after {have} of 5,000 bytes\. They are kept: the same again"
            with pytest.raises(ConnectionError, match=said):
                download(one_file(server, content), tmp_path)
        server.at_most = None
        assert download(one_file(server, content), tmp_path) == [tmp_path / "a.bin"]
    assert [place for _, place in server.asked] == [None, "bytes=1200-", "bytes=2400-"]
    assert (tmp_path / "a.bin").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


class CutOff(io.BytesIO):
    """An answer of unknown length, whose connection is reset at its end."""

    status, headers = 200, dict[str, str]()

    def read(self, size: int | None = -1) -> bytes:
        block = super().read(size)
        if not block:
            raise ConnectionResetError("reset by peer")
        return block


def test_a_connection_that_is_reset_loses_nothing_of_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: CutOff(b"some of it"))
    source = Source("http://127.0.0.1:1/a", "md5:" + "0" * 32, "a.bin")
    with pytest.raises(ConnectionError, match=r"ended after 10 bytes\. They are kept"):
        download(replace(DATASETS["cifar10"], sources=(source,)), tmp_path)
    assert (tmp_path / ".a.bin.part").read_bytes() == b"some of it"


def test_a_whole_draft_that_a_kill_left_is_taken_and_not_asked_for(tmp_path: Path) -> None:
    content = b"all of it"
    (tmp_path / ".a.bin.part").write_bytes(content)
    with Server({"/a": content}) as server:
        download(one_file(server, content), tmp_path)
        assert server.asked == []
    assert (tmp_path / "a.bin").read_bytes() == content


def test_a_draft_beyond_the_end_of_the_file_is_begun_anew(tmp_path: Path) -> None:
    content = b"all of it"
    (tmp_path / ".a.bin.part").write_bytes(b"of another file")
    with Server({"/a": content}) as server:
        download(one_file(server, content), tmp_path)
        assert [place for _, place in server.asked] == ["bytes=15-", None]
    assert (tmp_path / "a.bin").read_bytes() == content


def test_an_archive_without_the_file_gets_a_sentence(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as box:
        box.writestr("elsewhere.bin", b"")
    (tmp_path / "a.zip").write_bytes(file.getvalue())
    checksum = "md5:" + hashlib.md5(file.getvalue()).hexdigest()
    source = Source("http://127.0.0.1:1/a.zip", checksum, "a.zip", ("wanted.bin",))
    with pytest.raises(ValueError, match=r"a\.zip must hold wanted\.bin"):
        download(replace(DATASETS["cifar10"], sources=(source,)), tmp_path)
    assert not (tmp_path / "wanted.bin").exists()


def test_what_cannot_be_downloaded_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"imagenet100 cannot be downloaded .*image-net\.org"):
        download("imagenet100", tmp_path)
    with pytest.raises(ValueError, match="dataset must be one of"):
        download("imagenet", tmp_path)


# The real ones


@with_shared_data
def test_texts_and_tables_beside_the_checkout_have_their_sizes() -> None:
    trec = load_texts("trec", SHARED, seed=0)
    assert (len(trec.train), len(trec.validation), len(trec.test())) == (4_907, 545, 500)
    clinc = load_texts("clinc150", SHARED, seed=0)
    assert len(clinc.train.labels.unique()) == clinc.classes == 150
    assert len(clinc.shifts["out-of-scope"]()) == 1_000


@with_shared_data
def test_adult_beside_the_checkout_has_its_known_shares() -> None:
    splits = load("adult", SHARED, seed=0)
    rich = torch.cat([splits.train.labels, splits.validation.labels]).float().mean()
    assert float(rich) == pytest.approx(7_841 / 32_561)  # as its authors count
    assert splits.train.inputs.isfinite().all()


@with_shared_data
def test_people_agree_with_the_labels_beside_the_checkout() -> None:
    shares = read_human_labels(SHARED)
    labels = torch.from_numpy(np.load(SHARED / "cifar10/labels.npz")["test"].astype(np.int64))
    # 95% of all judgements, say the authors.
    agreement = shares.gather(1, labels[:, None]).mean()
    assert float(agreement) == pytest.approx(0.95, abs=0.005)

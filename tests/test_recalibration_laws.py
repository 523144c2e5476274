"""What every recalibrator must obey, whatever it learns."""

import copy
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from calibrant import Predictions
from calibrant.recalibration import RECALIBRATORS, Recalibrator
from calibrant.scores import nll

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
CLASSES = 4

Maker = Callable[[], Recalibrator]

every_recalibrator = pytest.mark.parametrize("name", list(RECALIBRATORS))


@cache
def held_out(n: int = 400, temperature: float = 2.0) -> tuple[Tensor, Tensor]:
    """Over-confident predictions, every class among them."""
    rng = torch.Generator().manual_seed(20261115)
    calibrated = 1.5 * torch.randn(n, CLASSES, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(calibrated.softmax(dim=1), 1, generator=rng)[:, 0]
    return temperature * calibrated, labels


@cache
def unseen() -> Tensor:
    rng = torch.Generator().manual_seed(1)
    return 3 * torch.randn(60, CLASSES, generator=rng, dtype=torch.float64)


@cache
def fitted(name: str) -> Recalibrator:
    return RECALIBRATORS[name]().fit(*held_out(), folds=0)


def log_loss(logits: Tensor, labels: Tensor) -> float:
    return nll(Predictions(logits, labels)).item()


def fits_the_likelihood(recalibrator: Recalibrator) -> bool:
    objective = recalibrator.get_params().get("objective", "nll")
    return recalibrator.contains_identity and objective == "nll"


@every_recalibrator
def test_fit_returns_itself_and_leaves_its_input_alone(name: str) -> None:
    logits, labels = (part.clone() for part in held_out())
    recalibrator = RECALIBRATORS[name]()
    assert recalibrator.fit(logits, labels, folds=0) is recalibrator
    assert torch.equal(logits, held_out()[0])
    assert torch.equal(labels, held_out()[1])


@every_recalibrator
def test_helps_over_confident_predictions(name: str) -> None:
    if name == "identity":
        pytest.skip("it changes nothing, and that is its law")
    logits, labels = held_out(n=3_000)
    recalibrator = RECALIBRATORS[name]().fit(logits[::2], labels[::2], folds=0)
    after = log_loss(recalibrator.transform(logits[1::2]), labels[1::2])
    assert after < log_loss(logits[1::2], labels[1::2]) - 0.05


@every_recalibrator
def test_predicted_class_stays_where_order_is_kept(name: str) -> None:
    recalibrator = fitted(name)
    if not recalibrator.keeps_order:
        pytest.skip("it may change the order")
    for logits in (held_out()[0], unseen()):
        assert torch.equal(recalibrator.transform(logits).argmax(1), logits.argmax(1))


@every_recalibrator
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_log_loss_is_never_worse_on_the_fitting_set(name: str, temperature: float) -> None:
    if not fits_the_likelihood(RECALIBRATORS[name]()):
        pytest.skip("it does not promise that")
    logits, labels = held_out(n=150, temperature=temperature)
    recalibrator = RECALIBRATORS[name]().fit(logits, labels, folds=0)
    assert log_loss(recalibrator.transform(logits), labels) <= log_loss(logits, labels) + 1e-12


@every_recalibrator
def test_names_of_classes_are_irrelevant(name: str) -> None:
    renamed = torch.tensor([2, 0, 3, 1])
    logits, labels = held_out()
    other = RECALIBRATORS[name]().fit(logits[:, renamed], renamed.argsort()[labels], folds=0)
    expected = fitted(name).predict_proba(unseen())[:, renamed]
    assert_close(other.predict_proba(unseen()[:, renamed]), expected, rtol=1e-5, atol=1e-7)


@every_recalibrator
def test_order_of_samples_is_irrelevant(name: str, rng: torch.Generator) -> None:
    shuffle = torch.randperm(400, generator=rng)
    logits, labels = (part[shuffle] for part in held_out())
    other = RECALIBRATORS[name]().fit(logits, labels, folds=0)
    expected = fitted(name).predict_proba(unseen())
    assert_close(other.predict_proba(unseen()), expected, rtol=1e-5, atol=1e-7)


@every_recalibrator
def test_weight_two_is_the_sample_twice_and_weight_zero_is_its_absence(
    name: str, rng: torch.Generator
) -> None:
    logits, labels = held_out()
    counts = torch.randint(3, (400,), generator=rng)
    weighted = RECALIBRATORS[name]().fit(logits, labels, weights=counts.double(), folds=0)
    copies = [part.repeat_interleave(counts, dim=0) for part in (logits, labels)]
    repeated = RECALIBRATORS[name]().fit(*copies, folds=0)
    expected = repeated.predict_proba(unseen())
    assert_close(weighted.predict_proba(unseen()), expected, rtol=1e-5, atol=1e-7)


@every_recalibrator
def test_calibrated_predictions_hardly_change(name: str) -> None:
    logits, labels = held_out(n=4_000, temperature=1.0)
    recalibrator = RECALIBRATORS[name]().fit(logits, labels, folds=0)
    change = (recalibrator.predict_proba(logits) - logits.softmax(dim=1)).abs().mean()
    assert change < 0.03


@every_recalibrator
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_keeps_dtype_device_and_shape(name: str, dtype: torch.dtype, device: str) -> None:
    recalibrator = copy.deepcopy(fitted(name)).to(device)
    logits = unseen().to(device, dtype)
    for found in (recalibrator.transform(logits), recalibrator.predict_proba(logits)):
        assert (found.dtype, found.device.type, found.shape) == (dtype, device, logits.shape)
    found = recalibrator.predict_proba(logits).double().cpu()
    expected = fitted(name).predict_proba(logits.double().cpu())
    # A rounded logit may fall into the next bin of a map with steps, so most must agree.
    tolerance = {torch.bfloat16: 1e-2, torch.float32: 1e-5}.get(dtype, 1e-9)
    assert ((found - expected).abs() < tolerance).double().mean() > 0.97


@every_recalibrator
@pytest.mark.parametrize("device", DEVICES)
def test_learns_the_same_on_every_device(name: str, device: str) -> None:
    logits, labels = (part.to(device) for part in held_out())
    found = RECALIBRATORS[name]().fit(logits, labels, folds=2).predict_proba(unseen().to(device))
    assert found.device.type == device
    assert_close(found.cpu(), fitted(name).predict_proba(unseen()), rtol=1e-6, atol=1e-6)


@every_recalibrator
def test_numpy_in_gives_the_same_numbers_as_numpy_out(name: str) -> None:
    logits, labels = held_out()
    recalibrator = RECALIBRATORS[name]().fit(logits.numpy(), labels.numpy(), folds=0)
    for dtype in (np.float32, np.float64):
        array = unseen().numpy().astype(dtype)
        found = recalibrator.transform(array)
        assert isinstance(found, np.ndarray)
        assert found.dtype == dtype
        assert_close(torch.tensor(found), fitted(name).transform(torch.tensor(array)))
        assert_close(
            torch.tensor(recalibrator.predict_proba(array)),
            fitted(name).predict_proba(torch.tensor(array)),
        )


@every_recalibrator
def test_probabilities_are_those_of_the_mapped_logits(name: str) -> None:
    chances = fitted(name).predict_proba(unseen())
    assert_close(chances, fitted(name).transform(unseen()).softmax(dim=1))
    assert_close(chances.sum(dim=1), torch.ones(60, dtype=torch.float64))


@every_recalibrator
def test_binary_scores_are_two_columns(name: str) -> None:
    logits, labels = held_out()
    scores, happened = logits[:, 1] - logits[:, 0], (labels == 1).long()
    two = torch.stack([torch.zeros_like(scores), scores], dim=1)
    single = RECALIBRATORS[name]().fit(scores, happened, folds=0)
    double = RECALIBRATORS[name]().fit(two, happened, folds=0)
    assert single.transform(scores).shape == scores.shape
    assert_close(single.predict_proba(scores), double.predict_proba(two)[:, 1])


@every_recalibrator
def test_state_goes_into_a_fresh_instance_bit_by_bit(name: str) -> None:
    state = fitted(name).state_dict()
    fresh = RECALIBRATORS[name]()
    assert not fresh.state_dict()
    fresh.load_state_dict(state)
    assert torch.equal(fresh.transform(unseen()), fitted(name).transform(unseen()))
    learnt = {key for key, value in fresh.state_dict().items() if value is not None}
    assert learnt == {key for key, value in state.items() if value is not None}


@every_recalibrator
def test_state_replaces_what_was_learnt_for_another_number_of_classes(name: str) -> None:
    logits, labels = held_out()
    narrow = RECALIBRATORS[name]().fit(logits[:, :2], (labels > 1).long(), folds=0)
    narrow.load_state_dict(fitted(name).state_dict())
    assert torch.equal(narrow.transform(unseen()), fitted(name).transform(unseen()))


@every_recalibrator
def test_a_saved_file_gives_back_the_same_bits_settings_and_report(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "map.safetensors"
    fitted(name).save(path)
    loaded = Recalibrator.load(path)
    assert type(loaded) is type(fitted(name))
    assert repr(loaded) == repr(fitted(name))
    assert loaded.report_ == fitted(name).report_
    assert torch.equal(loaded.transform(unseen()), fitted(name).transform(unseen()))
    assert [file.name for file in tmp_path.iterdir()] == ["map.safetensors"]


@every_recalibrator
def test_settings_are_the_arguments_and_clone_copies_them(name: str) -> None:
    from sklearn.base import clone

    copied = clone(fitted(name))
    assert type(copied) is type(fitted(name))
    assert repr(copied) == repr(fitted(name))
    with pytest.raises(ValueError, match="must be fitted before it is used"):
        copied.transform(unseen())
    settings = fitted(name).get_params()
    assert repr(type(copied)(**settings)) == repr(copied)
    assert copied.set_params(**settings) is copied
    with pytest.raises(ValueError, match="has no setting 'nonsense'"):
        copied.set_params(nonsense=1)


@every_recalibrator
def test_report_says_how_it_went_within_eighty_columns(name: str) -> None:
    report = RECALIBRATORS[name]().fit(*held_out(), folds=2).report_
    assert report.converged
    assert (report.n, report.classes, report.folds) == (400, CLASSES, 2)
    assert report.nll_before == pytest.approx(log_loss(*held_out()))
    assert report.nll_before is not None
    assert report.nll_after is not None
    if name != "identity":
        assert report.nll_after < report.nll_before - 0.05
    assert all(len(line) <= 80 for line in str(report).splitlines())


@every_recalibrator
def test_refuses_what_it_cannot_fit_with_a_sentence(name: str) -> None:
    logits, labels = held_out()
    make = RECALIBRATORS[name]
    broken = logits.clone()
    broken[7, 2] = torch.nan
    with pytest.raises(ValueError, match=r"logits must be finite; got nan at \(7, 2\)"):
        make().fit(broken, labels)
    with pytest.raises(ValueError, match="labels must hold one class index per row"):
        make().fit(logits, labels[:-1])
    with pytest.raises(
        ValueError, match=r"labels must lie between 0 and 3.*got 4 in row \d+ \(counted from 0\)"
    ):
        make().fit(logits, labels + 1)
    with pytest.raises(ValueError, match=r"rows that are probabilities.*probabilities=True"):
        make().fit(logits.softmax(dim=1), labels)
    with pytest.raises(ValueError, match=r"needs at least \d+ samples to fit; got 2"):
        make().fit(logits[:2], labels[:2])
    with pytest.raises(ValueError, match="must be fitted before it is used"):
        make().transform(logits)
    with pytest.raises(ValueError, match="logits must have 4 classes, as when fitted; got 3"):
        fitted(name).transform(logits[:, :3])


class AllOfThem(nn.Module):
    """A model whose logits go through every recalibrator, so that one export covers them."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Linear(CLASSES, CLASSES)
        self.maps = nn.ModuleList(copy.deepcopy(fitted(name)) for name in RECALIBRATORS)

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        logits = self.model(inputs)
        return tuple(each(logits) for each in self.maps)


def test_export_and_onnx_give_the_same_numbers_for_a_batch_of_any_size(
    tmp_path: Path, unchecked_types: None
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    model, inputs = AllOfThem().eval(), unseen().float()
    some = inputs[:31]
    expected = model(some)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(model, (inputs,), dynamic_shapes=({0: batch},))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        converted = torch.onnx.export(program, (inputs,), dynamo=True, verbose=False)
    assert converted is not None
    converted.save(str(tmp_path / "model.onnx"))
    session = runtime.InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    said = session.run(None, {session.get_inputs()[0].name: some.numpy()})
    exported = program.module()(some)
    for name, one, other, eager in zip(RECALIBRATORS, exported, said, expected, strict=True):
        for found in (one, torch.tensor(other)):
            gap = (found.softmax(dim=1) - eager.softmax(dim=1)).abs().max()
            assert gap < 1e-5, f"{name} is off by {gap:.1e}"

"""What surrounds every map of logits: layouts, models, reports, files, refusals."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.testing import assert_close

import calibrant as cal
from calibrant import Predictions
from calibrant.recalibration import (
    BestOf,
    CalibratedModel,
    EnsembleTemperatureScaling,
    FitReport,
    Identity,
    Recalibrator,
    TemperatureScaling,
    as_logits,
)
from calibrant.recalibration._folds import fold_index, folds_of


@pytest.fixture
def scaling(predictions: Predictions) -> TemperatureScaling:
    return TemperatureScaling().fit(predictions.logits, predictions.labels, folds=0)


def test_pixels_are_rows(predictions: Predictions, scaling: TemperatureScaling) -> None:
    images = predictions.logits.reshape(2, 10, 10, 4).permute(0, 3, 1, 2)
    truth = predictions.labels.reshape(2, 10, 10)
    dense = TemperatureScaling().fit(images, truth, folds=0)
    assert_close(dense.temperature_, scaling.temperature_)
    assert_close(dense.transform(images), images / scaling.temperature_)
    assert_close(dense.predict_proba(images).sum(dim=1), torch.ones(2, 10, 10).double())


def test_tokens_with_an_ignored_label_are_rows_without_it(
    predictions: Predictions, scaling: TemperatureScaling
) -> None:
    noise = torch.full((10, 5, 4), torch.nan, dtype=torch.float64)
    tokens = torch.cat([predictions.logits.reshape(10, 20, 4), noise], dim=1)
    truth = torch.cat([predictions.labels.reshape(10, 20), torch.full((10, 5), -100)], dim=1)
    weights = torch.ones(10, 25)
    fitted = TemperatureScaling().fit(
        tokens, truth, class_dim=-1, ignore_index=-100, weights=weights, folds=0
    )
    assert fitted.report_.n == 200
    assert_close(fitted.temperature_, scaling.temperature_)
    chances = fitted.predict_proba(tokens[:, :20])
    assert_close(chances.sum(dim=-1), torch.ones(10, 20).double())
    assert_close(fitted.transform(predictions.logits), scaling.transform(predictions.logits))


def test_binary_scores_can_be_ignored_too(predictions: Predictions) -> None:
    scores = predictions.logits[:, 1] - predictions.logits[:, 0]
    labels = (predictions.labels == 1).long()
    known = torch.arange(200) % 5 > 0
    told = TemperatureScaling().fit(scores[known], labels[known], folds=0)
    ignoring = TemperatureScaling().fit(
        scores, torch.where(known, labels, -1), ignore_index=-1, folds=0
    )
    assert_close(ignoring.temperature_, told.temperature_)


def test_several_labels_share_one_map(predictions: Predictions) -> None:
    scores = predictions.logits
    targets = torch.nn.functional.one_hot(predictions.labels, 4)
    weights = torch.arange(200) % 3
    fitted = TemperatureScaling().fit(scores, targets, multilabel=True, weights=weights, folds=0)
    flat = TemperatureScaling().fit(
        scores.reshape(-1), targets.reshape(-1), weights=weights.repeat_interleave(4), folds=0
    )
    assert_close(fitted.temperature_, flat.temperature_)
    assert_close(fitted.transform(scores), scores / flat.temperature_)
    assert_close(fitted.predict_proba(scores), (scores / flat.temperature_).sigmoid())
    fresh = TemperatureScaling()
    fresh.load_state_dict(fitted.state_dict())
    assert_close(fresh.predict_proba(scores), fitted.predict_proba(scores))
    with pytest.raises(ValueError, match=r"no label to ignore; got ignore_index=-1"):
        TemperatureScaling().fit(scores, targets, multilabel=True, ignore_index=-1)


def test_later_logits_must_be_laid_out_alike(scaling: TemperatureScaling) -> None:
    with pytest.raises(ValueError, match="logits must have 4 classes, as when fitted; got 2"):
        scaling.transform(torch.randn(5))
    labels = torch.zeros(9, 9, dtype=torch.long)
    tokens = Identity().fit(torch.randn(9, 9, 3), labels, class_dim=2, folds=0)
    with pytest.raises(ValueError, match=r"classes in dimension 2.*got shape \(5, 3\)"):
        tokens.transform(torch.randn(5, 3))
    with pytest.raises(TypeError, match=r"floating point; got torch\.int64"):
        scaling.transform(torch.ones(5, 4, dtype=torch.long))


class Moody(nn.Module):
    """Gives other logits in training mode, so that a forgotten `eval` shows."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Identity(), nn.Dropout(0.9))
        self.frozen = nn.BatchNorm1d(4)
        self.frozen.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        said: Tensor = self.body(inputs)
        return said


def test_a_model_is_asked_in_evaluation_mode_and_left_as_it_was(
    predictions: Predictions, scaling: TemperatureScaling
) -> None:
    model = Moody()
    modes = [part.training for part in model.modules()]
    data = torch.utils.data.TensorDataset(predictions.logits, predictions.labels)
    loader = torch.utils.data.DataLoader(data, batch_size=64)
    fitted = TemperatureScaling().fit_model(model, loader, folds=0)
    assert_close(fitted.temperature_, scaling.temperature_)
    assert [part.training for part in model.modules()] == modes
    with pytest.raises(TypeError, match="loader must give batches of"):
        TemperatureScaling().fit_model(model, [predictions.logits])
    assert [part.training for part in model.modules()] == modes


def test_a_model_of_tokens_leaves_out_ignored_positions(predictions: Predictions) -> None:
    tokens, truth = predictions.logits.reshape(10, 20, 4), predictions.labels.reshape(10, 20)
    ignored = truth.masked_fill(torch.arange(20) > 14, -100)
    expected = TemperatureScaling().fit(tokens, ignored, class_dim=-1, ignore_index=-100, folds=0)
    fitted = TemperatureScaling().fit_model(
        nn.Identity(),
        [(tokens[:4], ignored[:4]), (tokens[4:], ignored[4:])],
        class_dim=-1,
        ignore_index=-100,
        folds=0,
    )
    assert_close(fitted.temperature_, expected.temperature_)
    assert_close(fitted.transform(tokens), expected.transform(tokens))


def test_a_model_must_give_logits_and_a_loader_batches() -> None:
    with pytest.raises(ValueError, match="loader must give at least one batch; got none"):
        TemperatureScaling().fit_model(nn.Identity(), [])

    class Told(nn.Module):
        def forward(self, inputs: Tensor) -> dict[str, Tensor]:
            return {"logits": inputs}

    with pytest.raises(TypeError, match="model must give a tensor of logits; got dict"):
        TemperatureScaling().fit_model(Told(), [(torch.randn(5, 3), torch.arange(5) % 3)])


def test_a_calibrated_model_is_a_model(predictions: Predictions) -> None:
    model = nn.Linear(4, 4).double()
    nn.init.eye_(model.weight)
    scaling = TemperatureScaling().fit_model(model, [(predictions.logits, predictions.labels)])
    calibrated = CalibratedModel(model, scaling)
    logits = scaling.transform(model(predictions.logits))
    assert_close(calibrated(predictions.logits), logits)
    assert_close(calibrated.predict_proba(predictions.logits), logits.softmax(dim=1))
    assert "recalibrator.temperature_" in calibrated.state_dict()
    again = CalibratedModel(nn.Linear(4, 4).double(), TemperatureScaling())
    again.load_state_dict(calibrated.state_dict())
    assert_close(again(predictions.logits), logits)
    (gradient,) = torch.autograd.grad(calibrated(predictions.logits).sum(), model.bias)
    assert gradient.any()


def test_report_is_held_out_and_can_be_skipped(predictions: Predictions) -> None:
    given = predictions.logits, predictions.labels
    report = TemperatureScaling().fit(*given, folds=5).report_
    mapped = torch.empty_like(predictions.logits)
    part = fold_index(predictions, 5)
    for k in range(5):
        rest = part != k
        fold = TemperatureScaling().fit(given[0][rest], given[1][rest], folds=0)
        mapped[~rest] = fold.transform(given[0][~rest])
    after = Predictions(mapped, predictions.labels)
    assert report.nll_before == pytest.approx(cal.nll(predictions).item())
    assert report.nll_after == pytest.approx(cal.nll(after).item())
    assert report.ece_before == pytest.approx(cal.MEASURES["ece"](predictions).item())
    assert report.ece_after == pytest.approx(cal.MEASURES["ece"](after).item())
    skipped = TemperatureScaling().fit(*given, folds=0).report_
    assert (skipped.folds, skipped.nll_before, skipped.nll_after) == (0, None, None)
    with pytest.raises(ValueError, match=r"folds must be 0 or at least 2; got 1"):
        TemperatureScaling().fit(*given, folds=1)


def test_report_says_when_a_fold_could_not_be_fitted() -> None:
    logits = torch.eye(3).repeat(4, 1) * torch.arange(1, 13)[:, None]
    labels = torch.arange(12) % 3
    labels[0] = 1  # the one mistake: without it no temperature fits
    report = TemperatureScaling().fit(logits, labels).report_
    assert report.nll_after is None
    assert "Not judged on held-out folds" in str(report)
    assert all(len(line) <= 80 for line in str(report).splitlines())


def test_a_report_reads_as_a_sentence() -> None:
    report = FitReport("Identity()", 5, 2, converged=False, iterations=1, message="Gave up.")
    assert (
        str(report) == "Identity(): 5 samples, 2 classes; did not converge in 1 iteration\nGave up."
    )


def test_folds_keep_copies_together_and_spread_every_class(rng: torch.Generator) -> None:
    logits = torch.randn(60, 3, generator=rng).repeat(2, 1)
    labels = (torch.arange(60) % 3).repeat(2)
    part = fold_index(Predictions(logits, labels), 5)
    assert torch.equal(part[:60], part[60:])
    for k in range(5):
        assert labels[part == k].bincount().tolist() == [8, 8, 8]
    shuffle = torch.randperm(120, generator=rng)
    assert torch.equal(fold_index(Predictions(logits[shuffle], labels[shuffle]), 5), part[shuffle])
    renamed = torch.tensor([2, 0, 1])
    relabelled = Predictions(logits[:, renamed], renamed.argsort()[labels])
    assert torch.equal(fold_index(relabelled, 5), part)
    sizes = [(len(rest), len(held)) for rest, held in folds_of(Predictions(logits, labels), 5)]
    assert sizes == [(96, 24)] * 5


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_logits_of_probabilities_give_the_probabilities_back(
    kind: str, predictions: Predictions
) -> None:
    chances = predictions.probs
    if kind == "numpy":
        assert_close(torch.tensor(as_logits(chances.numpy())).softmax(dim=1), chances)
        assert_close(torch.tensor(as_logits(chances[:, 0].numpy())).sigmoid(), chances[:, 0])
    else:
        assert_close(as_logits(chances).softmax(dim=1), chances)
        assert_close(as_logits(chances[:, 0]).sigmoid(), chances[:, 0])


def test_logits_of_certainty_are_finite() -> None:
    sure = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    for given in (sure, sure[:, 0], sure.half()):
        assert as_logits(given).isfinite().all()
    assert_close(as_logits(sure, smallest=1e-3)[0, 1], torch.tensor(1e-3).log())
    assert_close(as_logits(sure[:, 0], smallest=1e-3)[0], torch.tensor(999.0).log())
    with pytest.raises(ValueError, match="each row must sum to one"):
        as_logits(torch.tensor([[0.5, 0.7]]))


def test_chances_in_place_of_log_odds_are_refused(predictions: Predictions) -> None:
    chance, happened = predictions.confidence, predictions.correct.long()
    with pytest.raises(ValueError, match=r"200 numbers all between 0 and 1.*probabilities=True"):
        TemperatureScaling().fit(chance, happened)
    with pytest.raises(ValueError, match=r"all between 0 and 1"):
        TemperatureScaling().fit(predictions.probs, predictions.probs.round(), multilabel=True)
    two = torch.stack([-chance / 2, chance / 2], dim=1)
    mostly = (torch.arange(200) % 4 > 0).long()
    assert TemperatureScaling().fit(two, mostly, folds=0).report_.converged


def test_weights_must_count_something(predictions: Predictions) -> None:
    with pytest.raises(ValueError, match="weights must not all be zero"):
        Identity().fit(predictions.logits, predictions.labels, weights=torch.zeros(200))
    weights = (torch.arange(200) < 2).float()
    with pytest.raises(ValueError, match=r"needs at least 3 samples to fit; got 2"):
        Identity().fit(predictions.logits, predictions.labels, weights=weights)


def test_what_is_not_numbers_is_refused(unchecked_types: None) -> None:
    with pytest.raises(TypeError, match="logits must be a torch tensor or a NumPy array"):
        Identity().fit([["a", "b"]], [0])
    with pytest.raises(TypeError, match="logits must be floating point"):
        Identity().fit(torch.ones(5, 3, dtype=torch.long), torch.zeros(5, dtype=torch.long))


def test_a_method_that_needs_every_class_names_the_missing_one(predictions: Predictions) -> None:
    class Picky(Identity):
        needs_every_class = True

    kept = predictions.labels != 2
    with pytest.raises(ValueError, match=r"Picky needs every class.*none of class 2, the first of"):
        Picky().fit(predictions.logits[kept], predictions.labels[kept])


def test_a_method_may_learn_only_what_it_declares() -> None:
    with pytest.raises(TypeError, match=r"TemperatureScaling\.learnt does not name \['bias_'\]"):
        TemperatureScaling()._learn(bias_=1.0)


def rewritten(path: Path, **metadata: str) -> Path:
    """The file with other words in its head."""
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8 : 8 + length])
    head["__metadata__"].update(metadata)
    save_file(load_file(path), path, metadata=head["__metadata__"])
    return path


def test_foreign_damaged_and_newer_files_are_refused(
    scaling: TemperatureScaling, tmp_path: Path
) -> None:
    path = tmp_path / "scaling.safetensors"
    with pytest.raises(FileNotFoundError, match="must be a file; there is none"):
        Recalibrator.load(path)
    save_file({"temperature_": torch.ones(())}, path)
    with pytest.raises(ValueError, match=r"must be a file that Recalibrator\.save wrote"):
        Recalibrator.load(path)
    scaling.save(path)
    with pytest.raises(ValueError, match="must hold a BestOf; got a TemperatureScaling"):
        BestOf.load(path)
    whole = path.read_bytes()
    for damaged in (whole[:-3], whole[:20], b"not at all"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="must be a whole safetensors file"):
            Recalibrator.load(path)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"must have version 1 of the format; got '2'"):
        Recalibrator.load(rewritten(path, version="2"))
    for broken in ("{", "{}", '{"class": "TemperatureScaling", "settings": {"heat": 1}}'):
        path.write_bytes(whole)
        with pytest.raises(ValueError, match="must hold a whole recalibrator"):
            Recalibrator.load(rewritten(path, recalibrator=broken))
    path.write_bytes(whole)
    strange = '{"class": "os.system", "settings": {}}'
    with pytest.raises(ValueError, match=r"must hold a method of the catalogue; got 'os\.system'"):
        Recalibrator.load(rewritten(path, recalibrator=strange))


def test_a_failed_save_leaves_the_old_file(
    scaling: TemperatureScaling, tmp_path: Path, predictions: Predictions
) -> None:
    path = tmp_path / "scaling.safetensors"
    scaling.save(path)
    before = path.read_bytes()
    homemade = TemperatureScaling(lambda each: cal.brier(each))
    homemade.fit(predictions.logits, predictions.labels, folds=0)
    with pytest.raises(ValueError, match=r"objective must be a number, a name or a criterion"):
        homemade.save(path)
    with pytest.raises(ValueError, match="must be fitted before it is used"):
        TemperatureScaling().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_criteria_candidates_and_own_classes_are_saved_as_settings(
    predictions: Predictions, tmp_path: Path
) -> None:
    class Own(TemperatureScaling):
        """A method outside the catalogue."""

    chosen = BestOf([Identity(), TemperatureScaling(cal.MEASURES["esd"])], score="brier")
    path = tmp_path / "best.safetensors"
    chosen.fit(predictions.logits, predictions.labels, folds=0).save(path)
    loaded = BestOf.load(path)
    assert repr(loaded.candidates) == repr(chosen.candidates)
    assert_close(loaded.transform(predictions.logits), chosen.transform(predictions.logits))
    own = Own().fit(predictions.logits, predictions.labels, folds=0)
    own.save(path)
    assert_close(Own.load(path).temperature_, own.temperature_)
    with pytest.raises(ValueError, match="For a class of your own call its own load"):
        Recalibrator.load(path)


def test_numpy_labels_of_any_integer_type_are_taken(predictions: Predictions) -> None:
    logits, labels = predictions.logits.numpy(), predictions.labels.numpy()
    expected = Identity().fit(logits, labels).report_
    for dtype in (np.uint8, np.int32):
        read_only = labels.astype(dtype)
        read_only.flags.writeable = False
        assert Identity().fit(logits, read_only).report_ == expected


def chance_of_truth(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.softmax(dim=1).gather(1, labels[:, None])[:, 0]


def test_an_ensemble_has_the_likeliest_weights(rng: torch.Generator) -> None:
    logits = 3 * torch.randn(600, 5, generator=rng, dtype=torch.float64)
    labels = torch.multinomial((logits / 1.5).softmax(dim=1), 1, generator=rng)[:, 0]
    labels[::6] = torch.randint(5, (100,), generator=rng)
    ensemble = EnsembleTemperatureScaling().fit(logits, labels, folds=0)
    temperature = TemperatureScaling().fit(logits, labels, folds=0).temperature_
    assert_close(ensemble.temperature_, temperature)
    parts = torch.stack(
        [
            chance_of_truth(logits / temperature, labels),
            chance_of_truth(logits, labels),
            torch.full((600,), 0.2, dtype=torch.float64),
        ],
        dim=1,
    )
    # At the best weights no part's likelihood ratio is above one, and those in use have one.
    ratios = (parts / (parts @ ensemble.weights_)[:, None]).mean(dim=0)
    assert_close(ensemble.weights_.sum(), torch.ones(()).double())
    assert (ratios <= 1 + 1e-9).all()
    in_use = ensemble.weights_ > 1e-9
    assert_close(ratios[in_use], torch.ones_like(ratios[in_use]))
    mixed = (
        ensemble.weights_[0] * (logits / temperature).softmax(dim=1)
        + ensemble.weights_[1] * logits.softmax(dim=1)
        + ensemble.weights_[2] / 5
    )
    assert_close(ensemble.predict_proba(logits), mixed)


def test_best_of_chooses_what_helps_and_says_why(predictions: Predictions) -> None:
    given = predictions.logits, predictions.labels
    chosen = BestOf([Identity(), TemperatureScaling()]).fit(*given)
    assert isinstance(chosen.best_, TemperatureScaling)
    assert chosen.chosen_ == 1
    assert "Chose TemperatureScaling(): nll" in chosen.report_.message
    alone = TemperatureScaling().fit(*given)
    assert_close(chosen.transform(given[0]), alone.transform(given[0]))
    assert_close(chosen.best_.transform(given[0]), alone.transform(given[0]))


def test_best_of_changes_nothing_where_nothing_helps(rng: torch.Generator) -> None:
    logits = torch.randn(3_000, 3, generator=rng, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    for score in ("nll", "brier"):
        chosen = BestOf(score=score).fit(logits, labels, folds=0)
        assert isinstance(chosen.best_, Identity)
        assert torch.equal(chosen.transform(logits), logits)
        assert "Changed nothing" in chosen.report_.message


def test_best_of_passes_over_what_refuses() -> None:
    logits, labels = 5 * torch.eye(3).repeat(5, 1) + torch.arange(15)[:, None], torch.arange(15) % 3
    chosen = BestOf([TemperatureScaling()]).fit(logits, labels, folds=0)
    assert isinstance(chosen.best_, Identity)
    assert "no candidate could be fitted" in chosen.report_.message
    assert "TemperatureScaling() was passed over: no finite temperature" in chosen.report_.message


def test_best_of_refuses_what_is_not_a_contest(
    predictions: Predictions, unchecked_types: None
) -> None:
    given = predictions.logits, predictions.labels
    with pytest.raises(ValueError, match="score must be nll or brier, which are proper"):
        BestOf(score="ece").fit(*given)
    with pytest.raises(TypeError, match="candidates must be recalibrators; got 'temperature'"):
        BestOf(["temperature"]).fit(*given)  # type: ignore[list-item]


def test_a_report_counts_the_folds_there_were(predictions: Predictions) -> None:
    fitted = TemperatureScaling().fit(predictions.logits[:12], predictions.labels[:12], folds=1000)
    assert fitted.report_.folds is not None
    assert fitted.report_.folds <= 12


@pytest.mark.parametrize("method", ["transform", "predict_proba"])
def test_a_map_of_logits_refuses_probabilities(method: str, rng: torch.Generator) -> None:
    logits = 3 * torch.randn(60, 4, generator=rng)
    drawn = torch.multinomial((logits / 2).softmax(dim=1), 1, generator=rng)[:, 0]
    fitted = TemperatureScaling().fit(logits, drawn)
    with pytest.raises(ValueError, match=r"got rows that are probabilities.*probabilities=True"):
        getattr(fitted, method)(logits.softmax(dim=1))
    with pytest.raises(ValueError, match=r"got rows that are probabilities.*probabilities=True"):
        getattr(fitted, method)(logits.softmax(dim=1).numpy())

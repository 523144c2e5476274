"""Criteria of a batch that is spread over processes."""

from pathlib import Path

import pytest
import ranks_training
import ranks_worker
import torch
import two_ranks
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, Summary, across_ranks, esd, top_label

EVERY = ranks_worker.criteria(ranks_worker.GROUPS)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of two ranks, from one launch."""
    folder = tmp_path_factory.mktemp("ranks")
    two_ranks.launch(ranks_worker.__file__, str(folder))
    return folder


@pytest.fixture(scope="module")
def per_rank(results: Path) -> list[dict[str, tuple[Tensor, Tensor]]]:
    """What each rank found for every criterion."""
    return [torch.load(results / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("weighted", ["", " weighted"])
@pytest.mark.parametrize("name", EVERY)
def test_ranks_agree_with_one_process_that_saw_the_whole_batch(
    name: str, weighted: str, per_rank: list[dict[str, tuple[Tensor, Tensor]]]
) -> None:
    model = ranks_worker.model()
    inputs, labels, weights = ranks_worker.batch()
    predictions = Predictions(model(inputs), labels, weights=weights if weighted else None)
    value = EVERY[name](predictions)
    for rank in per_rank:
        found, gradient = rank[name + weighted]
        assert_close(found, value.detach())
        if value.requires_grad:
            (expected,) = torch.autograd.grad(value, model.weight, retain_graph=True)
            assert expected.any()
            assert_close(gradient, expected)


def test_metrics_of_ranks_agree_with_a_summary_that_saw_the_whole_batch(results: Path) -> None:
    inputs, labels, _ = ranks_worker.batch()
    logits = ranks_worker.model()(inputs).detach()
    expected = Summary(4).update(logits, labels).values()
    for rank in range(2):
        found = torch.load(results / f"{rank}-metrics.pt", weights_only=True)
        assert found.keys() == expected.keys()
        for name, value in found.items():
            assert value.item() == pytest.approx(expected[name].value, rel=1e-12), name


@pytest.mark.parametrize("name", ranks_training.runs(Path()))
def test_training_on_ranks_is_training_on_the_union(name: str, results: Path) -> None:
    model = ranks_training.network()
    history = ranks_training.runs(results)[name](model, None)
    expected = ranks_training.outcome(model, history)
    for rank in range(2):
        found = torch.load(results / f"{rank}-training.pt", weights_only=True)[name]
        assert_close(found, expected, equal_nan=True)


def test_training_with_parameters_in_shards_is_training_on_the_union(results: Path) -> None:
    model = ranks_training.network()
    history = ranks_training.interleaved(model, None, validation_loader=None)
    expected = ranks_training.outcome(model, history)
    for rank in range(2):
        found = torch.load(results / f"{rank}-training.pt", weights_only=True)["sharded"]
        assert_close(found, expected, equal_nan=True)


def test_a_model_of_one_process_asks_no_other(results: Path) -> None:
    found = torch.load(results / "0-training.pt", weights_only=True)["alone"]
    assert_close(found, ranks_training.alone(), equal_nan=True)


def test_a_loss_that_is_not_a_number_on_one_rank_stops_all(results: Path) -> None:
    for rank in range(2):
        told = torch.load(results / f"{rank}-training.pt", weights_only=True)["refusal"]
        assert told.startswith("the fit loss must be finite; got nan at step 1 in epoch 0.")


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ("unequal fit", "as many batches in every process that trains the model; got [3] and [2]"),
        ("unequal slices", "trains the model; got [3, 3] and [3, 2]"),
        ("two disks", "one file that every process sees; got step 3 and none, in the order of"),
        ("static graph", "must be wrapped without static_graph where a step has several"),
        ("flat shards", "clip must be None under FullyShardedDataParallel"),
    ],
)
def test_what_would_leave_a_rank_waiting_is_refused_on_all(
    run: str, sentence: str, results: Path
) -> None:
    for rank in range(2):
        told = torch.load(results / f"{rank}-training.pt", weights_only=True)["refusals"][run]
        assert sentence in told


def test_a_model_of_one_process_has_its_own_checkpoint_whatever_the_rank(results: Path) -> None:
    for rank in range(2):
        assert torch.load(results / f"{rank}-training.pt", weights_only=True)["written"]


def test_without_a_process_group_it_is_the_criterion_itself(predictions: Predictions) -> None:
    assert_close(across_ranks(top_label(esd))(predictions), top_label(esd)(predictions))

"""Criteria of a batch that is spread over processes."""

import subprocess
import sys
from pathlib import Path

import pytest
import ranks_worker
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import Predictions, across_ranks, esd, top_label

EVERY = ranks_worker.criteria(ranks_worker.GROUPS)


@pytest.fixture(scope="module")
def per_rank(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[Tensor, Tensor]]]:
    """What each of two ranks found for every criterion, from one launch."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", ranks_worker.__file__, str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return [torch.load(Path(folder) / f"{rank}.pt", weights_only=True) for rank in range(2)]


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


def test_without_a_process_group_it_is_the_criterion_itself(predictions: Predictions) -> None:
    assert_close(across_ranks(top_label(esd))(predictions), top_label(esd)(predictions))

"""Who computes: `kernels.use`, without a GPU and without Triton."""

import os

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.testing import assert_close

from calibrant import Predictions, kernels, nll

on_a_cpu_alone = pytest.mark.skipif(
    torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1",
    reason="the kernels can run here",
)
PREDICTIONS = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])


@on_a_cpu_alone
def test_kernels_forced_where_they_cannot_run_are_refused() -> None:
    pytest.importorskip("triton")
    with (
        kernels.use("fused"),
        pytest.raises(ValueError, match=r"kernels run on CUDA.*; got a tensor on cpu\. Move it"),
    ):
        nll(Predictions(*PREDICTIONS))
    assert_close(nll(Predictions(*PREDICTIONS)), torch.tensor(0.7201), rtol=0, atol=1e-4)


def test_kernels_cannot_be_forced_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibrant.kernels._switch.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"needs Triton, which is not installed\. pip install"):
        kernels.use("fused")
    nll(Predictions(*PREDICTIONS))


def test_an_unknown_choice_is_refused_and_changes_nothing(unchecked_types: None) -> None:
    with pytest.raises(ValueError, match=r'must be "auto", "fused" or "definition"; got \'cuda\''):
        kernels.use("cuda")  # type: ignore[arg-type]
    nll(Predictions(*PREDICTIONS))


def test_a_choice_holds_until_the_end_of_its_block_or_from_then_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from calibrant.kernels import _switch

    def chosen() -> str:
        return _switch._choice

    monkeypatch.setattr(_switch, "_choice", "auto")
    with kernels.use("definition"):
        assert chosen() == "definition"
        with kernels.use("auto"):
            assert chosen() == "auto"
        assert chosen() == "definition"
    assert chosen() == "auto"
    again = kernels.use("definition")
    for _ in range(2):
        with again:
            assert chosen() == "definition"
        assert chosen() == "auto"
    kernels.use("definition")
    assert chosen() == "definition"


@pytest.mark.parametrize(
    ("rows", "device", "chosen"),
    [(4096, "cuda", True), (4095, "cuda", False), (4096, "cpu", False)],
)
def test_by_default_rows_go_to_the_kernels_where_they_are_many_and_on_a_gpu(
    rows: int, device: str, chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrant.kernels._cuda_rows import _takes

    # As a compiler asks: of tensors that have a device and a shape but no memory.
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with FakeTensorMode():
        logits = torch.empty(rows, 4096, dtype=torch.bfloat16, device=device)
        assert _takes(logits) is chosen
        with kernels.use("definition"):
            assert not _takes(logits)

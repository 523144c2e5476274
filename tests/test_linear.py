"""Predictions of a last linear layer that never holds its logits, against those that do.

In torch operators on a CPU; by kernels on a GPU, or interpreted, as test_interpreted.py has it.
"""

import doctest
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from calibrant import (
    CRITERIA,
    Criterion,
    LinearPenalised,
    Penalised,
    Predictions,
    brier,
    class_wise,
    dece,
    esd,
    focal,
    kernels,
    label_smoothing,
    nll,
    per_class,
    soft_avuc,
    top_label,
)
from calibrant.criteria._ranks import _Gathered
from calibrant.kernels._products import slices

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
FUSED = INTERPRETED or DEVICE == "cuda"

pytestmark = [
    # The interpreter computes lanes beyond the last row too, and NumPy remarks on them.
    pytest.mark.filterwarnings("ignore:(invalid|divide by|overflow):RuntimeWarning"),
    # The compiler's own.
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]

STATISTICS = (
    "true_log_prob",
    "confidence",
    "entropy",
    "sum_of_squares",
    "mean_log_prob",
    "true_prob",
    "correct",
)

# Relative to the norm; products add up gradients of half-precision logits, which are rounded.
ERROR = {
    torch.float64: 1e-12,
    torch.float32: 4e-6,
    torch.float16: 2**-10,
    torch.bfloat16: 2**-7,
}

Parts = tuple[Tensor, Tensor, Tensor | None, Tensor]


@pytest.fixture(autouse=True)
def in_charge(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels wherever they run, in few programs where the interpreter pays by the program."""
    if INTERPRETED and DEVICE == "cpu":
        for module in ("_rows", "_row_gradients", "_ranks", "_rank_gradients"):
            monkeypatch.setattr(f"calibrant.kernels.{module}.plan", lambda classes: (64, 256, 4))
    with kernels.use("fused") if FUSED else nullcontext():
        yield


def drawn(
    rng: torch.Generator,
    dtype: torch.dtype = torch.float64,
    rows: int = 41,
    classes: int = 1271,
    width: int = 9,
    height: float = 1.0,
    biased: bool = True,
) -> Parts:
    """Hidden states, classifier, bias and labels, an eighth of which are to be ignored."""
    hidden = height * torch.randn(rows, width, generator=rng, dtype=torch.float64)
    weight = torch.randn(classes, width, generator=rng, dtype=torch.float64)
    bias = torch.randn(classes, generator=rng, dtype=torch.float64)
    labels = torch.randint(classes, (rows,), generator=rng)
    # Right one time in two, by a margin that no rounding bridges.
    best = (hidden @ weight.T).argmax(dim=1)[1::2]
    labels[1::2] = best
    weight[best] *= 1.25
    labels[::8] = -100
    hidden, weight, bias = (each.to(DEVICE, dtype) for each in (hidden, weight, bias))
    return hidden, weight, bias if biased else None, labels.to(DEVICE)


def by_definition(
    hidden: Tensor,
    weight: Tensor,
    labels: Tensor,
    *,
    bias: Tensor | None,
    scale: float = 1.0,
    softcap: float | None = None,
    dtype: torch.dtype = torch.float64,
    **_: Any,
) -> Predictions:
    """All the logits, rounded to `dtype` as the product is, with the gradient of what they were."""
    logits = F.linear(hidden, weight, bias)
    parts = (hidden, weight, bias)
    if dtype != torch.float64:
        product = F.linear(*(None if each is None else each.detach().to(dtype) for each in parts))  # type: ignore[arg-type]
        logits = logits + (product - logits).detach()
    logits = scale * logits
    if softcap is not None:
        logits = softcap * (logits / softcap).tanh()
    return Predictions.flatten(logits, labels, class_dim=-1)


def found(make: Callable[..., Predictions], parts: Parts, **settings: Any) -> list[Tensor]:
    """Every statistic, and gradients of a mixture of all of them with uneven upstreams."""
    hidden, weight, bias, labels = parts
    leaves = [each.detach().requires_grad_() for each in (hidden, weight, bias) if each is not None]
    bias = None if bias is None else leaves[2]
    predictions = make(leaves[0], leaves[1], labels, bias=bias, **settings)
    statistics = [getattr(predictions, name) for name in STATISTICS]
    statistics.append(predictions.soft_rank(7.0))
    seeded = torch.Generator().manual_seed(3)
    loss = torch.zeros((), dtype=torch.float64, device=DEVICE)
    for each in statistics:
        upstream = torch.randn(each.shape, generator=seeded, dtype=torch.float64).to(DEVICE)
        loss = loss + (upstream * each).sum()
    return [*(each.detach() for each in statistics), *torch.autograd.grad(loss, leaves)]


def assert_agreement(parts: Parts, error: float | None = None, **settings: Any) -> None:
    hidden, weight, bias, labels = parts
    wide = hidden.double(), weight.double(), None if bias is None else bias.double(), labels
    ours = found(kernels.linear_predictions, parts, **settings)
    with kernels.use("definition"):
        truth = found(by_definition, wide, dtype=hidden.dtype, **settings)
    error = ERROR[parts[0].dtype] if error is None else error
    names = (*STATISTICS, "soft rank", "by hidden", "by weight", "by bias")
    for name, mine, true in zip(names, ours, truth, strict=False):
        off = (mine.double() - true).norm() / true.norm()
        assert off <= error, f"{name} is off by {off:.1e}"


FINISHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "scaled": {"scale": 0.3},
    "capped": {"softcap": 5.0},
    "both": {"scale": 1.7, "softcap": 4.0},
}


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("dtype", ERROR, ids=str)
def test_statistics_and_their_gradients_agree_with_the_definition(
    dtype: torch.dtype, finish: str, rng: torch.Generator
) -> None:
    # Ten of 35 rows at a time, then 300 of the 1,271 classes: neither comes out even.
    chunk = 10 * 1271 * torch.finfo(dtype).bits // 8
    assert_agreement(drawn(rng, dtype), chunk=chunk, **FINISHES[finish])


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("chunk", [1, 200, 3000, None])
def test_the_size_of_a_chunk_is_irrelevant(
    chunk: int | None, biased: bool, rng: torch.Generator
) -> None:
    parts = drawn(rng, rows=9, classes=13, width=3, biased=biased)
    assert_agreement(parts, chunk=chunk, softcap=20.0)


def test_large_logits_keep_their_digits(rng: torch.Generator) -> None:
    parts = drawn(rng, torch.float32, rows=20, classes=6, width=4, height=12.0)
    # A logit of 60 is known to four millionths: that is what it can be off by.
    assert_agreement(parts, chunk=100, error=2e-5)


def test_of_tied_maxima_the_first_is_the_prediction_and_takes_the_gradient(
    rng: torch.Generator,
) -> None:
    hidden, weight, _, labels = drawn(rng, rows=30, classes=300, width=3)
    parts = hidden.round(), weight.round(), None, labels
    ties = (parts[0] @ parts[1].T == (parts[0] @ parts[1].T).amax(1, keepdim=True)).sum(dim=1)
    assert (ties > 1).sum() > 8
    assert_agreement(parts, chunk=8000)


def test_classes_ruled_out_by_the_bias_have_no_share(rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=12, classes=9, width=4)
    assert bias is not None
    bias[6:] = float("-inf")
    labels = torch.where(labels >= 6, 0, labels)

    def judged(make: Callable[..., Predictions]) -> list[Tensor]:
        leaves = [each.clone().requires_grad_() for each in (hidden, weight)]
        predictions = make(*leaves, labels, bias=bias)
        value = nll(predictions) + brier(predictions) + soft_avuc(predictions) + dece(predictions)
        return [value.detach(), *torch.autograd.grad(value, leaves)]

    ours = judged(partial(kernels.linear_predictions, chunk=200))
    assert all(each.isfinite().all() for each in ours)
    with kernels.use("definition"):
        assert_close(ours, judged(by_definition))


@pytest.mark.parametrize("softcap", [None, 3.0])
def test_gradients_are_slopes(softcap: float | None, rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=7, classes=5, width=3)
    leaves = [each.requires_grad_() for each in (hidden, weight, bias) if each is not None]
    weights = torch.rand(7, generator=rng, dtype=torch.float64).to(DEVICE)

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        predictions = kernels.linear_predictions(
            hidden, weight, labels, bias=bias, weights=weights, scale=0.8, softcap=softcap, chunk=99
        )
        value = focal(predictions) + label_smoothing(predictions) + brier(predictions)
        return -2.5 * (value + soft_avuc(predictions) + dece(predictions))

    assert torch.autograd.gradcheck(loss, leaves, fast_mode=True)


OBJECTIVES: dict[str, tuple[Criterion, Criterion]] = {
    "esd": (nll, top_label(esd)),
    "soft avuc": (brier, soft_avuc),
    "dece": (label_smoothing, dece),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_objective_is_the_penalised_one_of_the_logits(name: str, rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=24, classes=30, width=5)
    hidden, labels = hidden.view(2, 12, 5).requires_grad_(), labels.view(2, 12)
    leaves = [hidden, weight.requires_grad_()]
    fit, calibration = OBJECTIVES[name]
    ours = LinearPenalised(fit, calibration, 0.7, chunk=1000)(*leaves, labels, bias)
    plain = Penalised(fit, calibration, 0.7, class_dim=-1, ignore_index=-100)
    with kernels.use("definition"):
        truth = plain(F.linear(hidden, weight, bias), labels)
    assert_close(ours, truth)
    for mine, true in zip(
        torch.autograd.grad(3 * ours, leaves), torch.autograd.grad(3 * truth, leaves), strict=True
    ):
        assert_close(mine, true)


READ_ROWS = {
    name: criterion
    for name, criterion in CRITERIA.items()
    if name not in ("dual_focal", "squared_logits", "margin_smoothing")
    and not name.startswith(("class_wise", "canonical", "mdca", "marginal"))
} | {"per class": per_class(esd)}


@pytest.mark.parametrize("name", READ_ROWS)
def test_every_criterion_of_rows_judges_them_alike(name: str, rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=24, classes=5, width=4)
    ours = kernels.linear_predictions(hidden, weight, labels, bias=bias, chunk=99)
    with kernels.use("definition"):
        truth = by_definition(hidden, weight, labels, bias=bias)
        assert_close(READ_ROWS[name](ours), READ_ROWS[name](truth))


@pytest.mark.parametrize("name", [*sorted(set(CRITERIA) - set(READ_ROWS)), "class-wise"])
def test_a_criterion_that_reads_logits_is_refused_with_a_sentence(
    name: str, rng: torch.Generator
) -> None:
    criterion = class_wise(esd) if name == "class-wise" else CRITERIA[name]
    hidden, weight, _, labels = drawn(rng, rows=8, classes=5, width=4)
    with pytest.raises(RuntimeError, match=r"never hold all logits.* Use one that needs no more"):
        criterion(kernels.linear_predictions(hidden, weight, labels))


def test_no_tensor_has_the_size_of_the_logits(rng: torch.Generator) -> None:
    sizes: list[int] = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            out = func(*args, **(kwargs or {}))
            for each in out if isinstance(out, tuple | list) else [out]:
                if isinstance(each, Tensor):
                    sizes.append(each.untyped_storage().nbytes())
            return out

    hidden, weight, bias, labels = drawn(rng, torch.float32, rows=64, classes=4000, width=8)
    leaves = [hidden.requires_grad_(), weight.requires_grad_()]
    # Beside the labels and the like, the largest thing needed is the gradient of the classifier.
    objective = LinearPenalised(nll, soft_avuc, 1.0, chunk=weight.numel() * 4)
    with Sizes():  # type: ignore[no-untyped-call]
        objective(*leaves, labels, bias).backward()
    assert weight.grad is not None
    assert max(sizes) == weight.numel() * 4 < 64 * 4000 * 4 / 7


def test_batches_of_which_nothing_is_left_cost_nothing(rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=8, classes=5, width=4)
    objective = LinearPenalised(nll, top_label(esd), 1.0)
    value = objective(
        hidden.requires_grad_(), weight.requires_grad_(), torch.full_like(labels, -100), bias
    )
    assert value == 0
    assert_close(
        torch.autograd.grad(value, (hidden, weight)),
        (torch.zeros_like(hidden), torch.zeros_like(weight)),
    )


def test_a_frozen_classifier_takes_no_gradient(rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=8, classes=5, width=4)
    objective = LinearPenalised(nll, top_label(esd), 1.0)
    value = objective(hidden.requires_grad_(), weight, labels, bias)
    value.backward()
    assert hidden.grad is not None
    with kernels.use("definition"):
        plain = Penalised(nll, top_label(esd), 1.0, ignore_index=-100)
        (truth,) = torch.autograd.grad(plain(F.linear(hidden, weight, bias), labels), hidden)
    assert_close(hidden.grad, truth)
    assert weight.grad is None
    assert_close(objective(hidden.detach(), weight, labels, bias), value.detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_under_autocast_products_are_narrow_and_gradients_as_wide_as_their_tensors(
    dtype: torch.dtype, rng: torch.Generator
) -> None:
    hidden, weight, bias, labels = drawn(rng, torch.float32, rows=32, classes=300, width=16)
    leaves = [each.requires_grad_() for each in (hidden, weight, bias) if each is not None]
    # The same objective, of parts rounded beforehand.
    with kernels.use("definition"):
        plain = Penalised(nll, top_label(esd), 1.0, ignore_index=-100)
        narrow = plain(F.linear(*(each.to(dtype) for each in leaves)), labels)
        truth = torch.autograd.grad(narrow, leaves)
        wide = plain(F.linear(*leaves), labels).detach()
    with torch.autocast(DEVICE, dtype=dtype):
        objective = LinearPenalised(nll, top_label(esd), 1.0, chunk=8000)
        value = objective(*leaves[:2], labels, leaves[2])
        ours = torch.autograd.grad(value, leaves)
    assert value.dtype == torch.float32
    assert (value - narrow).abs() < (value - wide).abs() / 4
    for mine, true in zip(ours, truth, strict=True):
        assert mine.dtype == torch.float32
        assert (mine - true).norm() / true.norm() <= 2 * ERROR[dtype]
    assert len(ours[1].unique()) > len(ours[1].to(dtype).unique())  # not rounded on the way


def test_the_gradient_of_the_classifier_is_accumulated_wide(rng: torch.Generator) -> None:
    # 1,024 equal shares of a half: a bfloat16 total would stop growing at 256 of them.
    hidden = torch.ones(1024, 1, dtype=torch.bfloat16, device=DEVICE)
    weight = torch.zeros(2, 1, dtype=torch.bfloat16, device=DEVICE).requires_grad_()
    labels = torch.zeros(1024, dtype=torch.long, device=DEVICE)
    value = nll(kernels.linear_predictions(hidden, weight, labels, chunk=2048))
    (by_weight,) = torch.autograd.grad(value, weight)
    assert_close(by_weight.float(), torch.tensor([[-0.5], [0.5]], device=DEVICE))


def test_the_gradient_of_hidden_states_is_added_up_wide() -> None:
    # One class at a time: to -1 of the label come 600 shares that each round to nothing.
    hidden = torch.zeros(1, 1, dtype=torch.bfloat16, device=DEVICE).requires_grad_()
    weight = torch.ones(600, 1, dtype=torch.bfloat16, device=DEVICE)
    labels = torch.zeros(1, dtype=torch.long, device=DEVICE)
    value = nll(kernels.linear_predictions(hidden, weight, labels, chunk=1))
    (by_hidden,) = torch.autograd.grad(value, hidden)
    assert by_hidden.abs() < 1e-2


def test_second_derivatives_and_transforms_take_the_definition(rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=6, classes=4, width=3)
    hidden.requires_grad_(), weight.requires_grad_()
    objective = LinearPenalised(brier, dece, 0.7, softcap=4.0)

    def plain(hidden: Tensor, weight: Tensor) -> Tensor:
        predictions = by_definition(hidden, weight, labels, bias=bias, softcap=4.0)
        return brier(predictions) + 0.7 * dece(predictions)

    def ours(hidden: Tensor, weight: Tensor) -> Tensor:
        value: Tensor = objective(hidden, weight, labels, bias)
        return value

    def twice(judged: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, ...]:
        (gradient,) = torch.autograd.grad(judged(hidden, weight), hidden, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), (hidden, weight))

    kept = labels[labels >= 0]
    some = (hidden[labels >= 0].detach(), weight.detach())
    everywhere = partial(kernels.linear_predictions, labels=kept, bias=bias, ignore_index=None)

    def mapped(hidden: Tensor, weight: Tensor) -> Tensor:
        return brier(everywhere(hidden, weight))

    doubled = torch.stack([some[0], some[0] / 2])
    many = torch.vmap(partial(mapped, weight=some[1]))(doubled)
    one = torch.func.grad(mapped)(*some)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(some[0], some[0].cos())
        slope = torch.autograd.forward_ad.unpack_dual(mapped(dual, some[1])).tangent
    assert_close(slope, (one * some[0].cos()).sum())
    assert_close(many, torch.stack([mapped(each, some[1]) for each in doubled]))
    with kernels.use("definition"):
        assert_close(twice(ours), twice(plain))
        definition = Predictions(F.linear(*some, bias), kept)
        assert_close(mapped(*some), brier(definition))
    leaf = some[0].clone().requires_grad_()
    assert_close(one, torch.autograd.grad(mapped(leaf, some[1]), leaf)[0])


def test_many_gradients_at_once_are_as_many_gradients(rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=6, classes=4, width=3)
    hidden.requires_grad_(), weight.requires_grad_()
    predictions = kernels.linear_predictions(hidden, weight, labels, bias=bias)
    statistic = (predictions.true_log_prob * predictions.entropy + predictions.soft_rank(3.0))[:3]
    every = torch.eye(3, dtype=statistic.dtype, device=statistic.device)
    pull_back = partial(torch.autograd.grad, statistic, (hidden, weight), retain_graph=True)
    one_by_one = [torch.stack(each) for each in zip(*map(pull_back, every), strict=True)]
    assert_close(list(pull_back(every, is_grads_batched=True)), one_by_one)


def test_statistics_of_all_ranks_come_through(rng: torch.Generator, tmp_path: Path) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=12, classes=7, width=3)
    leaves = (hidden.requires_grad_(), weight.requires_grad_())
    backend = "nccl" if DEVICE == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=f"file://{tmp_path}/ranks", rank=0, world_size=1)

    def judged(make: Callable[..., Predictions]) -> tuple[Tensor, ...]:
        everyone = _Gathered(make(*leaves, labels, bias=bias))
        value = nll(everyone) + top_label(esd)(everyone) + dece(everyone)
        return (value.detach(), *torch.autograd.grad(value, leaves))

    try:
        ours = judged(kernels.linear_predictions)
        with kernels.use("definition"):
            assert_close(ours, judged(by_definition))
    finally:
        dist.destroy_process_group()


@pytest.mark.skipif(
    not os.environ.get("CALIBRANT_UNCHECKED"), reason="runs without run-time checks"
)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_compiler_takes_the_passes_into_one_graph(name: str, rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=12, classes=7, width=3)
    leaves = [each.requires_grad_() for each in (hidden, weight, bias) if each is not None]
    objective = LinearPenalised(*OBJECTIVES[name], 0.7, softcap=4.0, chunk=200)
    operators: list[str] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        operators.extend(str(node.target) for node in graph.graph.nodes)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    torch.compiler.reset()
    compiled = torch.compile(objective, fullgraph=True, backend=backend)
    value = compiled(*leaves[:2], labels, leaves[2])
    eager = objective(*leaves[:2], labels, leaves[2])
    assert any("calibrant.linear_statistics" in operator for operator in operators)
    assert_close(value, eager)
    assert_close(torch.autograd.grad(value, leaves), torch.autograd.grad(eager, leaves))


def test_operators_keep_the_rules_of_torch(rng: torch.Generator) -> None:
    hidden, weight, bias, labels = drawn(rng, rows=5, classes=7, width=3)
    leaves = [each.requires_grad_() for each in (hidden, weight, bias) if each is not None]
    labels = labels.clamp(min=0)
    for temperature in (None, 3.0):
        settings = (0.5, 4.0, torch.float64, temperature, 200, FUSED)
        torch.library.opcheck(torch.ops.calibrant.linear_statistics, (*leaves, labels, *settings))


@pytest.mark.parametrize(
    ("changed", "kind", "sentence"),
    [
        ({"hidden": torch.zeros(4)}, ValueError, r"hidden and classifier must be floating point"),
        ({"classifier": torch.zeros(5, 2)}, ValueError, r"a row of 3 numbers.*got shape \(5, 2\)"),
        ({"labels": torch.zeros(5)}, ValueError, r"labels must have the shape.*\(4,\); got \(5,\)"),
        ({"labels": torch.tensor([0, 1, 5, 2])}, ValueError, r"between 0 and 4"),
        ({"bias": torch.zeros(4)}, ValueError, r"one number per class, 5 in all; got shape \(4,\)"),
        ({"classifier": torch.zeros(5, 3).half()}, TypeError, r"dtype of hidden, torch\.float32"),
        ({"softcap": -1.0}, ValueError, r"softcap must be positive"),
        ({"weights": -torch.ones(4)}, ValueError, r"weights must be finite and not negative"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    changed: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    if DEVICE == "cuda" and ("between" in sentence or "finite" in sentence):
        pytest.skip("a look at values would make the device wait")
    good = {
        "hidden": torch.zeros(4, 3),
        "classifier": torch.zeros(5, 3),
        "labels": torch.zeros(4, dtype=torch.long),
    }
    parts: dict[str, Any] = {
        name: each.to(DEVICE) if isinstance(each, Tensor) else each
        for name, each in (good | changed).items()
    }
    with pytest.raises(kind, match=sentence):
        kernels.linear_predictions(**parts)


@pytest.mark.parametrize("count", [1, 5, 127, 128, 1000, 8192])
@pytest.mark.parametrize("chunk", [1, 60, 1000, 8192 * 8])
def test_chunks_hold_everything_once_and_no_more_than_fits(count: int, chunk: int) -> None:
    parts = list(slices(count, 8, chunk))
    assert [i for part in parts for i in range(count)[part]] == list(range(count))
    assert all(8 * (part.stop - part.start) <= max(8, chunk) for part in parts)
    assert len(parts) == -(-count // max(1, min(count, chunk // 8)))


def test_the_example_runs() -> None:
    from calibrant.kernels import _linear

    if FUSED:
        pytest.skip("it runs on a CPU, in torch operators")
    assert doctest.testmod(_linear) == doctest.TestResults(failed=0, attempted=6)


def test_a_module_says_what_it_is_made_of() -> None:
    objective = LinearPenalised(nll, top_label(esd), 0.5, softcap=30.0)
    assert repr(objective) == (
        "LinearPenalised(fit=nll, calibration=TopLabel(esd), weight=0.5, ignore_index=-100, "
        "scale=1.0, softcap=30.0)"
    )


def test_ignored_labels_are_numbers_whatever_their_type(rng: torch.Generator) -> None:
    hidden, head = (torch.randn(n, 3, generator=rng).to(DEVICE) for n in (4, 200))
    labels = torch.tensor([156, 156, 3, 4], device=DEVICE)
    narrow, wide = (
        LinearPenalised(nll, top_label(esd), 0.0)(hidden, head, given)
        for given in (labels.to(torch.uint8), labels)
    )
    assert_close(narrow, wide)

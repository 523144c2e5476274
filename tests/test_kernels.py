"""Kernels against the definitions: on a GPU, or interpreted, as test_interpreted.py has it."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from logit_ways import ways_to_the_logits
from torch import Tensor
from torch.testing import assert_close

from calibrant import (
    CRITERIA,
    Criterion,
    Measure,
    Penalised,
    Predictions,
    brier,
    dece,
    esd,
    kernels,
    label_smoothing,
    mmce,
    nll,
    soft_avuc,
    soft_binned_ece,
    soft_label_binned_ece,
    top_label,
    weighted_mmce,
)
from calibrant.criteria._ranks import _Gathered
from calibrant.measures._handwritten import TWINS, Twin

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
INTERPRETED = DEVICE == "cpu"

pytestmark = [
    pytest.mark.skipif(
        INTERPRETED and os.environ.get("TRITON_INTERPRET") != "1",
        reason="needs a GPU, or Triton's interpreter, in which test_interpreted.py runs it",
    ),
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
)

# Values are computed in float32 from half-precision logits; gradients are rounded to those.
VALUE = {torch.float64: (1e-12, 1e-12), torch.float32: (2e-6, 2e-6)}
GRADIENT = {
    torch.float64: 1e-12,
    torch.float32: 2e-6,
    torch.float16: 2**-11,
    torch.bfloat16: 2**-8,
}


@pytest.fixture(autouse=True)
def fused() -> Iterator[None]:
    with kernels.use("fused"):
        yield


@pytest.fixture
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen rows at once, in several blocks of columns: the interpreter pays by the program."""
    if INTERPRETED:
        for module in ("_rows", "_row_gradients", "_ranks", "_rank_gradients"):
            monkeypatch.setattr(f"calibrant.kernels.{module}.plan", lambda classes: (16, 512, 4))


def statistics(predictions: Predictions) -> list[Tensor]:
    return [*(getattr(predictions, name) for name in STATISTICS), predictions.soft_rank(7.0)]


def by_definition(compute: Callable[[], list[Tensor]]) -> list[Tensor]:
    with kernels.use("definition"):
        return compute()


def mixed(logits: Tensor, labels: Tensor) -> list[Tensor]:
    """Every statistic, and the gradient of a mixture of all of them with uneven upstreams."""
    leaf = logits.detach().requires_grad_()
    found = statistics(Predictions(leaf, labels))
    seeded = torch.Generator().manual_seed(3)
    loss = leaf.new_zeros((), dtype=torch.float64)
    for each in found:
        upstream = torch.randn(each.shape, generator=seeded, dtype=torch.float64).to(DEVICE)
        loss = loss + (upstream * each).sum()
    return [*found, *torch.autograd.grad(loss, leaf)]


def assert_agreement(logits: Tensor, labels: Tensor) -> None:
    *ours, gradient = mixed(logits, labels)
    *truth, expected = by_definition(lambda: mixed(logits.double(), labels))
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    rtol, atol = VALUE[wide]
    for name, mine, true in zip((*STATISTICS, "soft rank"), ours, truth, strict=True):
        assert mine.dtype == wide, name
        # A rank is a sum over the classes, and sums have the error of their largest part.
        scale = logits.shape[1] if name == "soft rank" else 1
        assert_close(mine.double(), true, rtol=rtol, atol=scale * atol)
    assert gradient.dtype == logits.dtype
    error = (gradient.double() - expected).norm() / expected.norm()
    assert error <= GRADIENT[logits.dtype]


@pytest.mark.parametrize("dtype", GRADIENT, ids=str)
@pytest.mark.parametrize("shape", [(41, 1271), (70, 3)], ids=str)
def test_statistics_and_their_gradients_agree_with_the_definitions(
    shape: tuple[int, int], dtype: torch.dtype, rng: torch.Generator, few_programs: None
) -> None:
    logits = (3 * torch.randn(shape, generator=rng, dtype=torch.float64)).to(DEVICE, dtype)
    assert_agreement(logits, torch.randint(shape[1], shape[:1], generator=rng).to(DEVICE))


def test_a_row_wider_than_a_tile_is_read_in_parts(rng: torch.Generator) -> None:
    logits = 3 * torch.randn(2, 4100, generator=rng).to(DEVICE)
    assert_agreement(logits, torch.tensor([0, 4099], device=DEVICE))


def test_of_tied_maxima_the_first_is_the_prediction_and_takes_the_gradient(
    rng: torch.Generator, few_programs: None
) -> None:
    logits = torch.randint(-1, 2, (30, 1030), generator=rng).double().to(DEVICE)
    logits[:4, :512] = -2  # so that the first maximum stands in a later block
    labels = torch.randint(1030, (30,), generator=rng).to(DEVICE)
    assert torch.equal(Predictions(logits, labels).predicted, logits.argmax(dim=1))
    assert_agreement(logits, labels)


@pytest.mark.parametrize("height", [60.0, 1e4])
def test_large_logits_keep_their_digits(height: float, rng: torch.Generator) -> None:
    logits = (height * torch.randn(20, 6, generator=rng)).to(DEVICE)
    logits[0] = height + torch.arange(6.0)
    assert_agreement(logits, torch.randint(6, (20,), generator=rng).to(DEVICE))


def test_classes_ruled_out_by_minus_infinity_have_no_share(few_programs: None) -> None:
    logits = torch.zeros(3, 600, dtype=torch.float64, device=DEVICE)
    logits[0, 5] = logits[1, :590] = logits[2, :599] = float("-inf")
    labels = torch.tensor([0, 595, 599], device=DEVICE)
    for name in ("true_log_prob", "confidence", "entropy", "sum_of_squares", "soft_rank"):

        def found(name: str = name) -> list[Tensor]:
            leaf = logits.clone().requires_grad_()
            value = getattr(Predictions(leaf, labels), name)
            value = value() if callable(value) else value
            return [value.detach(), *torch.autograd.grad((value * value).sum(), leaf)]

        for mine, true in zip(found(), by_definition(found), strict=True):
            assert mine.isfinite().all()
            assert_close(mine, true)


def test_what_is_no_number_stays_none() -> None:
    logits = torch.zeros(3, 4, device=DEVICE)
    logits[0, 1] = logits[1, 2] = float("nan")
    logits[1, 0] = logits[2, 3] = float("inf")
    for statistic in statistics(
        Predictions(logits, torch.zeros(3, dtype=torch.long, device=DEVICE))
    ):
        assert statistic.isnan().all()


def test_a_label_that_names_no_class_is_not_read() -> None:
    logits = torch.zeros(2, 4, device=DEVICE)
    predictions = Predictions._unchecked(logits, torch.tensor([-1, 4], device=DEVICE), None)
    assert predictions.true_log_prob.isnan().all()
    assert predictions.soft_rank().isnan().all()


@pytest.mark.parametrize("layout", ["transposed", "expanded", "strided"])
def test_the_layout_of_logits_is_irrelevant(layout: str, rng: torch.Generator) -> None:
    logits = torch.randn(12, 24, generator=rng, dtype=torch.float64).to(DEVICE)
    laid = {
        "transposed": logits.T,
        "expanded": logits[:1].expand(24, 24),
        "strided": logits[::2, 1::2],
    }[layout]
    labels = torch.randint(laid.shape[1], (2 * len(laid),), generator=rng).to(DEVICE)[::2]
    assert_agreement(laid, labels)


def judged(
    criterion: Criterion, logits: Tensor, labels: Tensor, weights: Tensor | None
) -> list[Tensor]:
    leaf = logits.detach().clone().requires_grad_()
    value = criterion(Predictions(leaf, labels, weights=weights))
    gradient = torch.autograd.grad(-2.5 * value, leaf) if value.requires_grad else ()
    return [value.detach(), *gradient]


@pytest.mark.parametrize(
    ("name", "weighted"),
    [(name, False) for name in CRITERIA] + [(name, True) for name in ("nll", "esd", "soft_avuc")],
)
def test_every_criterion_is_the_same_by_kernel(
    name: str, weighted: bool, rng: torch.Generator
) -> None:
    logits = 2 * torch.randn(24, 4, generator=rng, dtype=torch.float64).to(DEVICE)
    labels = torch.randint(4, (24,), generator=rng).to(DEVICE)
    weights = torch.rand(24, generator=rng, dtype=torch.float64).to(DEVICE) if weighted else None
    find = partial(judged, CRITERIA[name], logits, labels, weights)
    assert_close(find(), by_definition(find))


def test_ignored_positions_are_left_out(rng: torch.Generator) -> None:
    objective = Penalised(nll, top_label(esd), 0.7, class_dim=-1, ignore_index=-100)
    logits = torch.randn(3, 9, 5, generator=rng, dtype=torch.float64).to(DEVICE)
    labels = torch.randint(5, (3, 9), generator=rng).to(DEVICE)
    labels[:, 5:] = -100

    def found() -> list[Tensor]:
        leaf = logits.clone().requires_grad_()
        value = objective(leaf, labels)
        return [value.detach(), *torch.autograd.grad(value, leaf)]

    assert_close(found(), by_definition(found))
    assert objective(logits, torch.full_like(labels, -100)) == 0


def test_one_pass_serves_every_statistic_and_keeps_nothing_but_the_logits(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    from calibrant.kernels import _rows

    passes: list[int] = []
    statistics = _rows.statistics

    def counted(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        passes.append(len(logits))
        return statistics(logits, labels)

    monkeypatch.setattr(_rows, "statistics", counted)
    logits = torch.randn(9, 40, generator=rng).to(DEVICE).requires_grad_()
    kept: list[Tensor] = []

    def note(x: Tensor) -> Tensor:
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        predictions = Predictions(logits, torch.arange(9, device=DEVICE))
        loss = label_smoothing(predictions) + brier(predictions) + soft_avuc(predictions)
        loss = loss + top_label(esd)(predictions) + dece(predictions)
    assert passes == [9]
    large = {x.data_ptr() for x in kept if x.numel() >= logits.numel()}
    assert large == {logits.data_ptr()}


OBJECTIVES = {
    "esd": Penalised(nll, top_label(esd), 0.7),
    "soft avuc": Penalised(brier, soft_avuc, 0.7),
    "dece": Penalised(label_smoothing, dece, 0.7),
}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)


@pytest.fixture
def small(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    logits = torch.randn(6, 4, generator=rng, dtype=torch.float64).to(DEVICE)
    return logits.requires_grad_(), torch.randint(4, (6,), generator=rng).to(DEVICE)


@every_objective
def test_second_derivatives_are_slopes_of_the_gradient(
    name: str, small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small

    def twice() -> list[Tensor]:
        value = OBJECTIVES[name](logits, labels)
        (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
        return list(torch.autograd.grad((gradient.square() * labels[:, None]).sum(), logits))

    assert_close(twice(), by_definition(twice))


@every_objective
def test_function_transforms_take_the_definition(name: str, small: tuple[Tensor, Tensor]) -> None:
    logits, labels = small[0].detach(), small[1]
    objective = partial(OBJECTIVES[name], labels=labels)

    def found() -> list[Tensor]:
        return [torch.func.grad(objective)(logits)]

    assert_close(found(), by_definition(found))


def test_many_gradients_at_once_are_as_many_gradients(small: tuple[Tensor, Tensor]) -> None:
    def found() -> list[Tensor]:
        predictions = Predictions(*small)
        statistic = predictions.true_log_prob * predictions.entropy + predictions.soft_rank(3.0)
        every = torch.eye(len(statistic), dtype=statistic.dtype, device=DEVICE)
        pull_back = partial(torch.autograd.grad, statistic, small[0], retain_graph=True)
        return [*torch.vmap(pull_back)(every), *pull_back(every, is_grads_batched=True)]

    assert_close(found(), by_definition(found))


@pytest.mark.parametrize("rank_first", [False, True])
def test_a_soft_rank_and_the_statistics_give_one_gradient(
    rank_first: bool, small: tuple[Tensor, Tensor]
) -> None:
    def found() -> list[Tensor]:
        predictions = Predictions(*small)
        if not rank_first:
            assert predictions.entropy.requires_grad
        loss = predictions.soft_rank(3.0).square().sum() + predictions.entropy.sum()
        return [loss, *torch.autograd.grad(loss, small[0])]

    assert_close(found(), by_definition(found))
    predictions = Predictions(*small)
    loss = predictions.soft_rank(3.0).sum() + predictions.entropy.sum()
    assert ways_to_the_logits(loss, small[0]) == ["_RowStatisticsBackward"]


def test_soft_ranks_of_two_temperatures_keep_apart(small: tuple[Tensor, Tensor]) -> None:
    def found() -> list[Tensor]:
        predictions = Predictions(*small)
        loss = (predictions.soft_rank(3.0) * predictions.soft_rank(20.0)).sum()
        return [loss, *torch.autograd.grad(loss + predictions.confidence.sum(), small[0])]

    assert_close(found(), by_definition(found))


def test_the_gradient_of_a_soft_rank_has_a_gradient(small: tuple[Tensor, Tensor]) -> None:
    def found() -> list[Tensor]:
        predictions = Predictions(*small)
        loss = (predictions.soft_rank(3.0) * predictions.true_log_prob).sum()
        (first,) = torch.autograd.grad(loss, small[0], create_graph=True)
        return [first, *torch.autograd.grad(first.square().sum(), small[0])]

    assert_close(found(), by_definition(found))


def test_a_soft_rank_may_write_its_gradient_over_the_logits(small: tuple[Tensor, Tensor]) -> None:
    def found() -> list[Tensor]:
        predictions = Predictions(2 * small[0], small[1])
        loss = predictions.soft_rank(3.0).square().sum() - predictions.true_log_prob.sum()
        return list(torch.autograd.grad(loss, small[0]))

    with kernels.use("fused", in_place=True):
        ours = found()
    assert_close(ours, by_definition(found))


def test_dual_numbers_take_the_definition(small: tuple[Tensor, Tensor]) -> None:
    logits, labels = small[0].detach(), small[1]

    def found() -> list[Tensor]:
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(logits, logits.cos())
            value = torch.autograd.forward_ad.unpack_dual(soft_avuc(Predictions(dual, labels)))
        assert value.tangent is not None
        return [value.tangent]

    assert_close(found(), by_definition(found))


@every_objective
def test_a_compiler_takes_the_kernels_into_one_graph(
    name: str, small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small
    operators: list[str] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        operators.extend(str(node.target) for node in graph.graph.nodes)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    torch.compiler.reset()
    compiled = torch.compile(OBJECTIVES[name], fullgraph=True, backend=backend)
    value, eager = compiled(logits, labels), OBJECTIVES[name](logits, labels)
    assert any("calibrant.row_statistics" in operator for operator in operators)
    assert ("softmax" in " ".join(operators)) == (name == "dece")  # of the soft bins
    assert_close(value, eager)
    assert_close(torch.autograd.grad(value, logits), torch.autograd.grad(eager, logits))


def test_operators_keep_the_rules_of_torch(small: tuple[Tensor, Tensor]) -> None:
    torch.library.opcheck(torch.ops.calibrant.row_statistics, small)
    torch.library.opcheck(torch.ops.calibrant.soft_rank, (*small, 3.0))


def test_statistics_of_all_ranks_come_through_the_kernels(
    small: tuple[Tensor, Tensor], tmp_path: Path
) -> None:
    backend = "gloo" if INTERPRETED else "nccl"
    dist.init_process_group(backend, init_method=f"file://{tmp_path}/ranks", rank=0, world_size=1)

    def found() -> list[Tensor]:
        value = OBJECTIVES["dece"].fit(_Gathered(Predictions(*small)))
        value = value + dece(_Gathered(Predictions(*small)))
        return [value.detach(), *torch.autograd.grad(value, small[0])]

    try:
        assert_close(found(), by_definition(found))
    finally:
        dist.destroy_process_group()


# What a sum of so many float32 products may be off by; float64 as for any other maths.
TOLERANCE = {torch.float32: (1e-5, 1e-7), torch.float64: (1e-7, 1e-12)}
SIZES = [65] if INTERPRETED else [3, 65, 512, 4096, 16_384]


TWINNED: dict[str, Measure] = {
    "esd": esd,
    "mmce": mmce,
    "steep mmce": partial(mmce, bandwidth=0.013),
    "weighted mmce": weighted_mmce,
    "soft bins": soft_binned_ece,
    "many soft bins": partial(soft_binned_ece, bins=40, norm=1, temperature=0.003),
    "label bins": soft_label_binned_ece,
}


def value_and_gradients(measure: Measure, confidence: Tensor, outcome: Tensor) -> list[Tensor]:
    c, y = confidence.clone().requires_grad_(), outcome.clone().requires_grad_()
    value = -2.5 * measure(c, y)
    return [value.detach(), *torch.autograd.grad(value, (c, y))]


@pytest.fixture
def several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few samples to a tile that every program compares its own with several."""
    if INTERPRETED:
        for module in ("_pairs", "_kernel_pairs"):
            monkeypatch.setattr(f"calibrant.kernels.{module}._COLUMNS", 16)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("distinct", [5, 10**6])
@pytest.mark.parametrize("name", TWINNED)
def test_a_twin_agrees_with_its_definition(
    name: str,
    n: int,
    dtype: torch.dtype,
    distinct: int,
    rng: torch.Generator,
    several_tiles: None,
) -> None:
    assert_a_twin_agrees(name, n, dtype, distinct, rng)


def assert_a_twin_agrees(
    name: str, n: int, dtype: torch.dtype, distinct: int, rng: torch.Generator
) -> None:
    ties = torch.randint(distinct + 1, (n,), generator=rng) / distinct
    confidence = ties.to(DEVICE, dtype)
    outcome = torch.bernoulli(ties, generator=rng).to(DEVICE, dtype)
    find = partial(value_and_gradients, TWINNED[name])
    twin = find(confidence, outcome)
    definition = by_definition(lambda: find(confidence.double(), outcome.double()))
    rtol, atol = TOLERANCE[dtype]
    for ours, truth in zip(twin, definition, strict=True):
        assert_close(ours.double(), truth, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("n", [3, 70] if INTERPRETED else [3, 4097, 8192, 65_536])
@pytest.mark.parametrize("distinct", [2, 10**6])
@pytest.mark.parametrize("name", TWINNED)
def test_a_twin_of_sorted_samples_agrees_with_its_definition(
    name: str,
    n: int,
    dtype: torch.dtype,
    distinct: int,
    rng: torch.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("calibrant.kernels._twins.MOST_PAIRED", 0)
    monkeypatch.setattr("calibrant.kernels._bins._MOST_BLOCKS", 1)
    if INTERPRETED:  # so that ties reach over several blocks
        for module in ("_sorted", "_kernel_sorted"):
            monkeypatch.setattr(f"calibrant.kernels.{module}.BLOCK", 16)
    assert_a_twin_agrees(name, n, dtype, distinct, rng)


@pytest.mark.parametrize("n", [300] if INTERPRETED else [300, 8192, 16_384])
@pytest.mark.parametrize("name", ["esd", "mmce", "steep mmce"])
def test_sums_over_pairs_keep_the_digits_of_float32_and_repeat_to_the_last(
    name: str, n: int, rng: torch.Generator
) -> None:
    # Zeros among them, which lanes beyond the last sample could be taken for.
    confidence = (torch.randint(41, (n,), generator=rng) / 40).to(DEVICE)
    outcome = torch.bernoulli(torch.rand(n, generator=rng)).to(DEVICE)
    find = partial(value_and_gradients, TWINNED[name])
    twin, again = find(confidence, outcome), find(confidence, outcome)
    definition = by_definition(lambda: find(confidence.double(), outcome.double()))
    for ours, same, truth in zip(twin, again, definition, strict=True):
        assert torch.equal(ours, same)
        assert (ours.double() - truth).norm() <= GRADIENT[torch.float32] * truth.norm()


@pytest.mark.parametrize("name", ["esd", "mmce"])
def test_one_confidence_that_is_no_number_shows_in_every_gradient(name: str) -> None:
    confidence = torch.linspace(0, 1, 40, device=DEVICE)
    confidence[7] = float("nan")
    for found in value_and_gradients(TWINNED[name], confidence, torch.ones_like(confidence)):
        assert found.isnan().all()


@pytest.mark.parametrize("name", TWINNED)
def test_mapping_over_outcomes_alone_is_a_loop(name: str, rng: torch.Generator) -> None:
    confidence = torch.rand(9, generator=rng, dtype=torch.float64).to(DEVICE).requires_grad_()
    outcomes = torch.rand(3, 9, generator=rng, dtype=torch.float64).to(DEVICE)
    judge = partial(TWINNED[name], confidence)
    assert_close(torch.vmap(judge)(outcomes), torch.stack([judge(each) for each in outcomes]))


def test_one_value_for_all_is_no_tie_to_break() -> None:
    ones = torch.ones(65, dtype=torch.float64, device=DEVICE)
    for measure in TWINNED.values():
        find = partial(value_and_gradients, measure, ones, ones - 0.25)
        assert_close(find(), by_definition(find))


@pytest.mark.parametrize("name", TWINNED)
def test_a_twin_is_in_charge_of_as_many_samples_as_it_is_faster_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    for definition, twin in TWINS.items():

        def spy(
            c: Tensor, y: Tensor, twin: Twin = twin, **settings: Any
        ) -> tuple[Tensor, Tensor, Tensor]:
            called.append(len(c))
            return twin.with_gradient(c, y, **settings)

        monkeypatch.setitem(TWINS, definition, Twin(spy, twin.takes))
    for n in (10, 65_537):
        confidence = torch.rand(n, device=DEVICE, requires_grad=True)
        TWINNED[name](confidence, torch.ones(n, device=DEVICE))
    assert called == [10]


def test_in_place_the_gradient_takes_the_memory_of_the_logits(rng: torch.Generator) -> None:
    hidden = torch.randn(9, 40, generator=rng, dtype=torch.float64).to(DEVICE).requires_grad_()
    labels = torch.arange(9, device=DEVICE)
    places: list[int] = []

    def found() -> list[Tensor]:
        logits = 1.5 * hidden
        logits.register_hook(lambda gradient: places.append(gradient.data_ptr()))
        places.append(logits.data_ptr())
        predictions = Predictions(logits, labels)
        value = label_smoothing(predictions) + brier(predictions) + soft_avuc(predictions)
        return [value.detach(), *torch.autograd.grad(value, hidden)]

    apart = found()
    with kernels.use("fused", in_place=True):
        together = found()
    assert_close(together, apart)
    assert_close(together, by_definition(found))
    assert [here == there for here, there in zip(places[::2], places[1::2], strict=True)] == [
        False,
        True,
        False,
    ]


def test_in_place_whoever_still_needs_the_logits_is_refused(rng: torch.Generator) -> None:
    hidden = torch.randn(9, 40, generator=rng, dtype=torch.float64).to(DEVICE).requires_grad_()
    labels = torch.arange(9, device=DEVICE)
    with kernels.use("fused", in_place=True):
        logits = 1.5 * hidden
        kept = logits.square().sum()
        value = nll(Predictions(logits, labels))
        value.backward(retain_graph=True)
        for again in (kept, value):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                again.backward()
        for bad, kind in ((hidden, "a leaf"), ((1.5 * hidden[:1]).expand(9, 40), "an expanded")):
            with pytest.raises(ValueError, match=rf"memory of their own; got {kind}.* Use kernels"):
                nll(Predictions(bad, labels))
        assert nll(Predictions(hidden.detach(), labels)) > 0  # nothing is written without a graph

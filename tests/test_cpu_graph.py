"""Row statistics by blocks on the CPU, forward and backward, equal the definitions."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from logit_ways import ways_to_the_logits
from torch import Tensor
from torch.autograd import forward_ad
from torch.testing import assert_close

from calibrant import (
    CRITERIA,
    Criterion,
    Penalised,
    Predictions,
    brier,
    class_wise,
    dece,
    ece,
    esd,
    kernels,
    label_smoothing,
    nll,
    soft_avuc,
    top_label,
)
from calibrant import _tables as tables
from calibrant.kernels import _cpu_blocks, _cpu_graph, _cpu_looks, _cpu_node

# Forward mode's own.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")

STATISTICS = (
    "true_log_prob",
    "confidence",
    "entropy",
    "sum_of_squares",
    "mean_log_prob",
    "true_prob",
)
# Values are computed in float32 from half-precision logits; gradients are rounded to those.
VALUE = {torch.float64: 1e-12, torch.float32: 3e-6}
GRADIENT = {
    torch.float64: 1e-12,
    torch.float32: 2e-6,
    torch.float16: 2**-11,
    torch.bfloat16: 2**-8,
}
# Fewer classes than fill a register are treated apart.
SHAPES = [(60, 7), (41, 37)]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each block had whose gradient was written; such blocks at any size."""
    heights: list[int] = []
    write_gradient = _cpu_blocks.write_gradient

    def noted(target: Tensor, *rest: object) -> None:
        heights.append(len(target))
        write_gradient(target, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(_cpu_looks, "write_gradient", noted)
    monkeypatch.setattr(_cpu_graph, "_WORTH_IT", 1)
    monkeypatch.setattr(tables._blocks, "BLOCK_BYTES", 256)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    return heights


@pytest.fixture
def small(rng: torch.Generator) -> tuple[Tensor, Tensor]:
    logits = torch.randn(43, 5, generator=rng, dtype=torch.float64)
    return logits.requires_grad_(), torch.randint(5, (43,), generator=rng)


def by_definition(compute: Callable[[], list[Tensor]]) -> list[Tensor]:
    with kernels.use("definition"):
        return compute()


def assert_the_same(compute: Callable[[], list[Tensor]], written: list[int]) -> None:
    """By blocks, several and the last a smaller one, and by definition."""
    ours = compute()
    assert len(set(written)) == 2, "no blocks were written, or all were of one size"
    assert written[-1] < written[0]
    before = len(written)
    assert_close(ours, by_definition(compute), equal_nan=True)
    assert len(written) == before, "the definition was to compute"


def judged(
    criterion: Criterion, logits: Tensor, labels: Tensor, weights: Tensor | None = None
) -> list[Tensor]:
    leaf = logits.detach().clone().requires_grad_()
    value = criterion(Predictions(leaf, labels, weights=weights))
    return [value.detach(), *torch.autograd.grad(-2.5 * value, leaf)]


def everything(predictions: Predictions) -> Tensor:
    total = label_smoothing(predictions) + brier(predictions) + soft_avuc(predictions)
    return total + top_label(esd)(predictions) + dece(predictions)


OBJECTIVES: dict[str, Criterion] = {
    "nll": nll,
    "nll + esd": lambda p: nll(p) + top_label(esd)(p),
    "nll + soft avuc": lambda p: nll(p) + soft_avuc(p),
    "brier + soft avuc": lambda p: brier(p) + soft_avuc(p),
    "label smoothing + dece": lambda p: label_smoothing(p) + dece(p),
    "brier + dece": lambda p: brier(p) + dece(p),
    "nll + class-wise ece": lambda p: nll(p) + class_wise(ece)(p),
    "everything": everything,
}
every_objective = pytest.mark.parametrize("name", OBJECTIVES)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_is_the_same_by_blocks(
    name: str, weighted: bool, written: list[int], rng: torch.Generator
) -> None:
    logits = 2 * torch.randn(61, 4, generator=rng, dtype=torch.float64)
    labels = torch.randint(4, (61,), generator=rng)
    weights = torch.rand(61, generator=rng, dtype=torch.float64) if weighted else None

    def found() -> list[Tensor]:
        leaf = logits.clone().requires_grad_()
        value = CRITERIA[name](Predictions(leaf, labels, weights=weights))
        gradient = torch.autograd.grad(-2.5 * value, leaf) if value.requires_grad else ()
        return [value.detach(), *gradient]

    assert_close(found(), by_definition(found))


@every_objective
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_objective_is_the_same_by_blocks(
    name: str,
    shape: tuple[int, int],
    weighted: bool,
    written: list[int],
    rng: torch.Generator,
) -> None:
    logits = 2 * torch.randn(shape, generator=rng, dtype=torch.float64)
    labels = torch.randint(shape[1], shape[:1], generator=rng)
    weights = torch.rand(shape[0], generator=rng, dtype=torch.float64)
    weights[::3] = 0
    given = weights if weighted else None
    assert_the_same(partial(judged, OBJECTIVES[name], logits, labels, given), written)


def test_several_threads_share_blocks_of_their_own_size(
    written: list[int], small: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(_cpu_looks, "_TOGETHER", 5)
    find = partial(judged, everything, small[0].detach(), small[1])
    assert_the_same(find, written)
    assert written[0] == 5 * 256 // (5 * 8)


def mixed(logits: Tensor, labels: Tensor, first: str) -> list[Tensor]:
    """Every statistic, and the gradient of a mixture of all of them with uneven upstreams."""
    leaf = logits.detach().requires_grad_()
    predictions = Predictions(leaf, labels)
    getattr(predictions, first)
    found = [*(getattr(predictions, name) for name in STATISTICS), predictions.soft_rank(7.0)]
    seeded = torch.Generator().manual_seed(3)
    loss = leaf.new_zeros((), dtype=torch.float64)
    for each in found:
        upstream = torch.randn(each.shape, generator=seeded, dtype=torch.float64)
        loss = loss + (upstream * each).sum()
    return [*found, *torch.autograd.grad(loss, leaf)]


def assert_agreement(logits: Tensor, labels: Tensor, first: str = "entropy") -> None:
    *ours, gradient = mixed(logits, labels, first)
    *truth, expected = by_definition(lambda: mixed(logits.double(), labels, first))
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    for name, mine, true in zip((*STATISTICS, "soft rank"), ours, truth, strict=True):
        assert mine.dtype == wide, name
        # A rank is a sum over the classes, and sums have the error of their largest part.
        scale = logits.shape[1] if name == "soft rank" else 1
        assert_close(mine.double(), true, rtol=VALUE[wide], atol=scale * VALUE[wide])
    assert gradient.dtype == logits.dtype
    error = (gradient.double() - expected).norm() / expected.norm()
    assert error <= GRADIENT[logits.dtype]


@pytest.mark.parametrize("first", STATISTICS)
@pytest.mark.parametrize("dtype", GRADIENT, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_statistics_and_their_gradients_agree_with_the_definitions(
    shape: tuple[int, int],
    dtype: torch.dtype,
    first: str,
    written: list[int],
    rng: torch.Generator,
) -> None:
    logits = (3 * torch.randn(shape, generator=rng, dtype=torch.float64)).to(dtype)
    assert_agreement(logits, torch.randint(shape[1], shape[:1], generator=rng), first)
    assert len(written) > 1


@pytest.mark.parametrize("classes", [6, 30])
@pytest.mark.parametrize("height", [60.0, 1e4])
def test_large_logits_keep_their_digits(
    height: float, classes: int, written: list[int], rng: torch.Generator
) -> None:
    logits = height * torch.randn(60, classes, generator=rng)
    logits[0] = height + torch.arange(classes)
    logits[1:5] = height * logits[1:5].sign()
    assert_agreement(logits, torch.randint(classes, (60,), generator=rng))
    assert len(written) > 1


@pytest.mark.parametrize("classes", [6, 30])
def test_of_tied_maxima_the_first_is_the_prediction_and_takes_the_gradient(
    classes: int, written: list[int], rng: torch.Generator
) -> None:
    logits = torch.randint(-1, 2, (30, classes), generator=rng).double().requires_grad_()
    labels = torch.randint(classes, (30,), generator=rng)
    assert torch.equal(Predictions(logits, labels).predicted, logits.argmax(dim=1))
    assert_agreement(logits, labels)


def test_equal_probabilities_of_unequal_logits_are_no_tie(written: list[int]) -> None:
    logits = torch.tensor([[1e-12, 2e-12], [2e-12, 1e-12]]).requires_grad_()
    predictions = Predictions(logits, torch.tensor([0, 0]))
    assert predictions.confidence.tolist() == [0.5, 0.5]
    assert predictions.predicted.tolist() == [1, 0]
    assert predictions.correct.tolist() == [0, 1]


@pytest.mark.parametrize("classes", [6, 30])
@pytest.mark.parametrize(
    "name", ["true_log_prob", "confidence", "entropy", "sum_of_squares", "soft_rank"]
)
def test_classes_ruled_out_by_minus_infinity_have_no_share(
    name: str, classes: int, written: list[int]
) -> None:
    logits = torch.zeros(43, classes, dtype=torch.float64)
    logits[0, 5] = logits[1, :5] = logits[2:9, 1:] = -torch.inf
    labels = torch.tensor([0, 5, *[0] * 41])

    def found() -> list[Tensor]:
        leaf = logits.clone().requires_grad_()
        value = getattr(Predictions(leaf, labels), name)
        value = value() if callable(value) else value
        return [value.detach(), *torch.autograd.grad((value * value).sum(), leaf)]

    assert all(each.isfinite().all() for each in found())
    written.clear()
    assert_the_same(found, written)


@pytest.mark.parametrize("classes", [4, 30])
def test_what_is_no_number_stays_none(classes: int, written: list[int]) -> None:
    logits = torch.zeros(4, classes)
    logits[0, 1] = logits[1, 2] = torch.nan
    logits[1, 0] = logits[2, 3] = torch.inf
    logits[3] = -torch.inf
    *found, gradient = mixed(logits, torch.zeros(4, dtype=torch.long), "entropy")
    assert all(each.isnan().all() for each in found)
    assert gradient.isnan().all()


def test_ignored_rows_are_left_out(written: list[int], rng: torch.Generator) -> None:
    objective = Penalised(nll, top_label(esd), 0.7, class_dim=1, ignore_index=-100)
    logits = torch.randn(3, 5, 4, 6, generator=rng, dtype=torch.float64)
    labels = torch.randint(5, (3, 4, 6), generator=rng)
    labels[:, 2:4] = -100

    def found() -> list[Tensor]:
        leaf = logits.clone().requires_grad_()
        value = objective(leaf, labels)
        return [value.detach(), *torch.autograd.grad(-2.5 * value, leaf)]

    assert_the_same(found, written)
    assert objective(logits.requires_grad_(), torch.full_like(labels, -100)) == 0


@pytest.mark.parametrize("layout", ["transposed", "expanded", "strided"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
def test_the_layout_of_logits_is_irrelevant(
    layout: str, dtype: torch.dtype, written: list[int], rng: torch.Generator
) -> None:
    logits = torch.randn(26, 46, generator=rng, dtype=torch.float64).to(dtype)
    laid = {
        "transposed": logits.T,
        "expanded": logits[:1].expand(26, 46),
        "strided": logits[::2, 1::2],
    }[layout]
    labels = torch.randint(laid.shape[1], (2 * len(laid),), generator=rng)[::2]
    assert_agreement(laid, labels)
    assert len(written) > 1


@pytest.mark.parametrize(("rows", "classes"), [(1001, 300), (26_215, 11)])
@pytest.mark.parametrize("transposed", [False, True])
def test_equal_rows_are_tied_however_they_lie(
    rows: int, classes: int, transposed: bool, rng: torch.Generator, written: list[int]
) -> None:
    tables._blocks.BLOCK_BYTES = 2**16  # the fixture puts it back
    row = torch.randn(classes, generator=rng)
    logits = row.expand(rows, classes).contiguous()
    logits = (logits.T.contiguous().T if transposed else logits).requires_grad_()
    labels = torch.randint(classes, (rows,), generator=rng)
    labels[::2] = row.argmax()
    predictions = Predictions(logits, labels)
    for name in ("confidence", "entropy", "sum_of_squares", "mean_log_prob"):
        assert len(getattr(predictions, name).unique()) == 1, name
    loss = top_label(esd)(predictions)
    with torch.no_grad():
        metric = top_label(esd)(Predictions(logits, labels))
    assert_close(loss.detach(), metric)
    loss.backward()
    assert len(written) > 1


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if "class-wise" not in name])
def test_logits_have_one_gradient_and_nothing_of_their_size_is_saved(
    name: str, written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small
    kept: list[Tensor] = []

    def note(x: Tensor) -> Tensor:
        kept.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        loss = OBJECTIVES[name](Predictions(logits, labels))
    # The memberships of soft bins are a table too, one of bins.
    large = {x.data_ptr() for x in kept if x.shape == logits.shape}
    assert large == {logits.data_ptr()}
    assert ways_to_the_logits(loss, logits) == ["_RowStatisticsBackward"]


def looks_at(predictions: Predictions) -> _cpu_looks.Looks:
    """What stands behind the statistics that were found."""
    looks = _cpu_node._looks(predictions._derived["channel of confidence", True])
    assert looks is not None
    return looks


def test_only_what_is_asked_for_is_found(written: list[int], small: tuple[Tensor, Tensor]) -> None:
    predictions = Predictions(*small)
    nll(predictions)
    looks = looks_at(predictions)
    assert looks.found.keys() == {"true_prob", "true_log_prob"}
    top_label(esd)(predictions)
    assert looks.found.keys() == {
        *("true_prob", "true_log_prob"),
        *("predicted", "confidence", "correct"),
    }
    assert ("log_probs", True) not in predictions._derived


def test_where_probabilities_are_not_kept_what_is_likely_next_is_found_at_once(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    predictions = Predictions(small[0].bfloat16(), small[1])
    looked = []
    look_for = _cpu_looks.Looks._look_for

    def noted(looks: _cpu_looks.Looks, name: str) -> None:
        looked.append(name)
        look_for(looks, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cpu_looks.Looks, "_look_for", noted)
        Penalised(nll, top_label(esd), 1.0)(*small)
        assert looked == ["true_prob", "confidence"]
        looked.clear()
        assert (nll(predictions) + top_label(esd)(predictions)).isfinite()
        assert looked == ["true_prob"]
        assert (brier(predictions) + soft_avuc(predictions)).isfinite()
        assert looked == ["true_prob", "sum_of_squares"]


def test_probabilities_wait_in_the_room_of_the_gradient(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small
    predictions = Predictions(logits, labels)
    loss = brier(predictions) + top_label(esd)(predictions) + dece(predictions)
    room = looks_at(predictions)._probs
    assert room is not None
    assert_close(room, logits.detach().softmax(dim=1))
    (first,) = torch.autograd.grad(loss, logits, retain_graph=True)
    assert first.data_ptr() == room.data_ptr()
    assert looks_at(predictions)._probs is None
    kept = first.clone()
    assert predictions.entropy.isfinite().all()
    assert looks_at(predictions)._probs is None  # what is asked for now makes no other
    (second,) = torch.autograd.grad(loss, logits)  # it has a room of its own
    assert_close(second, kept)
    assert_close(first, kept, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_statistics_may_be_asked_for_when_the_gradient_is_found(
    dtype: torch.dtype, written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small[0].detach().to(dtype).requires_grad_(), small[1]

    def found() -> list[Tensor]:
        predictions = Predictions(logits, labels)
        nll(predictions).backward()
        return [getattr(predictions, name).detach() for name in (*STATISTICS, "correct")]

    assert_close(found(), by_definition(found))


def test_soft_ranks_of_two_temperatures_keep_apart(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    def found() -> list[Tensor]:
        predictions = Predictions(*small)
        loss = (predictions.soft_rank(0.0) * predictions.soft_rank(20.0)).sum()
        loss = loss + dece(predictions, rank_temperature=5.0) - predictions.confidence.sum()
        return [loss.detach(), *torch.autograd.grad(loss, small[0])]

    assert_the_same(found, written)


@pytest.mark.parametrize("own", [slice(2, 40), torch.arange(38)], ids=["slice", "index"])
def test_some_of_the_samples_are_judged_with_what_is_known_of_all(
    own: slice | Tensor, written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    def found() -> list[Tensor]:
        predictions = Predictions(*small)
        assert predictions.confidence.requires_grad
        value = dece(predictions._some(own, None))
        return [value.detach(), *torch.autograd.grad(value, small[0])]

    assert_close(found(), by_definition(found))
    assert written


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", [name for name in OBJECTIVES if "class-wise" not in name])
def test_in_place_the_gradient_takes_the_memory_of_the_logits(
    name: str, dtype: torch.dtype, written: list[int], rng: torch.Generator
) -> None:
    hidden = torch.randn(43, 5, generator=rng).to(dtype).requires_grad_()
    labels = torch.randint(5, (43,), generator=rng)
    places: list[int] = []

    def found() -> list[Tensor]:
        logits = 1.5 * hidden
        logits.register_hook(lambda gradient: places.append(gradient.data_ptr()))
        places.append(logits.data_ptr())
        value = OBJECTIVES[name](Predictions(logits, labels))
        return [value.detach(), *torch.autograd.grad(-2.5 * value, hidden)]

    apart = found()
    with kernels.use("auto", in_place=True):
        together = found()
        kept = 1.5 * hidden.detach()
        with torch.no_grad():
            assert OBJECTIVES[name](Predictions(kept, labels)).isfinite()
        assert_close(kept, 1.5 * hidden.detach(), rtol=0, atol=0)  # nothing is written then
    assert_close(together[0], apart[0])
    error = (together[1] - apart[1]).double().norm() / apart[1].double().norm()
    assert error <= GRADIENT[dtype]
    same = [here == there for here, there in zip(places[::2], places[1::2], strict=True)]
    assert same == [False, True]


def test_in_place_whoever_still_needs_the_logits_is_refused(
    written: list[int], rng: torch.Generator
) -> None:
    hidden = torch.randn(43, 5, generator=rng, dtype=torch.float64).requires_grad_()
    labels = torch.randint(5, (43,), generator=rng)
    with kernels.use("auto", in_place=True):
        logits = 1.5 * hidden
        kept = logits.square().sum()
        value = nll(Predictions(logits, labels))
        value.backward(retain_graph=True)
        for again in (kept, value):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                again.backward()
        for bad, kind in ((hidden, "a leaf"), ((1.5 * hidden[:1]).expand(43, 5), "an expanded")):
            with pytest.raises(ValueError, match=rf"memory of their own; got {kind}.* Use kernels"):
                nll(Predictions(bad, labels))


def test_logits_that_change_before_the_gradient_are_refused(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits = 1.5 * small[0]
    value = nll(Predictions(logits, small[1]))
    with torch.no_grad():
        logits.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_logits_that_change_between_two_statistics_are_refused(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits = 1.5 * small[0]
    predictions = Predictions(logits, small[1])
    before = predictions.true_log_prob
    with torch.no_grad():
        logits.mul_(2)
    with pytest.raises(RuntimeError, match=r"entropy is asked for after .* make new Predictions"):
        predictions.entropy  # noqa: B018
    assert predictions.true_log_prob is before


def test_without_gradients_too_statistics_are_those_of_the_logits_that_were(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small
    leaf = logits.clone().requires_grad_()
    predictions = Predictions(leaf, labels)
    nll(predictions).backward()
    with torch.no_grad():
        assert_close(predictions.confidence, logits.softmax(1).amax(1))
        leaf.mul_(2)
        assert_close(predictions.confidence, logits.softmax(1).amax(1))  # found before
        with pytest.raises(RuntimeError, match="entropy is asked for after they were modified"):
            _ = predictions.entropy
    assert written


@pytest.mark.parametrize("name", ["confidence", "predicted"])
def test_what_a_gradient_needs_is_not_to_be_modified(
    name: str, written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small
    predictions = Predictions(logits.clone().requires_grad_(), labels)
    loss = predictions.confidence.mean()
    getattr(predictions, name).detach().zero_()
    with pytest.raises(RuntimeError, match=f"{name} is needed for the gradient, and was modified"):
        loss.backward()
    assert not written


def test_a_statistic_that_was_interrupted_is_not_taken_for_found(
    monkeypatch: pytest.MonkeyPatch, written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small
    predictions = Predictions(logits.clone().requires_grad_(), labels)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(_cpu_blocks.WRITE, "entropy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _ = predictions.entropy
    with kernels.use("definition"):
        defined = Predictions(logits, labels).entropy
    assert_close(predictions.entropy.detach(), defined)


@every_objective
def test_second_derivatives_are_slopes_of_the_gradient(
    name: str, written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small

    def twice() -> list[Tensor]:
        value = OBJECTIVES[name](Predictions(logits, labels))
        (gradient,) = torch.autograd.grad(value, logits, create_graph=True)
        return list(torch.autograd.grad((gradient.square() * labels[:, None]).sum(), logits))

    assert_close(twice(), by_definition(twice))


def several(logits: Tensor, labels: Tensor) -> Tensor:
    """Statistics of a few rows, through every node there is."""
    predictions = Predictions(logits, labels)
    one = predictions.true_log_prob * predictions.entropy
    return (one + predictions.soft_rank(3.0) * predictions.soft_rank(9.0))[:4]


def test_many_gradients_at_once_are_as_many_gradients(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small
    every = torch.eye(4, dtype=torch.float64)

    def one_by_one() -> Tensor:
        statistic = several(logits, labels)
        pull_back = partial(torch.autograd.grad, statistic, logits, retain_graph=True)
        return torch.stack([pull_back(each)[0] for each in every])

    expected = one_by_one()
    assert written
    statistic = several(logits, labels)
    pull_back = partial(torch.autograd.grad, statistic, logits, retain_graph=True)
    (batched,) = pull_back(every, is_grads_batched=True)
    (mapped,) = torch.vmap(pull_back)(every)
    jacobian = torch.autograd.functional.jacobian(
        lambda z: several(z, labels), logits.detach(), vectorize=True
    )
    for found in (batched, mapped, jacobian):
        assert_close(found, expected)


def test_function_transforms_take_the_definition(
    written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small

    def found() -> list[Tensor]:
        objective = torch.func.grad(lambda z: everything(Predictions(z, labels)))
        return [objective(logits.detach())]

    assert_close(found(), by_definition(found))
    assert not written


def test_dual_logits_take_the_definition(written: list[int], small: tuple[Tensor, Tensor]) -> None:
    logits, labels = small

    def found() -> list[Tensor]:
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(logits, logits.detach().cos())
            value = forward_ad.unpack_dual(brier(Predictions(dual, labels)))
        assert value.tangent is not None
        return [value.tangent.detach()]

    assert_close(found(), by_definition(found))


@pytest.mark.parametrize("name", ["nll", "label smoothing + dece"])
def test_a_gradient_has_the_tangent_of_what_multiplies_it(
    name: str, written: list[int], small: tuple[Tensor, Tensor]
) -> None:
    logits, labels = small

    def found() -> list[Tensor]:
        two, one = torch.tensor([2.0, 1.0], dtype=torch.float64)
        with forward_ad.dual_level():
            value = OBJECTIVES[name](Predictions(logits, labels))
            (gradient,) = torch.autograd.grad(forward_ad.make_dual(two, one) * value, logits)
            primal, tangent = forward_ad.unpack_dual(gradient)
        assert tangent is not None
        return [primal, tangent]

    assert_close(found(), by_definition(found))


@pytest.mark.parametrize(
    ("choice", "elements", "recorded", "taken"),
    [
        ("auto", _cpu_graph._WORTH_IT, True, True),
        ("auto", _cpu_graph._WORTH_IT - 1, True, False),
        ("auto", _cpu_graph._WORTH_IT, False, False),
        ("definition", _cpu_graph._WORTH_IT, True, False),
    ],
)
def test_blocks_are_for_many_logits_whose_gradient_is_recorded(
    choice: kernels._switch.Choice, elements: int, recorded: bool, taken: bool
) -> None:
    logits = torch.zeros(1, elements).requires_grad_(recorded)
    with kernels.use(choice):
        assert _cpu_graph._takes(logits) is taken
        assert _cpu_graph._takes(logits.long()) is False
        with torch.no_grad():
            assert not _cpu_graph._takes(logits)


def test_a_compiler_is_given_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.zeros(1, _cpu_graph._WORTH_IT, requires_grad=True)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not _cpu_graph._takes(logits)

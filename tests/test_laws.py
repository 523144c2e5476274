"""What every criterion must obey, whatever it measures."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import CRITERIA, Criterion, Predictions
from calibrant.scores import SCORES

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]

NO_GRADIENT = {"accuracy"}
STOPPED_GRADIENT = {"avuc_gs"}
# A sample and its copy are not two independent samples, which these rely on.
COPIES_MATTER = {"esd", "esd_naive", "rooted_esd", "kde_ece", "canonical_kde_ece", "sweep_ece"}
SEES_THE_LEVEL_OF_LOGITS = {"squared_logits"}
# A share of samples is exact, in double precision whatever the logits.
SHARES = {"accuracy"}


def every(criteria: dict[str, Criterion]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("criterion", criteria.values(), ids=list(criteria))


def without(*names: str) -> dict[str, Criterion]:
    return {name: criterion for name, criterion in CRITERIA.items() if name not in names}


def is_share(criterion: Criterion) -> bool:
    return criterion in [CRITERIA[name] for name in SHARES]


every_criterion = every(CRITERIA)
every_differentiable_criterion = every(without(*NO_GRADIENT))


def value_and_gradient(
    criterion: Criterion, logits: Tensor, labels: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    leaf = logits.detach().clone().requires_grad_()
    value = criterion(Predictions(leaf, labels, weights=weights))
    if criterion is CRITERIA["accuracy"]:
        return value, torch.zeros_like(leaf)
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.detach(), gradient


@every_criterion
def test_order_of_samples_is_irrelevant(
    criterion: Criterion, predictions: Predictions, rng: torch.Generator
) -> None:
    shuffle = torch.randperm(200, generator=rng)
    value, gradient = value_and_gradient(criterion, predictions.logits, predictions.labels)
    logits, labels = predictions.logits[shuffle], predictions.labels[shuffle]
    shuffled, shuffled_gradient = value_and_gradient(criterion, logits, labels)
    assert_close(shuffled, value)
    assert_close(shuffled_gradient, gradient[shuffle])


@every_criterion
def test_order_of_tied_samples_is_irrelevant(criterion: Criterion, rng: torch.Generator) -> None:
    logits = torch.randint(-1, 2, (60, 3), generator=rng).double()
    labels = torch.randint(3, (60,), generator=rng)
    shuffle = torch.randperm(60, generator=rng)
    value, gradient = value_and_gradient(criterion, logits, labels)
    shuffled, shuffled_gradient = value_and_gradient(criterion, logits[shuffle], labels[shuffle])
    assert_close(shuffled, value)
    assert_close(shuffled_gradient, gradient[shuffle])


@every_criterion
def test_names_of_classes_are_irrelevant(criterion: Criterion, predictions: Predictions) -> None:
    renamed = torch.tensor([2, 0, 3, 1])
    relabelled = Predictions(predictions.logits[:, renamed], renamed.argsort()[predictions.labels])
    assert_close(criterion(relabelled), criterion(predictions))


@every(without(*SEES_THE_LEVEL_OF_LOGITS))
def test_level_of_logits_is_irrelevant(criterion: Criterion, predictions: Predictions) -> None:
    raised = Predictions(predictions.logits + 7, predictions.labels)
    assert_close(criterion(raised), criterion(predictions))


@every_criterion
def test_the_loss_and_the_metric_are_one_number(
    criterion: Criterion, predictions: Predictions
) -> None:
    leaf = predictions.logits.clone().requires_grad_()
    with torch.no_grad():
        metric = criterion(Predictions(leaf, predictions.labels))
    assert_close(criterion(Predictions(leaf, predictions.labels)).detach(), metric)


@every_differentiable_criterion
def test_gradient_is_finite_and_not_zero(criterion: Criterion, predictions: Predictions) -> None:
    _, gradient = value_and_gradient(criterion, predictions.logits, predictions.labels)
    assert gradient.isfinite().all()
    assert gradient.any()


@every(without(*NO_GRADIENT, *STOPPED_GRADIENT))
def test_gradient_is_the_slope_of_the_value(criterion: Criterion, rng: torch.Generator) -> None:
    logits = (2 * torch.randn(14, 3, generator=rng, dtype=torch.float64)).requires_grad_()
    labels = torch.randint(3, (14,), generator=rng)
    assert torch.autograd.gradcheck(lambda z: criterion(Predictions(z, labels)), (logits,))


@every_criterion
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_keeps_the_dtype_of_the_logits(
    criterion: Criterion, predictions: Predictions, dtype: torch.dtype
) -> None:
    cast = Predictions(predictions.logits.to(dtype), predictions.labels)
    value = criterion(cast)
    assert value.dtype == (torch.float64 if is_share(criterion) else dtype)
    assert_close(value.double(), criterion(predictions), rtol=1e-3, atol=1e-5)


@every_criterion
def test_wide_weights_do_not_widen_the_value(
    criterion: Criterion, predictions: Predictions, rng: torch.Generator
) -> None:
    weights = torch.rand(200, generator=rng, dtype=torch.float64)
    narrow = Predictions(predictions.logits.float(), predictions.labels, weights=weights)
    wide = Predictions(predictions.logits, predictions.labels, weights=weights)
    assert criterion(narrow).dtype == (torch.float64 if is_share(criterion) else torch.float32)
    assert_close(criterion(narrow).double(), criterion(wide), rtol=1e-3, atol=1e-5)


@every_criterion
def test_autocast_changes_nothing(criterion: Criterion, predictions: Predictions) -> None:
    single = Predictions(predictions.logits.float(), predictions.labels)
    value = criterion(single)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = criterion(Predictions(single.logits, single.labels))
    assert_close(cast, value)


@every_criterion
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_computed_in_single(
    criterion: Criterion, predictions: Predictions, dtype: torch.dtype
) -> None:
    half = predictions.logits.to(dtype)
    value = criterion(Predictions(half, predictions.labels))
    assert value.dtype == (torch.float64 if is_share(criterion) else torch.float32)
    assert_close(value, criterion(Predictions(half.float(), predictions.labels)))


@every_criterion
@pytest.mark.parametrize("device", DEVICES)
def test_stays_on_the_device(criterion: Criterion, predictions: Predictions, device: str) -> None:
    moved = Predictions(predictions.logits.to(device), predictions.labels.to(device))
    value = criterion(moved)
    assert value.device.type == device
    assert_close(value.cpu(), criterion(predictions))


@every(without(*COPIES_MATTER))
def test_weight_two_is_the_sample_twice(
    criterion: Criterion, predictions: Predictions, rng: torch.Generator
) -> None:
    weights = torch.randint(1, 3, (200,), generator=rng).double()
    twice = torch.arange(200).repeat_interleave(weights.long())
    copies = Predictions(predictions.logits[twice], predictions.labels[twice])
    weighted = Predictions(predictions.logits, predictions.labels, weights=weights)
    assert_close(criterion(weighted), criterion(copies))


@every_criterion
def test_weight_one_is_no_weight(criterion: Criterion, predictions: Predictions) -> None:
    weights = torch.ones(200, dtype=torch.float64)
    value, gradient = value_and_gradient(criterion, predictions.logits, predictions.labels)
    same, same_gradient = value_and_gradient(
        criterion, predictions.logits, predictions.labels, weights
    )
    assert_close(same, value)
    assert_close(same_gradient, gradient)


@every_criterion
def test_weight_zero_is_no_sample(
    criterion: Criterion, predictions: Predictions, rng: torch.Generator
) -> None:
    kept = torch.rand(200, generator=rng) < 0.6
    some = Predictions(predictions.logits[kept], predictions.labels[kept])
    masked = Predictions(predictions.logits, predictions.labels, weights=kept.double())
    assert_close(criterion(masked), criterion(some))


@every_criterion
def test_no_weight_at_all_is_zero_on_the_graph(
    criterion: Criterion, predictions: Predictions
) -> None:
    value, gradient = value_and_gradient(
        criterion, predictions.logits, predictions.labels, torch.zeros(200, dtype=torch.float64)
    )
    assert_close(value, torch.zeros_like(value))
    assert_close(gradient, torch.zeros_like(gradient))


@every_criterion
def test_no_sample_left_is_zero_on_the_graph(criterion: Criterion) -> None:
    logits = torch.randn(2, 5, 3, requires_grad=True)
    ignored = torch.full((2, 3), -100)
    value = criterion(Predictions.flatten(logits, ignored))
    assert value.requires_grad or criterion is CRITERIA["accuracy"]
    assert value == 0


@every_criterion
@pytest.mark.parametrize("device", DEVICES)
def test_a_nan_is_passed_on_and_not_stumbled_over(
    criterion: Criterion, predictions: Predictions, device: str
) -> None:
    """On a GPU an index beyond the end would take the whole process down."""
    logits = predictions.logits.float().to(device)
    logits[7, 1] = float("nan")
    value = criterion(Predictions(logits, predictions.labels.to(device)))
    assert value.isnan() or criterion is CRITERIA["accuracy"]


def saturated(n: int, classes: int, size: float) -> Tensor:
    return size * torch.nn.functional.one_hot(torch.arange(n) % classes, classes).float()


FIRST, SECOND = torch.arange(12) % 3, (torch.arange(12) + 1) % 3
HARD: dict[str, tuple[Tensor, Tensor]] = {
    "one right": (torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([0])),
    "one wrong": (torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([1])),
    "two": (torch.tensor([[2.0, 0.0], [0.5, 0.0]]), torch.tensor([0, 1])),
    "two, tied": (torch.zeros(2, 3), torch.tensor([0, 1])),
    "all right": (saturated(12, 3, 1.0), FIRST),
    "all wrong": (saturated(12, 3, 1.0), SECOND),
    "perfect": (saturated(12, 3, 200.0), FIRST),
    "perfectly wrong": (saturated(12, 3, 200.0), SECOND),
    "half sure, half saturated": (
        torch.cat([saturated(6, 3, 200.0), saturated(6, 3, 0.5)]),
        FIRST,
    ),
    "nearly saturated": (saturated(12, 3, 16.0), FIRST),
    "plus and minus sixty": (120 * saturated(12, 3, 1.0) - 60, torch.arange(12) // 2 % 3),
    "tied maxima": (torch.tensor([[1.0, 1.0, 0.0]] * 5), torch.tensor([0, 1, 2, 0, 1])),
    "one class never seen": (torch.randn(9, 4), torch.arange(9) % 3),
    "a class ruled out": (
        torch.tensor([[1.0, 0.0, float("-inf")], [0.5, 1.0, float("-inf")]] * 4),
        torch.tensor([0, 1] * 4),
    ),
}


@every_criterion
@pytest.mark.parametrize("hard", HARD)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str
)
def test_is_finite_on_hard_input(criterion: Criterion, hard: str, dtype: torch.dtype) -> None:
    logits, labels = HARD[hard]
    if hard == "a class ruled out" and criterion in UNDEFINED_WITHOUT_A_CLASS:
        pytest.skip("reads every logit, so a class ruled out costs infinitely much")
    value, gradient = value_and_gradient(criterion, logits.to(dtype), labels)
    assert value.isfinite()
    assert gradient.isfinite().all()


UNDEFINED_WITHOUT_A_CLASS = [
    CRITERIA[name] for name in ("label_smoothing", "squared_logits", "margin_smoothing")
]


@every_criterion
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_class_ruled_out_among_few_samples_leaves_the_gradient_finite(
    criterion: Criterion, n: int
) -> None:
    if criterion in UNDEFINED_WITHOUT_A_CLASS:
        pytest.skip("reads every logit, so a class ruled out costs infinitely much")
    rows = [[1.0, 0.0, float("-inf")], [0.0, 1.0, 0.5], [0.3, 0.2, 0.1]]
    leaf = torch.tensor(rows)[:n].requires_grad_()
    value = criterion(Predictions(leaf, torch.tensor([1, 1, 0])[:n]))
    if value.requires_grad:
        (gradient,) = torch.autograd.grad(1e3 * value, leaf)
        assert gradient.isfinite().all()


@every_criterion
def test_a_sample_of_weight_zero_may_be_infinitely_wrong(criterion: Criterion) -> None:
    logits = torch.tensor([[1.0, 0.0, float("-inf")], [0.0, 1.0, 0.5], [0.3, 0.2, 0.1]])
    weights = torch.tensor([0.0, 1.0, 1.0])
    value = criterion(Predictions(logits, torch.tensor([2, 1, 0]), weights=weights))
    assert_close(value, criterion(Predictions(logits[1:], torch.tensor([1, 0]))))


@every(without("debiased_ece"))
@pytest.mark.parametrize("scale", [1e-30, 0.1, 0.3, 7.0, 1e30])
def test_only_the_proportions_of_weights_matter(
    criterion: Criterion, predictions: Predictions, scale: float
) -> None:
    """Except where they count repeated samples."""
    weights = torch.full((200,), scale, dtype=torch.float64)
    scaled = Predictions(predictions.logits, predictions.labels, weights=weights)
    assert_close(criterion(scaled), criterion(predictions))


@every_criterion
def test_a_metric_read_on_the_way_does_not_cut_the_graph(
    criterion: Criterion, predictions: Predictions
) -> None:
    leaf = predictions.logits.clone().requires_grad_()
    shared = Predictions(leaf, predictions.labels)
    for silent in (torch.no_grad, torch.inference_mode):
        with silent():
            criterion(shared)
    value = criterion(shared)
    _, expected = value_and_gradient(criterion, predictions.logits, predictions.labels)
    if criterion is not CRITERIA["accuracy"]:
        assert_close(torch.autograd.grad(value, leaf)[0], expected)


@every_criterion
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_is_finite_on_uniform_predictions(criterion: Criterion, dtype: torch.dtype) -> None:
    for classes in range(2, 201):
        logits = torch.full((7, classes), 0.1, dtype=dtype)
        value, gradient = value_and_gradient(criterion, logits, torch.arange(7) % classes)
        assert value.isfinite(), classes
        assert gradient.isfinite().all(), classes


@every_criterion
def test_gives_the_same_number_twice_and_leaves_its_input_alone(
    criterion: Criterion, predictions: Predictions
) -> None:
    logits, labels = predictions.logits.clone(), predictions.labels.clone()
    first, second = criterion(predictions), criterion(Predictions(logits, labels))
    assert_close(first, second, rtol=0, atol=0)
    assert_close(predictions.logits, logits, rtol=0, atol=0)
    assert_close(predictions.labels, labels, rtol=0, atol=0)


def test_scores_are_the_means_of_their_per_sample_values(predictions: Predictions) -> None:
    for score in SCORES.values():
        each = score.per_sample(predictions)  # type: ignore[attr-defined]
        assert each.shape == (200,)
        assert_close(score(predictions), each.mean())

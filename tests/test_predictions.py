from collections.abc import Callable
from math import log

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from calibrant import CRITERIA, SCORES, Predictions, Score, class_wise, dca, ece, nll, top_label

LOGITS, LABELS = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5]]), torch.tensor([0, 2])


def test_derived_quantities_agree_with_their_definitions(predictions: Predictions) -> None:
    probs = predictions.logits.softmax(dim=1)
    rows = torch.arange(200)
    assert_close(predictions.probs, probs)
    assert_close(predictions.log_probs, probs.log())
    assert_close(predictions.confidence, probs.max(dim=1).values)
    assert_close(predictions.predicted, probs.argmax(dim=1))
    assert_close(predictions.correct, (probs.argmax(dim=1) == predictions.labels).double())
    assert_close(predictions.true_log_prob, probs[rows, predictions.labels].log())
    assert_close(predictions.entropy, torch.distributions.Categorical(probs=probs).entropy())
    assert_close(predictions.normalised_entropy, predictions.entropy / log(4))


def test_the_soft_rank_tends_to_the_rank(predictions: Predictions) -> None:
    truth = predictions.probs.gather(1, predictions.labels[:, None])
    rank = 1.0 + (predictions.probs > truth).sum(dim=1)
    assert_close(predictions.soft_rank(1e12), rank.double())


def test_each_quantity_is_derived_once(predictions: Predictions) -> None:
    assert predictions.log_probs is predictions.log_probs
    assert predictions.soft_rank(10.0) is predictions.soft_rank(10.0)
    assert predictions.soft_rank(10.0) is not predictions.soft_rank(20.0)


def test_of_tied_maxima_the_first_is_the_prediction_and_takes_the_gradient() -> None:
    logits = torch.zeros(1, 3, requires_grad=True)
    predictions = Predictions(logits, torch.tensor([0]))
    assert predictions.predicted.tolist() == [0]
    (gradient,) = torch.autograd.grad(predictions.confidence.sum(), logits)
    assert_close(gradient, torch.tensor([[2.0, -1.0, -1.0]]) / 9)


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.uint8, torch.int32, torch.bool, torch.uint16, torch.uint64]
)
def test_labels_may_be_any_integers(dtype: torch.dtype) -> None:
    labels = torch.tensor([0, 1])
    assert_close(nll(Predictions(LOGITS, labels.to(dtype))), nll(Predictions(LOGITS, labels)))


def test_pixels_flatten_to_rows(rng: torch.Generator) -> None:
    logits = torch.randn(2, 5, 4, 3, generator=rng)
    labels = torch.randint(5, (2, 4, 3), generator=rng)
    flat = Predictions.flatten(logits, labels)
    assert_close(nll(flat), torch.nn.functional.cross_entropy(logits, labels))


def test_tokens_flatten_to_rows_without_the_ignored(rng: torch.Generator) -> None:
    logits = torch.randn(3, 7, 5, generator=rng)
    labels = torch.randint(5, (3, 7), generator=rng)
    labels[:, 4:] = -100
    flat = Predictions.flatten(logits, labels, class_dim=-1)
    assert len(flat) == 12
    assert_close(
        nll(flat), torch.nn.functional.cross_entropy(logits.reshape(-1, 5), labels.reshape(-1))
    )


def test_weights_flatten_with_their_labels(rng: torch.Generator) -> None:
    logits, labels = torch.randn(3, 7, 5, generator=rng), torch.zeros(3, 7, dtype=torch.long)
    labels[0] = -100
    weights = torch.rand(3, 7, generator=rng)
    flat = Predictions.flatten(logits, labels, class_dim=-1, weights=weights)
    assert flat.weights is not None
    assert_close(flat.weights, weights[1:].reshape(-1))


def test_binary_scores_are_the_log_odds_of_class_one(rng: torch.Generator) -> None:
    scores = torch.randn(20, generator=rng)
    labels = torch.randint(2, (20,), generator=rng)
    binary = Predictions.from_binary(scores, labels)
    assert_close(binary.probs[:, 1], scores.sigmoid())
    bce = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels.float())
    assert_close(nll(binary), bce)


def test_chances_in_place_of_log_odds_are_refused(rng: torch.Generator) -> None:
    chances, labels = torch.rand(20, generator=rng), torch.randint(2, (20,), generator=rng)
    assert chances.max() - chances.min() > 0.75
    with pytest.raises(ValueError, match=r"20 numbers all between 0 and 1.*from_probabilities"):
        Predictions.from_binary(chances, labels)
    with pytest.raises(ValueError, match=r"20 numbers all between 0 and 1.*scores\.logit\(\)"):
        Predictions.from_multilabel(chances.reshape(10, 2), labels.reshape(10, 2))
    assert len(Predictions(torch.stack([-chances / 2, chances / 2], 1), labels)) == 20


def test_log_odds_that_may_lie_between_zero_and_one_are_taken(rng: torch.Generator) -> None:
    scores, labels = torch.rand(20, generator=rng), torch.randint(2, (20,), generator=rng)
    few, untrained = scores[:19], 0.2 + scores / 2
    training = scores.clone().requires_grad_()
    for honest in (few, untrained, training, scores - 0.5):
        binary = Predictions.from_binary(honest, labels[: len(honest)])
        assert_close(binary.probs[:, 1], honest.sigmoid())


def test_several_labels_are_binary_events_of_their_own(rng: torch.Generator) -> None:
    scores = torch.randn(20, 3, generator=rng)
    targets = torch.randint(2, (20, 3), generator=rng)
    several = Predictions.from_multilabel(scores, targets)
    bce = torch.nn.functional.binary_cross_entropy_with_logits(scores, targets.float())
    assert_close(nll(several), bce)
    sure = (scores.sigmoid() - 0.5).abs() + 0.5
    right = ((scores > 0) == targets.bool()).float()
    assert_close(top_label(ece)(several), ece(sure.reshape(-1), right.reshape(-1)))


def test_class_wise_judges_each_label_by_the_chance_of_its_one(rng: torch.Generator) -> None:
    scores = torch.randn(20, 3, generator=rng)
    targets = torch.randint(2, (20, 3), generator=rng)
    weights = torch.rand(20, generator=rng)
    several = Predictions.from_multilabel(scores, targets, weights=weights)
    each = [dca(scores[:, k].sigmoid(), targets[:, k].float(), weights=weights) for k in range(3)]
    assert_close(class_wise(dca)(several), torch.stack(each).mean())


def test_probabilities_are_taken_to_the_last_bit(rng: torch.Generator) -> None:
    probabilities = torch.rand(50, 4, generator=rng).softmax(dim=1)
    told = Predictions.from_probabilities(probabilities, torch.zeros(50, dtype=torch.long))
    assert_close(told.probs, probabilities, rtol=0, atol=0)
    assert_close(told.confidence, probabilities.max(dim=1).values, rtol=0, atol=0)
    again = Predictions(probabilities.log(), told.labels)
    for criterion in CRITERIA.values():
        assert_close(criterion(told), criterion(again), rtol=1e-4, atol=1e-6)


def test_a_probability_of_zero_has_the_logarithm_of_the_smallest_number() -> None:
    told = Predictions.from_probabilities(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    assert_close(nll(told), -torch.tensor(torch.finfo(torch.float32).tiny).log())


def test_of_tied_probabilities_the_first_is_the_prediction() -> None:
    told = Predictions.from_probabilities(torch.full((1, 2), 0.5), torch.tensor([0]))
    assert told.predicted.tolist() == [0]


def test_certain_probabilities_are_finite_in_every_criterion() -> None:
    certain = torch.eye(3).repeat(4, 1).requires_grad_()
    for name, criterion in CRITERIA.items():
        for labels in (torch.arange(12) % 3, torch.arange(12) // 3 % 3):
            value = criterion(Predictions.from_probabilities(certain, labels))
            assert value.isfinite(), name
            if value.requires_grad:
                assert torch.autograd.grad(value, certain)[0].isfinite().all(), name


def test_the_chance_of_class_one_is_enough() -> None:
    chance = torch.tensor([0.2, 0.9])
    told = Predictions.from_probabilities(chance, torch.tensor([0, 1]))
    assert_close(told.confidence, torch.tensor([0.8, 0.9]))


BAD: list[tuple[str, type[Exception], Callable[[], object]]] = [
    (r"logits must be a torch tensor; got ndarray\. Pass torch\.as_tensor", TypeError,
     lambda: Predictions(np.zeros((2, 3)), LABELS)),  # type: ignore[arg-type]
    (r"logits must be floating point; got torch\.int64\. .* order is \(logits, labels\)", TypeError,
     lambda: Predictions(LABELS, LOGITS)),
    (r"logits must have shape \(n, classes\); got \(2, 3, 1\)\. .*flatten", ValueError,
     lambda: Predictions(LOGITS[..., None], LABELS)),
    (r"logits must have shape \(n, classes\); got \(2,\)\. .*from_binary", ValueError,
     lambda: Predictions(LOGITS[:, 0], LABELS)),
    (r"at least one sample; got logits of shape \(0, 3\)", ValueError,
     lambda: Predictions(LOGITS[:0], LABELS[:0])),
    (r"at least two classes; got 1", ValueError, lambda: Predictions(LOGITS[:, :1], LABELS)),
    (r"labels must be a torch tensor; got list", TypeError,
     lambda: Predictions(LOGITS, [0, 2])),  # type: ignore[arg-type]
    (r"labels must hold one class index per row of logits, 2 in all; got shape \(2, 3\)",
     ValueError, lambda: Predictions(LOGITS, LOGITS)),
    (r"got shape \(2, 1\)\. Pass labels\.squeeze\(1\)", ValueError,
     lambda: Predictions(LOGITS, LABELS[:, None])),
    (r"labels must be integers, .*; got torch\.float32\. Pass labels\.long\(\)", TypeError,
     lambda: Predictions(LOGITS, LABELS.float())),
    (r"labels must lie between 0 and 2, .* 3 classes; got 3 in row \d \(counted ", ValueError,
     lambda: Predictions(LOGITS, LABELS + 1)),
    (r"labels must lie between 0 and 2, .*; got -100 in row 1 \(.*ignore_index", ValueError,
     lambda: Predictions(LOGITS, torch.tensor([0, -100]))),
    (r"labels must be on the device of logits, cpu; got meta\. Pass labels\.to", ValueError,
     lambda: Predictions(LOGITS, LABELS.to("meta"))),
    (r"got rows that are probabilities.*from_probabilities", ValueError,
     lambda: Predictions(LOGITS.softmax(dim=1), LABELS)),
    (r"weights must be floating point; got torch\.int64\. Pass weights\.float\(\)",
     ValueError, lambda: Predictions(LOGITS, LABELS, weights=LABELS)),
    (r"weights must hold one number per sample, 2 in all; got shape \(3,\)",
     ValueError, lambda: Predictions(LOGITS, LABELS, weights=torch.ones(3))),
    (r"weights must be finite and not negative; got -1 to 1", ValueError,
     lambda: Predictions(LOGITS, LABELS, weights=torch.tensor([-1.0, 1.0]))),
    (r"each row must sum to one; got values from -1 to 2.*Predictions\(logits, labels\)",
     ValueError, lambda: Predictions.from_probabilities(LOGITS, LABELS)),
    (r"scores must have shape \(n,\); got \(2, 3\)", ValueError,
     lambda: Predictions.from_binary(LOGITS, LABELS)),
    (r"scores and targets must share the shape \(n, labels\); got \(2, 3\) and \(2,\)", ValueError,
     lambda: Predictions.from_multilabel(LOGITS, LABELS)),
    (r"targets must be 0 or 1; got 0 to 2", ValueError,
     lambda: Predictions.from_multilabel(LOGITS, torch.tensor([[0, 1, 2], [0, 0, 0]]))),
    (r"labels must have the shape of logits without dimension 1, \(2, 4\); got \(2, 3\)",
     ValueError, lambda: Predictions.flatten(torch.zeros(2, 3, 4), torch.zeros(2, 3).long())),
    (r"class_dim must name a dimension of logits of shape \(2, 3\); got 5", ValueError,
     lambda: Predictions.flatten(LOGITS, LABELS, class_dim=5)),
    (r"at least one sample; got logits of shape \(0, 3\)", ValueError,
     lambda: Predictions.flatten(torch.zeros(0, 3, 4), torch.zeros(0, 4).long())),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "kind", "build"), BAD, ids=[bad[0][:40] for bad in BAD])
def test_bad_input_gets_one_sentence(
    sentence: str, kind: type[Exception], build: Callable[[], object], unchecked_types: None
) -> None:
    with pytest.raises(kind, match=sentence) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_ordinary_logits_are_never_taken_for_probabilities(rng: torch.Generator) -> None:
    for logits in (torch.eye(3), torch.full((4, 2), 0.5), torch.tensor([[0.3, 0.7]])):
        Predictions(logits, torch.zeros(len(logits), dtype=torch.long))


def test_printing_shows_what_was_given(predictions: Predictions) -> None:
    assert repr(Predictions(LOGITS, LABELS)).startswith("Predictions(logits=tensor(")


def gradient(values: Tensor, logits: Tensor) -> Tensor:
    return torch.autograd.grad(values.sum(), logits, retain_graph=True)[0]


def test_a_class_ruled_out_leaves_every_gradient_finite() -> None:
    logits = torch.tensor([[1.0, 0.0, float("-inf")]], requires_grad=True)
    predictions = Predictions(logits, torch.tensor([0]))
    for derived in (predictions.confidence, predictions.entropy, predictions.soft_rank()):
        assert derived.isfinite().all()
        assert gradient(derived, logits).isfinite().all()


STATISTICS = [
    "probs",
    "log_probs",
    "predicted",
    "confidence",
    "correct",
    "true_prob",
    "true_log_prob",
    "mean_log_prob",
    "sum_of_squares",
    "entropy",
    "normalised_entropy",
]


def chances(dtype: torch.dtype, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Of class 1, with certainty, impossibility and ties among them."""
    chance = torch.rand(200, generator=rng, dtype=torch.float64).to(dtype)
    chance[:6] = torch.tensor([0.0, 1.0, 0.5, 0.5, 0.0, 1.0])
    labels = torch.bernoulli(chance.double(), generator=rng).long()
    labels[:6] = torch.tensor([0, 1, 0, 1, 1, 0])
    return chance, labels


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_chances_of_one_class_are_a_table_of_two_to_the_last_bit(
    dtype: torch.dtype, rng: torch.Generator
) -> None:
    chance, labels = chances(dtype, rng)
    told = Predictions.from_probabilities(chance, labels)
    table = Predictions.from_probabilities(torch.stack([1 - chance, chance], dim=1), labels)
    for name in STATISTICS:
        found, expected = getattr(told, name), getattr(table, name)
        assert found.dtype == expected.dtype, name
        # Some processors round a sum of two squares once, and some thrice.
        last = 4 * torch.finfo(found.dtype).eps if name == "sum_of_squares" else 0
        assert_close(found, expected, rtol=last, atol=0, msg=name)
    assert_close(told.soft_rank(), table.soft_rank(), rtol=0, atol=0)
    assert (told.classes, told.dtype, len(told)) == (table.classes, table.dtype, len(table))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CRITERIA)
def test_criteria_of_chances_are_those_of_the_table(
    name: str, weighted: bool, rng: torch.Generator
) -> None:
    chance, labels = chances(torch.float64, rng)
    weights = torch.rand(200, generator=rng, dtype=torch.float64) if weighted else None
    found, expected = (
        chance[6:].clone().requires_grad_(),
        torch.stack([1 - chance, chance], dim=1)[6:].requires_grad_(),
    )
    values = [
        CRITERIA[name](
            Predictions.from_probabilities(
                given, labels[6:], weights=None if weights is None else weights[6:]
            )
        )
        for given in (found, expected)
    ]
    assert_close(*values)
    if values[0].requires_grad:
        (slope,) = torch.autograd.grad(values[0], found)
        (slopes,) = torch.autograd.grad(values[1], expected)
        assert_close(slope, slopes[:, 1] - slopes[:, 0])


def test_of_two_equal_chances_the_first_has_the_whole_gradient() -> None:
    labels = torch.tensor([0, 1])
    slopes: list[Tensor] = []
    for columns in (1, 2):
        chance = torch.tensor([0.5, 0.5], requires_grad=True)
        table = chance if columns == 1 else torch.stack([1 - chance, chance], dim=1)
        told = Predictions.from_probabilities(table, labels)
        slopes.extend(torch.autograd.grad(told.confidence.sum(), chance))
    assert_close(slopes[0], torch.tensor([-1.0, -1.0]), rtol=0, atol=0)
    assert_close(slopes[1], slopes[0], rtol=0, atol=0)


def test_many_chances_are_read_in_blocks(rng: torch.Generator) -> None:
    chance = torch.rand(40_000, generator=rng)
    told = Predictions.from_probabilities(chance, torch.bernoulli(chance, generator=rng).long())
    blocks = told.probs_in_blocks()
    assert blocks is not None
    assert_close(torch.cat([block.clone() for _, block in blocks]), told.probs, rtol=0, atol=0)
    assert Predictions.from_probabilities(chance[:9], told.labels[:9]).probs_in_blocks() is None


@pytest.mark.parametrize("name", SCORES)
def test_means_of_long_columns_are_taken_by_parts(
    name: str, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.predictions._of_chances._PART", 7)
    chance, labels = chances(torch.float64, rng)
    chance.requires_grad_()
    table = torch.stack([1 - chance, chance], dim=1)
    expected = SCORES[name](Predictions.from_probabilities(table, labels))
    score, sizes = SCORES[name], set()
    assert isinstance(score, Score)

    def watched(predictions: Predictions) -> Tensor:
        sizes.add(len(predictions))
        values: Tensor = score.per_sample(predictions)
        return values

    with torch.no_grad():
        told = Predictions.from_probabilities(chance, labels)
        found = told.mean_of(watched, row_by_row=True)
        assert_close(SCORES[name](told), found, rtol=0, atol=0)
    assert sizes == {7, 200 % 7}
    assert not found.requires_grad
    assert_close(found, expected.detach())
    # Gradients, weights and short columns have the definition.
    sizes.clear()
    recorded = Predictions.from_probabilities(chance, labels)
    assert_close(recorded.mean_of(watched, row_by_row=True), expected)
    with torch.no_grad():
        told.reweighted(torch.ones_like(chance)).mean_of(watched, row_by_row=True)
        few = Predictions.from_probabilities(chance[:6], labels[:6])
        few.mean_of(watched, row_by_row=True)
    assert sizes == {200, 6}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_parts_of_long_columns_have_the_statistics_of_the_whole(
    dtype: torch.dtype, known: bool, rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.predictions._of_chances._PART", 7)
    chance, labels = chances(dtype, rng)
    chance[50], labels[50] = torch.finfo(dtype).tiny / 4, 1  # smaller than any normal number
    both = torch.stack([chance, chance], dim=1)[:, 1]  # numbers that lie apart
    whole, told = (Predictions.from_probabilities(both, labels) for _ in range(2))
    names = ("squared_error", "true_prob", "true_log_prob", "confidence")
    if known:
        _ = told.true_prob
    parts: list[Tensor] = []

    def together(predictions: Predictions) -> Tensor:
        statistics = [getattr(predictions, name) for name in names]
        parts.append(torch.stack(statistics, dim=1))
        return parts[-1].sum(dim=1)

    found = told.mean_of(together, row_by_row=True)
    expected = torch.stack([getattr(whole, name) for name in names], dim=1)
    assert [len(part) for part in parts] == 28 * [7] + [4]
    assert_close(torch.cat(parts), expected, rtol=0, atol=0)
    assert_close(found, expected.sum(dim=1).double().mean().to(found.dtype))


def test_a_score_of_ones_own_sees_the_whole_batch(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrant.predictions._of_chances._PART", 7)
    told = Predictions.from_probabilities(*chances(torch.float64, rng))

    @Score
    def spread(predictions: Predictions) -> Tensor:
        return (predictions.true_prob - predictions.true_prob.mean()).square()

    @Score
    def lead(predictions: Predictions, over: Tensor) -> Tensor:
        return predictions.true_prob - over

    assert_close(spread(told), told.true_prob.var(correction=0))
    assert_close(lead(told, told.true_prob), torch.tensor(0.0).double())


@pytest.mark.parametrize(
    ("chance", "told"),
    [
        (
            torch.tensor([0.2, 1.2]),
            r"got 1\.2 in row 1 \(counted from 0\)\. If these are logits use",
        ),
        (torch.tensor([-0.2, 1.0]), r"got -0\.2 in row 0 "),
        (torch.tensor([0.2, torch.nan]), "got nan in row 1 "),
        (
            torch.tensor([0, 1]),
            r"must be floating point.*got torch.int64",
        ),
    ],
)
def test_what_is_no_chance_is_refused(chance: Tensor, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Predictions.from_probabilities(chance, torch.tensor([0, 1]))


@pytest.mark.parametrize("digits", [2, 3, 6])
def test_rounded_probabilities_are_no_logits(digits: int, rng: torch.Generator) -> None:
    labels = torch.randint(10, (50,), generator=rng)
    probs = torch.randn(50, 10, generator=rng).softmax(dim=1).round(decimals=digits)
    probs[:2] = torch.eye(10)[:2]  # as a forest's are
    with pytest.raises(ValueError, match="got rows that are probabilities"):
        Predictions(probs, labels)
    if digits > 2:
        assert_close(Predictions.from_probabilities(probs, labels).probs, probs)


def test_few_rows_that_nearly_sum_to_one_may_be_logits() -> None:
    assert len(Predictions(torch.tensor([[0.2, 0.83], [0.5, 0.54]]), torch.tensor([0, 1]))) == 2


def test_rows_that_were_rounded_away_are_told_what_to_do() -> None:
    probs = torch.full((4, 8), 0.12)
    with pytest.raises(
        ValueError, match=r"and 0\.96 as the sum of row 0 .*if they were rounded, divide each row"
    ):
        Predictions.from_probabilities(probs, torch.tensor([0, 1, 2, 3]))


def test_no_chances_at_all_are_refused_as_an_empty_table_is() -> None:
    with pytest.raises(ValueError, match="must hold at least one sample"):
        Predictions.from_probabilities(torch.tensor([]), torch.tensor([], dtype=torch.long))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16], ids=str)
@pytest.mark.parametrize("ignored", [-100, 255, 300])
def test_ignored_labels_are_numbers_whatever_their_type(
    dtype: torch.dtype, ignored: int, rng: torch.Generator
) -> None:
    logits, labels = torch.randn(6, 200, generator=rng), torch.tensor([156, 44, 100, 3, 4, 5])
    if dtype == torch.int8:
        labels = labels.clamp(max=100)
    told = Predictions.flatten(logits, labels.to(dtype), ignore_index=ignored)
    assert told.labels.equal(labels)
    kept = Predictions.flatten(logits, labels.to(dtype), ignore_index=100)
    assert kept.labels.equal(labels[labels != 100])

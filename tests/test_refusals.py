"""What a refusal advises, followed to the letter, works."""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch

from calibrant import (
    Estimate,
    Evaluation,
    Predictions,
    Summary,
    TemperatureScaling,
    as_logits,
    calibration_tests,
    compare,
    decompose,
    ece,
    evaluate,
    evaluate_events,
    mean_and_sem,
    nll,
    threshold_for,
)

RNG = torch.Generator().manual_seed(3)
LOGITS = 2 * torch.randn(40, 2, generator=RNG)
LABELS = torch.multinomial(LOGITS.softmax(dim=1), 1, generator=RNG)[:, 0]
SCORES = LOGITS[:, 1] - LOGITS[:, 0]

of_both_kinds = pytest.mark.parametrize("kind", [torch.as_tensor, np.asarray], ids=["torch", "np"])
Kind = Callable[[torch.Tensor], Any]


def judged(*told: Any, **settings: Any) -> Evaluation:
    return evaluate(*told, draws=39, **settings)


EXPECTED = nll(Predictions(LOGITS, LABELS)).item()


def advice(error: type[Exception], *told: Any, **settings: Any) -> str:
    with pytest.raises(error) as refused:
        judged(*told, **settings)
    return str(refused.value)


@of_both_kinds
@pytest.mark.parametrize("column", [False, True])
def test_one_score_per_sample_becomes_two_columns(kind: Kind, column: bool) -> None:
    logits, labels = kind(SCORES[:, None] if column else SCORES), kind(LABELS)
    said = advice(ValueError, logits, labels)
    z = logits[:, 0] if column else logits
    assert f"z = {'logits[:, 0]' if column else 'logits'} per sample" in said
    assert "pass np.stack([np.zeros_like(z), z], axis=1), or torch.stack with dim=1." in said
    of_numpy = np.stack([np.zeros_like(z), z], axis=1)
    tensor = torch.as_tensor(z)
    of_torch = torch.stack([torch.zeros_like(tensor), tensor], dim=1)
    for table in (of_numpy, of_torch):
        assert judged(table, labels)["nll"].value == pytest.approx(EXPECTED)


@of_both_kinds
def test_labels_to_be_ignored_are_left_out(kind: Kind) -> None:
    logits = kind(torch.cat([LOGITS, LOGITS[:5]]))
    labels = kind(torch.cat([LABELS, torch.full((5,), -100)]))
    said = advice(ValueError, logits, labels)
    assert "got -100 in row 40" in said
    assert "pass logits[labels != -100] and labels[labels != -100]" in said
    assert judged(logits[labels != -100], labels[labels != -100])["nll"].value == EXPECTED


@of_both_kinds
def test_tokens_become_one_long_batch(kind: Kind) -> None:
    logits, labels = kind(LOGITS.reshape(4, 10, 2)), kind(LABELS.reshape(4, 10))
    said = advice(ValueError, logits, labels)
    assert "pass logits.reshape(-1, logits.shape[-1]) and labels.reshape(-1)" in said
    flat = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    assert judged(*flat)["nll"].value == EXPECTED


@of_both_kinds
def test_one_hot_labels_become_indices(kind: Kind) -> None:
    labels = kind(torch.eye(2, dtype=torch.int64)[LABELS])
    assert "pass labels.argmax(1)" in advice(ValueError, kind(LOGITS), labels)
    assert judged(kind(LOGITS), labels.argmax(1))["nll"].value == EXPECTED


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("kind", [torch.float32, torch.int64])
def test_one_hot_labels_of_any_type_and_form_are_told_so_at_once(kind: torch.dtype) -> None:
    table = torch.eye(2, dtype=kind)[LABELS].numpy()
    assert "For one-hot labels pass labels.argmax(1)" in advice(ValueError, LOGITS, table)
    assert judged(LOGITS, table.argmax(1))["nll"].value == EXPECTED
    labels: Any
    for labels in (table.tolist(), pytest.importorskip("pandas").DataFrame(table)):
        said = advice(ValueError, LOGITS, labels)
        assert said.endswith(
            "got shape (40, 2). For one-hot labels pass np.asarray(labels).argmax(1)."
        )
        assert judged(LOGITS, np.asarray(labels).argmax(1))["nll"].value == EXPECTED


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("form", ["list", "frame"])
def test_a_column_of_labels_becomes_a_vector_whatever_holds_it(form: str) -> None:
    column: Any = LABELS[:, None].tolist()
    column = column if form == "list" else pytest.importorskip("pandas").DataFrame(column)
    said = advice(ValueError, LOGITS, column)
    assert said.endswith("got shape (40, 1). Pass np.ravel(labels).")
    assert judged(LOGITS, np.ravel(column))["nll"].value == EXPECTED


@pytest.mark.usefixtures("unchecked_types")
def test_what_holds_no_labels_is_not_taken_for_names() -> None:
    said = "got {}. Pass one for each sample, in an array or a list."
    every: tuple[Any, ...] = (None, {"labels": LABELS}, iter(LABELS.tolist()), np.array(None))
    for labels in every:
        found = advice(TypeError, LOGITS, labels)
        assert found.endswith(said.format(type(labels).__name__))
    assert advice(ValueError, LOGITS, []).endswith("40 in all; got shape (0,).")
    assert "at least 3 samples; got 0" in advice(ValueError, np.empty((0, 2)), [])


@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_array_is_told_how_to_be_one() -> None:
    sparse = pytest.importorskip("scipy.sparse").csr_matrix(LOGITS.numpy())
    assert advice(TypeError, sparse, LABELS).endswith("got csr_matrix. Pass logits.toarray().")
    assert judged(sparse.toarray(), LABELS)["nll"].value == EXPECTED
    rows: Any = (row for row in LOGITS.numpy())
    assert advice(TypeError, rows, LABELS).endswith("got generator. Pass list(logits).")
    assert judged(list(rows), LABELS)["nll"].value == EXPECTED
    for nothing in (None, np.array(None)):
        assert advice(TypeError, nothing, LABELS).endswith(
            f"got {type(nothing).__name__}. Pass numbers."
        )
    with pytest.raises(TypeError, match=r"^values must be .* got ndarray\. Pass numbers\.$"):
        mean_and_sem(None)


@pytest.mark.usefixtures("unchecked_types")
def test_predictions_become_what_is_asked_for() -> None:
    predictions: Any = Predictions(LOGITS, LABELS)
    said = "got Predictions. Pass predictions.logits and predictions.labels."
    assert advice(TypeError, predictions, LABELS).endswith(said)
    assert judged(predictions.logits, predictions.labels)["nll"].value == EXPECTED
    with pytest.raises(TypeError, match=r"Pass predictions\.confidence and predictions\.correct\."):
        evaluate_events(predictions, LABELS, draws=39)
    found = evaluate_events(predictions.confidence, predictions.correct, draws=39)
    assert found["ece"].value == pytest.approx(judged(LOGITS, LABELS)["ece"].value)


@pytest.mark.usefixtures("unchecked_types")
@of_both_kinds
@pytest.mark.parametrize("probabilities", [False, True])
def test_whole_numbers_become_logits_or_probabilities(kind: Kind, probabilities: bool) -> None:
    hard = torch.eye(2, dtype=torch.int64)[LABELS]
    table = kind(hard if probabilities else (2 * LOGITS).round().long())
    said = advice(TypeError, table, kind(LABELS), probabilities=probabilities)
    assert "Pass np.asarray(logits, dtype=float), or logits.double() of torch; if these" in said
    found = [judged(np.asarray(table, dtype=float), kind(LABELS), probabilities=probabilities)]
    found.append(judged(torch.as_tensor(table).double(), LABELS, probabilities=probabilities))
    build = Predictions.from_probabilities if probabilities else Predictions
    expected = nll(build(torch.as_tensor(table).double(), LABELS)).item()
    assert [one["nll"].value for one in found] == [pytest.approx(expected)] * 2
    with pytest.raises((TypeError, ValueError), match=r"Pass (logits|probabilities)\.float\(\)"):
        build(torch.as_tensor(table), LABELS)


@pytest.mark.usefixtures("unchecked_types")
def test_one_number_is_no_row() -> None:
    one: Any = 0.5
    assert "(n, classes), of two classes at least; got ()." in advice(ValueError, one, LABELS)
    assert "or (n,); got ()." in advice(ValueError, one, LABELS, probabilities=True)
    assert "40 in all; got shape ()." in advice(ValueError, LOGITS, LABELS, weights=one)
    with pytest.raises(ValueError, match=r"one number per event; got shape \(\)\."):
        evaluate_events(one, 1, draws=39)  # type: ignore[arg-type]


@of_both_kinds
def test_a_column_of_confidences_becomes_a_vector(kind: Kind) -> None:
    confidence, outcome = kind(SCORES.sigmoid()[:, None]), kind(LABELS)
    said = (
        r"got shape \(40, 1\)\. Pass np\.ravel\(confidence\), or confidence\.ravel\(\) of torch\.$"
    )
    with pytest.raises(ValueError, match=said):
        evaluate_events(confidence, outcome, draws=39)
    for one in (np.ravel(confidence), confidence.ravel()):
        assert evaluate_events(one, outcome, draws=39)["nll"].value == pytest.approx(EXPECTED)


def test_classes_in_place_of_outcomes_are_judged_first() -> None:
    predictions = Predictions(LOGITS, LABELS)
    for unknown in (2 * LABELS, torch.where(LABELS == 0, torch.nan, 1.0)):
        with pytest.raises(ValueError, match=r"To judge classes pass predicted == labels; leave"):
            evaluate_events(predictions.confidence, unknown, draws=39)
    right = LOGITS.argmax(1) == LABELS
    found = evaluate_events(predictions.confidence, right, draws=39)
    assert found["accuracy"].value == pytest.approx(predictions.correct.mean().item())


def test_classes_are_counted_also_of_chances() -> None:
    said = advice(ValueError, SCORES.sigmoid(), LABELS + 1, probabilities=True)
    assert said.startswith("labels must lie between 0 and 1, since there are 2 classes; got 2 in")


@of_both_kinds
def test_a_column_of_chances_becomes_a_vector(kind: Kind) -> None:
    logits = kind(SCORES.sigmoid()[:, None])
    said = advice(ValueError, logits, kind(LABELS), probabilities=True)
    assert "pass logits[:, 0]" in said
    found = judged(logits[:, 0], kind(LABELS), probabilities=True)
    assert found["nll"].value == pytest.approx(EXPECTED)


@of_both_kinds
def test_log_odds_in_place_of_chances_become_chances(kind: Kind) -> None:
    logits = kind(SCORES)
    said = advice(ValueError, logits, kind(LABELS), probabilities=True)
    assert "pass 1 / (1 + np.exp(-logits)), or logits.sigmoid() of torch" in said
    given = kind is torch.as_tensor
    chances = logits.sigmoid() if given else 1 / (1 + np.exp(-logits))
    found = judged(chances, kind(LABELS), probabilities=True)
    assert found["nll"].value == pytest.approx(EXPECTED, rel=1e-5)


@of_both_kinds
def test_probabilities_in_place_of_logits_are_named_or_turned_round(kind: Kind) -> None:
    probabilities = kind(LOGITS.softmax(dim=1))
    said = advice(ValueError, probabilities, kind(LABELS))
    assert "Pass probabilities=True, or as_logits(probabilities)." in said
    for found in (
        judged(probabilities, kind(LABELS), probabilities=True),
        judged(as_logits(probabilities), kind(LABELS)),
    ):
        assert found["nll"].value == pytest.approx(EXPECTED)


def test_logits_in_place_of_probabilities_need_not_be_named() -> None:
    for logits in (LOGITS, LOGITS.abs() / LOGITS.abs().max()):
        said = advice(ValueError, logits, LABELS, probabilities=True)
        assert "If these are logits, leave out probabilities=True" in said
        judged(logits, LABELS)


def test_a_table_of_a_comparison_is_called_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"^first must have shape .* z = first per sample"):
        compare(SCORES, SCORES, LABELS)


def test_the_order_of_logits_and_labels_is_told() -> None:
    assert "the order is (logits, labels)" in advice(TypeError, LABELS, LOGITS)


def test_words_become_outcomes_and_texts_become_numbers() -> None:
    sure, outcome = [0.9, 0.8, 0.6], ["yes", "no", "yes"]
    told = r"of 'no' and 'yes'\. Pass np\.asarray\(outcome\) == word, with the word that means 1\.$"
    with pytest.raises(TypeError, match=told):
        evaluate_events(sure, outcome, draws=39)
    found = evaluate_events(sure, np.asarray(outcome) == "yes", draws=39)
    assert found["accuracy"].value == pytest.approx(2 / 3)
    confidence = ["0.9", "0.8", "0.6"]
    with pytest.raises(TypeError, match=r"Pass np\.asarray\(confidence, dtype=float\)"):
        evaluate_events(confidence, [1, 0, 1], draws=39)
    evaluate_events(np.asarray(confidence, dtype=float), [1, 0, 1], draws=39)


# Of any types, where NumPy's own annotations are narrow.
masked_array: Callable[..., Any] = np.ma.masked_array

ARGUMENTS: dict[str, Any] = {
    "logits": LOGITS.numpy(),
    "labels": LABELS.numpy(),
    "weights": np.arange(1.0, 41.0),
    "groups": np.arange(40) % 2,
}


@cache
def whole() -> Mapping[str, Estimate]:
    return judged(**ARGUMENTS).rows


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_is_masked_is_left_out_by_whoever_masked_it(name: str) -> None:
    """The mask would be lost, and what it hides be counted."""
    added = {key: np.concatenate([x, x[:3]]) for key, x in ARGUMENTS.items()}
    mask = np.zeros(added[name].shape, dtype=bool)
    mask[-3:] = True
    masked = added | {name: masked_array(added[name], mask)}
    said = advice(ValueError, **masked)
    size = mask.size
    assert f"{name} must have no masked entries; got {mask.sum()} of {size}." in said
    rows = ".any(axis=1)" if name == "logits" else ""
    assert f"kept = ~np.ma.getmaskarray({name}){rows}, then {name}[kept], and the same" in said
    hidden = np.ma.getmaskarray(masked[name])
    kept = ~hidden.any(axis=1) if name == "logits" else ~hidden
    assert judged(**{key: x[kept] for key, x in masked.items()}).rows == whole()


def test_nothing_masked_is_no_mask() -> None:
    bare = {name: masked_array(x) for name, x in ARGUMENTS.items()}
    assert judged(**bare).rows == whole()
    sure, outcome = [0.9, 0.9, 0.9, 0.1], [1, 1, 1, 0]
    with pytest.raises(ValueError, match=r"confidence must have no masked entries; got 1 of 4\."):
        evaluate_events(masked_array(sure, [0, 0, 0, 1]), outcome, draws=39)
    with pytest.raises(ValueError, match=r"outcome must have no masked entries; got 1 of 4\."):
        evaluate_events(sure, masked_array(outcome, [0, 0, 0, 1]), draws=39)
    with pytest.raises(ValueError, match=r"probabilities must have no masked entries"):
        as_logits(masked_array(sure, [0, 0, 0, 1]))
    scaled = TemperatureScaling()
    with pytest.raises(ValueError, match=r"logits must have no masked entries; got 1 of 80\."):
        scaled.fit(masked_array(LOGITS.numpy(), np.arange(80).reshape(40, 2) == 7), LABELS)


def test_what_rounding_adds_to_certainty_is_taken_by_everything_alike() -> None:
    """A softmax may end at 1.0000001; what is left of it, below zero."""
    outcome = torch.tensor([1, 1, 0, 0, 1])
    sure = torch.tensor([1.0000001, 0.75, 0.5, -1e-7, 1.0009])
    inside = sure.clamp(0, 1)
    assert sure[0] > 1
    for kind in (torch.as_tensor, np.asarray):
        found = evaluate_events(kind(sure), kind(outcome), draws=39)
        assert found.rows == evaluate_events(inside, outcome, draws=39).rows
        found = judged(kind(sure), kind(outcome), probabilities=True)
        assert found.rows == judged(inside, outcome, probabilities=True).rows
        assert np.array_equal(as_logits(kind(sure)), as_logits(kind(inside)))
        summary = Summary(None).add_events(kind(sure), kind(outcome))
        assert summary.values() == Summary(None).add_events(inside, outcome).values()
        assert decompose((kind(sure), kind(outcome))) == decompose((inside, outcome))
    assert ece(sure, outcome).item() == pytest.approx(ece(inside, outcome).item(), abs=1e-3)
    told, same = (Predictions.from_probabilities(x, outcome) for x in (sure, inside))
    assert torch.equal(told.probs, same.probs)


@of_both_kinds
def test_what_is_more_than_rounding_is_named_by_everything_alike(kind: Kind) -> None:
    outcome = torch.tensor([1, 1, 0])
    takers: list[Callable[[Any, Any], object]] = [
        lambda sure, came: evaluate_events(sure, came, draws=39),
        lambda sure, came: judged(sure, came, probabilities=True),
        lambda sure, _: as_logits(sure),
        lambda sure, came: Summary(None).add_events(sure, came),
        lambda sure, came: decompose((sure, came)),
        lambda sure, came: ece(torch.as_tensor(sure), torch.as_tensor(came)),
    ]
    for wrong, said in ((1.0011, "1.0011"), (-0.0011, "-0.0011"), (90.0, "90")):
        sure = torch.tensor([1.0000001, wrong, wrong])
        told = rf"must lie between 0 and 1; got {said} in row 1 \(counted from 0\), .* of 2\."
        for take in takers:
            with pytest.raises(ValueError, match=told):
                take(kind(sure), kind(outcome))


@of_both_kinds
def test_log_odds_in_place_of_confidences_become_confidences(kind: Kind) -> None:
    confidence, outcome = kind(SCORES), kind(LABELS)
    said = r"pass 1 / \(1 \+ np\.exp\(-confidence\)\), or confidence\.sigmoid\(\) of torch"
    with pytest.raises(ValueError, match=said):
        evaluate_events(confidence, outcome, draws=39)
    given = kind is torch.as_tensor
    chances = confidence.sigmoid() if given else 1 / (1 + np.exp(-confidence))
    assert evaluate_events(chances, outcome, draws=39)["nll"].value == pytest.approx(EXPECTED)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("logits", "abc", "got str of 'abc'. Pass numbers."),
        ("logits", {"a": 1}, "got dict. Pass numbers."),
        ("weights", ["b", "a"] * 20, "got list of 'a' and 'b'. Pass numbers."),
        ("weights", [1.0] * 7 + [None] * 33, "with no value in row 7 (counted from 0). Leave such"),
    ],
)
def test_only_outcomes_are_advised_to_compare_words(name: str, given: Any, said: str) -> None:
    told = {"logits": LOGITS, "labels": LABELS} | {name: given}
    found = advice(TypeError, **told)
    assert found.startswith(f"{name} must be a torch tensor or a NumPy array of numbers; got ")
    assert said in found


def test_whole_numbers_that_are_objects_become_labels() -> None:
    labels = LABELS.numpy().astype(object)
    said = advice(TypeError, LOGITS, labels)
    assert said.endswith("got objects. Pass np.asarray(labels, dtype=int).")
    assert judged(LOGITS, np.asarray(labels, dtype=int))["nll"].value == EXPECTED
    assert "got str 'cat'. Map names to indices first" in advice(TypeError, LOGITS, ["cat"] * 40)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("form", ["Int64", "float64", "object"])
def test_a_label_that_is_missing_is_named_with_its_row(form: str) -> None:
    pandas = pytest.importorskip("pandas")
    missing = [None if row in (6, 9) else label for row, label in enumerate(LABELS.tolist())]
    labels = pandas.Series(missing, dtype=form)
    said = advice(TypeError, LOGITS, labels)
    assert "got no value in row 6 (counted from 0). Leave such rows out" in said
    kept = ~labels.isna().to_numpy()
    judged(LOGITS[kept], np.asarray(labels[kept], dtype=int))


def test_a_table_of_objects_becomes_one_of_numbers() -> None:
    table = LOGITS.numpy().astype(object)
    assert "Pass np.asarray(logits, dtype=float)." in advice(TypeError, table, LABELS)
    judged(np.asarray(table, dtype=float), LABELS)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("flag", ["yes", "no", 1, None])
def test_whether_these_are_probabilities_is_told_by_true_or_false(flag: Any) -> None:
    told = rf"^probabilities must be True or False; got {flag!r}\.$"
    for take in (
        lambda: judged(LOGITS, LABELS, probabilities=flag),
        lambda: compare(LOGITS, LOGITS, LABELS, probabilities=flag, draws=39),
    ):
        with pytest.raises(ValueError, match=told):
            take()
    assert judged(LOGITS, LABELS, probabilities=np.False_)["nll"].value == EXPECTED
    table: Any = LOGITS.softmax(dim=1)
    said = advice(ValueError, LOGITS, LABELS, probabilities=table)
    assert said == "probabilities must be True or False; got Tensor."  # not all of it


def test_tensors_that_hold_no_table_get_one_sentence() -> None:
    sparse = LOGITS.to_sparse()
    said = advice(TypeError, sparse, LABELS)
    assert said == "logits must be dense; got torch.sparse_coo. Pass logits.to_dense()."
    assert judged(sparse.to_dense(), LABELS)["nll"].value == EXPECTED
    told = "must hold numbers; got a tensor on the meta device, which holds none"
    assert advice(ValueError, LOGITS.to("meta"), LABELS).startswith(f"logits {told}")
    for name in ("weights", "groups"):
        assert advice(ValueError, **ARGUMENTS | {name: LABELS.to("meta")}).startswith(name)


@pytest.mark.usefixtures("unchecked_types")
def test_tests_of_calibration_say_what_they_take() -> None:
    logits: Any
    for test in (calibration_tests, decompose, partial(threshold_for, risk=0.1)):
        for logits in (LOGITS, LOGITS.numpy()):
            for error, asked in ((TypeError, logits), (ValueError, (logits, LABELS))):
                with pytest.raises(error) as refused:
                    test(asked)
                assert re.search(r"\. For logits pass .*, of tensors\.$", str(refused.value))
    first = calibration_tests(Predictions(LOGITS, LABELS), draws=39)
    table = LOGITS.softmax(dim=1)
    of_table = calibration_tests(Predictions.from_probabilities(table, LABELS), draws=39)
    assert first.esd.statistic == pytest.approx(of_table.esd.statistic)


@pytest.mark.parametrize(
    ("test", "settings"),
    [(calibration_tests, {"draws": 39}), (decompose, {}), (threshold_for, {"coverage": 0.5})],
)
def test_logits_and_labels_are_one_argument_of_who_judges_forecasts(
    test: Callable[..., Any], settings: dict[str, Any]
) -> None:
    confidence, outcome = torch.tensor([0.6, 0.7, 0.8]), torch.tensor([1, 0, 1])
    for told in ((LOGITS, LABELS), (confidence, outcome), (LOGITS, LABELS, 39)):
        with pytest.raises(TypeError) as refused:
            test(*told, **settings)
        assert str(refused.value).startswith(
            f"{test.__name__} takes Predictions or a pair (confidence, outcome) as one argument; "
            f"got {len(told)}. Put a pair in brackets of its own. For logits pass Predictions("
        )
    assert test((confidence, outcome), **settings) == test(
        forecasts=(confidence, outcome), **settings
    )
    test(Predictions(LOGITS, LABELS), **settings)


def test_more_bins_than_tell_anything_are_refused() -> None:
    said = advice(ValueError, LOGITS, LABELS, bins=1001)
    assert said.startswith("bins must be at most 1,000, ")
    assert said.endswith("got 1,001. Usual is 15.")
    assert judged(LOGITS, LABELS, bins=1000)["class_wise_ece"].value > 0

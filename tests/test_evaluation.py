"""One table for any predictions: the package's own numbers, with intervals."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from torch import Tensor

from calibrant import CRITERIA, Predictions
from calibrant.evaluation import (
    Estimate,
    Evaluation,
    _crowds,
    _lots,
    compare,
    evaluate,
    evaluate_events,
    prediction_sets,
)
from calibrant.evaluation import _inputs as evaluation_inputs
from calibrant.evaluation._estimates import estimates
from calibrant.evaluation._ranking import auroc, risk_coverage_area
from calibrant.evaluation._rows import rows_of_events
from calibrant.recalibration import _inputs as recalibration_inputs

LOGITS = Path(__file__).parents[2] / "shared/data/logits"
ROWS = [
    *("accuracy", "nll", "brier", "ece", "ece_l2", "mce", "ece_mass", "ece_mass_l2"),
    *("label_binned_ece", "debiased_ece", "sweep_ece", "smooth_ece", "ks_error", "esd", "mmce"),
    *("auroc", "risk_coverage_area", "class_wise_ece", "marginal_ece", "per_class_ece"),
    *("avu", "mean_entropy"),
]
OF_EVENTS = [name for name in ROWS if name not in ROWS[17:]]


pytestmark = pytest.mark.usefixtures("one_thread")


def world(n: int = 150, classes: int = 3) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(11)
    logits = 2 * torch.randn(n, classes, generator=rng)
    labels = torch.multinomial((logits / 1.5).softmax(dim=1), 1, generator=rng)[:, 0]
    return logits, labels


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    logits, labels = world()
    return evaluate(logits, labels, draws=39, groups=["b" if k % 3 else "a" for k in range(150)])


def test_has_every_row_in_order_with_finite_intervals(evaluation: Evaluation) -> None:
    assert list(evaluation.rows) == ROWS
    for name, row in evaluation.rows.items():
        assert np.isfinite([row.value, row.low, row.high]).all(), name
        assert row.low <= row.high, name
        assert row.low >= 0, name


@pytest.mark.parametrize("name", [name for name in ROWS if name in CRITERIA])
def test_values_are_those_of_the_catalogue_to_the_last_bit(
    name: str, evaluation: Evaluation
) -> None:
    assert evaluation[name].value == CRITERIA[name](Predictions(*world())).item()


def test_scores_agree_with_scikit_learn() -> None:
    logits, labels = world()
    probabilities = logits.double().softmax(dim=1)
    found = evaluate(logits.double(), labels, draws=39)
    assert found["nll"].value == pytest.approx(log_loss(labels, probabilities))
    one_hot = np.eye(3)[labels]
    squares = sum(brier_score_loss(one_hot[:, j], probabilities[:, j]) for j in range(3))
    assert found["brier"].value == pytest.approx(squares)
    confidence, predicted = probabilities.max(dim=1)
    right = predicted == labels
    assert found["auroc"].value == pytest.approx(roc_auc_score(right, confidence))


def test_auroc_with_ties_and_weights_agrees_with_scikit_learn(rng: torch.Generator) -> None:
    confidence = torch.randint(0, 6, (80,), generator=rng).double() / 5
    outcome = torch.randint(0, 2, (80,), generator=rng).double()
    weights = torch.rand(80, generator=rng, dtype=torch.float64)
    expected = roc_auc_score(outcome, confidence, sample_weight=weights)
    assert auroc(confidence, outcome, weights=weights).item() == pytest.approx(expected)


def test_risk_coverage_area_is_the_mean_risk_of_the_most_confident(rng: torch.Generator) -> None:
    confidence = torch.rand(50, generator=rng, dtype=torch.float64)
    outcome = torch.randint(0, 2, (50,), generator=rng).double()
    best_first = outcome[confidence.argsort(descending=True)]
    risks = [(1 - best_first[: k + 1]).mean().item() for k in range(50)]
    assert risk_coverage_area(confidence, outcome).item() == pytest.approx(np.mean(risks))


def test_avu_counts_the_right_that_are_certain_and_the_wrong_that_are_not() -> None:
    sure, unsure = [9.0, 0.0, 0.0], [0.2, 0.1, 0.0]
    logits = torch.tensor([sure, sure, unsure, unsure, unsure])
    found = evaluate(logits, torch.tensor([0, 1, 0, 1, 2]), draws=39)
    assert found["avu"].value == pytest.approx(3 / 5)


def test_torch_numpy_lists_and_probabilities_give_one_answer() -> None:
    logits, labels = world(40)
    found = evaluate(logits, labels, draws=39)
    assert evaluate(logits.numpy(), labels.numpy(), draws=39) == found
    assert evaluate(logits.numpy().astype(">f4"), labels.numpy().astype(">i4"), draws=39) == found
    probabilities = logits.double().softmax(dim=1)
    told = evaluate(probabilities, labels, probabilities=True, draws=39)
    double = evaluate(logits.double(), labels, draws=39)
    for name in ROWS:
        assert told[name].value == pytest.approx(double[name].value, abs=1e-9), name
    sure, right = [0.9, 0.8, 0.7], [True, False, True]
    events = evaluate_events(sure, right, draws=39)
    assert (
        evaluate_events(torch.tensor(sure, dtype=torch.float64), torch.tensor(right), draws=39)
        == events
    )


def test_the_seed_decides_the_intervals_and_nothing_else() -> None:
    logits, labels = world(60)
    first, again, other = (evaluate(logits, labels, draws=39, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first["ece"].value == other["ece"].value
    assert first["nll"].low != other["nll"].low


def test_weight_zero_is_no_sample_and_a_common_factor_is_nothing() -> None:
    logits, labels = world(60)
    kept = torch.arange(60) < 45
    some = evaluate(logits[kept], labels[kept], draws=39)
    masked = evaluate(logits, labels, weights=kept.double(), draws=39)
    tripled = evaluate(logits, labels, weights=3 * kept.double(), draws=39)
    for name in ROWS:
        ends = masked[name].value, masked[name].low, masked[name].high
        expected = some[name].value, some[name].low, some[name].high
        assert ends == pytest.approx(expected, abs=1e-6), name
    for name in ("ece", "esd", "nll", "auroc"):
        assert tripled[name].low == pytest.approx(masked[name].low, abs=1e-6), name


@pytest.mark.parametrize("together", [False, True])
def test_a_weight_that_vanishes_beside_the_largest_is_none(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its square is lost, and a bin or a crowd may hold nothing else."""
    if together:
        monkeypatch.setattr(_crowds, "SINGLY_UP_TO", 50)
        monkeypatch.setattr(_lots, "SINGLY_UP_TO", 50)
    rng = torch.Generator().manual_seed(0)
    confidence = 0.5 + 0.5 * torch.rand(120, generator=rng, dtype=torch.float64)
    confidence[7] = 1e-5
    outcome = torch.bernoulli(confidence, generator=rng)
    plain = torch.ones(120, dtype=torch.float64)
    plain[7] = 0
    expected = evaluate_events(confidence, outcome, weights=plain, draws=39)
    for own, other in ((1e-170, 1.0), (1e-300, 1.0), (1.0, 1e170)):
        weights = torch.full_like(plain, other)
        weights[7] = own
        found = evaluate_events(confidence, outcome, weights=weights, draws=39)
        for name, row in expected.rows.items():
            ends = (found[name].value, found[name].low, found[name].high)
            assert ends == pytest.approx((row.value, row.low, row.high), rel=1e-6, abs=1e-9), name
    alone = evaluate_events(confidence, outcome, weights=1e-200 * plain, draws=39)
    assert alone["mce"].high == pytest.approx(expected["mce"].high)


def test_a_bin_whose_weight_is_next_to_nothing_has_a_largest_gap() -> None:
    weights = torch.ones(60, dtype=torch.float64)
    weights[0] = 1e-99
    confidence = torch.full((60,), 0.75, dtype=torch.float64)
    confidence[0] = 0.05
    outcome = (torch.arange(60) % 4 > 0).double()
    found = evaluate_events(confidence, outcome, weights=weights, draws=39)
    assert 0 <= found["mce"].low <= found["mce"].high <= 1


def test_few_that_count_among_many_have_their_own_intervals() -> None:
    """Resamples of all would often have none of them."""
    rng = torch.Generator().manual_seed(0)
    confidence = torch.rand(20_000, generator=rng, dtype=torch.float64)
    outcome, weights = torch.ones(20_000), torch.zeros(20_000)
    weights[:4] = 1
    found = evaluate_events(confidence, outcome, weights=weights, draws=39)
    few = evaluate_events(confidence[:4], outcome[:4], draws=39)
    assert found["accuracy"].low == 1
    for name, row in few.rows.items():
        ends = (found[name].value, found[name].low, found[name].high)
        assert ends == pytest.approx((row.value, row.low, row.high), rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("scale", [1e-120, 1 / 150, 1e3, 1e120, 1e300])
def test_intervals_have_no_unit_of_weights(scale: float) -> None:
    logits, labels = world()
    rng = torch.Generator().manual_seed(0)
    weights = torch.rand(len(labels), generator=rng, dtype=torch.float64) + 0.5
    expected = evaluate(logits, labels, weights=weights, draws=39)
    found = evaluate(logits, labels, weights=scale * weights, draws=39)
    for name, row in expected.rows.items():
        ends = (found[name].value, found[name].low, found[name].high)
        assert ends == pytest.approx((row.value, row.low, row.high), rel=1e-6, abs=1e-9), name


def test_weights_of_one_over_n_are_no_weights_in_any_row_or_group() -> None:
    logits, labels = world()
    logits, groups = 3 * logits, ["b" if k % 3 else "a" for k in range(150)]
    alike = evaluate(logits, labels, groups=groups, draws=39)
    found = evaluate(logits, labels, weights=torch.full((150,), 1 / 150), groups=groups, draws=39)
    assert alike["debiased_ece"].value > 0.01
    for one, other in ((found, alike), *((found.groups[x], alike.groups[x]) for x in "ab")):
        for name, row in other.rows.items():
            ends = (one[name].value, one[name].low, one[name].high)
            assert ends == pytest.approx((row.value, row.low, row.high), rel=1e-5, abs=1e-7), name


def test_whole_weights_are_counts_to_the_debiased_error() -> None:
    logits, labels = world(60)
    times = torch.arange(60) % 3
    often = evaluate(logits.repeat_interleave(times, 0), labels.repeat_interleave(times), draws=39)
    found = evaluate(logits, labels, weights=times, draws=39)
    assert found["debiased_ece"].value == pytest.approx(often["debiased_ece"].value, rel=1e-6)


def test_accuracy_is_exact_in_float32() -> None:
    logits, labels = world()
    share = int((logits.argmax(dim=1) == labels).sum()) / 150
    assert evaluate(logits, labels, draws=39)["accuracy"].value == share
    sure, right = torch.full((150,), 0.6), logits.argmax(dim=1) == labels
    assert evaluate_events(sure, right, draws=39)["accuracy"].value == share


def test_events_have_the_rows_that_need_no_more_and_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    sure = rng.random(200)
    right = rng.random(200) < sure
    found = evaluate_events(sure, right, draws=39)
    assert list(found.rows) == [*OF_EVENTS[:3], "mean_confidence", *OF_EVENTS[3:]]
    assert found["accuracy"].value == pytest.approx(right.mean())
    assert found["brier"].value == pytest.approx(brier_score_loss(right, sure))
    assert found["nll"].value == pytest.approx(log_loss(right, sure))


def test_many_events_are_no_more_often_right_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sure = rng.random(200)
    right = rng.random(200) < sure
    expected = evaluate_events(sure, right, draws=39)
    monkeypatch.setattr("calibrant.predictions._of_chances._PART", 7)
    found = evaluate_events(sure, right, draws=39)
    for name, row in expected.rows.items():
        assert found[name].value == pytest.approx(row.value, rel=1e-12)


PERFECT = 50 * torch.eye(4).repeat(10, 1)
EXTREME = {
    "perfect": (PERFECT, torch.arange(40) % 4),
    "always wrong": (PERFECT, (torch.arange(40) + 1) % 4),
    "all the same": (torch.tensor([[1.0, 0.0]]).repeat(40, 1), torch.arange(40) % 2),
    "three": (torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.5, 0.0]]), torch.tensor([0, 1, 1])),
}


@pytest.mark.parametrize("case", EXTREME)
def test_extreme_predictions_have_finite_intervals(case: str) -> None:
    for name, row in evaluate(*EXTREME[case], draws=39).rows.items():
        assert np.isfinite([row.value, row.low, row.high]).all(), name
        assert 0 <= row.low <= row.high, name


def test_a_calibrated_model_may_be_calibrated_and_an_over_confident_one_not() -> None:
    rng = torch.Generator().manual_seed(3)
    logits = 2 * torch.randn(600, 3, generator=rng)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    calibrated, sure = (evaluate(t * logits, labels, draws=40) for t in (1, 4))
    for name in ("ece", "ece_mass", "ece_l2", "ks_error", "esd", "mmce", "class_wise_ece"):
        assert calibrated[name].low == 0, name
        assert calibrated[name].high > 0, name
        assert sure[name].low > 0, name


def test_groups_are_evaluated_on_their_own(evaluation: Evaluation) -> None:
    logits, labels = world()
    own = torch.arange(150) % 3 == 0
    alone = evaluate(logits[own], labels[own], draws=39)
    assert evaluation.groups["a"] == alone
    assert {name: one.n for name, one in evaluation.groups.items()} == {"a": 50, "b": 100}


@pytest.mark.parametrize(
    ("small", "worst"), [((0.21, 0.0), "large"), ((0.21, 0.08), "small"), ((0.21, 0.07), "small")]
)
def test_the_worst_group_is_the_one_surely_furthest_off(
    small: tuple[float, float], worst: str
) -> None:
    """Not the smallest, whose error is mostly noise; between equals the value decides."""
    value, low = small
    ece = {"small": Estimate(value, low, 0.35, 99), "large": Estimate(0.083, 0.07, 0.1, 99)}
    each = {name: Evaluation({"ece": row}, 9, {}) for name, row in ece.items()}
    found = Evaluation({"ece": ece["large"]}, 99, {}, each)
    assert found.worst_group == worst
    assert found.worst_gap == ece[worst]


def test_is_a_mapping_of_its_rows(evaluation: Evaluation) -> None:
    assert "ece" in evaluation
    assert "no such row" not in evaluation
    assert list(evaluation) == list(evaluation.rows)
    assert dict(evaluation) == evaluation.rows
    assert len(evaluation) == len(evaluation.rows)
    assert evaluation.get("no such row") is None


def test_a_first_evaluation_does_not_load_a_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from calibrant import calibration_tests, compare, evaluate, Predictions\n"
        "logits, labels = torch.randn(200, 3), torch.randint(3, (200,))\n"
        "evaluate(logits, labels, draws=50)\n"
        "calibration_tests(Predictions(logits, labels), draws=50)\n"
        "compare(logits, 2 * logits, labels, draws=50)\n"
        "print(sorted({'sympy', 'torch._dynamo', 'torch._inductor'} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_prints_a_table_of_at_most_eighty_columns(evaluation: Evaluation) -> None:
    lines = str(evaluation).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(line.startswith(name) for line in lines) for name in ROWS)
    assert f" in {evaluation.worst_group}, " in lines[-1]
    long = evaluate(*world(9), draws=39, groups=["x" * 200] * 9)
    assert max(map(len, str(long).splitlines())) <= 80


def test_a_row_with_fewer_draws_says_so() -> None:
    confidence, ones = torch.rand(20).double(), torch.ones(20).double()
    rows = rows_of_events(confidence, ones, ones, None, 15)
    some = {name: rows[name] for name in ("ece", "smooth_ece")}
    found = Evaluation(estimates(some, ones, draws=120, level=0.9, seed=0), 20, {"draws": 120})
    assert (found["ece"].draws, found["smooth_ece"].draws) == (120, 100)
    assert "100 draws" in next(x for x in str(found).splitlines() if x.startswith("smooth_ece"))


def test_json_holds_everything_and_is_written_whole(evaluation: Evaluation, tmp_path: Path) -> None:
    path = tmp_path / "evaluation.json"
    text = evaluation.to_json(path)
    assert path.read_text() == text
    assert Evaluation.from_dict(json.loads(text)) == evaluation
    assert json.loads(text) == evaluation.to_dict()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_evaluation_is_not_read_as_one() -> None:
    with pytest.raises(ValueError, match="to_dict gave; got nothing under 'rows'"):
        Evaluation.from_dict({})


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text("before")

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space"):
        evaluation.to_json(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_markdown_has_a_line_for_every_row(evaluation: Evaluation) -> None:
    text = evaluation.to_markdown()
    assert all(f"\n| {name} | " in text for name in ROWS)
    assert "| :--- | ---: | ---: | ---: |" in text


def test_a_frame_needs_pandas_and_says_so(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas: pip install .calibrant\[frame\]"):
        evaluation.to_frame()


def test_a_frame_has_a_line_for_every_row(evaluation: Evaluation) -> None:
    pytest.importorskip("pandas")
    frame = evaluation.to_frame()
    assert list(frame["row"]) == 3 * ROWS
    assert set(frame["group"]) == {"", "a", "b"}


def test_an_unknown_row_is_named(evaluation: Evaluation) -> None:
    with pytest.raises(KeyError, match="no row is called 'ecce'; there are accuracy, nll"):
        evaluation["ecce"]


Z, Y = world(6)
BAD = {
    "logits must hold numbers; got NaN in row 2": (
        torch.where(torch.arange(6) == 2, torch.nan, Z.T).T,
        Y,
    ),
    "got NaN for row 1 .*, the first of 1": (
        torch.where(torch.arange(6) == 1, torch.inf, Z.T).T,
        Y,
    ),
    r"rows that are probabilities: .*\. Pass probabilities=True": (Z.softmax(dim=1), Y),
    r"class indices, .*; got str '\d'\. Map names .* np\.searchsorted": (Z, Y.numpy().astype(str)),
    r"class indices, .*; got str 'cat'\. Map": (Z, ["cat", "dog"] * 3),
    r"float64\. Pass np\.asarray\(labels, dtype=int\)": (Z, Y.double().numpy()),
    "labels must lie between 0 and 2.* got 3 in row 1 \\(counted from 0\\)": (Z, Y + 2),
    "labels must hold one class index per row": (Z, Y[:5]),
    "labels must be integers": (Z, Y.float()),
    r"logits must have shape \(n, classes\)": (Z[:, 0], Y),
    "at least 3 samples; got 2": (Z[:2], Y[:2]),
    "logits must be a torch tensor or a NumPy array": (["a"], Y),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_predictions_are_refused_in_one_sentence(sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        evaluate(*BAD[sentence], draws=39)  # type: ignore[arg-type]


def test_bad_settings_are_refused_in_one_sentence() -> None:
    for settings, sentence in (
        ({"bins": 0}, "bins must be a whole number"),
        ({"draws": 0}, "draws must be a whole number"),
        ({"level": 95}, "level must lie between 0 and 1; got 95"),
        ({"seed": -1}, r"seed must be a whole number from 0 to 2\*\*63 - 1; got -1"),
        ({"seed": 2**64}, "seed must be a whole number"),
        ({"weights": -torch.ones(6)}, "weights must be finite and not negative"),
        ({"weights": torch.full((6,), torch.nan)}, "weights must be finite and not negative"),
        ({"weights": torch.zeros(6)}, "weights must not all be zero"),
        ({"weights": [1, 1, 0, 0, 0, 0]}, "at least 3 samples that count; got 2"),
        (
            {"groups": [1, 1, 1, 2, 2, 2], "weights": [0, 1, 1, 1, 1, 1]},
            "at least 3 samples that count in every group, also in '1'; got 2",
        ),
        ({"weights": torch.ones(5)}, "weights must hold one number per sample, 6 in all"),
        ({"groups": [1, 2]}, "groups must hold one entry per sample, 6 in all"),
        ({"groups": [1, 1, 1, 1, 1, 2]}, "in every group, also in '2'; got 1"),
        (
            {"groups": [1, 1, 1, 2, 2, 2], "weights": [0, 0, 0, 1, 1, 1]},
            "weights must not all be zero in any group; they are in '1'",
        ),
        ({"groups": [1.0, 2.0, np.nan] * 2}, "number for every sample; got no value in row 2 "),
        ({"probabilities": True}, "each row must sum to one.* leave out probabilities=True"),
    ):
        with pytest.raises(ValueError, match=sentence):
            evaluate(Z, Y, **settings)


@pytest.mark.parametrize("check", [evaluation_inputs, recalibration_inputs])
def test_a_label_that_only_a_device_has_seen_is_named_with_its_row(check: ModuleType) -> None:
    check.check_labels_in_range(torch.tensor([0, 2, 1], dtype=torch.uint8), 3)
    for labels in ([0, 1, -1, 9], [0, 1, 3, -7]):
        with pytest.raises(ValueError, match=rf"got {labels[2]} in row 2 \(counted from 0\)"):
            check.check_labels_in_range(torch.tensor(labels), 3)


def test_settings_may_be_numbers_of_numpy(unchecked_types: None) -> None:
    plain = evaluate(Z, Y, bins=5, draws=40, level=0.5, seed=3)
    of_numpy = {"bins": np.int64(5), "draws": np.int32(40), "seed": np.uint8(3)}
    found = evaluate(Z, Y, **of_numpy, level=np.float32(0.5))  # type: ignore[arg-type]
    assert found == plain
    assert json.loads(found.to_json())["settings"] == {
        "bins": 5,
        "draws": 40,
        "level": 0.5,
        "seed": 3,
    }


def test_draws_that_cannot_tell_the_level_are_refused() -> None:
    for level, needed in ((0.95, 39), (0.9, 19), (0.99, 199)):
        sentence = rf"at least {needed} for a level of {level}: fewer cannot .* got {needed - 1}\."
        with pytest.raises(ValueError, match=sentence):
            evaluate(Z, Y, draws=needed - 1, level=level)
        with pytest.raises(ValueError, match=sentence):
            evaluate_events([0.9, 0.8, 0.7], [1, 0, 1], draws=needed - 1, level=level)
        # Also a row that is slow, and draws less often than the rest, draws as often as it takes.
        found = evaluate(Z, Y, draws=needed, level=level)
        assert {row.draws for row in found.rows.values()} == {needed}
    often = evaluate(Z, Y, draws=300)
    assert min(row.draws for row in often.rows.values()) == 100


@pytest.mark.parametrize("as_given", [list, tuple, lambda x: np.array(x, dtype=object)])
def test_a_number_and_its_name_are_not_one_group(as_given: Callable[[list[Any]], Any]) -> None:
    with pytest.raises(TypeError, match=r"all names or all numbers; got int, str\. Spell every"):
        evaluate(Z, Y, groups=as_given([1, "1"] * 3), draws=39)
    spelt = evaluate(Z, Y, groups=as_given(["1", "one"] * 3), draws=39)
    assert list(spelt.groups) == ["1", "one"]
    counted = evaluate(Z, Y, groups=as_given([1, 2] * 3), draws=39)
    assert list(counted.groups) == ["1", "2"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_groups_may_be_a_tensor_of_any_type_and_on_a_graph(dtype: torch.dtype) -> None:
    groups = torch.tensor([0.5, 2.0] * 3, dtype=dtype, requires_grad=True)
    assert list(evaluate(Z, Y, groups=groups, draws=39).groups) == ["0.5", "2.0"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_how_far_rows_may_be_off_is_the_same_for_every_type_and_everywhere(
    dtype: torch.dtype,
) -> None:
    # Off by 1/128 and 1/64, which half precision holds exactly.
    for off, taken in ((1 / 128, True), (1 / 64, False)):
        chances = torch.tensor([[0.5, 0.5], [0.75, 0.25], [0.25, 0.75 - off]]).to(dtype)
        labels = torch.tensor([0, 0, 1])
        for take in (
            lambda told, true: Predictions.from_probabilities(told, true),
            lambda told, true: evaluate(told, true, probabilities=True, draws=39),
            lambda told, true: compare(told, told, true, probabilities=True, draws=39),
            lambda told, true: prediction_sets(Predictions(told.log(), true), told),
        ):
            if taken:
                take(chances, labels)
            else:
                with pytest.raises(
                    ValueError, match=r"sum to one.* and 0\.984375 as the sum of row 2 "
                ):
                    take(chances, labels)


def test_a_probability_above_one_is_named_with_its_row() -> None:
    chances = torch.tensor([[0.5, 0.5], [1.005, 0.0], [0.25, 0.75]])
    with pytest.raises(ValueError, match=r"between 0 and 1; got 1\.005 in row 1 .* by its sum"):
        evaluate(chances, torch.tensor([0, 0, 1]), probabilities=True, draws=39)


@pytest.mark.parametrize(("off", "taken"), [(0.0099, True), (-0.0099, True), (0.0101, False)])
def test_rows_of_probabilities_may_be_off_by_a_hundredth(off: float, taken: bool) -> None:
    chances = Z.double().softmax(1)
    chances[0, 0] += off
    if taken:
        found = Predictions.from_probabilities(chances, Y).probs[0].sum().item()
        assert found == pytest.approx(1 + off)
        brier = (chances - torch.eye(3)[Y]).square().sum(dim=1).mean().item()
        said = evaluate(chances, Y, probabilities=True, draws=39)["brier"].value
        assert said == pytest.approx(brier, rel=1e-9)
    else:
        with pytest.raises(
            ValueError, match=r"each row must sum to one.* and 1\.0101 as the sum of row 0 "
        ):
            Predictions.from_probabilities(chances, Y)
        with pytest.raises(
            ValueError, match=r"each row must sum to one.* and 1\.0101 as the sum of row 0 "
        ):
            evaluate(chances, Y, probabilities=True, draws=39)
    logits, labels = Z[:, 1], torch.zeros(6, dtype=torch.long)
    with pytest.raises(ValueError, match=r"If these are logits, pass 1 / \(1 \+ np\.exp\(-logits"):
        evaluate(logits, labels, probabilities=True)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_no_interval_reaches_beyond_what_its_measure_can_be(classes: int) -> None:
    unbounded = {"nll", "mean_entropy"}
    highest = {"brier": 2.0, "class_wise_ece": 2 / classes, "marginal_ece": (2 / classes) ** 0.5}
    for n in (3, 5, 8):
        logits, labels = world(n, classes)
        for scale in (0.3, 1.0, 4.0):
            for name, row in evaluate(scale * logits, labels, draws=50).rows.items():
                most = highest.get(name, 1.0)
                assert name in unbounded or 0 <= row.low <= row.high <= most, name
                assert name in unbounded or row.value <= most + 1e-6, name


def test_the_highest_error_over_classes_is_that_of_a_model_always_sure_and_wrong() -> None:
    logits, labels = 50 * torch.eye(4).repeat(10, 1), (torch.arange(40) + 1) % 4
    found = evaluate(logits, labels, draws=39)
    assert found["class_wise_ece"].value == pytest.approx(2 / 4)
    assert found["class_wise_ece"].high == pytest.approx(2 / 4)


def test_bad_events_are_refused_in_one_sentence() -> None:
    half = np.full(4, 0.5)
    for sure, right, sentence in (
        (80 * half, [0, 1, 0, 1], "confidence must lie between 0 and 1; got 40 in row 0 "),
        (half, [0, 1, 2, -1], r"outcome must be 0 or 1.* got 2 in row 2 \(counted from 0\)"),
        (half, [0, 1], "outcome must hold one entry per confidence, 4 in all"),
        (half[:2], [0, 1], "at least 3 samples"),
        (np.array([0.5, np.nan, 0.5]), [0, 1, 1], "got NaN in row 1"),
        (np.ones((4, 2)), [0, 1, 1, 0], r"one number per event; got shape \(4, 2\)"),
        ([1, 0, 1, 1], [0, 1, 1, 0], r"floating point.*int64\. Pass np\.asarray\(confidence"),
    ):
        with pytest.raises(ValueError, match=sentence):
            evaluate_events(sure, right, draws=39)


@pytest.mark.skipif(not LOGITS.exists(), reason="needs the released logits")
def test_resnet_110_on_cifar_10_has_the_error_the_literature_prints() -> None:
    kept = np.load(LOGITS / "resnet110-cifar10.npz")
    logits, labels = (kept[name] for name in ("test_logits", "test_labels"))
    found = evaluate(logits, labels.astype(np.int64), draws=39)
    assert found.n == 10_000
    assert 100 * found["ece"].value == pytest.approx(4.75, abs=0.005)


def test_a_written_file_may_be_read_by_whom_the_user_allows(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    path, usual = tmp_path / "evaluation.json", tmp_path / "usual"
    usual.touch()
    evaluation.to_json(path)
    assert path.stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_auroc_may_be_anything_where_all_outcomes_are_alike(
    outcome: float, weighed: bool, rng: torch.Generator
) -> None:
    confidence, right = torch.rand(40, generator=rng), torch.full((40,), outcome)
    weights = None
    if weighed:  # one that differs, and does not count
        right[0], weights = 1 - outcome, (torch.arange(40) > 0).float()
    found = evaluate_events(confidence, right, weights=weights, draws=39)["auroc"]
    assert (found.value, found.low, found.high) == (0.5, 0, 1)
    right[:20] = 1 - outcome
    found = evaluate_events(confidence, right, weights=weights, draws=39)["auroc"]
    assert 0 < found.low < found.high < 1


def test_lists_of_tensors_on_a_graph_are_evaluated(rng: torch.Generator) -> None:
    logits, labels = torch.randn(40, 3, generator=rng), torch.arange(40) % 3
    each = [*logits.clone().requires_grad_()]
    found = evaluate(each, [*labels], draws=39)
    assert found.rows == evaluate(logits, labels, draws=39).rows
    with pytest.raises(TypeError, match=r"tensors of one shape; .* Pass torch\.cat\(confidence\)"):
        evaluate_events([torch.rand(30), torch.rand(10)], labels == 0, draws=39)
    chances = [[row[0], row[1]] for row in each]
    with pytest.raises(TypeError, match=r"got lists of tensors\. Pass torch\.stack\(\["):
        evaluate_events(chances, labels == 0, draws=39)


def test_complex_outcomes_and_weights_are_refused(rng: torch.Generator) -> None:
    confidence, right = torch.rand(40, generator=rng), (torch.arange(40) % 2).to(torch.complex64)
    with pytest.raises(TypeError, match=r"outcome must hold real .*complex64\. Pass np\.real\(out"):
        evaluate_events(confidence, right, draws=39)
    weights = np.ones(40) + 1j
    with pytest.raises(TypeError, match=r"weights must hold real .*complex128\. Pass np\.real\(w"):
        evaluate_events(confidence, right.real, weights=weights, draws=39)

"""The monitor: its law, what it sees, and what it forgets."""

from math import exp, isclose, log
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import calibrant as cal
from calibrant.evaluation import CalibrationMonitor
from calibrant.evaluation._bets import DIRECTIONS, growth


def bet(chance: float, gambler: int, tolerance: float) -> tuple[float, float]:
    """What gambler `gambler` multiplies its stake by: if the event happens, and if not."""
    shifts, factors = (0.1, 0.25, 0.6, 1.5), (1.1, 1.3, 1.7, 3.0)
    if gambler >= 12:
        no, yes = bet(1 - chance, gambler - 12, tolerance)
        return yes, no
    claimed = chance - tolerance
    if claimed <= 1e-6:
        return 1.0, 1.0
    claimed = min(claimed, 1 - 1e-6)
    odds = log(claimed / (1 - claimed))
    if gambler < 4:
        new = odds - shifts[gambler]
    else:
        factor, away = factors[(gambler - 4) // 2], (gambler - 4) % 2
        new = (
            odds * factor if away and odds < 0 else odds / factor if not away and odds > 0 else odds
        )
    told = 1 / (1 + exp(-new))
    return told / claimed, (1 - told) / (1 - claimed)


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
@pytest.mark.parametrize("chance", [0.0, 0.03, 0.3, 0.5, 0.8, 0.97, 1.0])
@pytest.mark.parametrize("happened", [0.0, 1.0])
def test_gains_are_those_of_the_bets_written_out(
    chance: float, happened: float, tolerance: float
) -> None:
    confidence = torch.tensor([chance], dtype=torch.float64)
    gained = growth(confidence, torch.tensor([happened]), tolerance)
    expected = [bet(chance, k, tolerance)[0 if happened else 1] for k in range(24)]
    assert_close(gained, torch.tensor(expected, dtype=torch.float64).log())


@pytest.mark.parametrize("tolerance", [0.0, 0.02, 0.2])
def test_no_gambler_expects_to_gain_while_the_gap_is_tolerable(tolerance: float) -> None:
    for chance in (0.001, 0.1, 0.35, 0.5, 0.62, 0.9, 0.999):
        for gap in (-1.0, -0.5, 0.0, 0.5, 1.0):
            truth = min(max(chance + gap * tolerance, 0.0), 1.0)
            for gambler in range(24):
                yes, no = bet(chance, gambler, tolerance)
                assert truth * yes + (1 - truth) * no <= 1 + 1e-12


def test_every_gambler_gains_where_its_own_story_is_true() -> None:
    chance = torch.tensor([0.2, 0.8], dtype=torch.float64)
    for gambler, direction in enumerate(DIRECTIONS.tolist()):
        expected = 0.0
        for c in chance.tolist():
            yes, no = bet(c, gambler, 0.0)
            truth = c * yes  # the chance this gambler believes in
            expected += truth * log(yes) + (1 - truth) * log(no)
            assert (truth - c) * direction >= 0
        assert expected > 0


def evidence_by_definition(gains: Tensor) -> list[float]:
    """The total of all stakes, one start and one gambler at a time."""
    found = []
    for t in range(1, len(gains) + 1):
        total = 1 / (t + 1)
        for j in range(1, t + 1):
            for k in range(gains.shape[1]):
                share = 1 / (j * (j + 1)) / gains.shape[1]
                total += share * exp(gains[j - 1 : t, k].sum().item())
        found.append(total)
    return found


def test_evidence_is_the_capital_of_all_starts_and_gamblers(rng: torch.Generator) -> None:
    gains = torch.randn(7, 24, generator=rng, dtype=torch.float64)
    monitor = CalibrationMonitor()
    found = [monitor.advance(row, 10).evidence for row in gains]
    assert all(map(isclose, found, evidence_by_definition(gains)))


@pytest.mark.parametrize(("capital", "alarm"), [(38.99, False), (39.01, True)])
def test_the_bar_is_one_over_the_rate_of_false_alarms(capital: float, alarm: bool) -> None:
    found = CalibrationMonitor().advance(torch.full((24,), log(capital), dtype=torch.float64), 1)
    assert found.evidence == pytest.approx(0.5 + 0.5 * capital)  # half of it was not yet at stake
    assert found.alarm == alarm == (found.evidence > 20)


def test_parts_of_a_window_add_up_and_their_order_is_irrelevant(rng: torch.Generator) -> None:
    confidence = torch.rand(90, generator=rng)
    outcome = torch.bernoulli(confidence, generator=rng)
    whole = growth(confidence, outcome, 0.02)
    parts = growth(confidence[50:], outcome[50:], 0.02) + growth(
        confidence[:50], outcome[:50], 0.02
    )
    assert_close(parts, whole)
    one = CalibrationMonitor().update((confidence, outcome))
    assert CalibrationMonitor().advance(whole, 90) == one


def simulated(
    rng: torch.Generator, gaps: list[float], tolerance: float, n: int = 100
) -> CalibrationMonitor:
    monitor = CalibrationMonitor(tolerance=tolerance)
    for gap in gaps:
        confidence = 0.5 + 0.5 * torch.rand(n, generator=rng, dtype=torch.float64)
        outcome = torch.rand(n, generator=rng, dtype=torch.float64) < confidence - gap
        monitor.update((confidence, outcome))
    return monitor


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_false_alarms_over_all_windows_keep_the_promise(
    rng: torch.Generator, tolerance: float
) -> None:
    """The full simulation is benchmarks/monitor.py; this is its smallest relative."""
    runs, windows, n = 200, 30, 100
    confidence = 0.5 + 0.5 * torch.rand(runs, windows, n, generator=rng, dtype=torch.float64)
    drawn = torch.rand(runs, windows, n, generator=rng, dtype=torch.float64)
    gained = growth(confidence, (drawn < confidence - tolerance).double(), tolerance)
    alarms = 0
    for run in gained:
        monitor = CalibrationMonitor(tolerance=tolerance)
        alarms += any([monitor.advance(window, n).alarm for window in run])
    assert alarms / runs <= 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.parametrize(("gap", "direction"), [(0.1, "over-confident"), (-0.1, "under-confident")])
def test_a_drift_is_seen_and_its_beginning_is_named(
    rng: torch.Generator, gap: float, direction: str
) -> None:
    calm, drifted = [0.0] * 20, [gap] * 6
    monitor = simulated(rng, calm + drifted, 0.02, n=1000)
    alarm = monitor.alarm
    assert alarm is not None
    assert 20 <= alarm.window <= 21
    assert alarm.direction == direction
    assert abs(alarm.since - 20) <= 1
    assert [each.alarm for each in monitor.windows] == [False] * alarm.window + [True] * (
        26 - alarm.window
    )


def test_a_gap_within_the_tolerance_is_nobodys_worry(rng: torch.Generator) -> None:
    gaps = [0.04] * 20
    assert simulated(rng, gaps, 0.05, n=1000).alarm is None
    assert simulated(rng, gaps, 0.0, n=1000).alarm is not None


def test_an_alarm_stays_an_alarm_though_the_evidence_is_lost_again() -> None:
    monitor = CalibrationMonitor()
    assert monitor.advance(torch.full((24,), 5.0), 1).alarm
    found = monitor.advance(torch.full((24,), -9.0), 1)
    assert found.alarm
    assert found.evidence < monitor.bar
    assert monitor.alarm == monitor.windows[0]


def test_the_luckiest_start_is_the_best_of_all_sums_until_now(rng: torch.Generator) -> None:
    gains = torch.randn(12, 24, generator=rng, dtype=torch.float64) - 0.3
    monitor = CalibrationMonitor()
    for t, row in enumerate(gains):
        found = monitor.advance(row, 1)
        sums = {(j, k): gains[j : t + 1, k].sum().item() for j in range(t + 1) for k in range(24)}
        start, gambler = max(sums, key=lambda pair: sums[pair])
        over = DIRECTIONS[gambler] < 0
        assert (found.since, found.direction == "over-confident") == (start, bool(over))


def test_certainty_that_fails_is_finite_evidence() -> None:
    found = CalibrationMonitor(tolerance=0.0).update((torch.ones(4), torch.zeros(4)))
    assert found.alarm
    assert found.evidence < float("inf")
    right = CalibrationMonitor(tolerance=0.0).update((torch.ones(4), torch.ones(4)))
    assert not right.alarm


def test_more_evidence_than_a_float_can_hold_is_still_a_number() -> None:
    monitor = CalibrationMonitor()
    found = monitor.update((torch.full((5000,), 0.99), torch.zeros(5000)))
    assert found.alarm
    assert 1e300 < found.evidence < float("inf")


def test_predictions_are_judged_by_their_top_label(predictions: cal.Predictions) -> None:
    of_events = CalibrationMonitor().update((predictions.confidence, predictions.correct))
    assert CalibrationMonitor().update(predictions) == of_events


def test_a_monitor_goes_on_from_what_was_kept(rng: torch.Generator) -> None:
    monitor = simulated(rng, [0.0, 0.05, 0.02], 0.02)
    again = CalibrationMonitor.from_dict(monitor.to_dict())
    assert again.windows == monitor.windows
    window = (torch.rand(50, generator=rng), torch.ones(50))
    assert again.update(window) == monitor.update(window)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"false_alarms": 0.0}, r"false_alarms must lie between 0 and 1; got 0\.0"),
        ({"tolerance": 0.5}, r"tolerance must lie between 0 and a half; got 0\.5"),
        ({"tolerance": -0.1}, r"tolerance must lie"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CalibrationMonitor(**settings)


def test_it_says_in_a_line_what_it_has_seen() -> None:
    monitor = CalibrationMonitor()
    assert repr(monitor) == "CalibrationMonitor(no window yet, alarm at evidence 20)"
    monitor.advance(torch.zeros(len(DIRECTIONS)), 1_200)
    calm = "CalibrationMonitor(1 window, 1,200 events, evidence 1 of 20, no alarm)"
    assert str(monitor) == repr(monitor) == calm
    monitor.advance(torch.where(torch.as_tensor(DIRECTIONS) < 0, 7.0, -7.0), 800)
    loud = "2 windows, over-confident since 1, alarm in 1"
    assert repr(monitor) == f"CalibrationMonitor({loud})"


@pytest.mark.usefixtures("unchecked_types")
def test_a_window_needs_an_event_and_no_weights(predictions: cal.Predictions) -> None:
    with pytest.raises(ValueError, match="at least one event"):
        CalibrationMonitor().update((torch.zeros(0), torch.zeros(0)))
    others: list[Any] = [cal.Summary(4).add(predictions), predictions.logits, (1, 2, 3)]
    for other in others:
        with pytest.raises(TypeError, match=r"a pair \(confidence, outcome\); got (Sum|Ten|tup)"):
            CalibrationMonitor().update(other)
    weighted = predictions.reweighted(torch.ones(200, dtype=torch.float64))
    with pytest.raises(ValueError, match="must not have weights"):
        CalibrationMonitor().update(weighted)

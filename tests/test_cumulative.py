import torch
from forecasts import Forecasts, as_tensors, forecasts
from hypothesis import given
from torch.testing import assert_close

from calibrant import dca, ks_error, mdca
from calibrant.predictions import Predictions


@given(forecasts())
def test_ks_is_the_largest_running_gap_after_a_group_of_ties(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    running = [
        (outcome - confidence)[confidence <= threshold].sum().abs() / len(confidence)
        for threshold in confidence.unique()
    ]
    assert_close(ks_error(confidence, outcome), max(running))


@given(forecasts())
def test_dca_is_the_gap_of_the_means(drawn: Forecasts) -> None:
    confidence, outcome = as_tensors(drawn)
    assert_close(dca(confidence, outcome), (outcome.mean() - confidence.mean()).abs())


def test_mdca_is_the_mean_gap_over_classes(predictions: Predictions) -> None:
    gaps = [
        (predictions.probs[:, k].mean() - (predictions.labels == k).double().mean()).abs()
        for k in range(4)
    ]
    assert_close(mdca(predictions), torch.stack(gaps).mean())

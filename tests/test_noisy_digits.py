"""The papers' promise on real data: interleaved ESD is better calibrated at little accuracy."""

import runpy
from pathlib import Path

import calibrant as cal

EXAMPLE = Path(__file__).parents[1] / "examples" / "noisy_digits.py"


def test_interleaved_esd_lowers_the_calibration_error_of_plain_training() -> None:
    """Five folds, fixed seeds, one weight; the margins are wide."""
    example = runpy.run_path(str(EXAMPLE))
    runs = example["pooled"]((4.0,), 25)
    (plain, _), (interleaved, weights) = runs["NLL"], runs["NLL + ESD"]
    assert 0.08 < example["ECE"](plain) < 0.16
    assert example["ECE"](interleaved) < example["ECE"](plain) - 0.02
    assert cal.accuracy(interleaved) > cal.accuracy(plain) - 0.04
    assert weights.count(4.0) >= 3

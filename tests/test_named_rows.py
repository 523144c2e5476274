"""A criterion is known as the row of `evaluate` that it is, however it was written."""

from functools import partial

import pytest

from calibrant import class_wise, ece, label_binned_ece, mmce, nll, top_label
from calibrant.evaluation._named import FAST, NAMES, ROWS, Known, known, named


@pytest.mark.parametrize("name", NAMES)
def test_what_a_name_stands_for_is_known_again(name: str) -> None:
    binned = (
        name in FAST and name not in ("accuracy", "nll", "brier") and "bins" in repr(named(name, 7))
    )
    assert known(named(name)) == (Known(name) if name in ROWS else None)
    assert known(named(name, 7)) == (Known(name, 7 if binned else 15) if name in ROWS else None)


def test_settings_that_make_another_measure_make_another_row() -> None:
    for measure in (
        partial(ece, norm=3),
        partial(ece, norm=2, binning="mass", bins=15),
        partial(mmce, bandwidth=0.1),
        partial(label_binned_ece, norm=2),
    ):
        found = known(top_label(measure))
        assert found == (
            Known("ece_mass_l2")
            if measure.keywords.get("norm") == 2 and measure.func is ece
            else None
        )
    assert known(top_label(partial(mmce, bandwidth=0.4))) == Known("mmce")
    assert known(class_wise(partial(ece, norm=1))) == Known("class_wise_ece")
    assert known(class_wise(ece, norm=2)) is None
    assert known(nll) is None

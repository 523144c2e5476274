"""Tables and figures of Karandikar et al., "Soft Calibration Objectives", NeurIPS 2021."""

from ._every_pair import TABLE_2
from ._figures import (
    FIGURE_1,
    FIGURE_2,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FIGURE_8,
    FIGURE_9,
    FIGURE_10,
)
from ._other_errors import TABLE_4, TABLE_5, TABLE_6
from ._tables import TABLE_1, TABLE_3

STUDIES = {
    "soft-table-1": TABLE_1,
    "soft-table-2": TABLE_2,
    "soft-table-3": TABLE_3,
    "soft-table-4": TABLE_4,
    "soft-table-5": TABLE_5,
    "soft-table-6": TABLE_6,
    "soft-figure-1": FIGURE_1,
    "soft-figure-2": FIGURE_2,
    "soft-figure-3": FIGURE_3,
    "soft-figure-4": FIGURE_4,
    "soft-figure-5": FIGURE_5,
    "soft-figure-6": FIGURE_6,
    "soft-figure-7": FIGURE_7,
    "soft-figure-8": FIGURE_8,
    "soft-figure-9": FIGURE_9,
    "soft-figure-10": FIGURE_10,
}

"""Tables and figures of Yoon et al., "ESD", ICLR 2023."""

from ._figures import FIGURE_1, FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6
from ._tables import TABLE_1, TABLE_2, TABLE_3

STUDIES = {
    "esd-table-1": TABLE_1,
    "esd-table-2": TABLE_2,
    "esd-table-3": TABLE_3,
    "esd-figure-1": FIGURE_1,
    "esd-figure-2": FIGURE_2,
    "esd-figure-3": FIGURE_3,
    "esd-figure-4": FIGURE_4,
    "esd-figure-5": FIGURE_5,
    "esd-figure-6": FIGURE_6,
}

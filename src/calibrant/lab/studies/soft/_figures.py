"""Figures of Karandikar et al., "Soft Calibration Objectives", NeurIPS 2021. Values."""

from collections.abc import Mapping
from dataclasses import replace

from ..._study import Budget, Claim, Column, Study
from ._every_pair import TABLE_2
from ._protocol import (
    ARMS,
    BUDGETS,
    CHOSEN,
    CHOSEN_ARMS,
    CIFAR,
    NOTE,
    PAPER,
    PRIMARY,
    QUICK_CIFAR,
    QUICK_GRIDS,
    QUICK_SETTINGS,
    RULE,
    SETTINGS,
)
from ._tables import ECE

SHIFT = {"shift": (1, 2, 3, 4, 5)}
SHIFTED = {
    "paper": Budget(CIFAR, seeds=10, settings={**SETTINGS, **SHIFT}),
    "quick": Budget(QUICK_CIFAR, seeds=3, settings={**QUICK_SETTINGS, **SHIFT}, grids=QUICK_GRIDS),
}


def with_shift(columns: Mapping[str, Column], *under: str) -> dict[str, Column]:
    """Columns, and some of them once more as means over all corruptions and severities."""
    shifted = {f"{label} under shift": replace(columns[label], split="shift") for label in under}
    return {**columns, **shifted}


TS, TS_SB_ECE = "ECE+TS under shift", "ECE+TS-SB-ECE under shift"
FIGURE_1 = Study(
    title="Effect of each secondary loss on ECE, as Cohen's d",
    paper=PAPER,
    place="Figure 1",
    arms=ARMS,
    columns=TABLE_2.columns,
    rule=RULE,
    note=NOTE,
    budgets=TABLE_2.budgets,
    figure="effect",
    figure_settings={"primaries": tuple(PRIMARY), "columns": ("ECE", "ECE+TS")},
)
FIGURE_2 = Study(
    title="Temperature by likelihood and by SB-ECE, under shift",
    paper=PAPER,
    place="Figure 2",
    arms={"NLL": ARMS["NLL"]},
    columns=with_shift(TABLE_2.columns, "ECE+TS", "ECE+TS-SB-ECE"),
    spread="sem",
    rule=RULE,
    note=NOTE,
    claims=(
        Claim("ECE+TS-SB-ECE", "NLL", "NLL", against="ECE+TS"),
        Claim(TS_SB_ECE, "NLL", "NLL", against=TS),
    ),
    budgets=SHIFTED,
    figure="shift",
    figure_settings={"panels": (("ECE", "ECE+TS", "ECE+TS-SB-ECE"),)},
)
FIGURE_3 = Study(
    title="The soft bin-membership function",
    paper=PAPER,
    place="Figure 3",
    figure="membership",
    figure_settings={"bins": 15, "temperatures": (1e-4, 1e-3, 1e-2)},
    note="The temperatures of the paper's panels are not given in its text; these are ours.",
)
FIGURE_4 = Study(
    title="The soft uncertainty function",
    paper=PAPER,
    place="Figure 4",
    figure="uncertainty",
    figure_settings={"thresholds": (0.25, 0.5, 0.75), "temperatures": (0.1, 0.5, 1.0)},
    note="The settings of the paper's curves are not given in its text; these are ours.",
)
FIGURE_5 = Study(
    title="ECE of every objective",
    paper=PAPER,
    place="Figure 5",
    arms=ARMS,
    columns=TABLE_2.columns,
    spread="sem",
    rule=RULE,
    note=NOTE,
    budgets=TABLE_2.budgets,
    figure="bars",
    figure_settings={"column": "ECE", "under": "Accuracy"},
)
FIGURE_6 = Study(
    title="Accuracy by confidence on CIFAR-100",
    paper=PAPER,
    place="Figure 6",
    arms=CHOSEN_ARMS,
    columns=ECE,
    rule=RULE,
    note=NOTE,
    budgets={
        name: Budget(
            budget.pairs[:1], seeds=budget.seeds, settings=budget.settings, grids=budget.grids
        )
        for name, budget in BUDGETS.items()
    },
    figure="reliability",
)
FIGURE_7 = Study(
    title="Objectives under shift",
    paper=PAPER,
    place="Figure 7",
    arms=CHOSEN_ARMS,
    columns=with_shift(ECE, "ECE", "ECE with TS"),
    rule=RULE,
    note=NOTE,
    claims=tuple(
        Claim("ECE under shift", arm, "NLL", against=against)
        for against in (None, "ECE with TS under shift")
        for arm in CHOSEN
        if arm != "NLL"
    ),
    budgets=SHIFTED,
    figure="shift",
    figure_settings={"panels": (("ECE",), ("ECE with TS",))},
)
FIGURE_8 = Study(
    title="Secondary losses on ImageNet under shift",
    paper=PAPER,
    place="Figure 8",
    arms={label: ARMS[label] for label in ARMS if label.startswith("NLL")},
    columns=with_shift(ECE, "ECE"),
    spread="sem",
    rule=RULE,
    claims=tuple(
        Claim("ECE under shift", "NLL + S-AvUC", label)
        for label in ARMS
        if label.startswith("NLL") and label != "NLL + S-AvUC"
    ),
    note=f"{NOTE} Here a hundred of its classes, and ImageNet-C's files, which not everyone has.",
    budgets={
        "paper": Budget(
            (("imagenet100", "resnet50-imagenet"),),
            seeds=10,
            settings={**SETTINGS, **SHIFT, "epochs": 90, "flip": None},
        ),
        "quick": Budget(
            (("imagenet100", "resnet18-imagenet"),),
            seeds=3,
            settings={**QUICK_SETTINGS, **SHIFT, "flip": None},
            grids=QUICK_GRIDS,
        ),
    },
    figure="shift",
    figure_settings={"panels": (("ECE",),)},
)
FIGURE_9 = Study(
    title="Temperature by likelihood and by SB-ECE, under shift, for every primary loss",
    paper=PAPER,
    place="Figure 9",
    arms={fit: ARMS[fit] for fit in PRIMARY},
    columns=FIGURE_2.columns,
    spread="sem",
    rule=RULE,
    note=NOTE,
    claims=tuple(
        replace(claim, better=fit, worse=fit) for fit in PRIMARY for claim in FIGURE_2.claims
    ),
    budgets=SHIFTED,
    figure="shift",
    figure_settings=FIGURE_2.figure_settings,
)
FIGURE_10 = Study(
    title="Reliability of objectives, and their ECE by mean uncertainty",
    paper=PAPER,
    place="Figure 10",
    arms={label: ARMS[label] for label in (*CHOSEN, "MSE")},
    columns=ECE,
    rule=RULE,
    note=NOTE,
    budgets=BUDGETS,
    figure="reliability",
)

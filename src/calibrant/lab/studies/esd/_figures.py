"""Figures of Yoon et al., "ESD", ICLR 2023. Values."""

from ..._study import Arm, Budget, Claim, Column, Study
from ._protocol import (
    ARMS,
    BY_DATA,
    COLUMNS,
    PAIRS,
    PAPER,
    PAPER_BUDGET,
    QUICK,
    QUICK_GRIDS,
    QUICK_SETTINGS,
    RULE,
    SETTINGS,
)

FIGURE_1 = Study(
    title="Accuracy and ECE of the training and the test set, epoch by epoch",
    paper=PAPER,
    place="Figure 1",
    arms={"NLL": Arm()},
    columns={"Acc.": Column("accuracy"), "ECE": Column("ece20")},
    note="The figure does not say which data; here CIFAR-100.",
    budgets={
        "paper": Budget(
            (("cifar100", "resnet34"),), seeds=1, settings={**SETTINGS, "history_every": 5}
        ),
        "quick": Budget(
            (("cifar100", "resnet18"),), seeds=1, settings={**QUICK_SETTINGS, "history_every": 1}
        ),
    },
    figure="epochs",
)
FIGURE_2 = Study(
    title="ECE by the internal setting of MMCE and SB-ECE",
    paper=PAPER,
    place="Figure 2",
    arms=ARMS,
    columns=COLUMNS,
    rule=RULE,
    budgets={
        "paper": Budget(
            (("mnist", "lenet5"), ("cifar10", "resnet50"), ("snli", "encoder")),
            seeds=5,
            settings=SETTINGS,
            by_data=BY_DATA,
        ),
        "quick": QUICK,
    },
    figure="settings",
    figure_settings={
        "settings": ("calibration_settings.bandwidth", "calibration_settings.temperature"),
        "column": "ece20",
    },
)
FIGURE_3 = Study(
    title="Cost of one run, and of all that tuning needs",
    paper=PAPER,
    place="Figure 3",
    arms=ARMS,
    columns=COLUMNS,
    rule=RULE,
    budgets={"paper": PAPER_BUDGET, "quick": QUICK},
    figure="cost",
)
FIGURE_4 = Study(
    title="Cumulative confidence and accuracy, before and after temperature scaling",
    paper=PAPER,
    place="Figure 4",
    arms={"NLL": Arm()},
    columns={"ECE": Column("ece20"), "ECE after TS": Column("ece20", after="temperature")},
    budgets={
        "paper": Budget((("cifar100", "resnet34"),), seeds=1, settings=SETTINGS),
        "quick": Budget((("cifar100", "resnet18"),), seeds=1, settings=QUICK_SETTINGS),
    },
    figure="cumulative",
    figure_settings={"conditions": ("none", "temperature")},
)
FIGURE_5 = Study(
    title="Accuracy by the weight of calibration",
    paper=PAPER,
    place="Figure 5",
    arms=ARMS,
    columns=COLUMNS,
    rule=RULE,
    budgets={"paper": PAPER_BUDGET, "quick": QUICK},
    figure="settings",
    figure_settings={"settings": ("weight",), "column": "accuracy", "threshold": True},
)
SHIFTED = {"shift": (1, 2, 3, 4, 5)}
UNDER_SHIFT = {
    "ECE under shift": Column("ece20", split="shift"),
    "ECE under shift after TS": Column("ece20", after="temperature", split="shift"),
}
FIGURE_6 = Study(
    title="Accuracy and ECE under shift, before and after temperature scaling",
    paper=PAPER,
    place="Figure 6",
    arms=ARMS,
    columns={**COLUMNS, **UNDER_SHIFT},
    rule=RULE,
    claims=(
        *(
            Claim("ECE under shift", arm, "NLL (baseline)")
            for arm in ("+MMCE", "+SB-ECE", "+ESD (ours)")
        ),
        Claim("ECE under shift after TS", "+ESD (ours)", "NLL (baseline)"),
    ),
    note="Corruptions are made on the fly with CIFAR-C's constants; they are not its files.",
    budgets={
        "paper": Budget(PAIRS[1:3], seeds=5, settings={**SETTINGS, **SHIFTED}),
        "quick": Budget(
            (("cifar10", "resnet18"), ("cifar100", "resnet18")),
            seeds=3,
            settings={**QUICK_SETTINGS, **SHIFTED},
            grids=QUICK_GRIDS,
        ),
    },
    figure="shift",
    figure_settings={"panels": (("Acc.",), ("ECE",), ("ECE after TS",))},
)

"""Tables 1 and 3 of Karandikar et al., "Soft Calibration Objectives", NeurIPS 2021. Values."""

from ..._study import Budget, Claim, Column, Study, published
from ._protocol import ARMS, BUDGETS, CHOSEN, NOTE, PAPER, PRIMARY, RULE

ECE = {
    "Accuracy": Column("accuracy"),
    "ECE": Column("ece15_mass_l2"),
    "ECE with TS": Column("ece15_mass_l2", after="temperature"),
}
TABLE_1 = Study(
    title="Accuracy and ECE of objectives, before and after temperature scaling",
    paper=PAPER,
    place="Table 1",
    arms={label: ARMS[label] for label in (*CHOSEN, "NLL + SB-ECE", "NLL + S-AvUC")},
    columns=ECE,
    spread="sem",
    rule=RULE,
    note=NOTE,
    claims=(
        Claim("ECE", "Focal + SB-ECE", "Focal"),
        Claim("ECE", "Focal + S-AvUC", "Focal"),
        Claim("ECE", "Focal + SB-ECE", "NLL"),
        Claim("ECE", "Focal + S-AvUC", "NLL"),
        Claim("ECE", "NLL + MMCE", "NLL"),
        Claim("Accuracy", "Focal + S-AvUC", "NLL", within=1.0),
        *(
            Claim("ECE", ours, "NLL", against="ECE with TS")
            for ours in ("Focal + SB-ECE", "Focal + S-AvUC")
        ),
    ),
    budgets=BUDGETS,
    published={
        "cifar100": published("""
            NLL            | 78.7 0.122 | 9.10 0.139 | 5.36 0.091
            NLL + MMCE     | 77.2 0.072 | 4.77 0.121 | 4.06 0.138
            Focal          | 78.3 0.086 | 4.66 0.130 | 6.47 0.140
            Focal + SB-ECE | 78.6 0.062 | 2.30 0.105 | 5.16 0.108
            Focal + S-AvUC | 78.1 0.084 | 1.57 0.122 | 4.15 0.090
        """),
        "cifar10": published("""
            NLL            | 95.5 0.040 | 5.59 0.119 | 1.95 0.127
            NLL + MMCE     | 95.0 0.031 | 1.55 0.053 | 1.09 0.098
            Focal          | 95.0 0.085 | 5.45 0.079 | 2.69 0.190
            Focal + SB-ECE | 95.1 0.056 | 1.19 0.088 | 2.08 0.143
            Focal + S-AvUC | 94.4 0.145 | 1.58 0.146 | 1.34 0.172
        """),
        "imagenet": published("""
            NLL          | 75.8 0.036 | 3.81 0.043 | 2.17 0.045
            NLL + MMCE   | 75.2 0.048 | 3.12 0.025 | 2.18 0.029
            NLL + SB-ECE | 74.7 0.028 | 3.11 0.039 | 1.92 0.024
            NLL + S-AvUC | 75.6 0.053 | 2.26 0.055 | 2.02 0.041
        """),
    },
)

TABLE_3 = Study(
    title="Memorisation: ECE of the test and the training set",
    paper=PAPER,
    place="Table 3",
    arms={fit: ARMS[fit] for fit in PRIMARY},
    columns={
        "Test ECE": Column("ece15"),
        "Train ECE": Column("ece15", split="train"),
        "Test ECE / Train ECE": Column("ece15", over="train"),
    },
    spread="none",
    rule=RULE,
    note=f"{NOTE} ECE of this table is of equal widths and absolute gaps.",
    claims=(Claim("Train ECE", "NLL", "Focal"), Claim("Train ECE", "NLL", "MSE")),
    budgets={
        name: Budget(
            budget.pairs,
            seeds=budget.seeds,
            settings={**budget.settings, "history_every": budget.settings["epochs"]},
            grids=budget.grids,
        )
        for name, budget in BUDGETS.items()
    },
    published={
        "cifar100": published("""
            NLL   | 6.88 | 0.45 | 15.14
            Focal | 4.21 | 9.18 | 0.46
            MSE   | 3.51 | 2.49 | 1.41
        """),
        "cifar10": published("""
            NLL   | 2.66 | 0.05 | 49.82
            Focal | 5.28 | 7.13 | 0.74
            MSE   | 6.53 | 9.82 | 0.66
        """),
        "imagenet": published("NLL | 3.35 | 4.34 | 0.77"),
    },
)

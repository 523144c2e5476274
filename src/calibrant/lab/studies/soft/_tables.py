"""Tables of Karandikar et al., "Soft Calibration Objectives", NeurIPS 2021. Values."""

from ..._study import Budget, Claim, Column, Study, published
from ._protocol import (
    ARMS,
    CHOSEN,
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
    budgets={
        "paper": Budget(CIFAR, seeds=10, settings=SETTINGS),
        "quick": Budget(QUICK_CIFAR, seeds=3, settings=QUICK_SETTINGS, grids=QUICK_GRIDS),
    },
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

CIFAR_100_TABLE_2 = published("""
    NLL             | 78.7 0.122 | 9.10 0.139 | 5.36 0.091 | 4.69 0.069
    NLL + MMCE      | 77.2 0.072 | 4.77 0.121 | 4.06 0.138 | 4.11 0.173
    NLL + AvUC      | 76.2 0.146 | 11.4 0.175 | 4.40 0.190 | 7.64 0.187
    NLL + AvUC-GS   | 78.3 0.126 | 6.21 0.084 | 8.36 0.166 | 5.40 0.241
    NLL + S-AvUC    | 78.6 0.079 | 6.10 0.095 | 9.13 0.085 | 5.88 0.243
    NLL + SB-ECE    | 77.7 0.167 | 6.86 0.839 | 3.18 0.093 | 3.51 0.314
    Focal           | 78.3 0.086 | 4.66 0.130 | 6.47 0.140 | 4.84 0.115
    Focal + MMCE    | 77.3 0.104 | 5.07 0.147 | 3.58 0.098 | 2.82 0.110
    Focal + AvUC    | 77.7 0.145 | 5.68 0.181 | 5.87 0.182 | 3.93 0.209
    Focal + AvUC-GS | 78.1 0.056 | 3.38 0.109 | 4.89 0.118 | 2.91 0.122
    Focal + S-AvUC  | 78.1 0.084 | 1.57 0.122 | 4.15 0.090 | 2.89 0.077
    Focal + SB-ECE  | 78.6 0.062 | 2.30 0.105 | 5.16 0.108 | 4.10 0.095
    MSE             | 77.9 0.089 | 4.17 0.122 | 5.22 0.126 | 4.79 0.281
    MSE + MMCE      | 78.0 0.071 | 4.22 0.085 | 5.06 0.108 | 4.90 0.111
    MSE + AvUC      | 77.6 0.134 | 4.27 0.067 | 5.29 0.125 | 4.42 0.224
    MSE + AvUC-GS   | 77.8 0.041 | 4.31 0.114 | 5.03 0.091 | 4.15 0.135
    MSE + S-AvUC    | 77.6 0.104 | 3.69 0.122 | 4.60 0.144 | 4.26 0.322
    MSE + SB-ECE    | 77.9 0.071 | 4.14 0.100 | 5.00 0.092 | 4.27 0.184
""")
CIFAR_10_TABLE_2 = published("""
    NLL             | 95.5 0.040 | 5.59 0.119 | 1.95 0.127 | 1.16 0.106
    NLL + MMCE      | 95.0 0.031 | 1.55 0.053 | 1.09 0.098 | 1.45 0.114
    NLL + AvUC      | 95.5 0.053 | 5.27 0.101 | 2.39 0.110 | 1.30 0.106
    NLL + AvUC-GS   | 95.6 0.036 | 4.94 0.109 | 2.07 0.129 | 1.31 0.072
    NLL + S-AvUC    | 95.4 0.027 | 5.87 0.113 | 2.24 0.130 | 1.20 0.115
    NLL + SB-ECE    | 95.4 0.043 | 5.84 0.121 | 2.28 0.091 | 1.27 0.139
    Focal           | 95.0 0.085 | 5.45 0.079 | 2.69 0.190 | 1.77 0.115
    Focal + MMCE    | 95.1 0.068 | 8.74 0.059 | 3.13 0.110 | 2.16 0.210
    Focal + AvUC    | 94.1 0.128 | 1.34 0.084 | 2.53 0.124 | 1.12 0.133
    Focal + AvUC-GS | 95.2 0.063 | 1.39 0.081 | 2.30 0.125 | 1.46 0.108
    Focal + S-AvUC  | 94.4 0.145 | 1.58 0.146 | 1.34 0.172 | 1.05 0.197
    Focal + SB-ECE  | 95.1 0.056 | 1.19 0.088 | 2.08 0.143 | 1.38 0.187
    MSE             | 95.0 0.041 | 6.58 0.034 | 5.33 0.122 | 4.43 0.106
    MSE + MMCE      | 95.1 0.034 | 2.82 0.046 | 3.23 0.137 | 2.34 0.141
    MSE + AvUC      | 94.8 0.050 | 3.64 0.066 | 4.72 0.139 | 4.01 0.178
    MSE + AvUC-GS   | 94.8 0.031 | 5.44 0.146 | 5.56 0.151 | 5.20 0.173
    MSE + S-AvUC    | 92.0 0.117 | 3.40 0.126 | 1.87 0.080 | 1.50 0.134
    MSE + SB-ECE    | 95.1 0.056 | 4.37 0.143 | 5.08 0.159 | 4.26 0.136
""")
IMAGENET_TABLE_2 = published("""
    NLL           | 75.8 0.036 | 3.81 0.043 | 2.17 0.045 | 3.32 0.043
    NLL + MMCE    | 75.2 0.048 | 3.12 0.025 | 2.18 0.029 | 2.68 0.022
    NLL + AvUC    | 75.9 0.035 | 3.48 0.041 | 3.37 0.037 | 3.18 0.036
    NLL + AvUC-GS | 75.8 0.035 | 3.84 0.030 | 3.15 0.028 | 3.44 0.034
    NLL + S-AvUC  | 75.6 0.053 | 2.26 0.055 | 2.02 0.041 | 1.92 0.046
    NLL + SB-ECE  | 74.7 0.028 | 3.11 0.039 | 1.92 0.024 | 2.62 0.039
""")
TABLE_2 = Study(
    title="Every primary with every secondary loss",
    paper=PAPER,
    place="Table 2",
    arms=ARMS,
    columns={
        "Accuracy": Column("accuracy"),
        "ECE": Column("ece15_mass_l2"),
        "ECE+TS": Column("ece15_mass_l2", after="temperature"),
        "ECE+TS-SB-ECE": Column("ece15_mass_l2", after="temperature_sb_ece"),
    },
    spread="sem",
    rule=RULE,
    note=(
        f"{NOTE} The paper counts 35 of its 42 lines in which TS-SB-ECE is below TS; as they are "
        "printed there are 34."
    ),
    claims=(
        *(
            Claim("ECE", f"{fit} + {name}", fit)
            for fit in PRIMARY
            for name in ("MMCE", "AvUC-GS", "S-AvUC", "SB-ECE")
        ),
        *(Claim("ECE+TS-SB-ECE", arm, arm, against="ECE+TS") for arm in ARMS),
    ),
    budgets={
        "paper": TABLE_1.budgets["paper"],
        "quick": TABLE_1.budgets["quick"],
    },
    published={
        "cifar100": CIFAR_100_TABLE_2,
        "cifar10": CIFAR_10_TABLE_2,
        "imagenet": IMAGENET_TABLE_2,
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
        for name, budget in TABLE_1.budgets.items()
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

CIFAR_BUDGETS = {
    "paper": Budget(CIFAR, seeds=10, settings=SETTINGS),
    "quick": TABLE_1.budgets["quick"],
}
CHOSEN_ARMS = {label: ARMS[label] for label in CHOSEN}
TABLE_4 = Study(
    title="Other measures: KS-error and mean-sweep calibration error",
    paper=PAPER,
    place="Table 4",
    arms=CHOSEN_ARMS,
    columns={
        "Accuracy": Column("accuracy"),
        "ECE": Column("ece15_mass_l2"),
        "KS-Error": Column("ks_error"),
        "mean-sweep CE": Column("sweep_ece"),
    },
    spread="none",
    rule=RULE,
    note=NOTE,
    claims=tuple(
        Claim(column, better, worse)
        for column in ("KS-Error", "mean-sweep CE")
        for better in ("Focal + SB-ECE", "Focal + S-AvUC")
        for worse in ("NLL", "Focal")
    ),
    budgets=CIFAR_BUDGETS,
    published={
        "cifar100": published("""
            NLL            | 78.7 | 9.10 | 6.71 | 9.02
            NLL + MMCE     | 77.2 | 4.77 | 3.27 | 4.77
            Focal          | 78.3 | 4.66 | 4.20 | 4.57
            Focal + SB-ECE | 78.6 | 2.30 | 0.71 | 2.21
            Focal + S-AvUC | 78.1 | 1.57 | 0.51 | 1.24
        """),
        "cifar10": published("""
            NLL            | 95.5 | 5.59 | 2.64 | 4.78
            NLL + MMCE     | 95.0 | 1.55 | 0.83 | 1.30
            Focal          | 95.0 | 5.45 | 5.22 | 5.41
            Focal + SB-ECE | 95.1 | 1.19 | 0.41 | 0.77
            Focal + S-AvUC | 94.4 | 1.58 | 0.66 | 1.43
        """),
    },
)
DIRICHLET = {"recalibrators": ("temperature", "temperature_sb_ece", "dirichlet")}
TABLE_5 = Study(
    title="Dirichlet calibration afterwards",
    paper=PAPER,
    place="Table 5",
    arms={label: ARMS[label] for label in (*CHOSEN, "MSE")},
    columns={
        "Accuracy": Column("accuracy"),
        "ECE": Column("ece15_mass_l2"),
        "ECE w/ Dirichlet": Column("ece15_mass_l2", after="dirichlet"),
    },
    spread="none",
    rule=RULE,
    note=NOTE,
    claims=tuple(
        Claim("ECE", ours, theirs, against="ECE w/ Dirichlet")
        for ours in ("Focal + SB-ECE", "Focal + S-AvUC")
        for theirs in ("NLL", "Focal", "MSE")
    ),
    budgets={
        "paper": Budget(CIFAR[1:], seeds=10, settings={**SETTINGS, **DIRICHLET}),
        "quick": Budget(
            QUICK_CIFAR[1:], seeds=3, settings={**QUICK_SETTINGS, **DIRICHLET}, grids=QUICK_GRIDS
        ),
    },
    published={
        "cifar10": published("""
            NLL            | 95.5 | 5.59 | 2.45
            NLL + MMCE     | 95.0 | 1.55 | 1.28
            Focal          | 95.0 | 5.45 | 2.48
            Focal + SB-ECE | 95.1 | 1.19 | 2.24
            Focal + S-AvUC | 94.4 | 1.58 | 1.70
            MSE            | 95.0 | 6.58 | 4.69
        """),
    },
)
TABLE_6 = Study(
    title="Calibration of all classes",
    paper=PAPER,
    place="Table 6",
    arms=CHOSEN_ARMS,
    columns={
        "Accuracy": Column("accuracy"),
        "ECE": Column("ece15_mass_l2"),
        "Marginal ECE": Column("marginal_ece"),
    },
    spread="none",
    rule=RULE,
    note=NOTE,
    claims=(
        Claim("Marginal ECE", "Focal + S-AvUC", "NLL"),
        Claim("Marginal ECE", "Focal + S-AvUC", "Focal"),
        Claim("Marginal ECE", "Focal + SB-ECE", "Focal"),
    ),
    budgets=CIFAR_BUDGETS,
    published={
        "cifar100": published("""
            NLL            | 78.7 | 9.10 | 3.78
            NLL + MMCE     | 77.2 | 4.77 | 3.05
            Focal          | 78.3 | 4.66 | 4.35
            Focal + SB-ECE | 78.6 | 2.30 | 3.05
            Focal + S-AvUC | 78.1 | 1.57 | 2.72
        """),
        "cifar10": published("""
            NLL            | 95.5 | 5.59 | 2.31
            NLL + MMCE     | 95.0 | 1.55 | 2.06
            Focal          | 95.0 | 5.45 | 5.64
            Focal + SB-ECE | 95.1 | 1.19 | 2.24
            Focal + S-AvUC | 94.4 | 1.58 | 1.65
        """),
    },
)

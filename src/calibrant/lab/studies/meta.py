"""Tables and figures of Bohdal et al., "Meta-Calibration", ICML workshop 2021. Values, no logic."""

from .._study import Arm, Budget, Claim, Column, Study, published

PAPER = 'Bohdal, Yang & Hospedales, "Meta-Calibration", ICML workshop 2021'
NOTE = (
    "The released code leaks the gradient of the meta-objective into the network; the paper's "
    "method does not. Both are run. The code sums its losses over a batch; here they are means. "
    "Temperatures are chosen by validation ECE, and the most accurate epoch is kept, as in the "
    "code. Coefficients may be negative, as there. MMCE is normalised twice, as in the code, to "
    "which the weight of 2 belongs."
)

META = {"procedure": "meta", "calibration": "dece", "held_out": 1 / 9}
META |= {"knowledge_settings": {"lowest": -1e9}}
LEAK = {**META, "leak": True}
ARMS = {
    "Cross-entropy": Arm(),
    "Brier score": Arm({"fit": "brier"}),
    "MMCE": Arm({"procedure": "joint", "calibration": "released_weighted_mmce", "weight": 2.0}),
    "Focal loss": Arm({"fit": "focal", "fit_settings": {"gamma": 3.0}}),
    "FLSD": Arm({"fit": "flsd", "fit_settings": {"gamma": 3.0}}),
    "LS-0.05": Arm({"fit": "label_smoothing", "fit_settings": {"eps": 0.05}}),
    "Meta-Calibration (our)": Arm(META),
    "Meta-Calibration, leak": Arm(LEAK),
}

# 350 epochs, the rate divided by ten after 150 and 250.
SETTINGS = {
    "optimiser": "sgd",
    "lr": 0.1,
    "weight_decay": 5e-4,
    "schedule": "steps",
    "steps": (150 / 350, 250 / 350),
    "batch": 128,
    "epochs": 350,
    "flip": True,
    "keep": "accurate",
    "bins": 15,
    "recalibrators": ("temperature_ece",),
    "precision": "bfloat16",
}
QUICK_SETTINGS = {**SETTINGS, "schedule": "cosine", "steps": (), "epochs": 30}
PAIRS = (("cifar10", "resnet18"), ("cifar100", "resnet18"))
BUDGETS = {
    "paper": Budget(PAIRS, seeds=3, settings=SETTINGS),
    "quick": Budget(PAIRS, seeds=3, settings=QUICK_SETTINGS),
}
CLAIMS = (
    Claim("ECE", "Meta-Calibration (our)", "Cross-entropy"),
    Claim("ECE", "Meta-Calibration, leak", "Cross-entropy"),
    Claim("ECE", "Meta-Calibration, leak", "Meta-Calibration (our)"),
)

TABLE_1 = Study(
    title="Error and ECE of losses, before and after temperature scaling",
    paper=PAPER,
    place="Table 1",
    arms=ARMS,
    columns={
        "Error": Column("error"),
        "ECE": Column("ece15"),
        "ECE + TS": Column("ece15", after="temperature_ece"),
        "Temperature": Column("temperature", after="temperature_ece"),
    },
    spread="std",
    note=NOTE,
    claims=CLAIMS,
    budgets=BUDGETS,
    published={
        "cifar10": published("""
            Cross-entropy          | 4.99 0.14 | 4.23 0.15 | 1.16 0.10 | 2.30
            Brier score            | 5.27 0.21 | 1.23 0.03 | 1.23 0.03 | 1.00
            MMCE                   | 5.21 0.17 | 4.41 0.14 | 1.27 0.10 | 2.27
            Focal loss             | 5.17 0.09 | 2.17 0.03 | 1.22 0.12 | 0.90
            FLSD                   | 5.28 0.13 | 2.26 0.03 | 1.63 0.18 | 0.87
            LS-0.05                | 4.94 0.13 | 3.63 0.06 | 1.31 0.08 | 0.90
            Meta-Calibration (our) | 5.69 0.15 | 1.33 0.18 | 1.33 0.18 | 1.00
        """),
        "cifar100": published("""
            Cross-entropy          | 22.85 0.17 | 8.79 0.59 | 5.47 0.22 | 1.33
            Brier score            | 23.50 0.17 | 5.19 0.18 | 4.21 0.23 | 0.90
            MMCE                   | 23.64 0.25 | 8.21 0.20 | 6.25 0.18 | 1.20
            Focal loss             | 23.02 0.08 | 2.77 0.23 | 2.77 0.23 | 1.00
            FLSD                   | 23.06 0.11 | 2.50 0.11 | 2.84 0.48 | 0.97
            LS-0.05                | 22.35 0.27 | 6.87 0.29 | 4.37 0.45 | 0.90
            Meta-Calibration (our) | 25.27 0.16 | 2.96 0.38 | 3.61 0.54 | 0.97
        """),
    },
)

# The ablation; M4 is the method itself, here with and without the leak.
TABLE_2 = Study(
    title="Ablation: what is meta-learnt, and by what",
    paper=PAPER,
    place="Table 2",
    arms={
        "M0: Vanilla CE": Arm(),
        "M1: Multi-task": Arm({"procedure": "joint", "calibration": "dece", "weight": 1.0}),
        "M2: Meta-CE": Arm({**META, "calibration": "nll"}),
        "M3: Meta-MMCE": Arm({**META, "calibration": "mmce"}),
        "M4: Meta-DECE": Arm(META),
        "M2, leak": Arm({**LEAK, "calibration": "nll"}),
        "M3, leak": Arm({**LEAK, "calibration": "mmce"}),
        "M4, leak": Arm(LEAK),
    },
    columns={"Error": Column("error"), "ECE": Column("ece15")},
    spread="std",
    note=f"{NOTE} The code of M1 and M3 was not released: a weight of 1 and the form of MMCE are "
    "ours.",
    claims=(
        Claim("ECE", "M4: Meta-DECE", "M0: Vanilla CE"),
        Claim("ECE", "M4, leak", "M0: Vanilla CE"),
        Claim("ECE", "M1: Multi-task", "M0: Vanilla CE"),
        Claim("Error", "M4: Meta-DECE", "M1: Multi-task"),
        Claim("ECE", "M0: Vanilla CE", "M3: Meta-MMCE"),
    ),
    budgets=BUDGETS,
    published={
        "cifar10": published("""
            M0: Vanilla CE | 4.99 0.14  | 4.23 0.15
            M1: Multi-task | 10.24 0.21 | 3.80 0.03
            M2: Meta-CE    | 5.93 0.09  | 3.96 0.18
            M3: Meta-MMCE  | 5.95 0.29  | 9.84 2.62
            M4: Meta-DECE  | 5.69 0.15  | 1.33 0.18
        """),
        "cifar100": published("""
            M0: Vanilla CE | 22.85 0.17 | 8.79 0.59
            M1: Multi-task | 29.49 0.17 | 4.40 0.39
            M2: Meta-CE    | 26.47 0.60 | 9.17 3.89
            M3: Meta-MMCE  | 26.38 0.67 | 26.41 1.33
            M4: Meta-DECE  | 25.27 0.16 | 2.96 0.38
        """),
    },
)
TABLE_3 = Study(
    title="Adaptive and class-wise ECE",
    paper=PAPER,
    place="Table 3",
    arms=ARMS,
    columns={
        "Error": Column("error"),
        "ECE": Column("ece15"),
        "AECE": Column("ece15_mass"),
        "CECE": Column("class_wise_ece"),
    },
    spread="std",
    note=NOTE,
    claims=(
        Claim("AECE", "Meta-Calibration (our)", "Cross-entropy"),
        Claim("CECE", "Meta-Calibration (our)", "Cross-entropy"),
    ),
    budgets=BUDGETS,
    published={
        "cifar10": published("""
            Cross-entropy          | 4.99 0.14 | 4.23 0.15 | 4.21 0.14 | 0.87 0.04
            Brier score            | 5.27 0.21 | 1.23 0.03 | 2.00 0.25 | 0.46 0.02
            MMCE                   | 5.21 0.17 | 4.41 0.14 | 4.39 0.14 | 0.92 0.03
            Focal loss             | 5.17 0.09 | 2.17 0.03 | 2.16 0.13 | 0.52 0.02
            FLSD                   | 5.28 0.13 | 2.26 0.03 | 2.20 0.02 | 0.54 0.02
            LS-0.05                | 4.94 0.13 | 3.63 0.06 | 4.18 0.25 | 0.73 0.01
            Meta-Calibration (our) | 5.69 0.15 | 1.33 0.18 | 1.86 0.22 | 0.61 0.05
        """),
        "cifar100": published("""
            Cross-entropy          | 22.85 0.17 | 8.79 0.59 | 8.68 0.61 | 0.23 0.01
            Brier score            | 23.50 0.17 | 5.19 0.18 | 5.16 0.18 | 0.24 0.00
            MMCE                   | 23.64 0.25 | 8.21 0.20 | 8.14 0.22 | 0.23 0.00
            Focal loss             | 23.02 0.08 | 2.77 0.23 | 2.71 0.17 | 0.20 0.00
            FLSD                   | 23.06 0.11 | 2.50 0.11 | 2.49 0.12 | 0.20 0.00
            LS-0.05                | 22.35 0.27 | 6.87 0.29 | 6.87 0.28 | 0.26 0.00
            Meta-Calibration (our) | 25.27 0.16 | 2.96 0.38 | 2.99 0.37 | 0.25 0.02
        """),
    },
)
TABLE_4 = Study(
    title="Adaptive and class-wise ECE after temperature scaling",
    paper=PAPER,
    place="Table 4",
    arms=ARMS,
    columns={
        "Error": Column("error"),
        "ECE + TS": Column("ece15", after="temperature_ece"),
        "AECE + TS": Column("ece15_mass", after="temperature_ece"),
        "CECE + TS": Column("class_wise_ece", after="temperature_ece"),
    },
    spread="std",
    note=NOTE,
    budgets=BUDGETS,
    published={
        "cifar10": published("""
            Cross-entropy          | 4.99 0.14 | 1.16 0.10 | 2.24 0.13 | 0.45 0.02
            Brier score            | 5.27 0.21 | 1.23 0.03 | 2.00 0.25 | 0.46 0.02
            MMCE                   | 5.21 0.17 | 1.27 0.10 | 2.06 0.04 | 0.49 0.01
            Focal loss             | 5.17 0.09 | 1.22 0.12 | 1.90 0.12 | 0.41 0.03
            FLSD                   | 5.28 0.13 | 1.63 0.18 | 1.95 0.14 | 0.45 0.01
            LS-0.05                | 4.94 0.13 | 1.31 0.08 | 3.10 0.27 | 0.51 0.02
            Meta-Calibration (our) | 5.69 0.15 | 1.33 0.18 | 1.86 0.22 | 0.61 0.05
        """),
        "cifar100": published("""
            Cross-entropy          | 22.85 0.17 | 5.47 0.22 | 5.40 0.26 | 0.21 0.01
            Brier score            | 23.50 0.17 | 4.21 0.23 | 4.24 0.23 | 0.21 0.00
            MMCE                   | 23.64 0.25 | 6.25 0.18 | 6.21 0.22 | 0.21 0.00
            Focal loss             | 23.02 0.08 | 2.77 0.23 | 2.71 0.17 | 0.20 0.00
            FLSD                   | 23.06 0.11 | 2.84 0.48 | 2.83 0.49 | 0.20 0.00
            LS-0.05                | 22.35 0.27 | 4.37 0.45 | 4.24 0.22 | 0.21 0.00
            Meta-Calibration (our) | 25.27 0.16 | 3.61 0.54 | 3.61 0.52 | 0.25 0.02
        """),
    },
)
FIGURE_1 = Study(
    title="DECE against ECE during training",
    paper=PAPER,
    place="Figure 1",
    arms={"Cross-entropy": Arm()},
    columns={"ECE": Column("ece15")},
    note="Judged on the test set at epochs that were kept, once training was over.",
    budgets={
        "paper": Budget(PAIRS, seeds=1, settings={**SETTINGS, "history_every": 10}),
        "quick": Budget(PAIRS, seeds=1, settings={**QUICK_SETTINGS, "history_every": 1}),
    },
    figure="correlation",
    figure_settings={"across": "ece15", "up": "dece"},
)
FIGURE_2 = Study(
    title="The learnt coefficients",
    paper=PAPER,
    place="Figure 2",
    arms={label: ARMS[label] for label in ("Meta-Calibration (our)", "Meta-Calibration, leak")},
    columns={"ECE": Column("ece15")},
    note=NOTE,
    budgets=BUDGETS,
    figure="coefficients",
)

STUDIES = {
    "meta-table-1": TABLE_1,
    "meta-table-2": TABLE_2,
    "meta-table-3": TABLE_3,
    "meta-table-4": TABLE_4,
    "meta-figure-1": FIGURE_1,
    "meta-figure-2": FIGURE_2,
}

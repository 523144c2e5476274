"""Chosen objectives by other errors: Tables 4 to 6 of Karandikar et al., NeurIPS 2021. Values."""

from ..._study import Budget, Claim, Column, Study, published
from ._protocol import (
    ARMS,
    BUDGETS,
    CHOSEN,
    CHOSEN_ARMS,
    CIFAR,
    NOTE,
    PAPER,
    QUICK_CIFAR,
    QUICK_GRIDS,
    QUICK_SETTINGS,
    RULE,
    SETTINGS,
)

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
    budgets=BUDGETS,
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
    budgets=BUDGETS,
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

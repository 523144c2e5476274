"""What Karandikar et al., "Soft Calibration Objectives", NeurIPS 2021, trains: arms and grids."""

from ..._study import Arm, Budget, Rule, Stage
from ..._trial import Settings

PAPER = 'Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021'

# Appendix G gives the order (threshold, temperature, weight, L2), not the grids: these are ours.
KAPPA = Stage("calibration_settings.threshold", (0.1, 0.3, 0.5, 0.7, 0.9))
TEMPERATURE = Stage("calibration_settings.temperature", (0.001, 0.01, 0.1, 1.0))
BETA = Stage("weight", (0.1, 0.5, 1.0, 2.0, 5.0))
L2 = Stage("weight_decay", (1e-4, 2e-4, 5e-4, 1e-3))
RULE = Rule(column="ece15_mass_l2", margin=0.01, relative=True)
NOTE = (
    "The paper gives the order of tuning and not the grids, which are ours, as are the step "
    "schedule, the tenth that is held out, and gamma 3 of the focal loss. MSE is taken of "
    "probabilities. NLL is interleaved in two phases, as in the paper; other fits are joint. "
    "SB-ECE is label-binned and rooted; the released code descends its square. ImageNet is shown "
    "and not run: it does not fit in memory, as the lab needs it."
)

PRIMARY: dict[str, Settings] = {
    "NLL": {"fit": "nll"},
    "Focal": {"fit": "focal", "fit_settings": {"gamma": 3.0}},
    "MSE": {"fit": "brier"},
}
SECONDARY: dict[str, tuple[Settings, tuple[Stage, ...]]] = {
    "MMCE": ({"calibration": "mmce", "weight": 1.0}, (BETA, L2)),
    "AvUC": (
        {"calibration": "avuc", "weight": 1.0, "calibration_settings": {"threshold": 0.5}},
        (KAPPA, BETA, L2),
    ),
    "AvUC-GS": (
        {"calibration": "avuc_gs", "weight": 1.0, "calibration_settings": {"threshold": 0.5}},
        (KAPPA, BETA, L2),
    ),
    "S-AvUC": (
        {
            "calibration": "soft_avuc",
            "weight": 1.0,
            "calibration_settings": {"threshold": 0.5, "temperature": 0.1},
        },
        (KAPPA, TEMPERATURE, BETA, L2),
    ),
    "SB-ECE": (
        {
            "calibration": "soft_label_binned_ece",
            "weight": 1.0,
            "calibration_settings": {"temperature": 0.01},
        },
        (TEMPERATURE, BETA, L2),
    ),
}
ARMS: dict[str, Arm] = {}
for _fit, _settings in PRIMARY.items():
    ARMS[_fit] = Arm(_settings, (L2,))
    for _name, (_more, _stages) in SECONDARY.items():
        _how = {"procedure": "two_phase" if _fit == "NLL" else "joint"}
        ARMS[f"{_fit} + {_name}"] = Arm({**_settings, **_more, **_how}, _stages)

SETTINGS = {
    "optimiser": "sgd",
    "lr": 0.1,
    "weight_decay": 5e-4,
    "schedule": "steps",
    "steps": (0.3, 0.6, 0.8),
    "batch": 512,
    "epochs": 200,
    "flip": True,
    "recalibrators": ("temperature", "temperature_sb_ece"),
    "precision": "bfloat16",
}
CIFAR = (("cifar100", "wrn-28-10"), ("cifar10", "wrn-28-10"))
QUICK_CIFAR = (("cifar100", "resnet18"), ("cifar10", "resnet18"))
QUICK_SETTINGS = {**SETTINGS, "schedule": "cosine", "steps": (), "epochs": 30}
QUICK_GRIDS = {
    "calibration_settings.threshold": (0.3, 0.7),
    "calibration_settings.temperature": (0.01, 0.1),
    "weight": (0.5, 1.0, 2.0),
    "weight_decay": (5e-4,),
}
CHOSEN = ("NLL", "NLL + MMCE", "Focal", "Focal + SB-ECE", "Focal + S-AvUC")
BUDGETS = {
    "paper": Budget(CIFAR, seeds=10, settings=SETTINGS),
    "quick": Budget(QUICK_CIFAR, seeds=3, settings=QUICK_SETTINGS, grids=QUICK_GRIDS),
}
CHOSEN_ARMS = {label: ARMS[label] for label in CHOSEN}

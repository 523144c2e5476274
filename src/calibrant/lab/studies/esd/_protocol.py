"""What Yoon et al., "ESD", ICLR 2023, trains and searches: arms, grids, rule and budgets."""

from ..._study import Arm, Budget, Column, Rule, Stage
from ..._trial import Settings

PAPER = 'Yoon et al., "ESD", ICLR 2023'

# Section 5.2 and its footnotes 2 and 3.
WEIGHTS = (0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
WIDTHS = (0.2, 0.4, 0.6, 0.8)
TEMPERATURES = (0.0001, 0.001, 0.01, 0.1)
RULE = Rule(column="ece20", margin=0.015, baseline="NLL (baseline)")
NOTE = (
    "The published weights belong to the root of ESD, which is what the authors' code descends. "
    "MMCE and SB-ECE are rooted as well; SB-ECE is label-binned. The paper does not say which "
    "epoch it reports; here it is the last. Loss of accuracy is counted in points."
)

WEIGHT = Stage("weight", WEIGHTS)
MMCE = {"procedure": "interleaved", "calibration": "mmce", "weight": 1.0}
MMCE |= {"calibration_settings": {"bandwidth": 0.4}}
SB_ECE = {"procedure": "interleaved", "calibration": "soft_label_binned_ece", "weight": 1.0}
SB_ECE |= {"calibration_settings": {"temperature": 0.01}}
ESD = {"procedure": "interleaved", "calibration": "rooted_esd", "weight": 1.0}
ARMS = {
    "NLL (baseline)": Arm(),
    "+MMCE": Arm(MMCE, (WEIGHT, Stage("calibration_settings.bandwidth", WIDTHS))),
    "+SB-ECE": Arm(SB_ECE, (WEIGHT, Stage("calibration_settings.temperature", TEMPERATURES))),
    "+ESD (ours)": Arm(ESD, (WEIGHT,)),
}
COLUMNS = {
    "Acc.": Column("accuracy"),
    "ECE": Column("ece20"),
    "ECE after TS": Column("ece20", after="temperature"),
    "Acc. after VS": Column("accuracy", after="vector"),
    "ECE after VS": Column("ece20", after="vector"),
}

# AdamW, batch 512, 250 epochs; no schedule of the rate is mentioned and the code has none.
SETTINGS = {
    "optimiser": "adamw",
    "lr": 1e-3,
    "weight_decay": 1e-2,
    "schedule": "constant",
    "batch": 512,
    "epochs": 250,
    "recalibrators": ("temperature", "vector"),
    "precision": "bfloat16",
}
BY_DATA: dict[str, Settings] = {
    "mnist": {"precision": "float32"},
    "imagenet100": {"weight_decay": 1e-4, "epochs": 90},
    "snli": {"lr": 1e-5, "epochs": 15, "model_settings": {"folder": "bert-base-uncased"}},
    "anli": {"lr": 1e-5, "epochs": 15, "model_settings": {"folder": "roberta-base"}},
}
PAIRS = (
    ("mnist", "lenet5"),
    ("cifar10", "resnet50"),
    ("cifar100", "resnet34"),
    ("imagenet100", "resnet18-imagenet"),
    ("snli", "encoder"),
    ("anli", "encoder"),
)
PAPER_BUDGET = Budget(PAIRS, seeds=5, settings=SETTINGS, by_data=BY_DATA)
QUICK_SETTINGS = {**SETTINGS, "schedule": "cosine", "epochs": 30, "flip": True}
QUICK_GRIDS = {
    "weight": (0.25, 0.5, 1.0, 2.0),
    "calibration_settings.bandwidth": (0.2, 0.4),
    "calibration_settings.temperature": (0.001, 0.01),
}
QUICK = Budget(
    (("cifar10", "resnet18"), ("cifar100", "resnet18")),
    seeds=3,
    settings=QUICK_SETTINGS,
    grids=QUICK_GRIDS,
)
# MNIST with the paper's whole grid, which a GPU trains together.
MNIST = Budget(
    PAIRS[:1],
    seeds=5,
    settings={**SETTINGS, "epochs": 40, "precision": "float32"},
)
# The same on two cores, in minutes.
MINUTES = Budget(
    PAIRS[:1],
    seeds=2,
    settings={**SETTINGS, "schedule": "cosine", "epochs": 3, "precision": "float32"},
    grids={
        "weight": (0.6, 2.0),
        "calibration_settings.bandwidth": (0.4,),
        "calibration_settings.temperature": (0.01,),
    },
)

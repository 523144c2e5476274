"""Every objective under one protocol, and a study small enough for a test. Values, no logic."""

from .._study import Arm, Budget, Claim, Column, Rule, Stage, Study

NOTE = (
    "No published table: the objectives of all three papers under one protocol. Loss of accuracy "
    "is counted in points; the last epoch is kept; ECE has 20 bins."
)
COLUMNS = {
    "Acc.": Column("accuracy"),
    "ECE": Column("ece20"),
    "ECE after TS": Column("ece20", after="temperature"),
    "ECE after TS-SB-ECE": Column("ece20", after="temperature_sb_ece"),
    "ECE after VS": Column("ece20", after="vector"),
    "NLL": Column("nll"),
}
RULE = Rule(column="ece20", margin=0.015, baseline="NLL")


def interleaved(name: str, weights: tuple[float, ...], **settings: object) -> Arm:
    """The measure of a held-out slice beside the likelihood, its weight tuned."""
    own = {"procedure": "interleaved", "calibration": name, "weight": 1.0, **settings}
    return Arm(own, (Stage("weight", weights),))


ADAPTIVE = {"procedure": "interleaved", "calibration": "rooted_esd", "weight": "adaptive"}
META = {"procedure": "meta", "calibration": "dece"}
ARMS = {
    "NLL": Arm(),
    "NLL + ESD": interleaved("rooted_esd", (0.5, 1.0, 2.0)),
    "NLL + ESD, adaptive": Arm(ADAPTIVE),
    "NLL + SB-ECE": interleaved(
        "soft_label_binned_ece", (1.0, 2.0), calibration_settings={"temperature": 0.01}
    ),
    "NLL + MMCE": interleaved("mmce", (1.0, 2.0)),
    "NLL + S-AvUC": interleaved("soft_avuc", (0.5, 1.0)),
    "Focal": Arm({"fit": "focal"}, (Stage("fit_settings.gamma", (1.0, 3.0)),)),
    "FLSD": Arm({"fit": "flsd"}),
    "Brier": Arm({"fit": "brier"}),
    "Label smoothing": Arm({"fit": "label_smoothing"}),
    "Meta-DECE": Arm(META),
    "Meta-DECE, leak": Arm({**META, "leak": True}),
    "NLL on 90%": Arm({"held_out": 0.1}),
    "NLL + ESD, not rooted": interleaved("esd", (1.0, 10.0)),
    "NLL + ESD, 5% held out": interleaved("rooted_esd", (0.5, 1.0, 2.0), held_out=0.05),
    "NLL + ESD, adaptive, 5% held out": Arm({**ADAPTIVE, "held_out": 0.05}),
}
# The truth that people told, where they were asked.
PEOPLE = {
    "NLL by people": Column("nll", split="people"),
    "ECE by people": Column("ece20", split="people"),
}
QUICK = {"epochs": 20, "batch": 512, "precision": "bfloat16", "flip": True}
PAIRS = (("cifar10", "resnet18"), ("cifar100", "resnet18"))
OBJECTIVES = Study(
    title="Every objective under one protocol",
    paper="All three papers",
    place="",
    arms=ARMS,
    columns={**COLUMNS, **PEOPLE},
    spread="std",
    rule=RULE,
    note=NOTE,
    claims=(
        *(
            claim
            for arm in ARMS
            if "ESD" in arm and "rooted" not in arm
            for claim in (Claim("ECE", arm, "NLL", by=0.4), Claim("Acc.", arm, "NLL", within=1.5))
        ),
        *(Claim("ECE", arm, "NLL") for arm in ARMS if arm != "NLL"),
        *(Claim("ECE after TS", arm, "NLL") for arm in ARMS if arm != "NLL"),
    ),
    budgets={
        "quick": Budget(PAIRS, seeds=3, settings=QUICK),
        "longer": Budget(PAIRS, seeds=3, settings={**QUICK, "epochs": 100}),
    },
)
ESD_WEIGHTS = (0.25, 0.5, 1.0, 2.0)


def at_weight(weight: float, **settings: object) -> Arm:
    """ESD of a held-out slice at one weight, which is not tuned."""
    own = {"procedure": "interleaved", "calibration": "rooted_esd", "weight": weight}
    return Arm({**own, **settings})


FRONTIER = Study(
    title="What calibration costs: ESD at every weight",
    paper="All three papers",
    place="",
    arms={
        "NLL": Arm(),
        **{f"NLL + {weight:g} ESD": at_weight(weight) for weight in ESD_WEIGHTS},
        "NLL + ESD, adaptive": ARMS["NLL + ESD, adaptive"],
        "NLL on 90%": ARMS["NLL on 90%"],
        "NLL + 1 ESD, 5% held out": at_weight(1.0, held_out=0.05),
        "NLL + ESD, adaptive, 5% held out": ARMS["NLL + ESD, adaptive, 5% held out"],
        "NLL on 95%": Arm({"held_out": 0.05}),
    },
    columns={
        "Acc.": Column("accuracy"),
        "ECE": Column("ece20"),
        "NLL": Column("nll"),
        "Validation acc.": Column("accuracy", split="validation"),
        "Validation ECE": Column("ece20", split="validation"),
        "ECE after TS": Column("ece20", after="temperature"),
        "ECE after VS": Column("ece20", after="vector"),
        **PEOPLE,
    },
    spread="std",
    note=(
        "Every weight is tested, so that the whole frontier of accuracy and ECE can be seen; "
        "nothing is chosen. The papers' rule, applied to the two validation columns, takes the "
        "lowest ECE of the lines that lose less than 1.5 points of accuracy to NLL: weight 1 in "
        "the first run, which the claims are about. NLL is fitted to 45,000 images, ESD's "
        "fit to 40,500 with 4,500 held out for calibration; *NLL on 90%* fits those 40,500 and "
        "leaves the rest unused, to tell what the tenth costs from what calibration costs. It came "
        "after the lines above it had been seen, and the last three, of half as large a slice, "
        "after it. ECE has 20 bins; the last epoch is kept."
    ),
    claims=(
        Claim("ECE", "NLL + 1 ESD", "NLL", by=0.4),
        Claim("Acc.", "NLL + 1 ESD", "NLL", within=1.5),
        Claim("ECE", "NLL + ESD, adaptive", "NLL", by=0.4),
        Claim("Acc.", "NLL + ESD, adaptive", "NLL", within=1.5),
        Claim("ECE", "NLL + ESD, adaptive", "NLL + 1 ESD"),
        Claim("ECE after TS", "NLL + 1 ESD", "NLL"),
        Claim("Acc.", "NLL on 90%", "NLL", within=0.5),
        Claim("ECE", "NLL + 1 ESD", "NLL on 90%", by=0.4),
        Claim("Acc.", "NLL + 1 ESD", "NLL on 90%", within=1.5),
        Claim("ECE", "NLL + ESD, adaptive", "NLL on 90%"),
        Claim("Acc.", "NLL + ESD, adaptive", "NLL on 90%", within=1.5),
        *(
            claim
            for arm in ("NLL + 1 ESD, 5% held out", "NLL + ESD, adaptive, 5% held out")
            for claim in (Claim("ECE", arm, "NLL", by=0.4), Claim("Acc.", arm, "NLL", within=1.5))
        ),
    ),
    budgets={
        "quick": Budget(PAIRS[:1], seeds=3, settings=QUICK),
        "longer": Budget(PAIRS[:1], seeds=3, settings={**QUICK, "epochs": 60}),
    },
    figure="frontier",
)
OBJECTIVES_SHIFTED = Study(
    title="Every objective under shift",
    paper="All three papers",
    place="",
    arms=ARMS,
    columns=COLUMNS,
    spread="std",
    rule=RULE,
    note=(
        f"{NOTE} Shift is CIFAR-C's 19 corruptions at five severities, made of the test images by "
        "this package's own code; they are not the released files, so compare arms with each other "
        "and not with published numbers. Temperatures are fitted to clean validation images."
    ),
    budgets={"quick": Budget(PAIRS, seeds=3, settings={**QUICK, "shift": (1, 2, 3, 4, 5)})},
    figure="shift",
    figure_settings={"panels": (("Acc.",), ("ECE",), ("ECE after TS",))},
)
SMALL = {"epochs": 10, "batch": 64, "lr": 2e-3, "augment": False}
DIGITS = Study(
    title="Handwritten digits through noise",
    paper="No paper",
    place="",
    arms={"NLL": Arm(), "NLL + ESD": interleaved("rooted_esd", (2.0, 4.0))},
    columns=COLUMNS,
    spread="std",
    rule=RULE,
    claims=(
        Claim("ECE", "NLL + ESD", "NLL"),
        Claim("Acc.", "NLL + ESD", "NLL", within=1.5),
    ),
    budgets={
        "paper": Budget((("digits", "mlp"),), seeds=5, settings={**SMALL, "epochs": 50}),
        "quick": Budget((("digits", "mlp"),), seeds=2, settings=SMALL),
    },
)

STUDIES = {
    "objectives": OBJECTIVES,
    "frontier": FRONTIER,
    "objectives-shifted": OBJECTIVES_SHIFTED,
    "digits": DIGITS,
}

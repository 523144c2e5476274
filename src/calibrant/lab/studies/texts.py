"""Objectives on texts: what follows from a sentence, and what a user wants. Values, no logic."""

from .._study import Arm, Budget, Claim, Column, Stage, Study
from .ours import RULE, interleaved

PAIRS = (("lingnli", "encoder"), ("clinc150", "encoder"))
ARMS = {
    "NLL": Arm(),
    "NLL + ESD": interleaved("rooted_esd", (0.5, 1.0, 2.0)),
    "NLL + ESD, adaptive": Arm(
        {"procedure": "interleaved", "calibration": "rooted_esd", "weight": "adaptive"}
    ),
    "Label smoothing": Arm({"fit": "label_smoothing"}),
    "Focal": Arm({"fit": "focal"}, (Stage("fit_settings.gamma", (1.0, 3.0)),)),
}
OTHERS = tuple(arm for arm in ARMS if arm != "NLL")
SURE = "Confidence out of scope"
QUICK = {
    "epochs": 3,
    "batch": 64,
    "lr": 5e-5,
    "precision": "bfloat16",
    "model_settings": {"folder": "minilm"},
}
TEXTS = Study(
    title="Texts by a small language model",
    paper="No paper",
    place="",
    arms=ARMS,
    columns={
        "Acc.": Column("accuracy"),
        "ECE": Column("ece20"),
        "ECE after TS": Column("ece20", after="temperature"),
        "NLL": Column("nll"),
        SURE: Column("mean_confidence", split="out-of-scope"),
        f"{SURE} after TS": Column("mean_confidence", after="temperature", split="out-of-scope"),
    },
    spread="std",
    rule=RULE,
    note=(
        "The encoder is MiniLM of six layers, all-MiniLM-L6-v2, trained whole: AdamW at 5e-5, "
        "batches of 64, three epochs of LingNLI, whose pairs are cut to 128 tokens, and ten of "
        "CLINC150, which has 100 queries for each of 150 classes. LingNLI is tested on the "
        "authors' validation set, since they release no test set. CLINC150 comes with queries "
        "that no class fits: *confidence out of scope* is that in an answer that must be wrong. "
        "Loss of accuracy is counted in points; the last epoch is kept; ECE has 20 bins."
    ),
    claims=(
        *(Claim("ECE", arm, "NLL") for arm in OTHERS),
        *(Claim("ECE after TS", arm, "NLL") for arm in OTHERS),
        Claim("Acc.", "NLL + ESD", "NLL", within=1.5),
        Claim("Acc.", "NLL + ESD, adaptive", "NLL", within=1.5),
        *(Claim(SURE, arm, "NLL") for arm in OTHERS),
    ),
    budgets={
        "quick": Budget(PAIRS, seeds=3, settings=QUICK, by_data={"clinc150": {"epochs": 10}}),
    },
)

STUDIES = {"texts": TEXTS}

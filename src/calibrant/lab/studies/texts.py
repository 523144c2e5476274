"""Objectives on texts: what follows from a sentence, and what a user wants. Values, no logic."""

from .._study import Budget, Claim, Column, Study
from .ours import ARMS as EVERY_ARM
from .ours import RULE

PAIRS = (("lingnli", "encoder"), ("clinc150", "encoder"))
OTHERS = ("NLL + ESD", "NLL + ESD, adaptive", "Label smoothing", "Focal")
ARMS = {name: EVERY_ARM[name] for name in ("NLL", *OTHERS)}
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

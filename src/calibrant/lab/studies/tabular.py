"""Objectives on a table of people, and whether confidence is as true of women as of men."""

from .._study import Arm, Budget, Claim, Column, Stage, Study
from .ours import ARMS as EVERY_ARM
from .ours import RULE, interleaved

WEIGHTS = (0.5, 1.0, 2.0, 4.0)
ADAPTIVE = EVERY_ARM["NLL + ESD, adaptive"]
BY_SEX = {"calibration_groups": "sex"}
COLUMNS = {
    "Acc.": Column("accuracy"),
    "ECE": Column("ece20"),
    "ECE after TS": Column("ece20", after="temperature"),
    "NLL": Column("nll"),
    "ECE of the worse sex": Column("ece20", groups="sex"),
    "Gap between sexes": Column("overconfidence", groups="sex", across="apart"),
}
TABULAR = Study(
    title="Who earns more than 50,000 dollars: calibration by sex",
    paper="No paper",
    place="",
    arms={
        "NLL": EVERY_ARM["NLL"],
        "NLL on 90%": EVERY_ARM["NLL on 90%"],
        "NLL + ESD": interleaved("rooted_esd", WEIGHTS),
        "NLL + ESD by sex": interleaved("rooted_esd", WEIGHTS, **BY_SEX),
        "NLL + ESD, adaptive": ADAPTIVE,
        "NLL + ESD by sex, adaptive": Arm({**ADAPTIVE.settings, **BY_SEX}),
        "Focal": EVERY_ARM["Focal"],
        "Gradient boosting": Arm(
            {"model": "boosting"}, (Stage("model_settings.rounds", (50, 100, 200, 400)),)
        ),
    },
    columns=COLUMNS,
    spread="std",
    rule=RULE,
    note=(
        "Adult: 29,305 people to train on, 3,256 to choose by, 16,281 to test, a third of them "
        "women. The network has two hidden layers, of 256 and 128; boosting is scikit-learn's, "
        "the same but for the people whom the seed draws. *Gap between sexes* is how far mean "
        "confidence less accuracy of one sex is from that of the other. *By sex* takes ESD of "
        "each sex in a held-out batch and averages the two. Loss of accuracy is counted in points; "
        "the last epoch is kept; ECE has 20 bins. Claims were written before the first run. All "
        "seeds are tested on the same people, so that a paired test speaks of other splits and "
        "other training, and not of other people; and it is made of fifteen claims at once."
    ),
    claims=(
        Claim("ECE", "NLL + ESD", "NLL"),
        Claim("ECE", "NLL + ESD", "NLL on 90%"),
        Claim("Acc.", "NLL + ESD", "NLL", within=1.5),
        Claim("ECE after TS", "NLL + ESD", "NLL"),
        Claim("ECE", "NLL + ESD, adaptive", "NLL"),
        Claim("Acc.", "NLL + ESD, adaptive", "NLL", within=1.5),
        Claim("ECE of the worse sex", "NLL + ESD by sex", "NLL"),
        Claim("ECE of the worse sex", "NLL + ESD by sex", "NLL + ESD"),
        Claim("Gap between sexes", "NLL + ESD by sex", "NLL"),
        Claim("Gap between sexes", "NLL + ESD by sex", "NLL + ESD"),
        Claim("Gap between sexes", "NLL + ESD by sex, adaptive", "NLL + ESD, adaptive"),
        Claim("ECE", "Focal", "NLL"),
        Claim("ECE", "Gradient boosting", "NLL"),
        Claim("ECE", "Gradient boosting", "NLL + ESD"),
        Claim("Acc.", "Gradient boosting", "NLL", higher=True),
    ),
    budgets={
        "quick": Budget((("adult", "mlp"),), seeds=5, settings={"epochs": 20, "batch": 512}),
    },
)

STUDIES = {"tabular": TABULAR}

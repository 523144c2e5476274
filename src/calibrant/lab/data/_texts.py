"""The data sets of texts."""

from .._samples import Texts
from ._dataset import Dataset, Source
from ._json_lines import JsonLines

INFERENCE = ("entailment", "neutral", "contradiction")


def _inside(
    name: str,
    classes: int,
    sizes: tuple[int, int, int],
    parts: dict[str, str],
    fields: tuple[str, ...] = ("text",),
    names: tuple[str, ...] | None = None,
    unlabelled: tuple[str, ...] = (),
    length: int = 64,
    file: str | None = None,
) -> Dataset[Texts]:
    """A set of which one file holds every part."""
    files = dict.fromkeys(parts, (f"text/{file or name}.jsonl",))
    reader = JsonLines(
        files, fields, names=names, unlabelled=unlabelled, split="split", parts=parts
    )
    advice = "Put it there: a JSON object to a line, with the fields split, label and "
    return Dataset(
        name,
        classes,
        sizes,
        files,
        reader,
        model="encoder",
        length=length,
        advice=advice + " and ".join(fields) + ".",
    )


SNLI_FILES = {
    "train": ("snli_1.0/snli_1.0_train.jsonl",),
    "validation": ("snli_1.0/snli_1.0_dev.jsonl",),
    "test": ("snli_1.0/snli_1.0_test.jsonl",),
}
ANLI_FILES = {
    part: tuple(f"anli_v1.0/R{number}/{name}.jsonl" for number in (1, 2, 3))
    for part, name in {"train": "train", "validation": "dev", "test": "test"}.items()
}

TEXTS: dict[str, Dataset[Texts]] = {
    # As the paper counts them; the few that nobody could agree on a label for are left out.
    "snli": Dataset(
        "snli",
        3,
        (550_152, 10_000, 10_000),
        SNLI_FILES,
        JsonLines(SNLI_FILES, ("sentence1", "sentence2"), "gold_label", INFERENCE, ("-",)),
        model="encoder",
        sources=(
            Source(
                "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
                "sha256:afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
                "snli_1.0.zip",
                tuple(name for names in SNLI_FILES.values() for name in names),
            ),
        ),
        length=158,
    ),
    "anli": Dataset(
        "anli",
        3,
        (162_865, 3_200, 3_200),
        ANLI_FILES,
        JsonLines(ANLI_FILES, ("context", "hypothesis"), "label", ("e", "n", "c")),
        model="encoder",
        sources=(
            Source(
                "https://dl.fbaipublicfiles.com/anli/anli_v1.0.zip",
                "sha256:e5c058f2bb4e6190b0651badca2c590e45db95248f8b28cde674615ee40820bf",
                "anli_v1.0.zip",
                tuple(name for names in ANLI_FILES.values() for name in names),
            ),
        ),
        length=128,
    ),
    "lingnli": _inside(
        "lingnli",
        3,
        (40_453, 4_495, 7_361),
        {"train": "train", "test": "val"},  # the authors release no test set
        ("premise", "hypothesis"),
        INFERENCE,
        length=128,
    ),
    # Queries that no class fits are a shift: their label is -1.
    "clinc150": _inside(
        "clinc150",
        150,
        (15_000, 3_000, 4_500),
        {"train": "train", "validation": "val", "test": "test", "out-of-scope": "oos_test"},
        unlabelled=("oos",),
        file="clinc150_full",
    ),
    "banking77": _inside(
        "banking77", 77, (9_003, 1_000, 3_080), {"train": "train", "test": "test"}
    ),
    "trec": _inside("trec", 6, (4_907, 545, 500), {"train": "train", "test": "test"}),
}

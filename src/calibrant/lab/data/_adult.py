"""Adult: who earned more than 50,000 dollars in 1994, by sex and race."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from .._samples import Samples
from ._files import found, text

NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
NAMES = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
)
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
INCOMES = {"<=50K": 0, ">50K": 1}
FILES = {"train": ("tabular/adult.data",), "test": ("tabular/adult.test",)}

Rows = list[dict[str, str]]


def read_adult(folder: Path, part: str) -> Samples:
    """Rows of a part as floats: numbers standardised, names as one column for each.

    Both are by what the training file holds, so that the parts agree: a name that is not there
    gives zeros. A question mark is a name like others. `fnlwgt` is left out, since it says how
    many people a row stands for. Groups are `sex` (1 for women) and `race`.

    Becker and Kohavi, "Adult", UCI Machine Learning Repository, 1996.
    """
    train = _rows(found(folder, FILES["train"][0]))
    rows = train if part == "train" else _rows(found(folder, FILES[part][0]))
    encoding = _learn(train)
    labels = torch.tensor([INCOMES[row["income"]] for row in rows])
    races = {name: number for number, name in enumerate(encoding.names["race"])}
    groups = {
        "sex": torch.tensor([int(row["sex"] == "Female") for row in rows]),
        "race": torch.tensor([races.get(row["race"], -1) for row in rows]),
    }
    return Samples(encoding(rows), labels, groups)


@dataclass(frozen=True)
class _Encoding:
    means: Tensor
    spreads: Tensor
    names: dict[str, list[str]]

    def __call__(self, rows: Rows) -> Tensor:
        numbers = (_numbers(rows) - self.means) / self.spreads
        columns = [numbers.float()]
        for column, names in self.names.items():
            place = {name: number for number, name in enumerate(names)}
            found_at = torch.tensor([place.get(row[column], len(names)) for row in rows])
            ones = torch.nn.functional.one_hot(found_at, len(names) + 1)[:, :-1]
            columns.append(ones.float())
        return torch.cat(columns, dim=1)


def _learn(rows: Rows) -> _Encoding:
    numbers = _numbers(rows)
    spread = numbers.std(dim=0, correction=0)
    names = {column: sorted({row[column] for row in rows}) for column in NAMES}
    return _Encoding(numbers.mean(dim=0), torch.where(spread > 0, spread, 1.0), names)


def _numbers(rows: Rows) -> Tensor:
    return torch.tensor([[float(row[name]) for name in NUMBERS] for row in rows]).double()


def _rows(path: Path) -> Rows:
    """Lines of 15 cells; a head, the note that begins the test file and blank lines are none."""
    rows = []
    for number, line in enumerate(text(path).splitlines(), start=1):
        if not line.strip() or line.startswith("|") or line.startswith("age,"):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        cells[-1] = cells[-1].removesuffix(".")  # the labels of the test file end in a full stop
        row = dict(zip(COLUMNS, cells, strict=False))
        numeric = all(row.get(name, "").lstrip("-").isdigit() for name in NUMBERS)
        if len(cells) != len(COLUMNS) or not numeric or cells[-1] not in INCOMES:
            raise ValueError(
                f"line {number} of {path} must hold {len(COLUMNS)} cells, of which the last is "
                f"<=50K or >50K; got {len(cells)}: {line[:80]!r}."
            )
        rows.append(row)
    if not rows:
        raise ValueError(f"{path} must hold rows; got none.")
    return rows

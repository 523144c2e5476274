"""The table of the README names what the package has, and nothing else."""

import re
from inspect import ismodule
from pathlib import Path

import calibrant

README = Path(__file__).parents[1] / "README.md"


def test_the_table_names_every_public_name_once_and_nothing_else() -> None:
    public = [
        name
        for name, value in vars(calibrant).items()
        if not name.startswith("_") and not ismodule(value)
    ]
    named = re.findall(r"^\| `(\w+)` \|", README.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(named) == sorted(public)


def test_its_results_are_those_of_the_stored_page() -> None:
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- from (\S+) -->\n(.*?)<!-- end -->", text, flags=re.DOTALL)
    assert blocks
    for page, block in blocks:
        stored = (README.parent / page).read_text(encoding="utf-8").splitlines()
        assert [line for line in block.splitlines() if line and line not in stored] == []

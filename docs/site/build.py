"""Build the documentation site: `python docs/site/build.py --out site`."""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sphinx.cmd.build import build_main

sys.path.insert(0, str(Path(__file__).parent))

from commands import command_page
from reference import measure_pages, part_pages, recalibrator_pages
from tables import ROOT, TABLES

DOCS = ROOT / "docs"

CONTENTS: dict[str, list[str]] = {
    "Start": ["words", "tutorials/*", "command-line"],
    "How to": ["how-to/*", "faq"],
    "Measures": ["measures/*"],
    "Recalibrators": ["recalibrators/*"],
    "The rest of the package": ["reference/*"],
    "Background": ["comparison", "derivations/*", "decisions/*", "results/*"],
}
"""What the site holds, in the order of its margin."""

ORDER = ["measure", "repair", "train", "transformer", "gpus", "reproduce"]


def pages() -> Iterator[tuple[str, str]]:
    """Every page: those that were written, and those that are made."""
    for path in sorted(DOCS.rglob("*.md")):
        yield str(path.relative_to(DOCS).with_suffix("")), filled(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "results").glob("*.md")):
        yield f"results/{path.stem}", path.read_text(encoding="utf-8")
    yield "command-line", command_page()
    yield from measure_pages()
    yield from recalibrator_pages()
    yield from part_pages()


def filled(text: str) -> str:
    """A written page with its tables and scripts put in."""
    text = re.sub(r"<!-- table: (.+?) -->", lambda hit: TABLES[hit[1]](), text)
    # A doctest ends in a blank line, which a reader does not need.
    text = re.sub(r"\n\n```$", "\n```", text, flags=re.MULTILINE)
    return re.sub(
        r"<!-- script: (.+?) -->",
        lambda hit: f"```python\n{(ROOT / hit[1]).read_text(encoding='utf-8').strip()}\n```",
        text,
    )


def contents(names: list[str]) -> str:
    """The tables of contents, one for each group of pages."""

    def rank(name: str) -> tuple[int, str]:
        last = name.rsplit("/", 1)[-1]
        return (ORDER.index(last) if last in ORDER else len(ORDER)), name.lower()

    parts = []
    for caption, patterns in CONTENTS.items():
        listed = [
            name
            for pattern in patterns
            for name in sorted(names, key=rank)
            if re.fullmatch(pattern.replace("*", "[^/]+"), name)
        ]
        lines = "\n".join(listed)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n:maxdepth: 1\n\n{lines}\n```")
    return "\n\n".join(parts)


def build(out: Path) -> None:
    """The whole site into a folder; a warning is an error."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        made = dict(pages())
        made["index"] += f"\n\n{contents(list(made))}\n"
        for name, text in made.items():
            place = source / f"{name}.md"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        for figure in (ROOT / "results").glob("*.png"):
            shutil.copy(figure, source / "results")
        new = Path(folder) / "html"
        asked = ["-q", "-W", "--keep-going", "-b", "html", "-d", f"{folder}/doctrees"]
        code = build_main([*asked, "-c", str(Path(__file__).parent), str(source), str(new)])
        if code != 0:
            raise SystemExit(f"the site must build without a warning; Sphinx ended with {code}.")
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(new, out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "site")
    build(parser.parse_args().out)

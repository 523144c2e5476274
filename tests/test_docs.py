"""The documentation site: it builds, its links hold, its commands run, and a browser is content."""

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest
import two_ranks

import calibrant as cal
from calibrant.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CHROMIUM = shutil.which("chromium")

# Where the browser goes: a page of each kind.
VISITED = [
    "index.html",
    "tutorials/measure.html",
    "measures/esd.html",
    "recalibrators/TemperatureScaling.html",
    "reference/evaluation.html",
    "how-to/choose.html",
    "how-to/monitor.html",
    "command-line.html",
    "derivations/sorting.html",
    "search.html?q=temperature",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built in a process of its own; a warning ends it with an error."""
    out = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, str(DOCS / "site" / "build.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return out


class Page(HTMLParser):
    """What a page points to, and the places in it that can be pointed to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.places |= {value for key in ("id", "name") if (value := told.get(key))}
        if tag == "a" and told.get("href"):
            self.links.append(str(told["href"]))
        elif told.get("src") or (tag == "link" and told.get("href")):
            self.loaded.append(str(told.get("src") or told.get("href")))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_link_within_the_site_leads_somewhere(pages: dict[Path, Page]) -> None:
    checked = 0
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, place = urldefrag(link)
            file = (path.parent / unquote(target)).resolve() if target else path
            assert file in pages, f"{path.name} links to {link}"
            assert not place or unquote(place) in pages[file].places, f"{path.name} links to {link}"
            checked += 1
    assert checked > 1000


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for source in page.loaded:
            assert not re.match(r"(?:[a-z]+:)?//", source), f"{path.name} loads {source}"
            local = unquote(source.split("?")[0].split("#")[0])
            assert (path.parent / local).exists() or source.startswith("data:")
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:", style.read_text(encoding="utf-8"))


def test_every_measure_and_recalibrator_has_a_page_with_what_was_promised(site: Path) -> None:
    for name, criterion in cal.MEASURES.items():
        file = site / "measures" / f"{name}.html"
        if not file.exists():  # a lift of another: rooted_esd, class_wise_ece, ...
            assert re.search(r"ece|esd", repr(criterion))
            continue
        text = file.read_text(encoding="utf-8")
        assert "<math" in text, name
        assert "<svg" in text.split('<div class="picture">')[1][:20], name
        assert re.search(r"(19|20)\d\d", text), name
    made = {type(make()).__name__ for make in cal.RECALIBRATORS.values()}
    assert made <= {path.stem for path in (site / "recalibrators").glob("*.html")}


def test_every_public_name_is_documented_on_some_page(pages: dict[Path, Page]) -> None:
    places = {place for page in pages.values() for place in page.places}
    types = {"Criterion", "Measure", "CRITERIA", "MEASURES", "SCORES", "RECALIBRATORS"}
    missing = [
        name
        for name, value in vars(cal).items()
        if not name.startswith("_")
        and name not in types | {"META_SETTINGS"}
        and not re.match(r"<module", repr(value))
        and name.lower().replace("_", "-") not in places
    ]
    assert missing == []


def test_tables_are_those_of_the_results(site: Path) -> None:
    text = (site / "how-to" / "monitor.html").read_text(encoding="utf-8")
    rows = (ROOT / "benchmarks" / "results" / "monitor.csv").read_text().splitlines()[1:]
    shares = [float(row.split(",")[5]) for row in rows if row.startswith("false alarms")]
    assert max(shares) <= 0.05
    for share in shares:
        assert f"{share:.1%} (" in text
    assert "TS-SB-ECE" in (site / "how-to" / "choose.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium, if it is here."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_has_no_complaint_and_asks_nobody_else(
    scheme: str, site: Path, browser: Any
) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 800})
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda wrong: complaints.append(str(wrong)))
    page.on("request", lambda request: asked.append(request.url))
    for name in VISITED:
        page.goto(f"file://{site}/{name}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{name} is {wide} pixels wide on a telephone"
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        shade = sum(map(int, re.findall(r"\d+", colour)[:3]))
        assert (shade > 384) == (scheme == "light")
    page.wait_for_selector("#search-results li a")
    assert complaints == []
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked)
    drawn = f"file://{site}/measures/esd.html"
    page.goto(drawn)
    assert page.locator(".picture svg polyline.mean").bounding_box()["width"] > 100
    assert page.locator("math").first.bounding_box()["height"] > 10
    context.close()


PAGES_WITH_COMMANDS = [
    path for path in sorted(DOCS.rglob("*.md")) if "```console" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("path", PAGES_WITH_COMMANDS, ids=lambda path: path.stem)
def test_commands_of_a_page_print_what_it_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the page's Python has written the files; `...` stands for anything."""
    monkeypatch.chdir(tmp_path)
    text = path.read_text(encoding="utf-8")
    globs: dict[str, Any] = {}
    before = text.split("```console")[0]
    test = doctest.DocTestParser().get_doctest(before, globs, path.name, str(path), 0)
    assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
    capsys.readouterr()
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "calibrant"
            code = main(arguments)
            out = capsys.readouterr().out
            if code:
                out += f"[exit code {code}]\n"
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(shown, out, flags), out


def test_the_example_for_several_processes_runs_on_two() -> None:
    told = two_ranks.launch(str(ROOT / "examples" / "several_processes.py"))
    assert told.startswith("2 processes, one model; epoch 2")

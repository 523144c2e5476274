"""The report in a browser, as a person opens it: from disk, without a network."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from calibrant.report import write_report

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="pages are opened in chromium, which is not installed here"
)

HOSTILE = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = torch.Generator().manual_seed(0)
    logits = 1.5 * torch.randn(300, 3, generator=rng)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=rng)[:, 0]
    place = tmp_path_factory.mktemp("browser") / "report.html"
    write_report(
        place,
        {HOSTILE: (3 * logits, labels), "honest \u202eقطة": (logits, labels)},
        class_names=[HOSTILE, "🐈", "\"'`"],
        groups=np.array([HOSTILE, "b"])[np.arange(300) % 2],
        severity=np.arange(300) % 3,
        sample_names=[HOSTILE] * 300,
        draws=39,
    )
    return place


@dataclass
class Opened:
    """A page, and what it did that it should not."""

    page: Any
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


def opened(browser: Any, place: Path, **settings: Any) -> Opened:
    page = browser.new_page(**settings)
    seen = Opened(page)
    page.on("console", lambda message: seen.complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: seen.complaints.append(f"dialog: {dialog.message}"))

    def requested(request: Any) -> None:
        if request.url != place.as_uri() and not request.url.startswith("data:"):
            seen.complaints.append(f"request: {request.url}")

    page.on("request", requested)
    page.goto(place.as_uri())
    return seen


def test_it_opens_without_an_error_a_request_or_a_foreign_script(
    browser: Any, report: Path
) -> None:
    seen = opened(browser, report)
    assert seen.page.evaluate("window.ran") is None
    assert seen.page.locator("img").count() == 0
    assert HOSTILE in seen.page.locator("main").inner_text()
    seen.page.mouse.wheel(0, 2000)
    assert seen.complaints == []
    seen.page.close()


def test_a_script_that_slipped_in_would_not_run(browser: Any, report: Path, tmp_path: Path) -> None:
    text = report.read_text(encoding="utf-8")
    unsafe = "<script>window.ran = 1</script><img src='data:,' onerror='window.ran = 2'></main>"
    place = tmp_path / "unsafe.html"
    place.write_text(text.replace("</main>", unsafe), encoding="utf-8")
    seen = opened(browser, place)
    assert seen.page.evaluate("window.ran") is None
    assert seen.page.locator(".choose").is_visible()  # the page's own script did
    assert len(seen.complaints) == 2
    seen.page.close()


def test_the_diagram_is_drawn(browser: Any, report: Path) -> None:
    seen = opened(browser, report)
    bars = seen.page.locator(".model.chosen .way.chosen .bar")
    assert bars.count() >= 8
    boxes = [bars.nth(k).bounding_box() for k in range(bars.count())]
    assert sum(box["width"] * box["height"] for box in boxes) > 10_000
    assert seen.complaints == []
    seen.page.close()


def test_choosing_a_model_or_bins_changes_what_is_seen(browser: Any, report: Path) -> None:
    seen = opened(browser, report)
    page = seen.page

    def visible() -> tuple[str, int]:
        heading = page.locator(".model:visible h2").all_inner_texts()
        return " ".join(heading), page.locator(".model:visible .way:visible .bar").count()

    first = visible()
    assert HOSTILE in first[0]
    assert "honest" not in first[0]
    page.locator("#choose-bins").select_option(label="5 bins of equal width")
    fewer = visible()
    assert fewer[1] < first[1]
    page.locator("#choose-model").select_option(index=1)
    other = visible()
    assert "honest" in other[0]
    assert HOSTILE not in other[0]
    page.locator("#choose-model").select_option(value="all")
    assert HOSTILE in visible()[0]
    assert "honest" in visible()[0]
    assert seen.complaints == []
    page.close()


def test_marks_speak_to_pointer_and_keyboard(browser: Any, report: Path) -> None:
    seen = opened(browser, report)
    page = seen.page
    page.locator(".model.chosen .way.chosen .mark .bar").last.hover()
    tip = page.locator("#tip")
    assert re.search(r"\d+ samples?, mean confidence", tip.inner_text())
    figure = page.locator(".model.chosen .way.chosen svg")
    figure.focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#spoken").inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator("#spoken").inner_text()
    assert first != second
    assert "mean confidence" in second
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    assert seen.complaints == []
    page.close()


def test_it_prints(browser: Any, report: Path) -> None:
    seen = opened(browser, report, color_scheme="dark")
    document = seen.page.pdf(format="A4")
    assert document.startswith(b"%PDF")
    assert len(document) > 30_000
    seen.page.emulate_media(media="print")
    ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"  # paper is white, whatever the screen was
    assert not seen.page.locator(".choose").is_visible()
    seen.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone(browser: Any, report: Path, scheme: str) -> None:
    seen = opened(browser, report, viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(18, 22, 28)") == (scheme == "dark")
    seen.page.close()


WIDER = """[...document.querySelectorAll('.scroll')].filter((x) => x.offsetParent).map((box) => [
    box.scrollWidth > box.clientWidth + 1,
    getComputedStyle(box, '::before').content !== 'none',
])"""


@pytest.mark.parametrize("width", [400, 1000])
def test_what_is_wider_than_its_box_scrolls_inside_it_and_says_so(
    browser: Any, report: Path, width: int
) -> None:
    seen = opened(browser, report, viewport={"width": width, "height": 800})
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_timeout(200)  # what is wider is found out after it was laid out
    boxes = page.evaluate(WIDER)
    assert len(boxes) > 8
    assert all(wider == hinted for wider, hinted in boxes)
    # A telephone cannot hold all of it; a small window can.
    assert any(wider for wider, _ in boxes) == (width == 400)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.complaints == []
    page.close()


def test_it_can_be_read_without_scripts(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator(".model:visible").count() == 2
    assert page.locator(".model:visible .way:visible svg").count() == 2
    assert not page.locator(".choose").is_visible()
    context.close()

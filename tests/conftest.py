"""Shapes are checked at run time while the tests run, and randomness comes from a seed."""

import gc
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch

# The same examples each time, and no clock: a slow machine is not a failure.
hypothesis.settings.register_profile(
    "calibrant", deadline=None, derandomize=True, max_examples=60, database=None
)
hypothesis.settings.load_profile("calibrant")

# A compiler cannot see through the run-time checks, so the compile tests run without them.
if find_spec("beartype") and not os.environ.get("CALIBRANT_UNCHECKED"):
    from jaxtyping import install_import_hook

    install_import_hook("calibrant", "runtime_types.checked")

import calibrant as cal

# Files that take longest, be their tests many or few.
LONGEST = (
    *("unchecked", "interpreted", "noisy_digits", "lab_study", "lab_sharing", "lab_together"),
    *("docs", "ranks", "meta", "laws", "evaluation", "class_draws", "comparison", "coins"),
    *("mass_bins", "sql", "report", "refusals"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that no worker is left with one when the others are done."""
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in LONGEST)


@pytest.fixture(scope="module", autouse=True)
def lasting() -> None:
    """What is imported by now stays: the garbage collector need not look through it each time.

    It would for a second at every collection, of which a training run asks for one or more.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Libraries that count what is left at the end find nothing."""
    gc.unfreeze()


@pytest.fixture
def unchecked_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a wrong type through to the sentence a person would read."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(20261115)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A CSV file of how sure and whether right."""
    lines = [f"{0.5 + 0.005 * k},{int(k % 4 != 0)}\n" for k in range(90)]
    (tmp_path / "answers.csv").write_text("sure,right\n" + "".join(lines))
    return tmp_path / "answers.csv"


@pytest.fixture
def predictions(rng: torch.Generator) -> "cal.Predictions":
    """Two hundred over-confident predictions of four classes, right two times in three."""
    labels = torch.randint(4, (200,), generator=rng)
    logits = 2 * torch.randn(200, 4, generator=rng, dtype=torch.float64)
    logits[torch.arange(200), labels] += 1.5
    return cal.Predictions(logits, labels)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Small tensors: a second thread would only wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

"""The examples of a page run in a folder of their own, where they may write files."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

"""Migrations as a later release may have them: those that are shipped, and three more."""

import shutil
from pathlib import Path

import pytest

from nearsim_db.store.schema import baseline

REVISIONS = ("0002", "0003", "0004")
_SOURCES = Path(__file__).parent / "revisions"


@pytest.fixture
def later_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have the code find revisions 0002 to 0004 after its own."""
    folder = tmp_path / "migrations"
    shutil.copytree(baseline.migrations_directory(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    for source in _SOURCES.glob("*.py"):
        shutil.copy(source, folder / "versions")
    monkeypatch.setattr(baseline, "migrations_directory", lambda: folder)

"""Findings of the doctor for an embedded server that cannot work."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from nearsim_db.admin.doctor import Finding, examine
from nearsim_db.store import embedded


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of an embedded server that nothing may start: its address names another kind of database."""
    monkeypatch.delenv("NEARSIM_DATABASE_URL", raising=False)
    monkeypatch.setenv("NEARSIM_HOME", str(tmp_path))
    monkeypatch.setattr("nearsim_db.admin.doctor.database_url", lambda: "sqlite://")
    return tmp_path


def embedded_server() -> Finding:
    (found,) = [one for one in examine() if one.check == "embedded server"]
    return found


def test_data_of_another_major_version_are_a_problem(home: Path) -> None:
    assert embedded_server().verdict == "ok"
    data = embedded.status(home).data_directory
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("14\n")
    found = embedded_server()
    assert found.verdict == "problem"
    assert f"the data in {data} of PostgreSQL 14" in found.finding
    assert "PostgreSQL 14" in found.advice


def test_no_free_disk_is_a_problem(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000))
    found = embedded_server()
    assert (found.verdict, "no room" in found.finding) == ("problem", True)
    assert "free some space" in found.advice

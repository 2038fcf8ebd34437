"""Findings of the doctor: an embedded server that cannot work, and workers that run, have stopped or fall behind."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from nearsim_db import Index
from nearsim_db.admin.doctor import Finding, examine
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store import embedded
from nearsim_db.store.driver import Connection
from nearsim_db.store.work import leases
from tests.builders.workers import Application, application
from tests.servers.citus import AnyServer


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


WRITE = """
INSERT INTO nearsim.document (collection_id, external_id)
SELECT collection_id, 'd' || n FROM nearsim.collection, generate_series(1, 9) AS n WHERE name = %s
"""


@pytest.fixture
def other(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    """An application that has written nine documents into a built collection an hour ago, before doctor is run."""
    monkeypatch.setenv("NEARSIM_DATABASE_URL", database_url)
    with Index.connect(database_url) as index, application(database_url) as connection:
        index.create_profile("default", Recipe())
        index.build()
        connection.execute(WRITE, ["default"])
        connection.execute("UPDATE nearsim.change SET changed_at = now() - interval '1 hour'")
        yield connection


def findings(check: str) -> list[Finding]:
    """What doctor finds in a check."""
    return [one for one in examine() if one.check == check]


def test_a_worker_without_heartbeat_is_not_running(other: Application, connection: Connection) -> None:
    leases.open_lease(connection, "host:17")
    connection.commit()
    (found,) = findings("workers")
    assert found.verdict == "warning"
    assert re.fullmatch(r"1 running: host:17; 9 changes waiting, the oldest for 36\d\d s", found.finding)
    other.execute("UPDATE nearsim_index.lease SET beat_at = now() - interval '67 s'")
    (found,) = findings("workers")
    assert found.verdict == "warning"
    silent = r"host:17 has sent no heartbeat for (6[7-9]|7\d) s; 9 changes waiting, the oldest for 36\d\d s"
    assert re.fullmatch(silent, found.finding)
    assert "end it" in found.advice
    other.execute("DELETE FROM nearsim.change")
    leases.open_lease(connection, "host:18")
    connection.commit()
    assert [one.verdict for one in findings("workers")] == ["warning", "ok"]


def test_triggers_that_do_not_fire_are_a_problem(other: Application) -> None:
    assert findings("triggers") == []
    other.execute("ALTER TABLE nearsim.document DISABLE TRIGGER document_capture_updated")
    other.execute("DROP TRIGGER document_set_revision ON nearsim.document")
    (found,) = findings("triggers")
    assert found.verdict == "problem"
    assert "has document_capture_updated, document_set_revision disabled" in found.finding


def test_no_worker_is_to_be_started_beside_a_running_one(other: Application, connection: Connection) -> None:
    with Index.connect(collection="next") as index:
        index.create_profile("default", Recipe())
    other.execute(WRITE, ["next"])
    (found,) = findings("builds")
    assert found.advice.startswith("start a worker: nearsim worker; or: nearsim build")
    leases.open_lease(connection, "host:17")
    connection.commit()
    (found,) = findings("builds")
    assert found.verdict == "warning" and "start a worker" not in found.advice
    other.execute("UPDATE nearsim_index.lease SET beat_at = now() - interval '67 s'")
    assert "start a worker" in findings("builds")[0].advice


def test_rights_are_to_create_a_schema_that_does_not_exist(
    server: AnyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.empty_database() as url:
        monkeypatch.setenv("NEARSIM_DATABASE_URL", url)
        assert [one.finding for one in findings("rights")] == ["sufficient to create the schema nearsim"]

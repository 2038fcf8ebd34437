"""PgBouncer between nearsim and the server: applications may write through it, workers need sessions."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.errors import PoolError
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import run
from nearsim_db.store.embedded.account import server_account
from nearsim_db.store.embedded.processes import wait_until
from tests.builders.workers import IDLE, WorkerProcess, application, running
from tests.builders.workers import wait_until as wait_until_true
from tests.servers.homes import server_home

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
pytestmark = [
    pytest.mark.slow("starts PgBouncer"),
    pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed: apt-get install pgbouncer"),
]
_PORT = 6432


@contextmanager
def pooled(url: str, mode: str, size: int = 20) -> Iterator[str]:
    """The address of the same database behind a pool."""
    server = psycopg.conninfo.conninfo_to_dict(url)
    with server_home() as home:
        settings = home / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={server['host']} port={server['port']} user={server['user']}\n"
            f"[pgbouncer]\nunix_socket_dir = {home}\nlisten_addr =\nlisten_port = {_PORT}\nauth_type = any\n"
            f"pool_mode = {mode}\ndefault_pool_size = {size}\npidfile = {home}/pid\nlogfile = {home}/log\n"
        )
        account = server_account()
        account.give(home)
        user = ["-u", account.name] if os.geteuid() == 0 else []
        assert PGBOUNCER is not None
        subprocess.run([PGBOUNCER, "-d", "-q", *user, str(settings)], check=True)
        try:
            assert wait_until((home / f".s.PGSQL.{_PORT}").exists, 10), (home / "log").read_text()
            yield url.replace(str(server["host"]).replace("/", "%2F"), str(home).replace("/", "%2F")).replace(
                "port=5432", f"port={_PORT}"
            )
        finally:
            _stop(home / "pid")


def _stop(pid_file: Path) -> None:
    os.kill(int(pid_file.read_text()), signal.SIGTERM)
    assert wait_until(lambda: not pid_file.exists(), 10)


@pytest.mark.parametrize("clients", [0, 3])
def test_a_pool_in_transaction_mode_is_refused(database_url: str, clients: int) -> None:
    """Also while other clients use its sessions, whose settings stay as they are."""
    with pooled(database_url, "transaction") as url:
        others = [psycopg.connect(url, autocommit=True) for _ in range(clients)]
        for other in others:
            other.execute("SELECT 1")
        with pytest.raises(PoolError, match="transaction mode"):
            Database.connect(url)
        worker = WorkerProcess(url)
        assert worker.wait() == 1
        assert "pool_mode = session" in " ".join(worker.lines)
        assert worker.process.stderr is not None
        worker.process.stderr.close()
        with psycopg.connect(url) as writer:
            assert writer.execute("SHOW search_path").fetchone() != ("pg_catalog, pg_temp",)
        for other in others:
            other.close()


def test_applications_write_through_a_pool_in_transaction_mode(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", Recipe())
        index.build()
        with (
            running(database_url),
            pooled(database_url, "transaction", size=2) as url,
            application(database_url) as direct,
        ):
            for number in range(20):
                with psycopg.connect(url, prepare_threshold=None) as writer:
                    writer.execute(
                        "INSERT INTO nearsim.document (collection_id, external_id, body) "
                        "SELECT collection_id, %s, 'one text for all of them' FROM nearsim.collection",
                        [f"d{number}"],
                    )
            wait_until_true(direct, "SELECT count(*) = 20 FROM nearsim.document")
            wait_until_true(direct, IDLE)
        assert len(list(index.pairs())) == 190


@pytest.mark.parametrize("size", [1, 20])
def test_a_pool_in_session_mode_is_accepted(database_url: str, size: int) -> None:
    """Even one whose only session is in use, so that no second one can be had to compare with."""
    with (
        pooled(database_url, "session", size) as url,
        Database.connect(url) as database,
        database.transaction() as connection,
    ):
        assert run(connection, "SELECT 1").value() == 1

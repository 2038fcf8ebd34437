"""A server with nearsim in it, and a streaming copy of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.servers.databases import SETTINGS
from tests.servers.homes import server_home
from tests.servers.programs import programs

_REPLICATION = {**SETTINGS, "wal_level": "replica", "max_wal_senders": "4", "shared_buffers": "32MB"}


@contextmanager
def primary_and_standby(
    major: int, fill: Callable[[str], None] = lambda url: None
) -> Iterator[tuple[PostgresCluster, PostgresCluster]]:
    """A server with nearsim in it, filled before it is copied, and a streaming copy."""
    with server_home() as home:
        primary, standby = (
            PostgresCluster(programs()[major], home / name, home / f"{name}-socket", _REPLICATION)
            for name in ("primary", "standby")
        )
        primary.initialise()
        primary.start()
        Database.initialise(primary.dsn())
        fill(primary.dsn())
        _copy(primary, standby.data_directory)
        standby.start()
        yield primary, standby


def _copy(primary: PostgresCluster, folder: Path) -> None:
    """pg_basebackup, as a standby of the server."""
    folder.mkdir(mode=0o700)
    primary.account.give(folder)
    program = primary.binaries.program("pg_basebackup")
    if not Path(program).exists():
        pytest.skip("this installation of PostgreSQL has no pg_basebackup")
    source = ["-h", str(primary.socket_directory), "-U", "nearsim"]
    done = primary.account.run([program, *source, "-D", str(folder), "-R", "-X", "stream", "-c", "fast"])
    assert done.returncode == 0, done.stderr

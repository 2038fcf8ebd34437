"""A copy of a database on a server with wal_level = minimal that crashes: what docs/how-to/backup.md says about
avoiding harm and repairing it."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import NearsimError
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import PostgresCluster
from tests.builders.server_kills import kill
from tests.servers.homes import server_home
from tests.servers.programs import programs

pytestmark = [pytest.mark.slow("kills a server"), pytest.mark.each_major]

_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "backup.md"
_SETTINGS = {"wal_level": "minimal", "max_wal_senders": "0", "shared_buffers": "32MB", "autovacuum": "off"}


@pytest.fixture
def cluster(major: int) -> Iterator[PostgresCluster]:
    with server_home() as home:
        cluster = PostgresCluster(programs()[major], home / "data", home / "socket", _SETTINGS)
        cluster.initialise("original")
        cluster.start()
        Database.initialise(cluster.dsn("original"))
        yield cluster


def copy(cluster: PostgresCluster, option: str = "", afterwards: str = "SELECT 1") -> None:
    """Copy the database, and crash."""
    with psycopg.connect(cluster.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE copied TEMPLATE original {option}".encode())
        connection.execute(afterwards.encode())
    kill(cluster)
    cluster.start()


def pairs_after_writing(cluster: PostgresCluster) -> int:
    """Write two equal documents to the copy; return the number of pairs."""
    with Index.connect(cluster.dsn("copied")) as index:
        index.add(Document(name, body="the very same words in both of these") for name in ("a", "b"))
        return len(list(index.pairs()))


@pytest.mark.parametrize("steps", [("STRATEGY file_copy", "SELECT 1"), ("", "CHECKPOINT")])
def test_a_copy_survives_a_crash(cluster: PostgresCluster, steps: tuple[str, str]) -> None:
    copy(cluster, *steps)
    assert pairs_after_writing(cluster) == 1


def test_a_damaged_copy_is_repaired(cluster: PostgresCluster) -> None:
    copy(cluster)
    with pytest.raises(NearsimError, match=r"pending_event_p"):
        pairs_after_writing(cluster)
    repair = re.findall(
        r"^ +((?:TRUNCATE|ALTER TABLE) nearsim_index\.pending_event.*;)$", _PAGE.read_text(), re.MULTILINE
    )
    assert len(repair) == 3
    with psycopg.connect(cluster.dsn("copied"), autocommit=True) as connection:
        for statement in repair:
            connection.execute(statement.encode())
    kill(cluster)
    cluster.start()
    assert pairs_after_writing(cluster) == 1

"""A crashed server and a damaged disk: what verify-index finds, and that the repair replaces the index."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import Cluster
from tests.servers.homes import server_home
from tests.servers.programs import programs

_BODY = "one text of some words that many others nearly are but for the number at its very end which is"


@pytest.fixture
def cluster(major: int) -> Iterator[Cluster]:
    with server_home() as home:
        cluster = Cluster(
            programs()[major],
            home / "data",
            home / "socket",
            {"fsync": "off", "shared_buffers": "16MB", "listen_addresses": ""},
        )
        cluster.initialise()
        cluster.start()
        yield cluster


def _kinds(
    cluster: Cluster, *, sample: int | None, generation: int | None = None
) -> list[tuple[str, str | None]]:
    with Database.connect(cluster.dsn()) as database:
        found = verify_index(database, sample=sample).found
    return [(fault.kind, fault.table) for fault in found.faults]


def _repair(cluster: Cluster) -> int:
    """The number of the generation that came of it: after a crash numbers are left out."""
    with Database.connect(cluster.dsn()) as database:
        outcome = verify_index(database, sample=None, repair=True)
        assert outcome.is_repaired and outcome.rebuilt is not None, outcome
        assert outcome.after is not None and outcome.after.checked["pairs"] == 45
        with Index(database, "default") as index:
            assert len(list(index.pairs())) == 45
        return outcome.rebuilt


@pytest.mark.slow("kills a server")
def test_an_index_damaged_by_a_crash_or_a_disk_is_rebuilt(cluster: Cluster) -> None:
    Database.initialise(cluster.dsn())
    with Index.connect(cluster.dsn()) as index:
        index.add(Document(f"d{number}", body=f"{_BODY} {number}") for number in range(10))
    with psycopg.connect(cluster.dsn()) as connection:
        connection.execute("ALTER TABLE nearsim_index.similar_pair_1 SET UNLOGGED")
    _kill(cluster)
    cluster.start()
    with psycopg.connect(cluster.dsn()) as connection:
        assert connection.execute("SELECT count(*) FROM nearsim_index.similar_pair_1").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM nearsim_index.band_1").fetchone() != (0,)
    assert _kinds(cluster, sample=5) == [("unlogged_table", "similar_pair_1")]
    table = f"cluster_member_{_repair(cluster)}"

    file = _file_of(cluster, f"nearsim_index.{table}")
    cluster.stop()
    with file.open("r+b") as content:
        content.seek(16)
        content.write(b"\xff" * 64)  # in the header of the first page
    cluster.start()
    assert _kinds(cluster, sample=None) == [("unreadable_table", table)]
    assert _kinds(cluster, sample=5) == [("unreadable_table", table)]
    _repair(cluster)


def _kill(cluster: Cluster) -> None:
    postmaster = cluster.status()
    assert postmaster is not None
    postmaster.process.kill()
    postmaster.process.wait()


def _file_of(cluster: Cluster, table: str) -> Path:
    with psycopg.connect(cluster.dsn()) as connection:
        row = connection.execute("SELECT pg_relation_filepath(%s::regclass)", [table]).fetchone()
    assert row is not None
    return cluster.data_directory / str(row[0])

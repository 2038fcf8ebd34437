"""verify-index after a crash, on a damaged disk, and beside writers and workers."""

import random
from pathlib import Path

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.verify_index import check, verify_index
from nearsim_db.indexing.queue import runner
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import PostgresCluster
from nearsim_db.store.work.queue import STAGES
from tests.builders.interleaving import Actor, Schedule
from tests.builders.living_world import World
from tests.builders.selection import some
from tests.builders.server_kills import kill
from tests.builders.workers import ask
from tests.indexing.test_interleavings import WORLDS
from tests.servers.citus import AnyServer

_BODY = "one text of some words that many others nearly are but for the number at its very end which is"


def _kinds(url: str, *, sample: int | None, generation: int | None = None) -> list[tuple[str, str | None]]:
    with Database.connect(url) as database:
        found = verify_index(database, sample=sample).found
    return [(fault.kind, fault.table) for fault in found.faults]


def _repair(url: str) -> int:
    """The number of the generation that came of it: after a crash numbers are left out."""
    with Database.connect(url) as database:
        outcome = verify_index(database, sample=None, repair=True)
        assert outcome.is_repaired and outcome.rebuilt is not None, outcome
        assert outcome.after is not None and outcome.after.checked["pairs"] == 45
        with Index(database, "default") as index:
            assert len(list(index.pairs())) == 45
        return outcome.rebuilt


@pytest.mark.slow("kills a server")
@pytest.mark.usefixtures("own_tables")
def test_an_index_damaged_by_a_crash_or_a_disk_is_rebuilt(server_to_kill: AnyServer) -> None:
    cluster = server_to_kill.cluster
    with server_to_kill.database() as url:
        with Index.connect(url) as index:
            index.add(Document(f"d{number}", body=f"{_BODY} {number}") for number in range(10))
        with psycopg.connect(url) as connection:
            connection.execute("ALTER TABLE nearsim_index.signature_100000001 SET UNLOGGED")
        kill(cluster)
        cluster.start()
        with psycopg.connect(url) as connection:
            assert connection.execute(
                "SELECT count(*) FROM nearsim_index.signature_100000001"
            ).fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM nearsim_index.band_100000001").fetchone() != (0,)
        assert _kinds(url, sample=5) == [("unlogged_table", "signature_100000001")]
        assert _repair(url) > 100_000_001

        table = "cluster_member_shared"
        file = _file_of(cluster, url, f"nearsim_index.{table}")
        cluster.stop()
        with file.open("r+b") as content:
            content.seek(16)
            content.write(b"\xff" * 64)  # in the header of the first page
        cluster.start()
        assert _kinds(url, sample=None) == [("unreadable_table", table)]
        assert _kinds(url, sample=5) == [("unreadable_table", table)]
        with Database.connect(url) as database:
            outcome = verify_index(database, sample=None, repair=True)
        assert outcome.is_repaired and outcome.rebuilt is None, outcome


def _file_of(cluster: PostgresCluster, url: str, table: str) -> Path:
    with psycopg.connect(url) as connection:
        return cluster.data_directory / str(
            ask(connection, "SELECT pg_relation_filepath(%s::regclass)", table)
        )


_SEEDS = 1


@pytest.mark.parametrize("name", some(["limit 2", "stars", "limit 1", "numbers"], "every world", kept=2))
def test_work_in_progress_is_not_a_fault(
    database_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(database_url, WORLDS[name])
    with world.index, psycopg.connect(database_url, autocommit=True) as monitor:
        for seed in range(_SEEDS):
            rng = random.Random(f"{name} {seed}")
            monkeypatch.setattr(
                runner, "_BATCH_DOCUMENTS", {stage: rng.choice([1, 2, 3]) for stage in STAGES}
            )
            monkeypatch.setattr(check, "_DOCUMENTS_AT_ONCE", rng.choice([1, 4, 1000]))
            _play(world, monitor, rng)


def _play(world: World, monitor: "psycopg.Connection[tuple[object, ...]]", rng: random.Random) -> None:
    world.clear()
    schedule = Schedule(rng, monitor)
    sizes = [None, 5, None]

    def audit() -> None:
        for size in sizes:
            outcome = verify_index(world.index.database, world.index.collection, sample=size)
            assert outcome.found.faults == (), outcome

    actors = [Actor(f"writer {number}", world.writer(rng.random().hex(), 8)) for number in (1, 2)]
    actors += [Actor(f"worker {number}", world.worker(rng.random().hex(), 16)) for number in (1, 2)]
    try:
        schedule.run([*actors, Actor("auditor", audit)], lambda killed: None)
        world.drain()
        drained = verify_index(world.index.database, world.index.collection, sample=None).found
        assert (drained.faults, drained.changing) == ((), 0)
    except BaseException as error:
        error.add_note(f"after these steps:\n{schedule.listing()}")
        raise

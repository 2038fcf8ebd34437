"""Damage of tables that the indexes of small collections share: each is repaired, and the other stays in use."""

from typing import LiteralString

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.verify_index import VerifyResult, verify_index
from nearsim_db.errors import ConflictError
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import FIRST_OWN
from tests.builders.filled import database_of
from tests.builders.relations import leaves_of
from tests.builders.selection import some
from tests.builders.workers import ask
from tests.servers.citus import AnyServer

WORDS = " ".join(f"word{number}" for number in range(60))
PAIRS = [(f"d{left}", f"d{right}") for right in range(10) for left in range(right)]
COLLECTIONS = ("damaged", "other")


def fill(url: str) -> None:
    """Two collections of ten documents that are alike."""
    for collection in COLLECTIONS:
        with Index.connect(url, collection=collection) as index:
            index.add(Document(f"d{number}", body=f"{WORDS} {number}") for number in range(10))


# A database with the two collections.
database = database_of(fill)


def execute(database: Database, *commands: LiteralString) -> None:
    """Run SQL and commit."""
    with psycopg.connect(database.engine.url) as connection:
        for command in commands:
            connection.execute(command)


def kinds(result: VerifyResult) -> set[tuple[str, str | None]]:
    """The kinds of faults that were found, with their tables."""
    return {(fault.kind, fault.table) for fault in result.found.faults}


def assert_answers(database: Database, collection: str) -> None:
    """All pairs of the collection are found, and its index has no fault."""
    found = {(pair.left, pair.right) for pair in Index(database, collection).pairs()}
    assert {tuple(sorted(pair)) for pair in found} == {tuple(sorted(pair)) for pair in PAIRS}
    assert verify_index(database, collection, sample=None).found.faults == ()


# What is done to the indexes of a table, and the fault that is found.
MISSED: list[LiteralString] = [
    "UPDATE pg_index SET indisready = false WHERE indrelid = 'nearsim_index.band_shared'::regclass",
    "INSERT INTO nearsim_index.band_shared (generation_id, bucket_hash, doc_id) VALUES (1, 77, 1)",
    "UPDATE pg_index SET indisready = true WHERE indrelid = 'nearsim_index.band_shared'::regclass",
]
LOST: list[LiteralString] = [
    "ALTER TABLE nearsim_index.similar_pair_shared SET UNLOGGED",
    "TRUNCATE nearsim_index.similar_pair_shared",
]
INVALID: list[LiteralString] = [
    "UPDATE pg_index SET indisvalid = false WHERE indrelid = 'nearsim_index.cluster_member_shared'::regclass"
]
DAMAGES = {
    "an index misses a row": (MISSED, ("wrong_index", "band_shared")),
    "indexes are not valid": (INVALID, ("unusable_index", "cluster_member_shared")),
    "an index was dropped": (
        ["DROP INDEX nearsim_index.similar_pair_shared_generation_id_right_id_idx"],
        ("missing_index", "similar_pair_shared"),
    ),
    "a trigger was dropped": (
        ["DROP TRIGGER capture_insert ON nearsim_index.cluster_member_shared"],
        ("missing_constraint", "cluster_member_shared"),
    ),
    "a table is no partition": (
        ["ALTER TABLE nearsim.similar_pair DETACH PARTITION nearsim_index.similar_pair_shared"],
        ("detached_table", "similar_pair_shared"),
    ),
    "a crash emptied an unlogged table": (LOST, ("unlogged_table", "similar_pair_shared")),
}


@pytest.mark.parametrize("damage", some(list(DAMAGES), "every damage"))
def test_damaged_tables_are_built_again(database: Database, damage: str) -> None:
    commands, fault = DAMAGES[damage]
    execute(database, *commands)
    repaired = verify_index(database, "damaged", sample=None, repair=True)
    assert kinds(repaired) == {fault}
    assert repaired.is_repaired and repaired.rebuilt is None
    with Index(database, "other") as other:
        other.build()
    for collection in COLLECTIONS:
        assert_answers(database, collection)


def test_without_the_table_itself_a_repair_is_refused_before_it_changes_anything(database: Database) -> None:
    execute(database, "DROP TABLE nearsim_index.band_shared")
    with pytest.raises(
        ConflictError, match=r"nearsim_index\.band_shared, .* restore the database from a backup"
    ):
        verify_index(database, "damaged", repair=True)
    assert [leaves.are_shared for leaves in leaves_of(database.engine.url)] == [True, True]


@pytest.mark.slow("builds indexes")
def test_without_an_index_of_the_table_a_collection_gets_its_own_tables(database: Database) -> None:
    execute(database, "DROP INDEX nearsim_index.band_shared_bucket")
    for collection in COLLECTIONS:
        repaired = verify_index(database, collection, repair=True)
        assert kinds(repaired) == {("missing_index", "band_shared")}
        assert repaired.is_repaired and repaired.rebuilt is not None and repaired.rebuilt > FIRST_OWN
        assert_answers(database, collection)
    with psycopg.connect(database.engine.url) as connection:
        assert connection.execute("SELECT count(*) FROM nearsim_index.band_shared").fetchone() == (0,)


@pytest.mark.slow("restarts a server")
def test_a_table_that_cannot_be_read_is_built_again_for_all_collections(server_to_kill: AnyServer) -> None:
    cluster = server_to_kill.cluster
    with server_to_kill.database(fill) as url:
        with psycopg.connect(url) as connection:
            connection.execute("CHECKPOINT")
            file = ask(connection, "SELECT pg_relation_filepath('nearsim_index.cluster_member_shared')")
        cluster.stop()
        with (cluster.data_directory / file).open("r+b") as content:
            content.seek(16)
            content.write(b"\xff" * 64)  # in the header of the first page
        cluster.start()
        warnings: list[str] = []
        with Database.connect(url) as database:
            repaired = verify_index(database, "damaged", sample=None, repair=True, warn=warnings.append)
            assert kinds(repaired) == {("unreadable_table", "cluster_member_shared")}
            assert repaired.is_repaired and repaired.rebuilt is None
            assert all("cluster_member_shared" in warning for warning in warnings) and warnings
            with Index(database, "other") as other:
                other.build()
            for collection in COLLECTIONS:
                assert_answers(database, collection)
                with Index(database, collection) as index:
                    assert [len(cluster.members) for cluster in index.clusters()] == [10]

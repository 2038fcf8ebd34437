"""Index rows of collections and profiles that an owner of the schema deletes in plain SQL."""

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.indexing import drop_generation
from nearsim_db.store import partitions
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import PARENTS, Leaves
from nearsim_db.worker.worker import Worker
from tests.builders.relations import leaves_of

WORDS = " ".join(f"word{number}" for number in range(60))


def rows(url: str, leaves: Leaves) -> list[int | None]:
    """The number of rows that a generation has in each table; None for a table that does not exist."""
    count = sql.SQL("SELECT count(*) FROM {} WHERE generation_id = %s")
    found: list[int | None] = []
    with psycopg.connect(url) as connection:
        for parent in PARENTS:
            exists = connection.execute("SELECT to_regclass(%s)", [leaves.qualified(parent)]).fetchone()
            if exists == (None,):
                found.append(None)
            else:
                (number,) = connection.execute(
                    count.format(leaves.table(parent)), [leaves.generation_id]
                ).fetchone() or (None,)
                found.append(number)
    return found


@pytest.mark.usefixtures("either_tables")
def test_a_worker_drops_what_deleted_collections_leave(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_ROWS_AT_ONCE", 10)
    for collection in ("gone", "kept", "profile gone"):
        with Index.connect(database_url, collection=collection) as index:
            index.add(Document(f"d{number}", body=f"{WORDS} {number}") for number in (1, 2))
    gone, kept, without = leaves_of(database_url)
    before = rows(database_url, kept)
    assert all(before) and all(rows(database_url, gone))
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM nearsim.collection WHERE name = 'gone'")
        connection.execute(
            "DELETE FROM nearsim.profile USING nearsim.collection WHERE "
            "profile.collection_id = collection.collection_id AND collection.name = 'profile gone'"
        )
    assert all(rows(database_url, gone))
    Worker(database_url).drain()
    assert not any([*rows(database_url, gone), *rows(database_url, without)])
    assert rows(database_url, kept) == before
    with psycopg.connect(database_url) as connection:
        functions = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'nearsim_index'::regnamespace AND proname ~ %s",
            [f"_{gone.generation_id}$"],
        ).fetchall()
    assert functions == []


@pytest.mark.slow("several workers")
@pytest.mark.usefixtures("own_tables")
def test_remains_that_are_read_are_left_to_the_next_run(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add([Document("1", body="some words")])
    (leaves,) = leaves_of(database_url)
    engine = open_engine(database_url)
    with psycopg.connect(database_url) as reader, psycopg.connect(database_url) as other:
        other.execute("DELETE FROM nearsim.collection")
        other.commit()
        reader.execute(sql.SQL("SELECT FROM {}").format(leaves.table("signature")))
        assert drop_generation.drop_remains(engine) == []
        reader.rollback()
        assert drop_generation.drop_remains(engine) == [leaves.generation_id]
        assert drop_generation.drop_remains(engine) == []
    assert rows(database_url, leaves) == [0 if leaves.is_shared(parent) else None for parent in PARENTS]
    engine.dispose()

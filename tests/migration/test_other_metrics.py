"""Migration 0011: back to what was there before it, leaves that no parent knows, and what it refuses."""

from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import InternalError, OperationalError, ProgrammingError

from nearsim_db import Document, Index
from nearsim_db.records import GenerationId
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement
from nearsim_db.store.schema import revisions

DESCRIBED = {
    "functions": "SELECT pg_get_functiondef(oid), obj_description(oid, 'pg_proc'), CAST(proacl AS text) "
    "FROM pg_proc WHERE pronamespace = CAST('nearsim' AS regnamespace)",
    "views": "SELECT CAST(oid AS regclass)::text, pg_get_viewdef(oid), CAST(reloptions AS text) FROM pg_class "
    "WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind = 'v'",
    "columns": "SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, "
    "col_description(pg_class.oid, attnum) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
    "WHERE relnamespace = CAST('nearsim' AS regnamespace) AND relkind IN ('r', 'p', 'v', 'c') AND attnum > 0 "
    "AND NOT attisdropped",
    "constraints": "SELECT CAST(conrelid AS regclass)::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = CAST('nearsim' AS regnamespace)",
}
STORIES = [
    Document("a", body="a story of some length that is told in exactly the same words twice over"),
    Document("b", body="a story of some length that is told in exactly the same words twice more"),
]


def describe(connection: Connection) -> dict[str, list[Any]]:
    """What is in the schema, with comments and privileges."""
    return {
        kind: sorted(map(repr, driver(connection).execute(command.encode()).fetchall()))
        for kind, command in DESCRIBED.items()
    }


def test_back_to_what_was_before(engine: Engine) -> None:
    with engine.begin() as connection:
        revisions.downgrade(connection, "0010")
        back = describe(connection)
        revisions.downgrade(connection, "base")
    revisions.upgrade(engine, "0010")
    with engine.begin() as connection:
        assert describe(connection) == back


def test_indexes_live_and_under_construction_go_with_it(engine: Engine, database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.add(STORIES)
    pairs = text(
        "SELECT left_id, right_id, similarity, intersection_size, union_size FROM nearsim.similar_pair"
    )
    leaves = Leaves(GenerationId(77))
    stored = statement("store_pairs", leaves)
    found = {
        "left_ids": [1],
        "right_ids": [2],
        "shared_bands": [1],
        "estimates": [0.5],
        "similarities": [0.5],
        "intersections": None,
        "unions": None,
        "distances": [1.0],
    }
    with engine.begin() as connection:
        before = connection.execute(pairs).all()
        assert len(before) == 1
        revisions.downgrade(connection, "0010")
        driver(connection).execute(statement("create_leaves", leaves))
    revisions.upgrade(engine)
    with engine.begin() as connection:
        assert connection.execute(pairs).all() == before
        assert driver(connection).execute(stored, found).fetchall() == [(1, 2)]
        driver(connection).execute(statement("attach_leaves", leaves))


def test_profiles_of_other_metrics_are_not_lost(engine: Engine, database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), ["sketch.family=projection", "match.threshold=2"]))
    refused = pytest.raises(
        (InternalError, OperationalError, ProgrammingError), match="'default' of 'default'"
    )
    with refused, engine.begin() as connection:
        revisions.downgrade(connection, "0010")
    with Index.connect(database_url) as index:
        index.delete_profile("default")
    with engine.begin() as connection:
        revisions.downgrade(connection, "0010")
        assert revisions.current_revision(connection) == "0010"

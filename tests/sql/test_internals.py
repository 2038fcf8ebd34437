"""Security definer functions reveal nothing to users who may not read the generation."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.store.citus.placement import is_distributed
from nearsim_db.store.driver import Engine
from nearsim_db.store.driver.statements import PARENTS
from tests.builders.sql_world import RULES, World

pytestmark = pytest.mark.usefixtures("either_tables")

TEXT = "the harbour master said that the old ferry would sail again"
STRANGER = "nearsim_test_stranger"

INTERNALS = [
    "keys_of({generation}, {doc_id})",
    "pairs_of({generation}, {doc_id}, 0, 1)",
    "bucket_members({generation}, {buckets}, 64)",
    "bucket_neighbours({generation}, {doc_id}, 0, 1)",
    "document_state({generation}, {empty})",
    "compare_sketches({generation}, {doc_id}, {other})",
    "heads_of({generation}, ARRAY[{doc_id}, {other}])",
    "pairs_between({generation}, ARRAY[{doc_id}, {other}])",
]


@contextmanager
def stranger(known: World) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A user without any collection, under isolation."""
    with known.index.database.engine.begin() as connection:
        inner = connection.backend
        role = sql.Identifier(STRANGER)
        inner.execute(sql.SQL("CREATE ROLE {}").format(role))
        for grant in (
            "USAGE ON SCHEMA nearsim, nearsim_index",
            "SELECT ON ALL TABLES IN SCHEMA nearsim, nearsim_index",
        ):
            inner.execute(sql.SQL("GRANT {} TO {}").format(sql.SQL(grant), role))
        inner.execute(sql.SQL("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA nearsim TO {}").format(role))
        inner.execute("ALTER TABLE nearsim.document ENABLE ROW LEVEL SECURITY")
        inner.execute(sql.SQL("SET LOCAL ROLE {}").format(role))
        yield inner
        connection.rollback()


@pytest.fixture
def known(database_url: str) -> Iterator[World]:
    """Two similar documents, one that shares a bucket, and one without features."""
    texts = {
        "one": TEXT,
        "two": f"{TEXT} soon",
        "met": f"{TEXT[:40]} in another way, and then no more",
        "empty": "",
    }
    with Index.connect(database_url) as index:
        yield World.build(
            index,
            [*RULES, "match.threshold=0.9", "bands.count=64", "bands.rows=2"],
            [Document(name, body=body) for name, body in texts.items()],
        )


def test_internal_functions_return_nothing_to_strangers(known: World) -> None:
    one, two, _, empty = known.doc_ids
    given: dict[str, object] = {
        "generation": known.generation_id,
        "doc_id": one,
        "other": two,
        "empty": empty,
    }
    ((keys,),) = known.ask(f"SELECT nearsim.keys_of({known.generation_id}, {one})")
    given["buckets"] = f"ARRAY{keys}"
    calls = [f"SELECT nearsim.{call.format(**given)}" for call in INTERNALS]
    for call in calls:
        reported = known.ask(call)
        assert call.find("pairs") > 0 or (reported and reported != [(None,)]), call
    with stranger(known) as connection:
        for call in calls:
            assert connection.execute(call.encode()).fetchall() in ([], [(None,)]), call


def test_hidden_documents_are_reported_as_missing(known: World) -> None:
    with stranger(known) as connection:
        found = connection.execute("SELECT keep, indexed FROM nearsim.dedupe(%s)", (known.doc_ids[:2],))
        assert found.fetchall() == [(True, False), (True, False)]
        for call in (
            *("similar_to_by_doc_id({0})", "why_by_doc_id({0}, {1})", "why_not_by_doc_id({0}, {1})"),
            "buckets_of({0})",
        ):
            command = f"SELECT nearsim.{call.format(*known.doc_ids)}"
            refused = pytest.raises(psycopg.errors.NoDataFound, match=f"no document {known.doc_ids[0]}")
            with refused, connection.transaction():
                connection.execute(command.encode())
        for name in ("one", "never"):
            refused = pytest.raises(psycopg.errors.NoDataFound, match=f"there is no document '{name}'")
            with refused, connection.transaction():
                connection.execute("SELECT * FROM nearsim.similar_to(%s)", (name,))


READ = """
SELECT relname, sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0)) FROM pg_stat_xact_all_tables
WHERE schemaname = 'nearsim_index' AND relname ~ '_([0-9]+|shared)$' GROUP BY 1
"""


@pytest.mark.usefixtures("own_tables")
def test_retired_generations_are_not_read(known: World, engine: Engine) -> None:
    known.retire(["shingle.k=1"])
    one, two, *_ = known.doc_ids
    leaves = known.index.serving().context.leaves
    # A session of its own: what another one read before may be counted there later.
    with engine.begin() as connection:
        for call in (
            "similar_to_by_doc_id(%s::bigint, 0.1)",
            "buckets_of(%s)",
            "dedupe(ARRAY[%s, 1])",
            "why_by_doc_id(%s, 1)",
            "why_not_by_doc_id(%s, 1)",
        ):
            connection.execute(f"SELECT nearsim.{call}".encode(), (two,))
        assert one == 1
        scans = {str(name): int(str(count)) for name, count in connection.execute(READ)}
        elsewhere = {leaves.name("band")} if is_distributed(connection) else set()
    read = {name for name, count in scans.items() if count}
    assert read | elsewhere == set(map(leaves.name, PARENTS))

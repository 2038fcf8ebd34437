"""Similar documents, one of which is purged, and a search for its traces."""

from typing import Any

import psycopg
from psycopg import sql

from nearsim_db import Document, Index
from tests.builders.relations import identifier
from tests.builders.workers import ask
from tests.indexing.test_index_model import assert_bands_are_exact, clusters, components, stored_pairs

WORD = "zyxwvutsecret"
BASE = "one two three four five six seven eight nine ten"
SECRET = f"{BASE} {WORD}"
TEXTS = {f"d{number}": f"{BASE} own{number}" for number in range(4)}
NAME = "the-name-of-the-secret"


def with_secret() -> list[Document]:
    """Similar documents. The first one has the secret."""
    similar = [Document(name, body=text) for name, text in TEXTS.items()]
    return [Document(NAME, title=f"About {WORD}", body=SECRET), *similar]


def traces(database_url: str, doc_id: int) -> dict[str, int]:
    """The rows of the schema that contain the secret word, the document's name, or its number as a doc_id.

    The planner's samples of column values are searched too.
    """
    counts = {}
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class "
            "WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) AND relkind = 'r'"
        ).fetchall()

        for (table,) in tables:
            rows = connection.execute(
                sql.SQL("SELECT to_jsonb(t) FROM {} AS t").format(identifier(table))
            ).fetchall()
            # Events keep the numbers of deleted documents, but not their similarities.
            rows = [(row,) for (row,) in rows if table != "event" or row["kind"] == "pair_found"]
            counts[table] = sum(_is_trace(row, doc_id) for (row,) in rows)
        # ANALYZE keeps values of columns as samples.
        sampled = "SELECT count(*) FROM pg_stats WHERE strpos(to_jsonb(pg_stats)::text, %s) > 0"
        counts["pg_stats"] = ask(connection, sampled, WORD)
    return {table: count for table, count in counts.items() if count}


def _is_trace(row: dict[str, Any], doc_id: int) -> bool:
    numbers = {row.get(name) for name in ("doc_id", "head_id", "left_id", "right_id", "cluster_id")}
    return WORD in str(row) or NAME in str(row) or doc_id in numbers


def traces_of_id(database_url: str, doc_id: int) -> dict[str, int]:
    """The tables that contain a number as a doc_id."""
    return {
        table: count
        for table, count in traces(database_url, doc_id).items()
        if table not in ("document", "pg_stats")
    }


def doc_id_of(database_url: str, name: str) -> int:
    """The doc_id of a document."""
    with psycopg.connect(database_url) as connection:
        return int(ask(connection, "SELECT doc_id FROM nearsim.document WHERE external_id = %s", name))


def execute(database_url: str, *commands: str) -> None:
    """Run commands as another application would."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        for command in commands:
            connection.execute(command)


def assert_whole(index: Index) -> None:
    """Assert that the index is as it should be without the document."""
    stored = stored_pairs(index)
    assert {name for pair in stored for name in pair} == set(TEXTS)
    assert clusters(index) == components(stored)
    assert_bands_are_exact(index)
    assert index.stats()["queued"] == index.stats()["set_aside"] == 0

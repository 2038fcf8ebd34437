"""Tables of a build are logged, and its statistics cost no more than the collection."""

import psycopg
import pytest

from nearsim_db import Document, Index

TABLES = """
SELECT relname, relpersistence::text, EXISTS (SELECT FROM pg_inherits WHERE inhrelid = pg_class.oid)
FROM pg_class WHERE relnamespace = 'nearsim_index'::regnamespace AND relkind = 'r' AND relname ~ '_([0-9]+|shared)$'
"""
KNOWN = "SELECT reltuples FROM pg_class WHERE oid = 'nearsim.signature'::regclass"


def test_a_permanent_index_is_logged(database_url: str) -> None:
    with Index.connect(database_url) as index, psycopg.connect(database_url) as watching:
        index.add([Document("a", body="one two three")])
        assert {row[1:] for row in watching.execute(TABLES)} == {("p", True)}


@pytest.mark.usefixtures("own_tables")
def test_a_small_build_does_not_analyze_all_collections(database_url: str) -> None:
    """Statistics over all collections are updated once these have doubled."""
    known = []
    with Index.connect(database_url) as index, psycopg.connect(database_url, autocommit=True) as watching:
        for name, count in (("large", 10), ("small", 9), ("medium", 5)):
            one = Index(index.database, name)
            one.add(Document(str(number), body=f"text {number} of {name}") for number in range(count))
            known.append(watching.execute(KNOWN).fetchone())
    assert known == [(10,), (10,), (24,)]

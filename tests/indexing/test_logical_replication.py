"""Logical replication: nearsim's tables under a publication, and documents that a subscription writes."""

from collections.abc import Iterator

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from tests.builders.replication import publishing, subscribed
from tests.builders.workers import Application, application, wait_until

SLOT = "documents_slot"
# The columns that an application has; the rest get their defaults in the subscriber.
_TABLE = """
CREATE SCHEMA nearsim;
CREATE TABLE nearsim.document (doc_id bigint PRIMARY KEY, collection_id integer, external_id text, body text)
"""
_INSERT = "INSERT INTO nearsim.document VALUES (%s, 1, %s, %s)"
_COMPARE = "INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL)"


def body(number: int, own: str = "") -> str:
    """A text like that of all others."""
    return f"one text of some words that all others nearly are but for its end {number % 2} {own}"


@pytest.mark.slow("every kind of write")
@pytest.mark.each_major
def test_a_publication_of_all_tables_stops_nothing(database_url: str) -> None:
    with Index.connect(database_url) as index, application(database_url) as app:
        index.add([Document(f"d{number}", body=body(number)) for number in range(6)])
        app.execute("CREATE PUBLICATION everything FOR ALL TABLES")
        index.add([Document("d0", body="another text"), Document("d6", body=body(6))])
        index.pin("d0", "d1", "a reason")
        index.delete(["d1"])
        index.purge(["d2"])
        reindex = Reindex(index.database, "default")
        reindex.start(override(Recipe(), ["shingle.k=2"]))
        index.delete(["d3"])
        reindex.promote()
        reindex.rollback()
        reindex.drop()
        index.build()
        assert {(one.left, one.right) for one in index.pairs()} == {("d4", "d5"), ("d4", "d6"), ("d5", "d6")}
        (unidentified,) = app.execute(
            "SELECT coalesce(string_agg(oid::regclass::text, ', '), '') FROM pg_class AS c WHERE relkind = 'r' "
            "AND relpersistence = 'p' AND relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) "
            "AND relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)"
        ).fetchall()
        assert unidentified == ("",)


@pytest.fixture
def publisher(database_url: str) -> Iterator[Application]:
    """Another database, which publishes a table of documents."""
    with publishing(
        database_url, SLOT, _TABLE, "CREATE PUBLICATION everything FOR TABLE nearsim.document"
    ) as publisher:
        yield publisher


@pytest.mark.slow("waits for replication")
def test_replicated_documents_are_found_by_a_comparison(database_url: str, publisher: Application) -> None:
    """Copied, inserted, edited, renamed and deleted ones."""
    for number in range(4):
        publisher.execute(_INSERT, (number + 1, f"d{number}", body(0)))
    with Database.connect(database_url) as database, application(database_url) as subscriber:
        index = Index(database, "default")
        index.create_profile("default", Recipe())
        index.build()
        # As docs/how-to/backup.md advises: edits then get a revision, although the publisher has none.
        subscriber.execute("ALTER TABLE nearsim.document ENABLE ALWAYS TRIGGER document_set_revision")
        with subscribed(subscriber, publisher, SLOT):
            wait_until(subscriber, "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel")
            subscriber.execute(_COMPARE)
            index.build()
            assert len(list(index.pairs())) == 6
            publisher.execute(_INSERT, (5, "d4", body(0)))
            publisher.execute("UPDATE nearsim.document SET body = 'another text' WHERE doc_id = 1")
            publisher.execute("UPDATE nearsim.document SET external_id = 'renamed' WHERE doc_id = 2")
            publisher.execute("DELETE FROM nearsim.document WHERE doc_id = 3")
            wait_until(subscriber, "SELECT sum(doc_id) = 12 FROM nearsim.document")
            subscriber.execute(_COMPARE)
            index.build()
            assert {(one.left, one.right) for one in index.pairs()} == {
                ("renamed", "d3"),
                ("renamed", "d4"),
                ("d3", "d4"),
            }

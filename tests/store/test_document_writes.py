"""Writing documents in batches: loaded and upserted documents are equal, also beside a concurrent writer."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document
from nearsim_db.readers import from_documents
from nearsim_db.records import CollectionId, ReadDocument
from nearsim_db.store.database import Database
from nearsim_db.store.documents import document_writes
from nearsim_db.store.documents.document_writes import WrittenBatch
from nearsim_db.store.driver.statements import statement
from tests.builders.workers import BLOCKED, wait_until

DOCUMENTS = (
    Document("plain", "A title", "text"),
    Document("nothing but an id", vector=[0.1, -2.0, 3e38]),
    Document("odd \\N characters \t", "\\.", 'tab\t, "quoted", back\\slash\nand U+1F600 \U0001f600'),
    Document("everything", "t", "b", "s", "u", datetime(1, 1, 1, tzinfo=UTC), {"a": [1, {"b": None}]}),
    Document("long", body="compressible " * 2_000, published_at=datetime(9999, 12, 31, 23, 59, 59, 999999)),
    Document("longer than a page", body="".join(map(str, range(20_000))), attributes={"largest": 2**64 - 1}),
)
COLUMNS = """SELECT external_id, title, body, source, url, published_at::text, attributes::text, vector
    FROM nearsim.document WHERE collection_id = %s ORDER BY doc_id"""


def records(documents: Sequence[Document]) -> list[ReadDocument]:
    """Documents as a reader gives them."""
    return [one for one in from_documents(documents) if isinstance(one, ReadDocument)]


def write(url: str, collection: str, documents: Sequence[Document], *, may_copy: bool) -> WrittenBatch:
    """Write one batch, all of one file."""
    with Database.connect(url) as database:
        collection_id = _collection(database, collection)
        with database.transaction() as connection:
            loaded, given = document_writes.LoadedDocuments(), records(documents)
            return document_writes.write_batch(
                connection,
                collection_id,
                given,
                loaded,
                files=[0] * len(given),
                may_copy=may_copy,
            )


def _collection(database: Database, name: str) -> CollectionId:
    for one in database.collections():
        if one.name == name:
            return one.collection_id
    return database.create_collection(name).collection_id


def stored(url: str, collection: str) -> list[tuple[object, ...]]:
    """All that was given of the documents of a collection, in doc_id order."""
    with Database.connect(url) as database:
        collection_id = _collection(database, collection)
    with psycopg.connect(url) as connection:
        return connection.execute(COLUMNS, (collection_id,)).fetchall()


@pytest.mark.each_major
def test_loaded_documents_equal_upserted_ones(database_url: str) -> None:
    loaded = write(database_url, "loaded", DOCUMENTS, may_copy=True)
    upserted = write(database_url, "upserted", DOCUMENTS, may_copy=False)
    assert (loaded.inserted, upserted.inserted) == (len(DOCUMENTS), len(DOCUMENTS))
    assert loaded.added is not None and upserted.added is None
    with psycopg.connect(database_url) as connection:
        numbers = connection.execute(
            "SELECT doc_id, revision FROM nearsim.document JOIN nearsim.collection USING (collection_id) "
            "WHERE name = 'loaded' ORDER BY doc_id"
        ).fetchall()
        captured = connection.execute("SELECT doc_id FROM nearsim.change WHERE doc_id > 0").fetchall()
    assert list(zip(loaded.added.doc_ids.tolist(), loaded.added.revisions.tolist(), strict=True)) == numbers
    assert {(doc_id,) for doc_id, _ in numbers} <= set(captured)
    rows = stored(database_url, "loaded")
    assert rows == stored(database_url, "upserted")
    assert [row[:5] for row in rows] == [
        (one.external_id, one.title, one.body, one.source, one.url) for one in DOCUMENTS
    ]
    assert rows[1][7] == [0.1, -2.0, 3e38]  # the shortest numbers of these 32-bit floats
    assert (rows[3][6], rows[5][6]) == ('{"a": [1, {"b": null}]}', '{"largest": 18446744073709551615}')


def test_a_batch_with_a_stored_document_is_upserted(database_url: str) -> None:
    write(database_url, "one", DOCUMENTS[:2], may_copy=True)
    edited = [Document("plain", "Another title"), DOCUMENTS[1], Document("new")]
    written = write(database_url, "one", edited, may_copy=True)
    assert (written.inserted, written.updated, written.unchanged, written.added) == (1, 1, 1, None)
    assert [row[:2] for row in stored(database_url, "one")] == [
        ("plain", "Another title"),
        ("nothing but an id", None),
        ("new", None),
    ]


def test_a_document_that_another_session_is_adding_is_updated(database_url: str) -> None:
    """The load waits for that session's commit, is undone, and the batch is upserted."""
    with Database.connect(database_url) as database:
        collection_id = _collection(database, "one")
    batch = [Document("first", body="a"), Document("second", body="ours")]
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(database_url) as other,
        psycopg.connect(database_url) as watching,
    ):
        other.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (%s, 'second', 'theirs')",
            (collection_id,),
        )
        writing = pool.submit(write, database_url, "one", batch, may_copy=True)
        wait_until(watching, BLOCKED)
    written = writing.result()
    assert (written.inserted, written.updated, written.added) == (1, 1, None)
    assert [row[0:3:2] for row in stored(database_url, "one")] == [("second", "ours"), ("first", "a")]


def test_ids_of_a_batch_are_probed_by_key(database_url: str) -> None:
    """However many documents the collection and the file have, and without statistics of ids, as after a restore."""
    names = [f"d{number}" for number in range(20_000)]
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO nearsim.collection (name) VALUES ('one')")
        connection.cursor().execute(
            "INSERT INTO nearsim.document (collection_id, external_id) SELECT 1, unnest(%s::text[])", (names,)
        )
        connection.commit()
        connection.execute("DELETE FROM pg_statistic WHERE starelid = 'nearsim.document'::regclass")
        connection.execute("ANALYZE nearsim.document")
        for name in ("has_any_document", "delete_documents"):
            explained = sql.SQL("EXPLAIN (COSTS OFF) {}").format(statement(name))
            given = {"collection_id": 1, "external_ids": names[:2_000]}
            plan = "\n".join(str(row[0]) for row in connection.execute(explained, given).fetchall())
            assert "document_external_id_key" in plan and "Seq Scan" not in plan, name


def test_an_id_is_found_on_its_last_line_before(database_url: str) -> None:
    """In a file of several batches; ids of the previous file are forgotten."""
    batches = [[("a", 1), ("b", 2)], [("c", 3), ("a", 4)], [("a", 5), ("b", 6), ("d", 7)]]
    found = []
    with Database.connect(database_url) as database:
        collection_id = _collection(database, "one")
        for _ in range(2):
            with database.engine.connect() as connection:
                loaded = document_writes.LoadedDocuments()
                for batch in batches:
                    given = [ReadDocument(Document(id), "file", line) for id, line in batch]
                    written = document_writes.compare_batch(
                        connection, collection_id, given, loaded, files=[0] * len(given)
                    )
                    connection.commit()
                    found.append((written.inserted, written.superseded))
    assert found == [(2, ()), (1, (("a", 1, 4),)), (1, (("b", 2, 6), ("a", 4, 5)))] * 2


def test_an_id_of_a_loaded_batch_is_found_on_its_last_line_before(database_url: str) -> None:
    """Batches of new documents are loaded without recording their ids; the first other batch records them."""
    batches = [
        [("a", 1), ("b", 2)],
        [("c", 3)],
        [("a", 5), ("e", 6)],
        [("f", 7)],
        [("f", 8), ("a", 9), ("c", 9)],
    ]
    found = []
    with Database.connect(database_url) as database, database.engine.connect() as connection:
        collection_id = _collection(database, "one")
        loaded = document_writes.LoadedDocuments()
        for number, batch in enumerate(batches):
            given = [ReadDocument(Document(id, str(number)), "file", line) for id, line in batch]
            written = document_writes.write_batch(
                connection, collection_id, given, loaded, files=[0] * len(given), may_copy=True
            )
            connection.commit()
            found.append((written.added is not None, written.superseded))
    assert found == [
        (True, ()),
        (True, ()),
        (False, (("a", 1, 5),)),
        (True, ()),
        (False, (("c", 3, 9), ("a", 5, 9), ("f", 7, 8))),
    ]
    assert sorted(row[0:2] for row in stored(database_url, "one")) == [
        ("a", "4"),
        ("b", "0"),
        ("c", "4"),
        ("e", "2"),
        ("f", "4"),
    ]

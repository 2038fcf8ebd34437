"""Writing documents by external_id: one by one, or in batches of a file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, delete

from nearsim_db.records import CollectionId, DocId, Document, ReadDocument
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.rows import fetch_row, fetch_rows, fetch_value
from nearsim_db.store.driver.statements import statement
from nearsim_db.store.driver.vectors import array_literal
from nearsim_db.store.schema import tables

Outcome = Literal["inserted", "updated", "unchanged"]

_OUTCOMES: dict[bool | None, Outcome] = {True: "inserted", False: "updated", None: "unchanged"}


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a batch: rows inserted, updated and unchanged, and ids that occurred earlier in the same file."""

    inserted: int
    updated: int
    unchanged: int
    superseded: tuple[tuple[str, int, int], ...]  # (external_id, earlier line, line)


def begin_file(connection: Connection) -> None:
    """Forget the ids of the previous file; ids repeat within one file only."""
    inner = driver(connection)
    inner.execute(statement("create_incoming"))
    inner.execute("TRUNCATE seen")


def write_batch(
    connection: Connection,
    collection_id: CollectionId,
    batch: Sequence[ReadDocument],
    *,
    dry_run: bool,
) -> Written:
    """Upsert a batch without repeated ids; with `dry_run` only return what would be written."""
    _load_incoming(connection, batch)
    name = "compare_documents" if dry_run else "upsert_documents"
    counts = fetch_row(connection, statement(name), {"collection_id": collection_id})
    superseded = fetch_rows(connection, statement("find_superseded"))
    driver(connection).execute(statement("record_seen_ids"))
    inserted, updated, unchanged = counts
    return Written(
        inserted, updated, unchanged, tuple((id, earlier, line) for id, earlier, line in superseded)
    )


def upsert_document(
    connection: Connection, collection_id: CollectionId, document: Document
) -> tuple[DocId, Outcome]:
    """Write one document by external_id; return its doc_id and the outcome."""
    rows: list[tuple[DocId, bool | None]] = []
    while not rows:  # a concurrent writer of the same document leaves no row
        rows = fetch_rows(connection, statement("upsert_document"), _parameters(collection_id, document))
    doc_id, is_new = rows[0]
    return doc_id, _OUTCOMES[is_new]


def is_stored(connection: Connection, collection_id: CollectionId, document: Document) -> bool:
    """Whether a document is stored exactly as given."""
    parameters = _parameters(collection_id, document)
    return bool(fetch_value(connection, statement("has_same_document"), parameters))


def delete_documents(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> list[str]:
    """Delete documents by external id; return the ids of those that existed."""
    table = tables.document
    deleted = connection.execute(
        delete(table)
        .where(table.c.collection_id == collection_id, table.c.external_id.in_(external_ids))
        .returning(table.c.external_id)
    )
    return [row.external_id for row in deleted]


def _parameters(collection_id: CollectionId, document: Document) -> dict[str, object]:
    return {
        "collection_id": collection_id,
        "external_id": document.external_id,
        "title": document.title,
        "body": document.body,
        "source": document.source,
        "url": document.url,
        "published_at": document.published_at,
        "attributes": _json(document.attributes),
        "vector": array_literal(document.vector),
    }


def _json(attributes: Mapping[str, object]) -> str:
    import orjson

    return orjson.dumps(attributes).decode() if attributes else "{}"


def _load_incoming(connection: Connection, batch: Iterable[ReadDocument]) -> None:
    command = statement("copy_incoming")
    with driver(connection).cursor() as cursor, cursor.copy(command) as copy:
        for read in batch:
            one = read.document
            copy.write_row(
                (
                    read.line,
                    one.external_id,
                    one.title,
                    one.body,
                    one.source,
                    one.url,
                    one.published_at,
                    _json(one.attributes),
                    array_literal(one.vector),
                )
            )

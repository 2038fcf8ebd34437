"""Documents: written in batches by external_id, read in doc_id order."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from sqlalchemy import Connection, delete, select

from nearsim_db.records import CollectionId, DocId, Document, ReadDocument
from nearsim_db.store.attached import source_rows
from nearsim_db.store.attached.source_rows import Source
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement
from nearsim_db.store.driver.vectors import array_literal, load_vectors
from nearsim_db.store.schema import tables

Ids = NDArray[np.int64]

_BATCH_CHARACTERS = 4_000_000
_BATCH_DOCUMENTS = 4_000
_FEW_DOCUMENTS = 64
_ELSEWHERE_AT_ONCE = 500

Outcome = Literal["inserted", "updated", "unchanged"]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the index needs of a document: its texts or its vector."""

    doc_id: DocId
    revision: int
    title: str | None
    body: str | None
    vector: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a batch: rows new, changed and as they were, and ids met before in the same file."""

    inserted: int
    updated: int
    unchanged: int
    superseded: tuple[tuple[str, int, int], ...]  # (external_id, earlier line, line)


def begin_file(connection: Connection) -> None:
    """Forget the ids of the file before; ids repeat within one file only."""
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
    """Upsert a batch, in which no id stands twice; with `dry_run` only say what would happen."""
    inner = driver(connection)
    _load_incoming(connection, batch)
    parameters = {"collection_id": collection_id}
    name = "compare_documents" if dry_run else "upsert_documents"
    counts = inner.execute(statement(name), parameters).fetchone()
    superseded = inner.execute(statement("find_superseded")).fetchall()
    inner.execute(statement("record_seen_ids"))
    assert counts is not None
    inserted, updated, unchanged = (int(str(count)) for count in counts)
    return Written(
        inserted, updated, unchanged, tuple((str(i), int(str(a)), int(str(b))) for i, a, b in superseded)
    )


def upsert_document(
    connection: Connection, collection_id: CollectionId, document: Document
) -> tuple[DocId, Outcome]:
    """Write one document by external_id: its doc_id, and what became of it."""
    parameters = _parameters(collection_id, document)
    while True:
        row = driver(connection).execute(statement("upsert_document"), parameters).fetchone()
        if row is not None:
            doc_id, is_new = row
            return DocId(int(str(doc_id))), _OUTCOMES[is_new]  # type: ignore[index]


def is_stored(connection: Connection, collection_id: CollectionId, document: Document) -> bool:
    """Whether a document is stored exactly as it is given."""
    row = (
        driver(connection)
        .execute(statement("has_same_document"), _parameters(collection_id, document))
        .fetchone()
    )
    return row is not None and bool(row[0])


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


_OUTCOMES: dict[bool | None, Outcome] = {True: "inserted", False: "updated", None: "unchanged"}


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


def stream_after(
    connection: Connection,
    collection_id: CollectionId,
    after: int,
    age_seconds: int | None,
    between: Callable[[], None] = lambda: None,
    *,
    vectors: bool = False,
) -> Generator[list[StoredDocument], None, None]:
    """Documents of a collection with a doc_id above `after`, in order, in batches of bounded size.

    With `vectors` each has its vector and no text, else its texts and no vector.
    Those older than the age are left out, by published_at, else by created_at, and those whose texts are elsewhere and
    are not what they were known to be. A table that is followed is read in slices; `between` two of them its lock can
    be let go of.
    """
    parameters = {"collection_id": collection_id, "after": after, "age": age_seconds, "vectors": vectors}
    source = None if vectors else source_rows.find_source(connection, collection_id)
    if source is None:
        yield from _stream(connection, statement("read_documents_after"), parameters)
        return
    command = source.statement("read_source_documents_after")
    while rows := _read(connection, command, parameters | {"amount": _ELSEWHERE_AT_ONCE}):
        yield _at_hand(rows)
        between()
        parameters["after"] = rows[-1][0]


def stream_documents(
    connection: Connection,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    age_seconds: int | None = None,
    *,
    vectors: bool = False,
) -> Generator[list[StoredDocument], None, None]:
    """Some documents of a collection, in doc_id order, in batches of bounded size.

    With `vectors` each has its vector and no text, else its texts and no vector. Those gone are left out, those older
    than the age, and those whose texts are asked for, are elsewhere and are not what they were known to be.
    """
    parameters = {
        "collection_id": collection_id,
        "doc_ids": list(doc_ids),
        "age": age_seconds,
        "vectors": vectors,
    }
    if len(doc_ids) > _FEW_DOCUMENTS:
        source = None if vectors else source_rows.find_source(connection, collection_id)
        yield from _stream(connection, _by_id(source), parameters)
    elif few := _read_few(connection, collection_id, parameters):
        yield few


_Row = tuple[DocId, int, str | None, str | None, NDArray[np.float32] | None, bool | None]
_COLUMNS = ["int8", "int8", "text", "text", "float4[]", "bool"]  # the last: the text is not at hand


def _by_id(source: Source | None) -> sql.Composed:
    if source is None:
        return statement("read_documents")
    return source.statement("read_source_documents")


def _read_few(
    connection: Connection, collection_id: CollectionId, parameters: Mapping[str, object]
) -> list[StoredDocument]:
    """A prepared statement, which for a few documents takes half as long as a COPY.

    That texts are elsewhere is only asked when one is missing: most collections have theirs.
    """
    rows = _read(connection, _by_id(None), parameters)
    if any(row[-1] for row in rows):
        source = source_rows.find_source(connection, collection_id)
        rows = rows if source is None else _read(connection, _by_id(source), parameters)
    return _at_hand(rows)


def _read(connection: Connection, command: sql.Composed, parameters: Mapping[str, object]) -> list[_Row]:
    with driver(connection).cursor(binary=True) as cursor:
        if parameters["vectors"]:
            load_vectors(cursor)
        return cast(list[_Row], cursor.execute(command, parameters, prepare=True).fetchall())


def _at_hand(rows: Iterable[_Row]) -> list[StoredDocument]:
    return [StoredDocument(*row[:-1]) for row in rows if not row[-1]]


def _stream(
    connection: Connection, query: sql.Composed, parameters: Mapping[str, object]
) -> Generator[list[StoredDocument], None, None]:
    """In binary only where there are vectors, which it gives several times as fast; texts come as fast without.

    COPY gives one row at a time, so that a batch of large documents is never held at once.

    Close the stream when an error ends it early: a rollback beside a COPY that goes on waits for ever.
    """
    options = sql.SQL("(FORMAT binary)" if parameters["vectors"] else "")
    command = sql.SQL("COPY ({}) TO STDOUT {}").format(query, options)
    cursor = driver(connection).cursor()
    if parameters["vectors"]:
        load_vectors(cursor)
    with cursor, cursor.copy(command, parameters) as copy:
        copy.set_types(_COLUMNS)
        batch: list[StoredDocument] = []
        size = 0
        for *values, is_missing in copy.rows():
            if is_missing:
                continue
            one = StoredDocument(*values)
            batch.append(one)
            size += (
                len(one.title or "") + len(one.body or "") + (0 if one.vector is None else len(one.vector))
            )
            if size >= _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def find_outside(
    connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int] | Ids, age_seconds: int | None
) -> Ids:
    """Those of some documents that are older than the age at this very moment, in order; without an age none."""
    if age_seconds is None or not len(doc_ids):
        return np.zeros(0, np.int64)
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids), "age": age_seconds}
    rows = driver(connection).execute(statement("list_past_retention"), parameters).fetchall()
    return np.array(rows, np.int64).reshape(-1)


def find_there(connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int]) -> set[int]:
    """Those of some documents that are in the collection."""
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
    rows = driver(connection).execute(statement("find_existing_documents"), parameters).fetchall()
    return {doc_id for (doc_id,) in cast(list[tuple[int]], rows)}


def count_outside(connection: Connection, collection_id: CollectionId, age_seconds: int | None) -> int:
    """How many documents of a collection are older than the age; without an age none."""
    if age_seconds is None:
        return 0
    parameters = {"collection_id": collection_id, "age": age_seconds}
    row = driver(connection).execute(statement("count_past_retention"), parameters).fetchone()
    assert row is not None
    return int(str(row[0]))


def find_document(
    connection: Connection, collection_id: CollectionId, external_id: str, *, with_text: bool = True
) -> dict[str, Any] | None:
    """A whole document as its row is, or None; its text is fetched from elsewhere, if it is there."""
    table = tables.document
    row = connection.execute(
        select(table).where(table.c.collection_id == collection_id, table.c.external_id == external_id)
    ).mappings()
    found = row.first()
    if found is None:
        return None
    # SQLAlchemy's names are a kind of str.
    stored = {str(name): value for name, value in found.items()}
    del stored["body_length"]
    if stored.pop("body_digest") is not None and with_text:
        source = source_rows.find_source(connection, collection_id)
        stored["body"] = (
            None if source is None else source_rows.read_body(connection, source, stored["doc_id"])
        )
    return stored


def any_document(connection: Connection, collection_id: CollectionId) -> bool:
    """Whether a collection holds documents at all."""
    table = tables.document
    one = select(table.c.doc_id).where(table.c.collection_id == collection_id).limit(1)
    return connection.execute(one).first() is not None


def delete_documents(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> list[str]:
    """Delete documents by external id; returns the ids of those that were there."""
    table = tables.document
    gone = connection.execute(
        delete(table)
        .where(table.c.collection_id == collection_id, table.c.external_id.in_(external_ids))
        .returning(table.c.external_id)
    )
    return [row.external_id for row in gone]

"""Reading documents of a collection."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import cast

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from nearsim_db.records import CollectionId, DocId
from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.attached import source_rows
from nearsim_db.store.attached.source_rows import Source
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.codec import load_vectors
from nearsim_db.store.driver.statements import Leaves, run, statement

_BATCH_CHARACTERS = 4_000_000
_BATCH_DOCUMENTS = 4_000
_FEW_DOCUMENTS = 64
_SOURCE_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the index reads of a document: its texts or its vector."""

    doc_id: DocId
    revision: int
    title: str | None
    body: str | None
    vector: NDArray[np.float32] | None = None


def stream_unsigned(
    connection: Connection,
    collection_id: CollectionId,
    leaves: Leaves,
    doc_ids: tuple[int, int],
    between: Callable[[], None] = lambda: None,
    *,
    vectors: bool = False,
    by_age: bool = False,
) -> Generator[list[StoredDocument], None, None]:
    """Yield documents without a signature, of a range of doc_ids with both ends, in order, in batches of bounded size.

    With `vectors` each has its vector and no text, else its texts and no vector. Omits expired documents and those
    whose text in an attached table differs from the recorded one. With `by_age` documents that have not expired are
    looked up first. An attached table is read in slices, with `between` called after each to release its lock.
    """
    first, last = doc_ids
    parameters = {
        "collection_id": collection_id,
        "after": first - 1,
        "through": last,
        "vectors": vectors,
        "by_age": by_age,
    }
    source = None if vectors else source_rows.find_source(connection, collection_id)
    if source is None:
        yield from _stream(connection, statement("read_unsigned_documents", leaves), parameters)
        return
    while source is not None:
        command = source.statement(
            "read_unsigned_source_documents",
            signature=leaves.rows("signature"),
            generation_id=sql.Literal(leaves.generation_id),
        )
        rows = _read(connection, command, parameters | {"amount": _SOURCE_ROWS_AT_ONCE})
        if not rows:
            return
        yield _with_text(rows)
        if len(rows) < _SOURCE_ROWS_AT_ONCE:
            return
        between()
        parameters["after"] = rows[-1][0]
        source = source_rows.find_source(connection, collection_id)


def stream_documents(
    connection: Connection,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    *,
    vectors: bool = False,
) -> Generator[list[StoredDocument], None, None]:
    """Yield some documents, in doc_id order, in batches of bounded size.

    With `vectors` each has its vector and no text, else its texts and no vector. Omits deleted documents, and those
    whose text is requested and, in an attached table, differs from the recorded one.
    """
    parameters = {
        "collection_id": collection_id,
        "doc_ids": list(doc_ids),
        "vectors": vectors,
    }
    if len(doc_ids) > _FEW_DOCUMENTS:
        with _in_transaction(connection):
            source = None if vectors else source_rows.find_source(connection, collection_id)
            yield from _stream(connection, _by_id(source), parameters)
    elif few := _read_few(connection, collection_id, parameters):
        yield few


_Row = tuple[DocId, int, str | None, str | None, NDArray[np.float32] | None, bool | None]
_COLUMNS = ["int8", "int8", "text", "text", "float4[]", "bool"]  # the last: the text is missing


def _by_id(source: Source | None) -> sql.Composed:
    if source is None:
        return statement("read_documents")
    return source.statement("read_source_documents")


def _read_few(
    connection: Connection, collection_id: CollectionId, parameters: Mapping[str, object]
) -> list[StoredDocument]:
    """Run a prepared statement, which for a few documents takes half as long as a COPY.

    The attached table is looked up only if a text is missing: most collections have none.
    """
    rows = _read(connection, _by_id(None), parameters)
    if any(row[-1] for row in rows):
        with _in_transaction(connection):
            source = source_rows.find_source(connection, collection_id)
            rows = rows if source is None else _read(connection, _by_id(source), parameters)
    return _with_text(rows)


def _in_transaction(connection: Connection) -> AbstractContextManager[object]:
    """Return a block in which an attached table keeps its definition, also in autocommit."""
    return connection.backend.transaction() if connection.backend.autocommit else nullcontext()


def _read(connection: Connection, command: sql.Composed, parameters: Mapping[str, object]) -> list[_Row]:
    with connection.backend.cursor(binary=True) as cursor:
        if parameters["vectors"]:
            load_vectors(cursor)
        return cast(list[_Row], cursor.execute(command, parameters, prepare=True).fetchall())


def _with_text(rows: Iterable[_Row]) -> list[StoredDocument]:
    return [StoredDocument(*row[:-1]) for row in rows if not row[-1]]


def _stream(
    connection: Connection, query: sql.Composed, parameters: Mapping[str, object]
) -> Generator[list[StoredDocument], None, None]:
    """Stream by COPY, one row at a time, so that a batch of large documents is never in memory at once.

    Binary for vectors, where it is several times as fast; texts are as fast without. Close the stream when an error
    ends it early: a rollback beside a running COPY waits for ever.
    """
    options = sql.SQL("(FORMAT binary)" if parameters["vectors"] else "")
    command = sql.SQL("COPY ({}) TO STDOUT {}").format(query, options)
    cursor = connection.backend.cursor()
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


def find_changed(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, doc_ids: Ints, revisions: Ints
) -> Ints:
    """Return the documents that were deleted, written again or expired since they were read."""
    parameters = {
        "collection_id": collection_id,
        "doc_ids": packed_ids(doc_ids),
        "revisions": packed_ids(revisions),
    }
    return np.array(run(connection, "list_changed_documents", leaves, **parameters).values(), np.int64)


def find_existing(connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int]) -> set[int]:
    """Return the doc_ids that exist in the collection."""
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
    return set(run(connection, "find_existing_documents", **parameters).values())


def read_doc_ids(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> dict[str, int]:
    """Return the doc_ids of the external ids that a collection has."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    rows = run(connection, "read_doc_ids", None, "prepared", **parameters).rows()
    return dict(rows)


def sample_documents(connection: Connection, collection_id: CollectionId, size: int, seed: int) -> list[int]:
    """Return the doc_ids of a uniform random sample of up to `size` documents, in order."""
    parameters = {"collection_id": collection_id, "size": size, "seed": seed}
    return sorted(run(connection, "sample_documents", **parameters).values())


def read_values(
    connection: Connection, doc_ids: Ints, fields: Sequence[str]
) -> dict[int, tuple[list[object], datetime | None]]:
    """Return the values of fields, None for none, and the date of the documents among some that exist."""
    rows = run(connection, "read_values", doc_ids=packed_ids(doc_ids), fields=list(fields)).rows()
    return {doc_id: (values, published_at) for doc_id, values, published_at in rows}


def lacks_values(
    connection: Connection, collection_id: CollectionId, field: str, *, numbers: bool = False
) -> bool:
    """Whether a collection has documents, but none with a value of a field, with `numbers` one that is a number."""
    kind = "strict $.double()" if numbers else "strict $"
    return bool(run(connection, "lacks_values", collection_id=collection_id, field=field, kind=kind).value())

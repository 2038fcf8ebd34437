"""Reading the documents of a collection for its indexes: texts, vectors, doc_ids and values of fields."""

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
from nearsim_db.similarity.recipe import KeepRule
from nearsim_db.store.attached import source_rows
from nearsim_db.store.attached.source_rows import AttachedSource
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.codec import load_vectors
from nearsim_db.store.driver.statements import Leaves, run, statement

# A batch ends once it has this many characters of texts, or numbers of vectors.
_BATCH_CHARACTERS = 4_000_000
_MAX_BATCH_DOCUMENTS = 4_000
_MAX_PREPARED_DOCUMENTS = 64
_SOURCE_SLICE_ROWS = 500


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as an index reads it: with its texts or with its vector."""

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
    """Yield documents without a signature, in doc_id order, in batches of bounded size.

    Expired documents are left out, and so are documents whose text in an attached table differs from the recorded
    digest. An attached table is read in slices.

    `doc_ids`: first and last doc_id of the range
    `between`: called between two slices of an attached table, to release the lock on the table
    `vectors`: read vectors and no texts; otherwise texts and no vectors
    `by_age`: use the index on age, for a range in which most documents have expired
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
        rows = _read(connection, command, parameters | {"amount": _SOURCE_SLICE_ROWS})
        if not rows:
            return
        yield _with_text(rows)
        if len(rows) < _SOURCE_SLICE_ROWS:
            return

        # While the lock was released, the table may have been detached or its definition changed.
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
    """Yield the documents with these doc_ids, in doc_id order, in batches of bounded size.

    `vectors`: read vectors and no texts; otherwise texts and no vectors. Deleted documents are left out. If texts are
    read, so are documents whose text in an attached table differs from the recorded digest.
    """
    parameters = {
        "collection_id": collection_id,
        "doc_ids": list(doc_ids),
        "vectors": vectors,
    }
    if len(doc_ids) > _MAX_PREPARED_DOCUMENTS:
        with _in_transaction(connection):
            source = None if vectors else source_rows.find_source(connection, collection_id)
            yield from _stream(connection, _by_id(source), parameters)
    elif batch := _read_prepared(connection, collection_id, parameters):
        yield batch


# The fields of StoredDocument, and whether the text is missing because it is in an attached table or has changed there.
_Row = tuple[DocId, int, str | None, str | None, NDArray[np.float32] | None, bool | None]
_ROW_TYPES = ["int8", "int8", "text", "text", "float4[]", "bool"]


def _by_id(source: AttachedSource | None) -> sql.Composed:
    if source is None:
        return statement("read_documents")
    return source.statement("read_source_documents")


def _read_prepared(
    connection: Connection, collection_id: CollectionId, parameters: Mapping[str, object]
) -> list[StoredDocument]:
    """Read a few documents with a prepared statement, which takes half as long as a COPY."""
    # The attached table is looked up only if a text is missing, because most collections have no attached table.
    rows = _read(connection, _by_id(None), parameters)
    if any(row[-1] for row in rows):
        with _in_transaction(connection):
            source = source_rows.find_source(connection, collection_id)
            rows = rows if source is None else _read(connection, _by_id(source), parameters)
    return _with_text(rows)


def _in_transaction(connection: Connection) -> AbstractContextManager[object]:
    """Return a context manager in which an attached table keeps its definition, also in autocommit mode."""
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
    """Yield documents from a COPY, which keeps only one row of the server's answer in memory.

    If an error ends the reading early, the caller must close the stream: while a COPY is running, a rollback waits
    forever.
    """
    # In binary format, vectors are read several times as fast; for texts the format makes no difference.
    options = sql.SQL("(FORMAT binary)" if parameters["vectors"] else "")
    command = sql.SQL("COPY ({}) TO STDOUT {}").format(query, options)
    cursor = connection.backend.cursor()
    if parameters["vectors"]:
        load_vectors(cursor)

    with cursor, cursor.copy(command, parameters) as copy:
        copy.set_types(_ROW_TYPES)
        batch: list[StoredDocument] = []
        size = 0
        for *values, is_text_missing in copy.rows():
            if is_text_missing:
                continue
            document = StoredDocument(*values)
            batch.append(document)
            size += len(document.title or "") + len(document.body or "")
            size += 0 if document.vector is None else len(document.vector)
            if size >= _BATCH_CHARACTERS or len(batch) >= _MAX_BATCH_DOCUMENTS:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def find_changed(
    connection: Connection, leaves: Leaves, collection_id: CollectionId, doc_ids: Ints, revisions: Ints
) -> Ints:
    """Return the doc_ids of documents that were deleted, written again or have expired since they were read."""
    parameters = {
        "collection_id": collection_id,
        "doc_ids": packed_ids(doc_ids),
        "revisions": packed_ids(revisions),
    }
    return np.array(run(connection, "list_changed_documents", leaves, **parameters).values(), np.int64)


def find_existing(connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int]) -> set[int]:
    """Return those doc_ids whose documents exist in a collection."""
    parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
    return set(run(connection, "find_existing_documents", **parameters).values())


def read_doc_ids(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> dict[str, int]:
    """Return the doc_ids of those external ids that exist in a collection, by external id."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    rows = run(connection, "read_doc_ids", None, "prepared", **parameters).rows()
    return dict(rows)


def sample_documents(connection: Connection, collection_id: CollectionId, size: int, seed: int) -> list[int]:
    """Return the doc_ids, in ascending order, of a uniform random sample of up to `size` documents."""
    parameters = {"collection_id": collection_id, "size": size, "seed": seed}
    return sorted(run(connection, "sample_documents", **parameters).values())


def read_values(
    connection: Connection, doc_ids: Ints, fields: Sequence[str]
) -> dict[int, tuple[list[object], datetime | None]]:
    """Return, by doc_id, the values of fields (None for a missing value) and the date of those documents that exist."""
    rows = run(connection, "read_values", doc_ids=packed_ids(doc_ids), fields=list(fields)).rows()
    return {doc_id: (values, published_at) for doc_id, values, published_at in rows}


def lacks_rank(connection: Connection, collection_id: CollectionId, rule: KeepRule) -> bool:
    """Whether a collection has documents, but none with a value by which a keep rule could prefer it to others."""
    return bool(run(connection, "lacks_rank", collection_id=collection_id, rule=str(rule)).value())


def lacks_values(
    connection: Connection, collection_id: CollectionId, field: str, *, numbers: bool = False
) -> bool:
    """Whether a collection has documents, but none with a value in a field; with `numbers`, only numbers are values."""
    kind = "strict $.double()" if numbers else "strict $"
    return bool(run(connection, "lacks_values", collection_id=collection_id, field=field, kind=kind).value())

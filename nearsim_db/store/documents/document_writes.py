"""Writing and deleting documents by external_id, one by one or in batches."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Literal

from psycopg.errors import UniqueViolation

from nearsim_db.records import CollectionId, DocId, Document, ReadDocument
from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.codec import array_content, array_literal, unpacked_ids
from nearsim_db.store.driver.statements import run, statement
from nearsim_db.store.generations import partitions

Outcome = Literal["inserted", "updated", "unchanged"]

_OUTCOMES: dict[bool | None, Outcome] = {True: "inserted", False: "updated", None: "unchanged"}
# The types of a document's columns for COPY. Attributes and vectors are passed in the binary format of jsonb and
# real[].
_COLUMN_TYPES = ("text", "text", "text", "text", "text", "timestamptz", "bytea", "bytea")
_JSONB_VERSION = b"\x01"
# The place of a record is one number: the lower bits have the number of the line, the bits above the number of the
# file.
_LINE_BITS = 40
_LINE_MASK = (1 << _LINE_BITS) - 1


@dataclass(frozen=True, slots=True)
class AddedDocuments:
    """Numbers of the documents of a batch that were all new, in the order of the batch."""

    doc_ids: Ints  # int64, shape (n,), ascending
    revisions: Ints  # int64, shape (n,)


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """Result of a batch: numbers of rows by outcome, and ids that occurred earlier in the same call."""

    inserted: int
    updated: int
    unchanged: int

    # Ids that occurred earlier in the same file: external_id, earlier line, line.
    superseded: tuple[tuple[str, int, int], ...] = ()
    # Ids that occurred earlier in another file and whose rows were updated: external_id, earlier file.
    replaced: tuple[tuple[str, int], ...] = ()
    # Numbers of the documents if all documents of the batch were loaded as new; otherwise None.
    added: AddedDocuments | None = None


@dataclass(slots=True)
class LoadedDocuments:
    """State that the batches of a call share, with the loaded documents whose ids are not in the table `seen` yet."""

    doc_ids: "array[int]" = field(default_factory=partial(array, "q"))
    places: "array[int]" = field(default_factory=partial(array, "q"))
    only_new: bool = True  # False once a batch contained a document that exists
    has_tables: bool = False  # whether the temporary tables exist, and `seen` has only ids of this call


def write_batch(
    connection: Connection,
    collection_id: CollectionId,
    batch: Sequence[ReadDocument],
    loaded: LoadedDocuments,
    *,
    files: Sequence[int],
    may_copy: bool = False,
) -> WrittenBatch:
    """Upsert a batch of documents with distinct ids.

    `files`: the number of each document's file, counted within this call
    `may_copy`: if all documents of the batch are new, load them with COPY and add them to `loaded`; this needs the
    rights of the owner of the tables
    """
    partitions.report_changes(connection)
    if may_copy:
        # Looking up ids costs more with every stored document. So only the first batch is looked up, and later batches
        # are loaded directly. A load that fails leaves dead rows, but it is the last one of this call.
        looks_up = not loaded.only_new or not loaded.doc_ids
        added = _copy_if_new(connection, collection_id, batch, looks_up=looks_up)
        loaded.only_new &= added is not None
        if added is not None:
            loaded.doc_ids.frombytes(added.doc_ids.tobytes())
            loaded.places.extend(map(_place, files, batch))
            return WrittenBatch(len(batch), 0, 0, added=added)

    return _merge(connection, "upsert_documents", collection_id, batch, loaded, files)


def compare_batch(
    connection: Connection,
    collection_id: CollectionId,
    batch: Sequence[ReadDocument],
    loaded: LoadedDocuments,
    *,
    files: Sequence[int],
) -> WrittenBatch:
    """Return what `write_batch` would return, without writing documents."""
    return _merge(connection, "compare_documents", collection_id, batch, loaded, files)


def _merge(
    connection: Connection,
    statement_name: Literal["upsert_documents", "compare_documents"],
    collection_id: CollectionId,
    batch: Sequence[ReadDocument],
    loaded: LoadedDocuments,
    files: Sequence[int],
) -> WrittenBatch:
    """Load a batch into a temporary table, and run the statement that upserts or compares the batch."""
    if not loaded.has_tables:
        run(connection, "create_incoming")
        connection.execute("TRUNCATE seen")
        loaded.has_tables = True

    # Within a file, the last record of an id supersedes the earlier ones. Line 0 means that the file has only one
    # record.
    superseded, recurring = [], {}
    for external_id, earlier, place in _record_ids(connection, batch, files, loaded):
        if earlier >> _LINE_BITS == place >> _LINE_BITS and earlier & _LINE_MASK:
            superseded.append((external_id, earlier & _LINE_MASK, place & _LINE_MASK))
        else:
            recurring[external_id] = earlier >> _LINE_BITS

    _load(connection, "copy_incoming", ("int8",), ((record.line,) for record in batch), batch)
    inserted, updated, unchanged, updated_ids = run(
        connection,
        statement_name,
        collection_id=collection_id,
        superseded=[external_id for external_id, _, _ in superseded],
        recurring=list(recurring),
    ).row()
    replaced = tuple((external_id, recurring[external_id]) for external_id in updated_ids)
    return WrittenBatch(inserted, updated, unchanged, tuple(superseded), replaced)


def _place(file: int, record: ReadDocument) -> int:
    return file << _LINE_BITS | record.line


def _record_ids(
    connection: Connection, batch: Sequence[ReadDocument], files: Sequence[int], loaded: LoadedDocuments
) -> list[tuple[str, int, int]]:
    """Add the ids of this batch and of loaded documents to `seen`; return the repeated ids.

    A repeated id is (external_id, earlier place, place).
    """
    if loaded.doc_ids:
        parameters = {"doc_ids": packed_ids(loaded.doc_ids), "places": packed_ids(loaded.places)}
        run(connection, "record_loaded_ids", **parameters)
        del loaded.doc_ids[:], loaded.places[:]
    external_ids = [record.document.external_id for record in batch]
    places = list(map(_place, files, batch))
    return run(connection, "record_seen_ids", external_ids=external_ids, places=places).rows()


def _copy_if_new(
    connection: Connection, collection_id: CollectionId, batch: Sequence[ReadDocument], *, looks_up: bool
) -> AddedDocuments | None:
    """Load a batch of documents; return None if any of them exists, or if another session is adding one of them.

    `looks_up`: look for existing documents before loading.
    """
    parameters = {
        "collection_id": collection_id,
        "external_ids": [record.document.external_id for record in batch],
    }
    if looks_up and run(connection, "has_any_document", **parameters).value():
        return None

    numbers = run(connection, "reserve_numbers", None, "binary", amount=len(batch)).row()
    doc_ids, revisions = map(unpacked_ids, numbers)
    leading_values = zip(doc_ids.tolist(), revisions.tolist(), repeat(collection_id))
    try:
        with connection.begin_nested():
            _load(connection, "copy_documents", ("int8", "int8", "int4"), leading_values, batch)
    except UniqueViolation:
        return None
    return AddedDocuments(doc_ids, revisions)


def upsert_document(
    connection: Connection, collection_id: CollectionId, document: Document
) -> tuple[DocId, Outcome]:
    """Write a document by external_id; return its doc_id and the outcome."""
    rows: list[tuple[DocId, bool | None]] = []
    # There is no row if another session wrote the same document concurrently.
    while not rows:
        rows = run(connection, "upsert_document", **_parameters(collection_id, document)).rows()
    doc_id, is_new = rows[0]
    return doc_id, _OUTCOMES[is_new]


def is_stored(connection: Connection, collection_id: CollectionId, document: Document) -> bool:
    """Whether a document with the same id and the same values is stored."""
    parameters = _parameters(collection_id, document)
    return bool(run(connection, "has_same_document", **parameters).value())


def delete_documents(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> dict[str, int]:
    """Delete documents by external id; return the doc_ids of the deleted documents, by external id."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    return dict(run(connection, "delete_documents", **parameters).rows())


def _parameters(collection_id: CollectionId, document: Document) -> dict[str, object]:
    return {
        "collection_id": collection_id,
        "external_id": document.external_id,
        "title": document.title,
        "body": document.body,
        "source": document.source,
        "url": document.url,
        "published_at": document.published_at,
        "attributes": _json(document.attributes).decode(),
        "vector": array_literal(document.vector),
    }


def _json(attributes: Mapping[str, object]) -> bytes:
    import orjson

    return orjson.dumps(attributes) if attributes else b"{}"


def _load(
    connection: Connection,
    command: str,
    leading_types: tuple[str, ...],
    leading_values: Iterable[tuple[int, ...]],
    batch: Iterable[ReadDocument],
) -> None:
    """Load documents by COPY; the columns of `leading_types` come first."""
    with connection.backend.cursor() as cursor, cursor.copy(statement(command)) as copy:
        copy.set_types([*leading_types, *_COLUMN_TYPES])

        for values, record in zip(leading_values, batch, strict=False):
            document = record.document
            copy.write_row(
                (
                    *values,
                    document.external_id,
                    document.title,
                    document.body,
                    document.source,
                    document.url,
                    document.published_at,
                    _JSONB_VERSION + _json(document.attributes),
                    array_content(document.vector),
                )
            )

"""Writing documents by external_id: one by one, or in batches."""

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
# The last two are given in the wire format.
_COLUMN_TYPES = ("text", "text", "text", "text", "text", "timestamptz", "bytea", "bytea")
_JSONB_VERSION = b"\x01"
_LINE_BITS = 40  # of the place of a record; the others are the number of its file
_LINES = (1 << _LINE_BITS) - 1


@dataclass(frozen=True, slots=True)
class Added:
    """Numbers of the documents of a batch that were all new, in its order: int64 of n, doc_ids ascending."""

    doc_ids: Ints
    revisions: Ints


@dataclass(frozen=True, slots=True)
class Written:
    """Result of a batch: rows inserted, updated and unchanged, and ids that occurred earlier in the same file.

    `replaced` are ids of updated rows that a record of another file had, with the number of that file. `added` is given
    if all were loaded as new documents.
    """

    inserted: int
    updated: int
    unchanged: int
    superseded: tuple[tuple[str, int, int], ...] = ()  # (external_id, earlier line, line)
    replaced: tuple[tuple[str, int], ...] = ()  # (external_id, earlier file)
    added: Added | None = None


@dataclass(slots=True)
class LoadedDocuments:
    """Numbers and places of documents whose ids are not among those seen: no later batch had one of them.

    `only_new` until a batch had a document that exists; `has_tables` once there are tables of ids.
    """

    doc_ids: "array[int]" = field(default_factory=partial(array, "q"))
    places: "array[int]" = field(default_factory=partial(array, "q"))
    only_new: bool = True
    has_tables: bool = False


def write_batch(
    connection: Connection,
    collection_id: CollectionId,
    batch: Sequence[ReadDocument],
    loaded: LoadedDocuments,
    *,
    files: Sequence[int],
    may_copy: bool = False,
) -> Written:
    """Upsert a batch without repeated ids.

    `files` are the numbers of the documents' files among those of the `loaded` ones. With `may_copy`, which needs the
    rights of the owner of the tables, a batch of new documents is loaded at once and added to those `loaded`.
    """
    partitions.report_changes(connection)
    if may_copy:
        # To look each id up costs more with every document stored; a load that fails leaves dead rows, once a call.
        probed = not loaded.only_new or not loaded.doc_ids
        added = _copy_if_new(connection, collection_id, batch, probed=probed)
        loaded.only_new &= added is not None
        if added is not None:
            loaded.doc_ids.frombytes(added.doc_ids.tobytes())
            loaded.places.extend(map(_place, files, batch))
            return Written(len(batch), 0, 0, added=added)

    return _merge(connection, "upsert_documents", collection_id, batch, loaded, files)


def compare_batch(
    connection: Connection,
    collection_id: CollectionId,
    batch: Sequence[ReadDocument],
    loaded: LoadedDocuments,
    *,
    files: Sequence[int],
) -> Written:
    """Return what `write_batch` would write."""
    return _merge(connection, "compare_documents", collection_id, batch, loaded, files)


def _merge(
    connection: Connection,
    merging: Literal["upsert_documents", "compare_documents"],
    collection_id: CollectionId,
    batch: Sequence[ReadDocument],
    loaded: LoadedDocuments,
    files: Sequence[int],
) -> Written:
    """Load a batch into a temporary table, and run the statement that merges it into the documents."""
    if not loaded.has_tables:
        run(connection, "create_incoming")
        connection.execute("TRUNCATE seen")
        loaded.has_tables = True

    # Of records with one id in one file the last is written.
    superseded, recurring = [], {}
    for external_id, earlier, place in _record_ids(connection, batch, files, loaded):
        if earlier >> _LINE_BITS == place >> _LINE_BITS and earlier & _LINES:
            superseded.append((external_id, earlier & _LINES, place & _LINES))
        else:
            recurring[external_id] = earlier >> _LINE_BITS

    _load(connection, "copy_incoming", ("int8",), ((read.line,) for read in batch), batch)
    inserted, updated, unchanged, updated_ids = run(
        connection,
        merging,
        collection_id=collection_id,
        superseded=[external_id for external_id, _, _ in superseded],
        recurring=list(recurring),
    ).row()
    replaced = tuple((external_id, recurring[external_id]) for external_id in updated_ids)
    return Written(inserted, updated, unchanged, tuple(superseded), replaced)


def _place(file: int, read: ReadDocument) -> int:
    return file << _LINE_BITS | read.line


def _record_ids(
    connection: Connection, batch: Sequence[ReadDocument], files: Sequence[int], loaded: LoadedDocuments
) -> list[tuple[str, int, int]]:
    """Record the ids of the batches up to this one; return those of the batch that occurred before, with places."""
    if loaded.doc_ids:
        parameters = {"doc_ids": packed_ids(loaded.doc_ids), "places": packed_ids(loaded.places)}
        run(connection, "record_loaded_ids", **parameters)
        del loaded.doc_ids[:], loaded.places[:]
    external_ids = [read.document.external_id for read in batch]
    places = list(map(_place, files, batch))
    return run(connection, "record_seen_ids", external_ids=external_ids, places=places).rows()


def _copy_if_new(
    connection: Connection, collection_id: CollectionId, batch: Sequence[ReadDocument], *, probed: bool
) -> Added | None:
    """Load a batch of documents; None if any of them exists, or another session is adding one of them.

    `probed` if they are looked up before.
    """
    parameters = {
        "collection_id": collection_id,
        "external_ids": [read.document.external_id for read in batch],
    }
    if probed and run(connection, "has_any_document", **parameters).value():
        return None
    numbers = run(connection, "reserve_numbers", None, "binary", amount=len(batch)).row()
    doc_ids, revisions = (unpacked_ids(one) for one in numbers)
    heads = zip(doc_ids.tolist(), revisions.tolist(), repeat(collection_id))
    try:
        with connection.begin_nested():
            _load(connection, "copy_documents", ("int8", "int8", "int4"), heads, batch)
    except UniqueViolation:
        return None
    return Added(doc_ids, revisions)


def upsert_document(
    connection: Connection, collection_id: CollectionId, document: Document
) -> tuple[DocId, Outcome]:
    """Write one document by external_id; return its doc_id and the outcome."""
    rows: list[tuple[DocId, bool | None]] = []
    while not rows:  # a concurrent writer of the same document leaves no row
        rows = run(connection, "upsert_document", **_parameters(collection_id, document)).rows()
    doc_id, is_new = rows[0]
    return doc_id, _OUTCOMES[is_new]


def is_stored(connection: Connection, collection_id: CollectionId, document: Document) -> bool:
    """Whether a document is stored exactly as given."""
    parameters = _parameters(collection_id, document)
    return bool(run(connection, "has_same_document", **parameters).value())


def delete_documents(
    connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]
) -> dict[str, int]:
    """Delete documents by external id; return the doc_ids of those that existed."""
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
    types: tuple[str, ...],
    heads: Iterable[tuple[int, ...]],
    batch: Iterable[ReadDocument],
) -> None:
    """Load documents by COPY, each after the columns of `types` in `heads`."""
    with connection.backend.cursor() as cursor, cursor.copy(statement(command)) as copy:
        copy.set_types([*types, *_COLUMN_TYPES])
        for head, read in zip(heads, batch, strict=False):
            one = read.document
            copy.write_row(
                (
                    *head,
                    one.external_id,
                    one.title,
                    one.body,
                    one.source,
                    one.url,
                    one.published_at,
                    _JSONB_VERSION + _json(one.attributes),
                    array_content(one.vector),
                )
            )

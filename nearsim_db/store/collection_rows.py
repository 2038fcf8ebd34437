"""Rows of collections."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.schema import tables

_FORBIDDEN_CATEGORIES = {
    "Cc",
    "Cs",
    "Zl",
    "Zp",
}  # control characters, lone surrogates, line and paragraph separators


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents that are compared with each other."""

    collection_id: CollectionId
    name: str
    temporary: bool
    created_at: datetime


def find_collection(connection: Connection, name: str) -> Collection | None:
    """Return the collection of that name, or None."""
    table = tables.collection
    row = connection.execute(
        select(table.c.collection_id, table.c.name, table.c.temporary, table.c.created_at).where(
            table.c.name == name
        )
    ).first()
    return None if row is None else Collection(*row)


def get_collection(connection: Connection, name: str) -> Collection:
    """Return the collection of that name. Raises NotFoundError, listing the collections."""
    found = find_collection(connection, name)
    if found is None:
        known = ", ".join(one.name for one in list_collections(connection)) or "none yet"
        raise NotFoundError(f"collection {name!r} does not exist; existing collections: {known}")
    return found


def list_collections(connection: Connection, *, temporary: bool = False) -> list[Collection]:
    """Return all collections by name, either the permanent or the temporary ones."""
    table = tables.collection
    rows = connection.execute(
        select(table.c.collection_id, table.c.name, table.c.temporary, table.c.created_at)
        .where(table.c.temporary.is_(temporary))
        .order_by(table.c.name)
    )
    return [Collection(*row) for row in rows]


def list_unindexed(connection: Connection) -> list[Collection]:
    """Return the permanent collections with documents and without a profile."""
    profile, document = tables.profile, tables.document
    profiled = set(connection.execute(select(profile.c.collection_id).distinct()).scalars())
    bare = [one for one in list_collections(connection) if one.collection_id not in profiled]
    has_documents = select(document.c.doc_id).limit(1)
    return [
        one
        for one in bare
        if connection.execute(has_documents.where(document.c.collection_id == one.collection_id)).first()
    ]


def create_collection(connection: Connection, name: str, *, temporary: bool = False) -> Collection:
    """Create a collection. Raises ConflictError if the name is taken or not allowed."""
    if not _insert_collection(connection, name, temporary=temporary):
        raise ConflictError(f"collection {name!r} already exists")
    return get_collection(connection, name)


def ensure_collection(connection: Connection, name: str) -> Collection:
    """Return the collection of that name, creating it if missing; safe under concurrent calls.

    Raises ConflictError if it is missing and the name is not allowed.
    """
    found = find_collection(connection, name)
    if found is not None:
        return found
    _insert_collection(connection, name, temporary=False)
    return get_collection(connection, name)


def _refuse_name(name: str) -> None:
    if not name.strip():
        raise ConflictError("the collection name must not be empty")
    if name != name.strip() or any(unicodedata.category(one) in _FORBIDDEN_CATEGORIES for one in name):
        raise ConflictError(
            f"a collection cannot be named {name!r}: leave out control characters, and spaces around the name"
        )


def _insert_collection(connection: Connection, name: str, *, temporary: bool) -> bool:
    _refuse_name(name)
    table = tables.collection
    made = upsert(table).values(name=name, temporary=temporary).on_conflict_do_nothing()
    return connection.execute(made.returning(table.c.collection_id)).first() is not None


def delete_collection(connection: Connection, collection: Collection) -> None:
    """Delete a collection with its documents and profiles; its generations must have been dropped."""
    connection.execute(
        delete(tables.collection).where(tables.collection.c.collection_id == collection.collection_id)
    )


def count_documents(connection: Connection, collection_id: CollectionId) -> int:
    """Return the number of documents in a collection."""
    table = tables.document
    counted = select(func.count()).select_from(table).where(table.c.collection_id == collection_id)
    return connection.execute(counted).scalar_one()


def read_purges(connection: Connection) -> dict[CollectionId, datetime]:
    """Return the time of the last purge per collection that had any."""
    table = tables.collection
    rows = connection.execute(
        select(table.c.collection_id, table.c.purged_at).where(table.c.purged_at.is_not(None))
    )
    return {CollectionId(row[0]): row[1] for row in rows}

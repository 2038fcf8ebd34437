"""Collections: looking them up, creating, renaming and deleting them, and counting their documents."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from nearsim_db.errors import ConflictError, MissingCollectionError
from nearsim_db.records import DEFAULT, CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run

# Names may not have characters of these categories: control characters, lone surrogates, line and paragraph separators.
_FORBIDDEN_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}

_MAX_NAMES_IN_MESSAGE = 20


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents that are compared with each other."""

    collection_id: CollectionId
    name: str
    created_at: datetime


def find_collection(connection: Connection, name: str) -> Collection | None:
    """Return the collection with this name, or None."""
    return run(connection, "find_collection", name=name).first(Collection)


def get_collection(connection: Connection, name: str) -> Collection:
    """Return the collection with this name.

    Raises MissingCollectionError, whose message names the server and some of its collections.
    """
    collection = find_collection(connection, name)
    if collection is not None:
        return collection

    existing = list_collections(connection)
    names = ", ".join(each.name for each in existing[:_MAX_NAMES_IN_MESSAGE])
    if len(existing) > _MAX_NAMES_IN_MESSAGE:
        names += f" and {len(existing) - _MAX_NAMES_IN_MESSAGE:,} more (nearsim collection list)"
    raise MissingCollectionError(
        f"collection {name!r} does not exist in {connection.place}; existing collections: {names or 'none yet'}"
    )


def default_collection(connection: Connection) -> str:
    """Return the name of the collection to use if the caller names none: `default` if it exists, else the only one.

    Returns `default` as well if there are no collections, or if there are several others.
    """
    name: str | None = run(connection, "find_default_collection", default=DEFAULT).value()
    return name or DEFAULT


def list_collections(connection: Connection) -> list[Collection]:
    """Return all collections, sorted by name."""
    return run(connection, "list_collections").all(Collection)


def list_unindexed(connection: Connection) -> list[Collection]:
    """Return the collections that have documents but no profile."""
    return run(connection, "list_unindexed_collections").all(Collection)


def list_unfinished(connection: Connection) -> list[Collection]:
    """Return collections with documents whose first index is not built yet, or whose live indexes have queued work."""
    return run(connection, "list_unfinished_collections").all(Collection)


def create_collection(connection: Connection, name: str) -> Collection:
    """Create a collection. Raises ConflictError if the name exists already or is not allowed."""
    created = _insert_collection(connection, name)
    if created is None:
        raise ConflictError(f"collection {name!r} already exists")
    return created


def ensure_collection(connection: Connection, name: str) -> Collection:
    """Return the collection with this name, and create it if it does not exist; safe under concurrent calls.

    Raises ConflictError if the collection does not exist and the name is not allowed.
    """
    # A concurrent call may create the collection after this one has looked for it.
    collection = find_collection(connection, name) or _insert_collection(connection, name)
    return collection or get_collection(connection, name)


def _refuse_name(name: str) -> None:
    if not name.strip():
        raise ConflictError("the collection name must not be empty")
    if name != name.strip() or any(unicodedata.category(char) in _FORBIDDEN_CATEGORIES for char in name):
        raise ConflictError(
            f"a collection cannot be named {name!r}: leave out control characters, and spaces around the name"
        )


def _insert_collection(connection: Connection, name: str) -> Collection | None:
    _refuse_name(name)
    return run(connection, "create_collection", name=name).first(Collection)


def rename_collection(connection: Connection, name: str, new_name: str) -> None:
    """Rename a collection.

    Raises NotFoundError if it does not exist, and ConflictError if the new name exists already or is not allowed.
    """
    collection = get_collection(connection, name)
    _refuse_name(new_name)
    if find_collection(connection, new_name) is not None:
        raise ConflictError(f"collection {new_name!r} already exists")
    run(connection, "rename_collection", collection_id=collection.collection_id, name=new_name)


def delete_collection(connection: Connection, collection: Collection) -> None:
    """Delete a collection with its documents and profiles; its generations must have been dropped before."""
    run(connection, "delete_collection", collection_id=collection.collection_id)


def count_documents(connection: Connection, collection_id: CollectionId, limit: int | None = None) -> int:
    """Return the number of documents in a collection, but at most `limit`."""
    return int(run(connection, "count_documents", collection_id=collection_id, limit=limit).value())


def read_purges(
    connection: Connection, collection_ids: Iterable[CollectionId]
) -> dict[CollectionId, datetime]:
    """Return the time of the last purge, for those collections from which texts were purged."""
    rows = run(connection, "list_purges", collection_ids=list(collection_ids)).rows()
    return {CollectionId(collection_id): purged_at for collection_id, purged_at in rows}


def read_live_states(
    connection: Connection, collection_ids: Iterable[CollectionId]
) -> dict[CollectionId, object]:
    """Return for each collection a value that changes when a generation is promoted or texts are purged."""
    rows = run(connection, "list_live_states", collection_ids=list(collection_ids)).rows()
    return {CollectionId(row[0]): row[1:] for row in rows}

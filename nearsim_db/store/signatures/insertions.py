"""Checked insertions: a record of documents added after a check for near-duplicates, kept until they are signed."""

from collections.abc import Sequence

from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run


def drop_settled(connection: Connection, collection_id: CollectionId | None = None) -> int:
    """Delete checked insertions that no check needs any more, because their documents are signed; return their number.

    `collection_id`: only those of this collection
    """
    return run(connection, "delete_settled_insertions", collection_id=collection_id).count


def drop_of(connection: Connection, collection_id: CollectionId, external_ids: Sequence[str]) -> int:
    """Delete the checked insertions of these documents, and all insertions without an id; return their number."""
    parameters = {"collection_id": collection_id, "external_ids": list(external_ids)}
    return run(connection, "purge_insertions", **parameters).count

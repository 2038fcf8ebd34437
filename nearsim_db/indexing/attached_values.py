"""Collections of the values of a field of an attached table, made as the values appear in its rows.

The table is attached to one collection, their parent, which has the triggers, and the rows without a value. That of a
value is attached to the rows with it, and has no triggers: captured changes carry the value, also the one before.
"""

from collections.abc import Sequence
from hashlib import md5

from nearsim_db.errors import ConflictError
from nearsim_db.indexing import profiles
from nearsim_db.records import CollectionId
from nearsim_db.similarity.profile import restore
from nearsim_db.store.access import collection_rows
from nearsim_db.store.access.collection_rows import Collection
from nearsim_db.store.attached import attachments, tables
from nearsim_db.store.attached.attachments import Attachment
from nearsim_db.store.attached.source_rows import Source
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation


def has_values(attachment: Attachment) -> bool:
    """Whether values of a field have collections of their own, of which this is the parent."""
    return attachment.columns.collection_field is not None and attachment.parent is None


def create_missing(
    connection: Connection, parent: Attachment, source: Source, values: Sequence[str]
) -> list[CollectionId]:
    """Create the collections of values that have none, with the parent's profiles, and return them.

    The caller holds the lock under which rows of the parent are applied.
    """
    known = {one.value for one in attachments.list_of_values(connection, parent.collection_id, values)}
    return [_create(connection, parent, source, value) for value in values if value not in known]


def _create(connection: Connection, parent: Attachment, source: Source, value: str) -> CollectionId:
    field = tables.read_columns(connection, source.relation)[parent.columns.collection_field or ""]
    collection_id = _create_named(connection, parent.collection, value).collection_id
    columns = tables.of_value(parent.columns, field, value)
    attachments.store_attachment(
        connection, collection_id, source.relation, columns, parent.collection_id, value
    )
    newest: dict[str, Generation] = {}
    for one in generation_rows.list_generations(connection, parent.collection_id):
        if one.state == "live" or (one.state not in ("retired", "abandoned") and one.profile not in newest):
            newest[one.profile] = one
    for one in newest.values():
        profile = restore(one.recipe, one.fingerprint, one.bands, one.rows)
        profiles.create(connection, collection_id, one.profile, profile)
    return collection_id


def _create_named(connection: Connection, parent: str, value: str) -> Collection:
    """Create a collection named after its parent and its value, or the value's digest if that name is not possible."""
    try:
        return collection_rows.create_collection(connection, f"{parent}:{value}")
    except ConflictError:
        digest = md5(value.encode(), usedforsecurity=False).hexdigest()
        return collection_rows.create_collection(connection, f"{parent}:{digest}")

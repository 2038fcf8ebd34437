"""Why changes of an attached table are not indexed now: what was altered since it was attached."""

from nearsim_db.records import CollectionId
from nearsim_db.store import access
from nearsim_db.store.attached import attachments
from nearsim_db.store.attached.attachments import Attachment
from nearsim_db.store.attached.table_checks import not_unique, unreadable
from nearsim_db.store.attached.tables import read_relation
from nearsim_db.store.driver import Connection


def list_problems(connection: Connection, collection_id: CollectionId | None = None) -> dict[str, str]:
    """Return why attached tables, or that of one collection, are not followed: by collection, if there is a reason.

    Each table is looked up in the catalog. Rights count if the user may index; other users see what workers recorded.
    """
    found: dict[str, str] = {}
    attached = attachments.list_attachments(connection, collection_id)
    own_rights = bool(attached) and access.has_owners_rights(connection)
    for one in attached:
        problem = one.problem or find_obstacle(connection, one, own_rights=own_rights)
        if problem is not None and not one.detaching:
            found[one.collection] = problem
    return found


def find_obstacle(connection: Connection, attachment: Attachment, *, own_rights: bool = True) -> str | None:
    """Return why the table cannot be read, or its changes are not captured; None if it is followed."""
    relation = read_relation(connection, attachment.relation)
    if relation is None:
        return attachment.problem
    columns = attachment.columns
    if reason := unreadable(connection, relation, columns, own_rights=own_rights):
        return attachment.describe_unreadable(reason)
    if reason := not_unique(connection, relation, columns):
        return attachment.describe_unreadable(reason)
    silent = attachments.find_silent_triggers(connection, attachment.collection_id)
    return attachment.describe_missed(", ".join(silent)) if silent else None

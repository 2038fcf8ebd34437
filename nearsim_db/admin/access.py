"""Access to the database: which users are readers, writers or admins, and which collections each user sees.

If collections are isolated, readers and writers see only the collections that were granted to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nearsim_db.errors import DatabaseError
from nearsim_db.records import CollectionId
from nearsim_db.store.access import access, collection_rows
from nearsim_db.store.access.access import Access, Role, RoleMember
from nearsim_db.store.citus import placement
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import retry_conflicts


@dataclass(frozen=True, slots=True)
class Isolation:
    """Whether collections are isolated, and the grants of collections."""

    isolated: bool
    access: tuple[Access, ...]
    ungranted: tuple[str, ...]  # readers and writers without a grant; under isolation they see nothing


def grant(database: Database, user: str, role: Role, collections: Sequence[str] = ()) -> bool:
    """Grant a role and access to collections to a user; return False if the user had both already.

    The new access to a collection replaces the former one: if a writer is granted access as a reader, the right to
    write is lost. Roles that the server lacks are created. Raises NotFoundError for an unknown user or collection, and
    DatabaseError if the connected user may not grant roles.
    """
    with database.transaction() as connection:
        collection_ids = _collection_ids(connection, collections)
        access.create_roles(connection)
        access.withhold_statistics(connection)
        is_new = access.grant_role(connection, user, role)
        for collection_id in collection_ids:
            is_new |= access.grant_collection(connection, user, collection_id, may_write=role == "writer")
    return is_new


def revoke(database: Database, user: str, role: Role, collections: Sequence[str] = ()) -> bool:
    """Revoke a role from a user or, if `collections` are named, only the access to these.

    A user without any role left loses the access to all collections. A former writer who is still a reader keeps the
    access to collections, but may no longer write. Returns False if there was nothing to revoke.
    """
    with database.transaction() as connection:
        if collections:
            return access.revoke_collections(connection, user, _collection_ids(connection, collections)) > 0
        was_member = access.revoke_role(connection, user, role)
        if was_member and not access.has_role(connection, user):
            access.revoke_collections(connection, user, None)
        elif was_member and role == "writer":
            access.forbid_writing(connection, user)
    return was_member


def rights_beyond(database: Database, user: str, role: Role, collections: Sequence[str] = ()) -> list[str]:
    """Return phrases about what a user may still do beyond a role, in some collections or in general."""
    with database.transaction() as connection:
        collection_ids = _collection_ids(connection, collections)
        rights = access.list_rights_beyond(connection, user, role, collection_ids)
        gaps = [] if role == "admin" else access.list_isolation_gaps(connection, user)
        return [*rights, *(reason for _, reason in gaps)]


def _collection_ids(connection: Connection, names: Sequence[str]) -> list[CollectionId]:
    return [collection_rows.get_collection(connection, name).collection_id for name in names]


def set_isolation(database: Database, *, wanted: bool) -> None:
    """Turn the isolation of collections for readers and writers on or off.

    Raises DatabaseError if band rows are on the nodes of a Citus cluster, whose tables cannot have these policies.
    """
    with database.transaction() as connection:
        if wanted and placement.is_distributed(connection):
            raise DatabaseError(
                "collections cannot be kept apart in this database: their band rows are on the nodes of a Citus "
                "cluster, which has no policies with subqueries; use a database for each tenant"
            )
        retry_conflicts(connection, access.set_isolation, connection, wanted=wanted)


def missing_roles(database: Database) -> list[str]:
    """Return nearsim's roles that the server does not have."""
    with database.transaction() as connection:
        roles = access.read_roles(connection)
    return [] if roles is None else roles.missing


def read_isolation(database: Database) -> Isolation:
    """Read the isolation of collections and its grants."""
    with database.transaction() as connection:
        roles = access.read_roles(connection)
        return Isolation(
            roles is not None and roles.isolated,
            tuple(access.list_access(connection)),
            tuple(access.list_roles_without_collections(connection)),
        )


def list_members(database: Database) -> list[RoleMember]:
    """Return the members of nearsim's roles, by name; superusers are left out, because they need no role."""
    with database.transaction() as connection:
        return access.list_members(connection)

"""Who may do what: memberships in the roles of nearsim, and collections kept apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from nearsim_db.records import CollectionId
from nearsim_db.store import access, catalog
from nearsim_db.store.access import Access, Opening, Role
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import again_after_conflicts


@dataclass(frozen=True, slots=True)
class Isolation:
    """Whether collections are kept apart, who was granted which, and what other roles may read all the same.

    `ungranted` are readers and writers who see nothing, as they were granted no collection.
    """

    isolated: bool
    access: tuple[Access, ...]
    openings: tuple[Opening, ...]
    ungranted: tuple[str, ...]


def grant(database: Database, user: str, role: Role, collections: Sequence[str] = ()) -> bool:
    """Make a user a member of a role, and let it see these collections too; False if it was a member already.

    Roles that are missing on the server are made. Raises NotFoundError for an unknown user or collection, and
    DatabaseError where the own user may not.
    """
    with database.transaction() as connection:
        chosen = [catalog.get_collection(connection, name).collection_id for name in collections]
        access.create_roles(connection)
        is_new = access.grant_role(connection, user, role)
        for collection_id in chosen:
            access.grant_collection(connection, user, collection_id, may_write=role == "writer")
    return is_new


def revoke(database: Database, user: str, role: Role, collections: Sequence[str] = ()) -> bool:
    """Take a role away from a user, and with its last role all its collections; or only these collections.

    False if there was nothing to take away.
    """
    with database.transaction() as connection:
        if collections:
            chosen: list[CollectionId] = [
                catalog.get_collection(connection, name).collection_id for name in collections
            ]
            return access.revoke_collections(connection, user, chosen) > 0
        was_member = access.revoke_role(connection, user, role)
        if was_member and not access.has_role(connection, user):
            access.revoke_collections(connection, user, None)
    return was_member


def set_isolation(database: Database, *, wanted: bool) -> None:
    """Keep collections apart for readers and writers from now on, or no longer."""
    with database.transaction() as connection:
        again_after_conflicts(connection, partial(access.set_isolation, connection, wanted=wanted))


def missing_roles(database: Database) -> list[str]:
    """The roles that the server does not have."""
    with database.transaction() as connection:
        found = access.read_roles(connection)
    return [] if found is None else found.missing


def read_isolation(database: Database) -> Isolation:
    """How collections are kept apart."""
    with database.transaction() as connection:
        roles = access.read_roles(connection)
        return Isolation(
            roles is not None and roles.isolated,
            tuple(access.list_access(connection)),
            tuple(access.list_openings(connection)),
            tuple(access.list_ungranted(connection)),
        )

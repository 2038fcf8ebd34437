"""Roles and rights: who may read, write and administrate, and which collections a role may access."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from psycopg import errors as pg
from psycopg import sql

from nearsim_db.errors import DatabaseError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run, statement

Role = Literal["reader", "writer", "admin"]

# From PostgreSQL 16 on, a membership may have several grantors, and each grant is revoked separately.
_SEPARATE_GRANTORS_SINCE = 16_00_00


@dataclass(frozen=True, slots=True)
class Roles:
    """State of the roles and rights in a database."""

    missing: list[str]  # roles of nearsim that do not exist
    isolated: bool  # whether isolation keeps collections apart
    owner: str  # owner of the table of documents
    readable: bool  # whether nearsim_reader may read the documents
    foreign_owned_relations: int  # number of tables and views whose owner is not the owner of the documents
    owns: bool  # whether the user has the owner's rights
    mine: list[str]  # roles of nearsim that the user has


@dataclass(frozen=True, slots=True)
class Access:
    """A collection that a role may read, and whether it may also write."""

    collection: str
    role: str
    may_write: bool


@dataclass(frozen=True, slots=True)
class RoleMember:
    """A user or group, and a role of nearsim that was granted to it."""

    user: str
    role: str


def role_name(role: Role) -> str:
    """Return the name that a role has on the server."""
    return f"nearsim_{role}"


def read_roles(connection: Connection) -> Roles | None:
    """Return the state of roles and rights; None if the schema does not exist."""
    return run(connection, "read_roles").first(Roles)


def has_owners_rights(connection: Connection) -> bool:
    """Whether the user has the rights of the owner of nearsim's tables."""
    roles = read_roles(connection)
    return roles is not None and roles.owns


def create_roles(connection: Connection) -> None:
    """Create the roles that are missing on the server. Raises DatabaseError if the user may not create roles."""
    run(connection, "create_roles")
    roles = read_roles(connection)
    if roles is not None and roles.missing:
        commands = "; ".join(f"CREATE ROLE {name} NOLOGIN" for name in roles.missing)
        raise DatabaseError(
            f"this user may not create roles; have a superuser run this command once, or: {commands}"
        )


def withhold_statistics(connection: Connection) -> None:
    """Prevent ANALYZE from keeping values of users' data; does nothing unless the user has the owner's rights."""
    run(connection, "withhold_statistics")


def list_shown_statistics(connection: Connection) -> list[str]:
    """Return the columns with users' data of which ANALYZE keeps values, each with the name of its table."""
    return run(connection, "list_shown_statistics").values()


def grant_role(connection: Connection, user: str, role: Role) -> bool:
    """Make a user a member of a role, and return whether the user was not a member before.

    Raises NotFoundError if the user does not exist.
    """
    is_member = run(connection, "find_user", user=user, role=role_name(role)).value()
    if is_member is None:
        raise NotFoundError(
            f"the server has no user {user!r}; create it first: CREATE ROLE {_quoted(user)} LOGIN"
        )
    if not is_member:
        _change_membership(connection, "grant_role", user, role)
    return not is_member


def revoke_role(connection: Connection, user: str, role: Role) -> bool:
    """Revoke all grants of a role to a user. Return whether the user was a member."""
    grantors = run(connection, "find_grantors", user=user, role=role_name(role)).values()
    for grantor in grantors:
        if connection.backend.info.server_version < _SEPARATE_GRANTORS_SINCE:
            _change_membership(connection, "revoke_role", user, role)
        else:
            _change_membership(connection, "revoke_role_granted_by", user, role, grantor=str(grantor))
    return bool(grantors)


def has_role(connection: Connection, user: str) -> bool:
    """Whether a user is a member of any nearsim role."""
    return bool(run(connection, "count_roles_of", user=user).value())


def _change_membership(connection: Connection, name: str, user: str, role: Role, **others: str) -> None:
    parts = {part: sql.Identifier(value) for part, value in others.items()}
    parts |= {"role": sql.Identifier(role_name(role)), "user": sql.Identifier(user)}
    try:
        run(connection, statement(name, None, **parts))
    except pg.InsufficientPrivilege as error:
        raise DatabaseError(
            f"this user may not grant or revoke {role_name(role)}; have a superuser do it, or someone who was granted "
            f"it WITH ADMIN OPTION ({error.diag.message_primary})"
        ) from error


def grant_collection(
    connection: Connection, user: str, collection_id: CollectionId, *, may_write: bool
) -> bool:
    """Let a role read a collection under isolation, and also write to it if `may_write`; return whether this is new."""
    parameters = {"user": user, "collection_id": collection_id, "may_write": may_write}
    return run(connection, "grant_collection", **parameters).count > 0


def list_rights_beyond(
    connection: Connection, user: str, role: Role, collection_ids: Sequence[CollectionId]
) -> list[str]:
    """Return a user's rights that go beyond a role: a stronger role, and collections writable through other roles."""
    parameters = {"user": user, "role": role_name(role), "collection_ids": list(collection_ids)}
    return run(connection, "list_rights_beyond", **parameters).values()


def list_isolation_gaps(connection: Connection, user: str | None = None) -> list[tuple[str, str]]:
    """Return the readers and writers who can access other collections despite isolation, each with a reason.

    `user`: check only this user
    """
    rows = run(connection, "list_isolation_gaps", user=user).rows()
    return [(str(name), str(reason)) for name, reason in rows]


def forbid_writing(connection: Connection, user: str) -> None:
    """Reduce all grants of a role on collections to reading."""
    run(connection, "forbid_writing", user=user)


def revoke_collections(
    connection: Connection, user: str, collection_ids: Sequence[CollectionId] | None
) -> int:
    """Revoke a role's access to these collections, or to all; return the number of revoked grants."""
    parameters = {"user": user, "collection_ids": None if collection_ids is None else list(collection_ids)}
    return run(connection, "revoke_collections", **parameters).count


def set_isolation(connection: Connection, *, wanted: bool) -> None:
    """Turn the isolation of collections on or off; this waits for running readers."""
    connection.execute("SELECT nearsim.set_isolation(%s)", (wanted,))


def list_access(connection: Connection) -> list[Access]:
    """Return the grants on collections."""
    return run(connection, "list_access").all(Access)


def list_members(connection: Connection) -> list[RoleMember]:
    """Return the direct members of the roles of nearsim, sorted by name."""
    return run(connection, "list_role_members").all(RoleMember)


def list_roles_without_collections(connection: Connection) -> list[str]:
    """Return readers and writers who see nothing, because isolation is on and no collection is granted to them."""
    return run(connection, "list_roles_without_collections").values()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Roles and what they may see: who is a reader, a writer or an administrator, and of which collections."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from psycopg import errors as pg
from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.errors import DatabaseError, NotFoundError
from nearsim_db.records import CollectionId
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement

Role = Literal["reader", "writer", "admin"]

_GRANTORS_SINCE = 160000  # from this version on a membership is given, and taken back, by each grantor


@dataclass(frozen=True, slots=True)
class Roles:
    """How roles and rights stand: `missing` roles, the `owner` of the documents, what `mine` the user has.

    `readable`: nearsim_reader may read the documents. `strays` is how many tables and views belong to somebody else
    than the documents do. `owns`: the user has the owner's rights.
    """

    missing: tuple[str, ...]
    isolated: bool
    owner: str
    readable: bool
    strays: int
    owns: bool
    mine: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """A collection that a role may read, and whether it may write there too."""

    collection: str
    role: str
    may_write: bool


@dataclass(frozen=True, slots=True)
class Opening:
    """A right that was granted by hand on a table that isolation hides."""

    role: str
    table: str


def role_name(role: Role) -> str:
    """The role's name on the server."""
    return f"nearsim_{role}"


def read_roles(connection: Connection) -> Roles | None:
    """How roles and rights stand; None where there is no schema."""
    row = driver(connection).execute(statement("read_roles")).fetchone()
    if row is None:
        return None
    missing, isolated, owner, readable, strays, owns, mine = cast(
        tuple[list[str], bool, str, bool, int, bool, list[str]], row
    )
    return Roles(tuple(missing), isolated, owner, readable, strays, owns, tuple(mine))


def has_owners_rights(connection: Connection) -> bool:
    """Whether the user may do everything in the schema."""
    found = read_roles(connection)
    return found is not None and found.owns


def create_roles(connection: Connection) -> None:
    """Make the roles that are missing on the server. Raises DatabaseError where the user may not."""
    driver(connection).execute(statement("create_roles"))
    found = read_roles(connection)
    if found is not None and found.missing:
        commands = "; ".join(f"CREATE ROLE {name} NOLOGIN" for name in found.missing)
        raise DatabaseError(
            f"this user may not create roles; have a superuser run this command once, or: {commands}"
        )


def grant_role(connection: Connection, user: str, role: Role) -> bool:
    """Make a user a member of a role; False if it is one. Raises NotFoundError where there is no such user."""
    parameters = {"user": user, "role": role_name(role)}
    row = driver(connection).execute(statement("find_user"), parameters).fetchone()
    if row is None:
        raise NotFoundError(
            f"the server has no user {user!r}; make it first: CREATE ROLE {_quoted(user)} LOGIN"
        )
    if row[0]:
        return False
    _change_membership(connection, "grant_role", user, role)
    return True


def revoke_role(connection: Connection, user: str, role: Role) -> bool:
    """Let a user be a member of a role no longer, whoever made it one; False if it is none."""
    inner = driver(connection)
    rows = inner.execute(statement("find_grantors"), {"user": user, "role": role_name(role)}).fetchall()
    for (grantor,) in rows:
        if inner.info.server_version < _GRANTORS_SINCE:
            _change_membership(connection, "revoke_role", user, role)
        else:
            _change_membership(connection, "revoke_role_granted_by", user, role, grantor=str(grantor))
    return bool(rows)


def has_role(connection: Connection, user: str) -> bool:
    """Whether a user is a member of any of our roles."""
    row = driver(connection).execute(statement("count_roles_of"), {"user": user}).fetchone()
    return row is not None and row[0] != 0


def _change_membership(connection: Connection, name: str, user: str, role: Role, **others: str) -> None:
    parts = {part: sql.Identifier(value) for part, value in others.items()}
    parts |= {"role": sql.Identifier(role_name(role)), "user": sql.Identifier(user)}
    command = statement(name, None, **parts)
    try:
        driver(connection).execute(command)
    except pg.InsufficientPrivilege as error:
        raise DatabaseError(
            f"this user may not grant or revoke {role_name(role)}; have a superuser do it, or someone who was granted "
            f"it WITH ADMIN OPTION ({error.diag.message_primary})"
        ) from error


def grant_collection(
    connection: Connection, user: str, collection_id: CollectionId, *, may_write: bool
) -> None:
    """Let a role see a collection where collections are kept apart, and write there if it may write at all."""
    parameters = {"user": user, "collection_id": collection_id, "may_write": may_write}
    driver(connection).execute(statement("grant_collection"), parameters)


def revoke_collections(
    connection: Connection, user: str, collection_ids: Sequence[CollectionId] | None
) -> int:
    """Take collections, or all, away from a role; returns how many it had of them."""
    parameters = {
        "user": user,
        "collection_ids": None if collection_ids is None else list(collection_ids),
    }
    return driver(connection).execute(statement("revoke_collections"), parameters).rowcount


def set_isolation(connection: Connection, *, wanted: bool) -> None:
    """Keep collections apart from now on, or no longer; waits for those who read right now."""
    driver(connection).execute("SELECT nearsim.set_isolation(%s)", (wanted,))


def list_access(connection: Connection) -> list[Access]:
    """Who was granted which lasting collections."""
    rows = driver(connection).execute(statement("list_access")).fetchall()
    return [Access(*cast(tuple[str, str, bool], row)) for row in rows]


def list_openings(connection: Connection) -> list[Opening]:
    """What other roles were granted by hand of tables that isolation hides."""
    rows = driver(connection).execute(statement("list_manual_grants")).fetchall()
    return [Opening(*cast(tuple[str, str], row)) for row in rows]


def list_ungranted(connection: Connection) -> list[str]:
    """Readers and writers who see nothing, as collections are kept apart and they were granted none."""
    return [
        str(name)
        for (name,) in driver(connection).execute(statement("list_roles_without_collections")).fetchall()
    ]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

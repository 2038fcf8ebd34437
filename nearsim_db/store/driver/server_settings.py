"""What a server says of itself."""

from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection

from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import statement


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting: `shown` as PostgreSQL writes it, `size` in bytes where it is a size.

    `by_session`: any user can set it for a session or for their own role.
    """

    name: str
    shown: str
    size: int | None
    by_session: bool


@dataclass(frozen=True, slots=True)
class MissingRight:
    """A right that the user lacks, and the statement that gives it."""

    right: str
    remedy: str


def server_version(connection: Connection) -> str:
    """The server's version, such as 18.1."""
    row = driver(connection).execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0])


def read_settings(connection: Connection, names: list[str]) -> list[ServerSetting]:
    """Some settings as they are for this session, by name."""
    rows = driver(connection).execute(statement("read_settings"), {"names": names}).fetchall()
    return [ServerSetting(*cast(tuple[str, str, int | None, bool], row)) for row in rows]


def missing_rights(connection: Connection) -> list[MissingRight]:
    """The rights that the user lacks to make the schema or, where it is there, to work in it."""
    rows = driver(connection).execute(statement("list_missing_rights")).fetchall()
    return [MissingRight(*cast(tuple[str, str], row)) for row in rows]

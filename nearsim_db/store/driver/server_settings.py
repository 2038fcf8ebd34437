"""Version and settings of the server, and the rights of the user."""

from dataclasses import dataclass

from nearsim_db.store.driver.connection import Connection
from nearsim_db.store.driver.statements import run


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting of the server."""

    name: str
    shown: str  # the value as PostgreSQL writes it
    size: int | None  # in bytes, if the value is a size
    by_session: bool  # whether any user can change it for a session or for their own role


@dataclass(frozen=True, slots=True)
class MissingRight:
    """A right that the user lacks, and the statement that grants it."""

    right: str
    remedy: str


def server_version(connection: Connection) -> str:
    """Return the server's version, such as 18.1."""
    return str(run(connection, "SHOW server_version").value())


def isolation_level(connection: Connection) -> str:
    """Return the isolation level of the transaction, such as read committed."""
    return str(run(connection, "SHOW transaction_isolation").value())


def is_standby(connection: Connection) -> bool:
    """Whether the server is a standby, which accepts no writes and does not see locks of sessions on its primary."""
    return bool(run(connection, "SHOW in_hot_standby").value() == "on")


def read_settings(connection: Connection, names: list[str]) -> list[ServerSetting]:
    """Return the settings with these names and their values in this session, sorted by name."""
    return run(connection, "read_settings", names=names).all(ServerSetting)


def missing_rights(connection: Connection) -> list[MissingRight]:
    """Return the rights that the user lacks for creating the schema or, if it exists, for working in it."""
    return run(connection, "list_missing_rights").all(MissingRight)

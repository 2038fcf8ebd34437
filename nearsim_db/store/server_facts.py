"""What a server says of itself."""

from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection

from nearsim_db.store.engine import driver
from nearsim_db.store.statements import statement


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting: `shown` as PostgreSQL writes it, `size` in bytes where it is a size."""

    name: str
    shown: str
    size: int | None


def server_version(connection: Connection) -> str:
    """The server's version, such as 18.1."""
    row = driver(connection).execute("SHOW server_version").fetchone()
    assert row is not None
    return str(row[0])


def read_settings(connection: Connection, names: list[str]) -> list[ServerSetting]:
    """Some settings as they are for this session, by name."""
    rows = driver(connection).execute(statement("read_settings"), {"names": names}).fetchall()
    return [ServerSetting(*cast(tuple[str, str, int | None], row)) for row in rows]

"""NOTIFY as a hint to idle workers. Notifications carry no data, and polling is the guarantee."""

from contextlib import suppress

import psycopg

from nearsim_db.store.driver.connection import Connection, autocommitting
from nearsim_db.store.driver.engine import Engine


def listen(connection: Connection) -> None:
    """Subscribe to notifications; the connection must be in autocommit."""
    autocommitting(connection).execute("LISTEN nearsim")


def await_notice(connection: Connection, seconds: float) -> bool:
    """Wait up to some seconds for a notification; return whether one arrived."""
    return any(True for _ in autocommitting(connection).notifies(timeout=seconds, stop_after=1))


def send(engine: Engine) -> None:
    """Wake idle workers after a commit; database errors are ignored."""
    with suppress(psycopg.Error), engine.connect() as connection:
        connection.execute("NOTIFY nearsim")
        connection.commit()

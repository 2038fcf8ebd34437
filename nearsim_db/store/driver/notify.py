"""Notices: a hint to idle workers that there is something to do. They carry nothing, and polling is the guarantee."""

from contextlib import suppress

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from nearsim_db.store.driver.engine import autocommitting, driver


def listen(connection: Connection) -> None:
    """Hear of notices from now on; the connection is one in autocommit."""
    autocommitting(connection).execute("LISTEN nearsim")


def await_notice(connection: Connection, seconds: float) -> bool:
    """Wait for a notice, so long at most; whether one came."""
    return any(True for _ in autocommitting(connection).notifies(timeout=seconds, stop_after=1))


def send(engine: Engine) -> None:
    """Wake idle workers. For after a commit: it never fails, whatever the database says."""
    with suppress(DBAPIError, psycopg.Error), engine.connect() as connection:
        driver(connection).execute("NOTIFY nearsim")
        connection.commit()

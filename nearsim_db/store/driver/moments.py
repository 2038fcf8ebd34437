"""Times of the database that Python's datetime cannot hold: infinite, BC, or after the year 9999."""

from datetime import datetime

import psycopg
from psycopg.abc import Buffer
from psycopg.types.datetime import TimestamptzLoader


class _MomentLoader(TimestamptzLoader):
    """Loads a time as datetime, or as PostgreSQL writes it: infinity, or 0044-03-15 00:00:00+00 BC."""

    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()  # type: ignore[return-value]


def load_moments(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection read every timestamptz, in text format."""
    connection.adapters.register_loader("timestamptz", _MomentLoader)

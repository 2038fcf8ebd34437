"""Times of the database that Python's datetime cannot hold: infinite, BC, or after the year 9999."""

from datetime import date, datetime

import psycopg
from psycopg.abc import Buffer
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader


class _MomentLoader(TimestamptzLoader):
    """Loads a time as datetime, or as PostgreSQL writes it: infinity, or 0044-03-15 00:00:00+00 BC."""

    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()  # type: ignore[return-value]


class _DateLoader(DateLoader):
    """Loads a date as date, or as PostgreSQL writes it."""

    def load(self, data: Buffer) -> date:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()  # type: ignore[return-value]


class _LocalMomentLoader(TimestampLoader):
    """Loads a time without a zone as datetime, or as PostgreSQL writes it."""

    def load(self, data: Buffer) -> datetime:
        try:
            return super().load(data)
        except psycopg.DataError:
            return bytes(data).decode()  # type: ignore[return-value]


def load_moments(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection read every timestamptz, in text format."""
    connection.adapters.register_loader("timestamptz", _MomentLoader)


def load_dates(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection read every date and timestamp, in text format."""
    connection.adapters.register_loader("date", _DateLoader)
    connection.adapters.register_loader("timestamp", _LocalMomentLoader)

"""Values of the database that Python types cannot hold: JSON numbers of any size, times that are infinite or BC."""

import json
from datetime import date, datetime
from decimal import Decimal

import psycopg
from psycopg.abc import Buffer
from psycopg.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader

_INTEGER_DIGITS = 4_000  # Python refuses to parse or print integers of 4,300 digits


def parse_json(text: str | bytes) -> object:
    """Parse JSON; a number that neither int nor float represents exactly becomes a Decimal."""
    return json.loads(text, parse_int=_integer, parse_float=_number)


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _INTEGER_DIGITS else Decimal(digits)


def _number(digits: str) -> float | Decimal:
    nearest, exact = float(digits), Decimal(digits)
    return nearest if Decimal(repr(nearest)) == exact else exact


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

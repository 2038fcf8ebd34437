"""Values of PostgreSQL that Python's types cannot hold."""

import json
from decimal import Decimal

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
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


def _or_text(loader: type[Loader]) -> type[Loader]:
    """Return a loader that loads what Python's type cannot hold as PostgreSQL writes it.

    Such as infinity, or 0044-03-15 00:00:00+00 BC.
    """

    class OrText(loader):  # type: ignore[misc, valid-type]
        def load(self, data: Buffer) -> object:
            try:
                return super().load(data)
            except psycopg.DataError:
                return bytes(data).decode()

    return OrText


_MomentLoader = _or_text(TimestamptzLoader)


def load_moments(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection read every timestamptz, in text format."""
    connection.adapters.register_loader("timestamptz", _MomentLoader)


def load_dates(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
    """Make a connection read every date and timestamp, in text format."""
    connection.adapters.register_loader("date", _or_text(DateLoader))
    connection.adapters.register_loader("timestamp", _or_text(TimestampLoader))

"""JSON of the database as Python values that equal it, however large or precise its numbers."""

import json
from decimal import Decimal

_INTEGER_DIGITS = 4_000  # Python refuses to parse or print integers of 4,300 digits


def parse_json(text: str | bytes) -> object:
    """Parse JSON; a number that neither int nor float represents exactly becomes a Decimal."""
    return json.loads(text, parse_int=_integer, parse_float=_number)


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _INTEGER_DIGITS else Decimal(digits)


def _number(digits: str) -> float | Decimal:
    nearest, exact = float(digits), Decimal(digits)
    return nearest if Decimal(repr(nearest)) == exact else exact

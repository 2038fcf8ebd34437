"""JSON values whose numbers are of any size."""

from decimal import Decimal

import orjson

_SMALLEST_INTEGER = -(2**63)
_LARGEST_INTEGER = 2**64 - 1


def encodable(value: object) -> object:
    """Return a value of which orjson writes numbers of any size in full."""
    match value:
        case bool():
            return value
        case int() if not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
            return orjson.Fragment(str(value))
        case Decimal():
            return orjson.Fragment(format(value, "f"))
        case dict():
            return {name: encodable(one) for name, one in value.items()}
        case list():
            return [encodable(one) for one in value]
        case _:
            return value


def json_text(value: object) -> str:
    """Serialise a JSON value as text without spaces."""
    return orjson.dumps(encodable(value)).decode()

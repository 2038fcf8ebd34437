"""Names and short representations of values, for the reasons of rejects; JSON numbers of any size."""

from decimal import Decimal
from hashlib import blake2b

import orjson

_SHOWN_CHARACTERS = 60
_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    str: "a string",
    type(None): "null",
}


def kind(value: object) -> str:
    """Return the JSON type name of a value for messages, such as 'a string'."""
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """Format a value for a message: short, on one line, printable."""
    try:
        written = ascii(value)
    except Exception:  # integers of many digits, lists of many levels, a faulty __repr__
        written = f"<{type(value).__name__}>"
    return written if len(written) <= _SHOWN_CHARACTERS else written[:_SHOWN_CHARACTERS] + "..."


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


def value_digest(value: object, size: int) -> bytes:
    """Return a digest of a JSON value, of `size` bytes; zeros for none."""
    return bytes(size) if value is None else blake2b(json_text(value).encode(), digest_size=size).digest()

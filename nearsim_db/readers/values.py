"""Values of records: found by the name of a field, described in messages, and written as JSON."""

import re
from collections.abc import Mapping
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING

import orjson

from nearsim_db.records import ReadDocument

if TYPE_CHECKING:
    from nearsim_db.readers.contract import Fields

FILE = "file"
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
    """Return the words for the JSON type of a value in messages, such as 'a string'."""
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """Return a short, printable form of a value on one line, for messages."""
    try:
        written = ascii(value)
    except Exception:  # integers of many digits, lists of many levels, a faulty __repr__
        written = f"<{type(value).__name__}>"
    return written if len(written) <= _SHOWN_CHARACTERS else written[:_SHOWN_CHARACTERS] + "..."


# orjson writes integers in this range itself.
_SMALLEST_INTEGER = -(2**63)
_LARGEST_INTEGER = 2**64 - 1


def encodable(value: object) -> object:
    """Convert a value so that orjson writes all digits of its numbers, whatever their size."""
    match value:
        case bool():
            return value
        case int() if not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
            return orjson.Fragment(str(value))
        case Decimal():
            return orjson.Fragment(format(value, "f"))
        case dict():
            return {name: encodable(item) for name, item in value.items()}
        case list():
            return [encodable(item) for item in value]
        case _:
            return value


def json_text(value: object) -> str:
    """Serialise a JSON value as text without spaces."""
    return orjson.dumps(encodable(value)).decode()


def value_digest(value: object, size: int) -> bytes:
    """Return a digest of a JSON value, of `size` bytes; for None, return zeros."""
    return bytes(size) if value is None else blake2b(json_text(value).encode(), digest_size=size).digest()


_PLACE = re.compile(r"\[(-?[0-9]+)\]$")


def is_path(name: str) -> bool:
    """Whether the name of a field has the form of a path, such as 'meta.id' or 'messages[0]'."""
    return "." in name or _PLACE.search(name) is not None


def first_key(path: str) -> str:
    """Return the key of a record at which a path begins."""
    return path.partition(".")[0].partition("[")[0]


def value_at(record: Mapping[str, object], path: str) -> object:
    """Return the value at a path such as 'meta.id', None if there is none.

    A number is a position in an array, counted from its end if negative, as in 'messages.0.text' or
    'messages[-1].text'. A name after an array means the values of all its objects; texts are joined by line ends.
    """
    return _value_at(record, _parts(path))


def _value_at(value: object, parts: list[str]) -> object:
    if not parts:
        return value

    match value:
        case Mapping():
            return _value_at(value.get(parts[0]), parts[1:])
        case list() if re.fullmatch("-?[0-9]+", parts[0]):
            place = int(parts[0])
            return _value_at(value[place], parts[1:]) if -len(value) <= place < len(value) else None
        case list():
            inner = [inner_value for item in value if (inner_value := _value_at(item, parts)) is not None]
            return "\n".join(map(str, inner)) if all(isinstance(item, str) for item in inner) else inner
        case _:
            return None


def _parts(path: str) -> list[str]:
    """Split a path at its dots, and separate positions in brackets from the names before them."""
    parts: list[str] = []
    for name in path.split("."):
        places: list[str] = []
        while place := _PLACE.search(name):
            places.insert(0, place[1])
            name = name[: place.start()]
        parts += [name, *places] if name else places
    return parts


def column_of(record: ReadDocument, name: str, fields: "Fields") -> object:
    """Return the value of a field or column of a record, or the value at a path such as 'meta.lang'.

    The name 'file' means the file of the record. Returns None if there is no value.
    """
    if name == FILE:
        return record.file

    document = record.document
    value: object = None
    if name in (fields.source, "source"):
        value = document.source
    elif name == fields.id:
        value = document.external_id
    elif name == fields.title:
        value = document.title
    elif name == fields.body or (fields.body is None and name in ("text", "body")):
        value = document.body
    elif name == fields.url:
        value = document.url
    elif name == fields.published_at:
        value = None if document.published_at is None else document.published_at.isoformat()

    if value is None and name in document.attributes:
        value = document.attributes[name]
    # A key whose name equals the path takes precedence.
    return value_at(document.attributes, name) if value is None and is_path(name) else value


def field_of(name: str, source: str | None, attributes: Mapping[str, object] | None) -> object:
    """Return the source of a document, an attribute, or the value at a path in the attributes; None if it has none."""
    if name == "source":
        return source
    value = (attributes or {}).get(name)
    return value_at(attributes or {}, name) if value is None and is_path(name) else value

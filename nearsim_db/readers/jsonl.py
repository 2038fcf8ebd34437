"""JSON lines: files with one JSON object per line."""

import json
import re
import sys
from collections.abc import Iterator
from json.scanner import make_scanner
from typing import Any

import orjson

from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject

# {"":1} is the shortest object with an id. Shorter lines are rejected without parsing, which takes a few microseconds
# for a line that is not JSON.
_SHORTEST_BYTES = 6
_NOT_AN_OBJECT = "not a JSON object"
_BLANKS = " \t\n\r"
# A line that is an object ends with one of these.
_OBJECT_ENDS = (b"}", b"\r", b" ", b"\t")
# For shorter lines that are not JSON, trying orjson first would take longer.
_SHORT_BYTES = 32
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_scan = make_scanner(json.JSONDecoder())  # type: ignore[arg-type]


def read_jsonl(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read JSON lines. Blank lines are skipped; if a key occurs twice in an object, its last value counts."""
    name = file.name
    maker = DocumentMaker(name, fields)

    for first, lines in file.blocks():
        for number, line in enumerate(lines, first):
            if not line:
                if line is None:
                    yield Reject(name, number, file.too_long)
            elif len(line) < _SHORTEST_BYTES:
                if not line.isspace():
                    yield Reject(name, number, "not a JSON object with an id")
            else:
                record, is_encodable = parse_line(line, file, fields.vector)
                if isinstance(record, dict):
                    yield maker.make(record, number, is_encodable)
                elif not line.isspace():
                    yield Reject(name, number, record)


def parse_line(line: bytes, file: InputFile, vector: str) -> tuple[dict[str, Any] | str, bool]:
    """Parse a line with orjson, or with the standard parser if necessary.

    Returns the object, or the reason if the line is not an object, and whether certainly no string contains a lone
    surrogate. orjson is faster; the standard parser accepts lone surrogates, undecodable bytes and integers of any
    size.
    """
    if len(line) > 2 * file.max_values and _count_values(line, file.max_values) > file.max_values:
        return file.too_many, False
    if not line.endswith(_OBJECT_ENDS) or (len(line) < _SHORT_BYTES and not line.isascii()):
        return _parse_leniently(line), False
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_leniently(line), False
    if not isinstance(record, dict):
        return _NOT_AN_OBJECT, False
    if _may_be_rounded(record, vector):
        return _parse_leniently(line), False
    return record, True


def _count_values(line: bytes, max_values: int) -> int:
    """Return the approximate number of values in a line; it may be too high if it is at most `max_values`."""
    count = _count_marks(line)
    return count if count <= max_values else _count_marks(_STRING.sub(b"", line))


def _count_marks(line: bytes) -> int:
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def too_many_digits() -> str:
    """Return the reason for rejecting an integer that Python refuses to convert, because that takes quadratic time."""
    return f"an integer has more than {sys.get_int_max_str_digits():,} digits"


def _parse_leniently(line: bytes) -> dict[str, Any] | str:
    text = line.decode("utf-8", "surrogateescape")
    if text.startswith("\ufeff"):
        # json.loads() has the same message.
        return _not_json("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0)

    try:
        record, end = _scan(text, len(text) - len(text.lstrip(_BLANKS)))
    except StopIteration as error:
        return _not_json("Expecting value", error.value)
    except json.JSONDecodeError as error:
        return _not_json(fault(error), error.pos)
    except ValueError:
        return too_many_digits()
    except RecursionError:
        return "the JSON is nested too deeply"

    if extra := text[end:].lstrip(_BLANKS):
        return _not_json("Extra data", len(text) - len(extra))
    return record if isinstance(record, dict) else _NOT_AN_OBJECT


def _not_json(message: str, position: int) -> str:
    return f"not JSON: {message} at character {position + 1:,}"


def fault(error: json.JSONDecodeError) -> str:
    """Return an error's message without the words before a position, as in "Unterminated string starting at"."""
    return error.msg.removesuffix(" at").removesuffix(" starting")


def _may_be_rounded(record: dict[str, object], vector: str) -> bool:
    """Whether a float outside the vector may have been an integer beyond 64 bits, which orjson rounds."""
    if {str}.issuperset(map(type, record.values())):
        return False
    pending = [value for name, value in record.items() if name != vector]
    while pending:
        value = pending.pop()
        if isinstance(value, float):
            if abs(value) >= 2.0**63:
                return True
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return False

"""JSON lines: one object per line."""

import json
from collections.abc import Iterator
from typing import Any

import orjson

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.readers.input_file import InputFile
from nearsim_db.records import ReadDocument, Reject

# {"":1} is the shortest object with an id. Shorter lines are rejected without parsing, which takes a few microseconds
# for a line that is not JSON.
_SHORTEST_BYTES = 6


def read_jsonl(file: InputFile, fields: Fields) -> Iterator[ReadDocument | Reject]:
    """Read JSON lines. Blank lines are skipped; of duplicate keys in one object the last is kept."""
    name = file.name
    maker = DocumentMaker(name, fields)
    for number, line in file.lines():
        if line is None:
            yield Reject(name, number, file.too_long)
        elif not line or line.isspace():
            continue
        elif len(line) < _SHORTEST_BYTES:
            yield Reject(name, number, "not a JSON object with an id")
        else:
            try:
                record = parse_line(line, fields.vector)
            except InputError as error:
                yield Reject(name, number, str(error))
            else:
                yield maker.make(record, number)


def parse_line(line: bytes, vector: str) -> dict[str, Any]:
    """Parse a line with orjson, or with the standard parser where it is needed.

    orjson is faster; the standard parser accepts lone surrogates, undecodable bytes and integers of any size.
    """
    try:
        record = orjson.loads(line)
        if _may_be_rounded(record, vector):
            record = _parse_leniently(line)
    except orjson.JSONDecodeError:
        record = _parse_leniently(line)
    if not isinstance(record, dict):
        raise InputError("not a JSON object")
    return record


def _parse_leniently(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"))
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at character {error.pos + 1:,}") from error
    except ValueError as error:
        raise InputError(f"cannot parse this JSON: {error}") from error
    except RecursionError as error:
        raise InputError("the JSON is nested too deeply") from error


def _may_be_rounded(record: object, vector: str) -> bool:
    """Whether a float outside the vector may be an integer beyond 64 bits, which orjson rounds."""
    pending = [record]
    if isinstance(record, dict):
        pending = [value for name, value in record.items() if type(value) is not str and name != vector]
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

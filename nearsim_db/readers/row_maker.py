"""From a row of CSV or TSV to a document or a reject."""

import json
from contextlib import suppress
from functools import cache

import orjson

from nearsim_db.errors import InputError
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import ACCEPTED_ID_CHARACTERS, DocumentMaker, instant_or_rest
from nearsim_db.readers.vectors import checked_vector
from nearsim_db.records import Document, ReadDocument, Reject
from nearsim_db.similarity.text.clean import clean

_SHORT_CHARACTERS = 16  # hold no number that orjson would round
_JSON_STARTS = frozenset('[{"-0123456789tfnNI \t\n\r')  # NaN and Infinity included
_ABSENT = -1  # position of an empty cell after the last column


class RowMaker:
    """Makes documents of rows below a header: as `DocumentMaker` does of records, which takes a few times as long."""

    def __init__(self, header: list[str], file: str, fields: Fields, maker: DocumentMaker) -> None:
        self._header, self._file, self._fields, self._maker = header, file, fields, maker
        bodies = [name for name in maker.body_names if name in header]
        others = (fields.id, fields.title, fields.source, fields.url, fields.published_at, *bodies)
        is_shared = fields.vector in others and fields.vector in header
        self._is_direct = (
            not is_shared
            and len(bodies) == (1 if fields.body is not None else min(1, len(bodies)))
            and not any(clean(name)[1] for name in header)
        )

        self._has_text = bool(bodies) or fields.title in header  # if not, it has vectors
        places = {name: at for at, name in enumerate(header)}

        def place(name: str) -> int:
            return places.get(name, _ABSENT)

        self._id, self._title = place(fields.id), place(fields.title)
        self._body = place(bodies[0]) if bodies else _ABSENT
        self._source, self._url = place(fields.source), place(fields.url)
        self._published_at, self._vector = place(fields.published_at), place(fields.vector)
        self._rest = [(name, place(name)) for name in header if name not in maker.named]
        self._empty_id = f"'{fields.id}' is empty"
        self._wrong_length = cache(
            lambda columns: f"{columns:,} columns where the header has {len(header):,}"
        )

    def __call__(self, row: list[str], line: int) -> ReadDocument | Reject:
        """Make a document of a row; an empty cell of a column named in the fields is null."""
        if len(row) != len(self._header):
            return Reject(self._file, line, self._wrong_length(len(row)))
        external_id = row[self._id]
        if not external_id:
            return Reject(self._file, line, self._empty_id)
        is_empty = not self._has_text and row[self._vector].strip() in ("", "null")
        is_long = len(external_id) > ACCEPTED_ID_CHARACTERS
        if not self._is_direct or is_empty or is_long or clean("".join(row))[1]:
            return self._maker.make(self._record(row), line)
        row.append("")
        attributes: dict[str, object] = {name: row[at] for name, at in self._rest} if self._rest else {}
        vector = published_at = unreadable = None
        if row[self._vector] or row[self._published_at]:
            try:
                vector = checked_vector(_array(row[self._vector]), f"'{self._fields.vector}'")
            except InputError as error:
                return Reject(self._file, line, str(error), external_id)
            if row[self._published_at]:
                published_at, unreadable = instant_or_rest(
                    row[self._published_at], self._fields.published_at, attributes
                )
        document = Document(
            external_id,
            row[self._title] or None,
            row[self._body] or None,
            row[self._source] or None,
            row[self._url] or None,
            published_at,
            attributes,
            vector,
        )
        return ReadDocument(document, self._file, line, 0, unreadable)

    def _record(self, row: list[str]) -> dict[str, object]:
        record: dict[str, object] = {
            column: None if not cell and column in self._maker.named else cell
            for column, cell in zip(self._header, row, strict=True)
        }
        if isinstance(cell := record.get(self._fields.vector), str):
            record[self._fields.vector] = _array(cell)
        return record


def _array(cell: str) -> object:
    """Parse a cell as JSON, an empty one as null; return one that is not JSON unchanged, to be rejected as a vector."""
    if not cell:
        return None
    if cell[0] not in _JSON_STARTS or (cell.startswith("[") and not cell.rstrip().endswith("]")):
        return cell
    if len(cell) <= _SHORT_CHARACTERS:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(cell)
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell

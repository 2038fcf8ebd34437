"""Read documents from a query on any PostgreSQL database, in the way that an ingest reads files."""

import json
from collections.abc import Iterator
from typing import Any

from nearsim_db.errors import InputError
from nearsim_db.readers.arrow_values import as_json
from nearsim_db.readers.contract import Fields
from nearsim_db.readers.document_maker import DocumentMaker
from nearsim_db.records import ReadDocument, Reject
from nearsim_db.store.attached.foreign_query import open_query

_NAME = "the query"
_JSON_TYPES = (str, int, float, bool, type(None), dict, list)


class QuerySource:
    """The rows of a query as documents. Columns are mapped to fields like the columns of a CSV file.

    The query runs in a read-only transaction, and rows are fetched in batches. Dates, decimals and UUIDs become
    strings. A vector may be an array of numbers or a JSON string, which is what psycopg returns for pgvector's type.
    The line of a document is the number of its row, from 1. Raises InputError if the database cannot be read or a
    required column is missing.
    """

    warnings: tuple[str, ...] = ()

    def __init__(self, url: str, query: str, fields: Fields) -> None:
        self._url = url
        self._query = query
        self._fields = fields

    def __iter__(self) -> Iterator[ReadDocument | Reject]:
        maker = DocumentMaker(_NAME, self._fields)
        with open_query(self._url, self._query) as (names, rows):
            if len(set(names)) < len(names):
                raise InputError(
                    f"duplicate column names in {_NAME}; rename them with AS ({', '.join(names)})"
                )

            maker.check_columns(names)
            for number, row in enumerate(rows, 1):
                record = {
                    name: _parsed(value) if name == self._fields.vector else _value(value)
                    for name, value in zip(names, row, strict=True)
                }
                yield maker.make(record, number)


def _value(value: Any) -> object:
    converted = as_json(value)
    return converted if isinstance(converted, _JSON_TYPES) else str(converted)


def _parsed(value: Any) -> object:
    """Return the numbers of a vector that is written as JSON; return anything else unchanged, to be rejected later."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value

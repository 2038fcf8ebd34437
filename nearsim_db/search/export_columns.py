"""The columns of an export: those of the documents, keys of their attributes, and their cluster."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nearsim_db.errors import InputError
from nearsim_db.store.exports import ExportedRow

_OF_DOCUMENT: dict[str, Callable[[ExportedRow], object]] = {
    "id": lambda row: row.external_id,
    "title": lambda row: row.title,
    "text": lambda row: row.body,
    "source": lambda row: row.source,
    "url": lambda row: row.url,
    "published_at": lambda row: row.published_at,
    "vector": lambda row: row.vector,
    "attributes": lambda row: row.attributes,
    "doc_id": lambda row: row.doc_id,
    "revision": lambda row: row.revision,
    "created_at": lambda row: row.created_at,
    "updated_at": lambda row: row.updated_at,
    "cluster": lambda row: row.cluster,
    "survivor": lambda row: row.survivor,
}
_BEFORE_ATTRIBUTES = ("id", "title", "text", "source", "url", "published_at")
_AFTER_ATTRIBUTES = ("cluster", "survivor")
_PREFIX = "attributes."
_ON_REQUEST = ("text", "vector", "attributes")
_SHOWN_KEYS = 20
MOST_COLUMNS = 1_000


@dataclass(frozen=True, slots=True)
class ExportColumns:
    """Columns in order; without `names`, all columns but `vector`, and the attributes that each document has."""

    names: tuple[str, ...] | None = None

    @property
    def needed(self) -> list[str]:
        """The columns to read that are read only on request."""
        if self.names is None:
            return ["text", "attributes"]
        needed = [name for name in _ON_REQUEST if name in self.names]
        return needed if all(name in _OF_DOCUMENT for name in self.names) else [*needed, "attributes"]

    def record(self, row: ExportedRow) -> dict[str, object]:
        """Return a document by column."""
        if self.names is not None:
            return {name: _value(row, name) for name in self.names}
        return {
            **{name: _OF_DOCUMENT[name](row) for name in _BEFORE_ATTRIBUTES},
            **{_column_of(key): value for key, value in (row.attributes or {}).items()},
            **{name: _OF_DOCUMENT[name](row) for name in _AFTER_ATTRIBUTES},
        }

    def with_attributes(self, kinds: Mapping[str, Sequence[str]]) -> "ExportColumns":
        """Return the same with every name listed, given all keys of the attributes.

        Raises InputError for a name that is neither a column nor a key, and for too many columns.
        """
        if self.names is None:
            if len(kinds) > MOST_COLUMNS:
                raise InputError(
                    f"the attributes have {len(kinds):,} keys, more than {MOST_COLUMNS:,} columns; name those to write "
                    "with --columns, such as --columns id,text,attributes, or write JSON lines"
                )
            return ExportColumns((*_BEFORE_ATTRIBUTES, *map(_column_of, kinds), *_AFTER_ATTRIBUTES))
        for name in self.names:
            if name not in _OF_DOCUMENT and _key_of(name) not in kinds:
                raise InputError(f"no column {name!r} in the collection (columns: {_listed(kinds)})")
        return self

    def kinds(self, of_attributes: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return the kinds of values of each attribute that is a column."""
        assert self.names is not None
        return {name: list(of_attributes[_key_of(name)]) for name in self.names if name not in _OF_DOCUMENT}

    @property
    def have_attributes(self) -> bool:
        """Whether a key of attributes is named."""
        return self.names is not None and not all(name in _OF_DOCUMENT for name in self.names)


def parse_columns(given: Iterable[str]) -> ExportColumns:
    """Parse names separated by commas, where one that has a comma is in double quotes.

    Raises InputError for an empty or repeated name.
    """
    names = tuple(name.strip() for row in csv.reader(given) for name in row)
    if not names:
        return ExportColumns()
    for name in names:
        if not name:
            raise InputError("--columns has an empty name; separate names by single commas")
        if names.count(name) > 1:
            raise InputError(f"--columns names {name!r} twice; leave one out")
    return ExportColumns(names)


def _value(row: ExportedRow, name: str) -> Any:
    of_document = _OF_DOCUMENT.get(name)
    return (row.attributes or {}).get(_key_of(name)) if of_document is None else of_document(row)


def _column_of(key: str) -> str:
    return f"{_PREFIX}{key}" if key in _OF_DOCUMENT or key.startswith(_PREFIX) else key


def _key_of(name: str) -> str:
    return name.removeprefix(_PREFIX)


def _listed(kinds: Mapping[str, Sequence[str]]) -> str:
    keys = [_column_of(key) for key in kinds]
    more = f" and {len(keys) - _SHOWN_KEYS:,} more" if len(keys) > _SHOWN_KEYS else ""
    return ", ".join([*_OF_DOCUMENT, *keys[:_SHOWN_KEYS]]) + more

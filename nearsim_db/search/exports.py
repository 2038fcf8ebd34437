"""Export documents of a collection to a file with their clusters: all documents, the survivors, or the duplicates.

`ExportColumns` decides which columns are read and written; `write_export` writes the file.
"""

import csv
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from nearsim_db.errors import EmptyIndexError, InputError
from nearsim_db.messages import count_of
from nearsim_db.readers.writers.file_format import Encoding, FileFormat
from nearsim_db.readers.writers.opened import open_writer
from nearsim_db.readers.writers.parquet import parquet_schema
from nearsim_db.records import Keep, Progress, mark_names, silent
from nearsim_db.search import live_generation
from nearsim_db.search.live_generation import retry_if_replaced
from nearsim_db.similarity.recipe import keep_policy
from nearsim_db.store.database import Database
from nearsim_db.store.documents import exports
from nearsim_db.store.documents.exports import ExportedRow
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.generations.generation_rows import Generation

_COLUMNS = (
    *("id", "title", "text", "source", "url", "published_at", "vector", "attributes"),
    *("doc_id", "revision", "created_at", "updated_at", "cluster", "survivor"),
)
# The columns whose name differs from their field in ExportedRow.
_FIELD_BY_COLUMN = {"id": "external_id", "text": "body"}
_OF_DOCUMENT = {name: attrgetter(_FIELD_BY_COLUMN.get(name, name)) for name in _COLUMNS}
_BEFORE_ATTRIBUTES = ("id", "title", "text", "source", "url", "published_at")
_AFTER_ATTRIBUTES = ("cluster", "survivor")
_KINDS_OF_MARKS = (["string"], ["integer"], ["integer"], ["number"])
_PREFIX = "attributes."
_ON_REQUEST = ("text", "vector", "attributes")
_MAX_KEYS_SHOWN = 20
MAX_COLUMNS = 1_000
_DOCUMENTS_PER_REPORT = 1_000
_WITHOUT_HEADER = (FileFormat.JSONL, FileFormat.JSON)
_DUPLICATES: dict[Keep, bool | None] = {"survivors": False, "duplicates": True, "all": None}


@dataclass(frozen=True, slots=True)
class ExportColumns:
    """The columns of an export, in order.

    If `names` is None, each record has the default columns, the document's text and all its attributes.
    """

    names: tuple[str, ...] | None = None
    marks: tuple[str, ...] = ()  # names of the columns that mark duplicates, after all others

    @property
    def of_attributes(self) -> list[str]:
        """The names of columns that are keys of attributes."""
        return [name for name in self.names or () if name not in _OF_DOCUMENT]

    @property
    def needed(self) -> list[str]:
        """The columns that are read only on request, and that this export needs."""
        if self.names is None:
            return ["text", "attributes"]
        requested = {*self.names, "attributes"} if self.of_attributes else self.names
        return [name for name in _ON_REQUEST if name in requested]

    def record(self, row: ExportedRow) -> dict[str, object]:
        """Return the values of a document by column."""
        marks = dict(zip(self.marks, _marks(row), strict=True)) if self.marks else {}
        if self.names is not None:
            return {**{name: _value(row, name) for name in self.names}, **marks}

        attributes = {_column_of(key): value for key, value in (row.attributes or {}).items()}
        _refuse_named_like_marks(attributes, self.marks)
        return {
            **{name: _OF_DOCUMENT[name](row) for name in _BEFORE_ATTRIBUTES},
            **attributes,
            **(marks or {name: _OF_DOCUMENT[name](row) for name in _AFTER_ATTRIBUTES}),
        }

    def with_attributes(self, kinds: Mapping[str, Sequence[str]]) -> "ExportColumns":
        """Return these columns as a list of names; `kinds` has all keys of the collection's attributes.

        Raises InputError for a name that is neither a column nor a key, and if there are too many columns.
        """
        if self.names is None:
            if len(kinds) > MAX_COLUMNS:
                raise InputError(
                    f"the attributes have {len(kinds):,} keys, more than {MAX_COLUMNS:,} columns; name those to write "
                    "with --columns, such as --columns id,text,attributes, or write JSON lines"
                )
            columns = [_column_of(key) for key in kinds]
            _refuse_named_like_marks(columns, self.marks)
            after = () if self.marks else _AFTER_ATTRIBUTES
            return ExportColumns((*_BEFORE_ATTRIBUTES, *columns, *after), self.marks)

        for name in self.of_attributes:
            if _key_of(name) not in kinds:
                raise InputError(f"no column {name!r} in the collection (columns: {_listed(kinds)})")
        return self


def parse_columns(columns: Iterable[str], mark_prefix: str | None = None) -> ExportColumns:
    """Parse lists of names that are separated by commas; a name that contains a comma is in double quotes.

    With a `mark_prefix`, which may be empty, the columns that mark duplicates follow; their names begin with it.
    Raises InputError for an empty or repeated name.
    """
    names = tuple(name.strip() for row in csv.reader(columns) for name in row)
    marks = () if mark_prefix is None else mark_names(mark_prefix)
    _refuse_named_like_marks(names, marks)
    if not names:
        return ExportColumns(marks=marks)

    for name in names:
        if not name:
            raise InputError("--columns has an empty name; separate names by single commas")
        if names.count(name) > 1:
            raise InputError(f"--columns names {name!r} twice; leave one out")
    return ExportColumns(names, marks)


def _refuse_named_like_marks(names: Iterable[str], marks: Sequence[str]) -> None:
    """Raise InputError if a column has the name of a mark."""
    for name in names:
        if name in marks:
            raise InputError(
                f"there is a column {name!r} already; choose other names for the marks, such as --mark-prefix nearsim_"
            )


def _marks(row: ExportedRow) -> tuple[object, ...]:
    return row.duplicate_of, row.cluster, row.cluster_size, row.similarity


def _value(row: ExportedRow, name: str) -> Any:
    of_document = _OF_DOCUMENT.get(name)
    return (row.attributes or {}).get(_key_of(name)) if of_document is None else of_document(row)


def _column_of(key: str) -> str:
    return f"{_PREFIX}{key}" if key in _OF_DOCUMENT or key.startswith(_PREFIX) else key


def _key_of(name: str) -> str:
    return name.removeprefix(_PREFIX)


def _listed(kinds: Mapping[str, Sequence[str]]) -> str:
    keys = [_column_of(key) for key in kinds]
    omitted = f" and {len(keys) - _MAX_KEYS_SHOWN:,} more" if len(keys) > _MAX_KEYS_SHOWN else ""
    return ", ".join([*_OF_DOCUMENT, *keys[:_MAX_KEYS_SHOWN]]) + omitted


@dataclass(frozen=True, slots=True)
class _Export:
    """The documents to write, and the columns of the file."""

    columns: ExportColumns
    rows: Generator[ExportedRow, None, None]  # the documents after `first`
    first: Sequence[
        ExportedRow
    ] = ()  # the first document, which was read to keep the tables from being dropped
    total: int = 0  # the approximate number of documents
    kinds: dict[str, list[str]] = field(default_factory=dict)  # kinds of values, by column of an attribute
    warnings: tuple[str, ...] = ()


def _open(
    connection: Connection, generation: Generation, keep: Keep, columns: ExportColumns, *, with_header: bool
) -> _Export:
    """Begin to read documents in the order of their doc_ids. Raises InputError for an unknown column.

    `with_header` says that the file names its columns first, so the keys of all attributes are read before the rows.
    """
    collection_id, duplicates = generation.collection_id, _DUPLICATES[keep]

    kinds: dict[str, list[str]] = {}
    if columns.of_attributes or (with_header and columns.names is None):
        of_attributes = exports.read_attribute_kinds(connection, collection_id)
        columns = columns.with_attributes(of_attributes)
        kinds = {name: list(of_attributes[_key_of(name)]) for name in columns.of_attributes}

    tables = generation.tables(connection)
    total = tables.exports.count_documents(collection_id, duplicates=duplicates)
    warnings = _warnings(connection, generation)
    keeps_none = keep_policy(generation.recipe["cluster"]["keep"]).keeps_none
    rows = tables.exports.stream_documents(
        collection_id,
        columns.needed,
        duplicates=duplicates,
        with_marks=bool(columns.marks),
        keeps_none=keeps_none,
    )
    # Once the first row is read, the transaction keeps the tables from being dropped.
    return _Export(columns, rows, list(islice(rows, 1)), total, kinds, warnings)


def _warnings(connection: Connection, generation: Generation) -> tuple[str, ...]:
    waiting = generation.tables(connection).exports.count_unindexed(generation.collection_id)
    if not waiting:
        return ()
    are = "is" if waiting == 1 else "are"
    return (
        f"{count_of(waiting, 'document')} {are} not indexed yet, so duplicates may be missing; index them with: "
        f"nearsim build or a worker",
    )


@dataclass(frozen=True, slots=True)
class Target:
    """The file to write, or the terminal."""

    path: Path
    encoding: Encoding
    escape_cell: Callable[[str], str] | None = None  # applied to cells, if a terminal shows them
    escape_json: Callable[[str], str] | None = None  # applied to lines of JSON, if a terminal shows them


def write_export(
    database: Database,
    collection: str,
    profile: str | None,
    keep: Keep,
    columns: ExportColumns,
    target: Target,
    limit: int | None = None,
    progress: Progress = silent,
) -> tuple[int, tuple[str, ...]]:
    """Write the documents of a collection, all from one snapshot and at most `limit`.

    Returns the number of documents and the warnings. A document in no cluster counts as a survivor. An export that
    fails leaves no file. Records are written one at a time, so they need little memory. Raises InputError for an
    unknown column or `keep`.
    """
    if keep not in _DUPLICATES:
        raise InputError(f"keep is {keep!r}; choose {', '.join(_DUPLICATES)}")
    with_header = target.encoding.format not in _WITHOUT_HEADER
    with translate_errors(), database.engine.snapshot() as connection:

        def read() -> _Export:
            generation = live_generation.find_live(connection, collection, profile)
            return _open(connection, generation, keep, columns, with_header=with_header)

        try:
            export = retry_if_replaced(read, connection.rollback)
        except EmptyIndexError:
            named = columns.with_attributes({}) if with_header else columns
            export = _Export(named, (row for row in list[ExportedRow]()))
        with closing(export.rows):
            return _write(export, target, limit, progress), export.warnings


def _write(export: _Export, target: Target, limit: int | None, progress: Progress) -> int:
    marks = export.columns.marks
    names = (*(export.columns.names or ()), *marks)
    kinds = export.kinds | dict(zip(marks, _KINDS_OF_MARKS, strict=True)) if marks else export.kinds
    schema = parquet_schema(names, kinds) if target.encoding.format is FileFormat.PARQUET else None
    total = export.total if limit is None else min(limit, export.total)

    written = 0
    with open_writer(
        target.path,
        target.encoding,
        names,
        schema,
        escape_cell=target.escape_cell,
        escape_json=target.escape_json,
    ) as writer:
        for written, row in enumerate(islice(chain(export.first, export.rows), limit), 1):
            writer.write(export.columns.record(row))
            if written % _DOCUMENTS_PER_REPORT == 0:
                progress("write", written, total)
        progress("write", written, total)
    return written

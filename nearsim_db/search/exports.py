"""Exports: the documents of a collection, all or those to keep or to drop, with clusters; to a file."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from nearsim_db.errors import EmptyIndexError, count_of
from nearsim_db.readers.writers.file_format import Encoding, FileFormat, RecordWriter
from nearsim_db.readers.writers.opened import open_writer
from nearsim_db.readers.writers.parquet import export_schema
from nearsim_db.records import Keep, Progress, silent
from nearsim_db.search import live_generation
from nearsim_db.search.export_columns import ExportColumns
from nearsim_db.search.live_generation import retry_if_replaced
from nearsim_db.similarity.recipe import retained_seconds
from nearsim_db.store import exports
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import translate_errors
from nearsim_db.store.exports import ExportedRow
from nearsim_db.store.generation_rows import Generation

_DUPLICATES: dict[Keep, bool | None] = {"survivors": False, "duplicates": True, "all": None}


@dataclass(frozen=True, slots=True)
class Export:
    """Documents to write: `records`, about `total` of them; `kinds` of values by column of an attribute.

    `columns` has the names of all columns, None if each record has its own.
    """

    records: Iterator[dict[str, object]]
    total: int
    columns: tuple[str, ...] | None
    kinds: dict[str, list[str]]
    warnings: tuple[str, ...]


@contextmanager
def open_export(
    database: Database,
    collection: str,
    profile: str | None,
    keep: Keep,
    columns: ExportColumns,
    *,
    with_header: bool,
) -> Iterator[Export]:
    """Read the documents of a collection in one snapshot, in order of their numbers.

    `with_header`: name all columns before the first record, which reads the keys of all attributes. Documents in no
    cluster are survivors. A collection without documents has none. Raises InputError for an unknown column.
    """
    duplicates = _DUPLICATES[keep]
    with translate_errors(), database.engine.snapshot() as connection:

        def read() -> tuple[Export, Generator[ExportedRow, None, None]]:
            generation = live_generation.find_live(connection, collection, profile)
            collection_id = generation.collection_id
            chosen = columns
            kinds: dict[str, list[str]] = {}
            if columns.have_attributes or (with_header and columns.names is None):
                of_attributes = exports.read_attribute_kinds(connection, collection_id)
                chosen = columns.with_attributes(of_attributes)
                kinds = chosen.kinds(of_attributes)
            total = exports.count_export(connection, collection_id, generation.leaves, duplicates=duplicates)
            warnings = _warnings(connection, generation)
            rows = exports.stream_export(
                connection, collection_id, generation.leaves, chosen.needed, duplicates=duplicates
            )
            # Once the first row is read, the transaction keeps the tables from being dropped.
            first = list(islice(rows, 1))
            records = map(chosen.record, chain(first, rows))
            return Export(records, total, chosen.names, kinds, warnings), rows

        try:
            export, rows = retry_if_replaced(read, connection.rollback)
        except EmptyIndexError:
            names = columns.with_attributes({}).names if with_header else columns.names
            yield Export(iter(()), 0, names, {}, ())
            return
        with closing(rows):
            yield export


def _warnings(connection: Connection, generation: Generation) -> tuple[str, ...]:
    age = retained_seconds(generation.recipe.get("retain", {}).get("age", "none"))
    waiting = exports.count_unindexed(connection, generation.collection_id, generation.leaves, age)
    if not waiting:
        return ()
    are = "is" if waiting == 1 else "are"
    return (
        f"{count_of(waiting, 'document')} {are} not indexed yet, so duplicates may be missing; index them with: "
        f"nearsim build or a worker",
    )


_REPORT_EVERY = 1_000
_WITHOUT_HEADER = (FileFormat.JSONL, FileFormat.JSON)


@dataclass(frozen=True, slots=True)
class Target:
    """A file to write; the escapes are applied to cells and lines of JSON on a terminal."""

    path: Path
    encoding: Encoding
    escape_cell: Callable[[str], str] | None = None
    escape_json: Callable[[str], str] | None = None


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
    """Write the documents of a collection as `open_export` reads them, at most `limit`; return how many, and warnings.

    The file is complete or absent; records are never all in memory.
    """
    format = target.encoding.format
    has_header = format not in _WITHOUT_HEADER
    with open_export(database, collection, profile, keep, columns, with_header=has_header) as found:
        names = found.columns or ()
        schema = export_schema(names, found.kinds) if format is FileFormat.PARQUET else None
        with open_writer(
            target.path,
            target.encoding,
            names,
            schema,
            escape_cell=target.escape_cell,
            escape_json=target.escape_json,
        ) as writer:
            total = found.total if limit is None else min(limit, found.total)
            return _write(writer, found.records, limit, total, progress), found.warnings


def _write(
    writer: RecordWriter,
    records: Iterator[dict[str, object]],
    limit: int | None,
    total: int,
    progress: Progress,
) -> int:
    written = 0
    while limit is None or written < limit:
        record = next(records, None)
        if record is None:
            break
        writer.write(record)
        written += 1
        if written % _REPORT_EVERY == 0:
            progress("write", written, total)
    progress("write", written, total)
    return written

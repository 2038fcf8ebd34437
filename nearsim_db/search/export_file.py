"""Writing an export to a file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nearsim_db.readers.writers.file_format import Encoding, FileFormat, RecordWriter
from nearsim_db.readers.writers.opened import open_writer
from nearsim_db.readers.writers.parquet import export_schema
from nearsim_db.records import Progress, silent
from nearsim_db.search.export_columns import ExportColumns
from nearsim_db.search.exports import Keep, open_export
from nearsim_db.store.database import Database

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

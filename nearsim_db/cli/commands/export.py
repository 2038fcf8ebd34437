"""The command `nearsim export`: the documents of a collection as a file."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import InputError
from nearsim_db.readers.writers.file_format import FileFormat, chosen_encoding
from nearsim_db.records import STANDARD_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nearsim_db.readers.writers.contract import RecordWriter
    from nearsim_db.records import Progress
    from nearsim_db.search.export_columns import ExportColumns

_REPORT_EVERY = 1_000


class Keep(StrEnum):
    """Documents to export."""

    SURVIVORS = "survivors"
    DUPLICATES = "duplicates"
    ALL = "all"


_Keep = Annotated[
    Keep,
    typer.Option(
        "--keep",
        help="Documents to write: survivors are the document to keep of each cluster and all documents without "
        "near-duplicates, duplicates are all others.",
    ),
]
_Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME,...",
        help="Columns in this order (repeatable): id, title, text, source, url, published_at, vector, attributes, "
        "doc_id, revision, created_at, updated_at, cluster, survivor, or any key of the attributes. "
        "[default: id to published_at, every key of the attributes, cluster, survivor]",
        show_default=False,
    ),
]
_Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="Output file; its suffix is the format: .jsonl, .json, .csv, .tsv (also .gz, .zst), .parquet. "
        "- is standard output.",
    ),
]


def export(
    collection: options.Collection = options.DEFAULT_COLLECTION,
    profile: options.Profile = None,
    keep: _Keep = Keep.SURVIVORS,
    columns: _Columns = None,
    format: formats.FileFormatOption = None,
    output: _Output = STANDARD_OUTPUT,
    delimiter: options.OutputDelimiter = None,
    limit: options.ExportLimit = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the documents of a collection to a file: those to keep, the duplicates, or all.

    Documents are in order of insertion, each with its cluster, a number, and the id of the survivor of that; both are
    null for a document without near-duplicates. A column that is also a key of the attributes is prefixed there, as
    attributes.source. In csv, text that a spreadsheet would run as a formula gets a leading apostrophe, in csv-exact
    not. An output file is complete or absent.
    """
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database
    from nearsim_db.readers.writers.export_schema import export_schema
    from nearsim_db.readers.writers.opened import open_writer
    from nearsim_db.search.exports import open_export

    try:
        chosen = _parsed(columns)
        encoding = chosen_encoding(
            output, None if format is None else FileFormat(format), FileFormat.JSONL, delimiter
        )
    except InputError as error:
        raise UsageError(str(error)) from error
    is_parquet = encoding.format is FileFormat.PARQUET
    has_header = encoding.format not in (FileFormat.JSONL, FileFormat.JSON)
    with (
        progress_bars(quiet) as progress,
        open_database() as database,
        open_export(database, collection, profile, keep.value, chosen, with_header=has_header) as found,
    ):
        names = found.columns or ()
        schema = export_schema(names, found.kinds) if is_parquet else None
        with open_writer(
            output,
            encoding,
            names,
            schema,
            escape_cell=terminal.escaped_cell,
            escape_json=terminal.escaped_strings,
        ) as writer:
            total = found.total if limit is None else min(limit, found.total)
            written = _write(writer, found.records, limit, total, progress)
    if not quiet:
        if output != STANDARD_OUTPUT:
            terminal.print_info(f"wrote documents to {output}: {written:,}")
        terminal.print_warnings(found.warnings)


def _parsed(columns: list[str] | None) -> "ExportColumns":
    from nearsim_db.search.export_columns import parse_columns

    return parse_columns(columns or [])


def _write(
    writer: "RecordWriter",
    records: "Iterator[dict[str, object]]",
    limit: int | None,
    total: int,
    progress: "Progress",
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

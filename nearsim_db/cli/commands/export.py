"""The command `nearsim export`: the documents of a collection as a file."""

from pathlib import Path
from typing import Annotated

import typer

from nearsim_db.cli import formats, inputs, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import InputError
from nearsim_db.readers.writers.file_format import FileFormat, chosen_encoding
from nearsim_db.records import STANDARD_OUTPUT, Keep

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
        parser=formats.path,
        help="Output file; its suffix is the format: .jsonl, .json, .csv, .tsv (also .gz, .zst), .parquet. "
        "- is standard output.",
    ),
]


def export(
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
    keep: _Keep = "survivors",
    columns: _Columns = None,
    format: formats.FileFormatOption = None,
    output: _Output = STANDARD_OUTPUT,
    delimiter: inputs.OutputDelimiter = None,
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
    from nearsim_db.search.exports import Target, parse_columns, write_export
    from nearsim_db.store.database import Database

    try:
        chosen = parse_columns(columns or [])
        encoding = chosen_encoding(
            output, None if format is None else FileFormat(format), FileFormat.JSONL, delimiter
        )
    except InputError as error:
        raise UsageError(str(error)) from error
    target = Target(output, encoding, terminal.escaped_cell, terminal.escaped_strings)
    with progress_bars(quiet) as progress, Database.connect() as database:
        written, warnings = write_export(database, collection, profile, keep, chosen, target, limit, progress)
    if not quiet:
        if output != STANDARD_OUTPUT:
            terminal.print_info(f"wrote documents to {output}: {written:,}")
        terminal.print_warnings(warnings)

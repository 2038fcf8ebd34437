"""The commands `nearsim export`, which writes documents to a file, and `nearsim report`, which writes a page."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from nearsim_db.cli import inputs, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.marks import MarkOptions
from nearsim_db.cli.output import terminal
from nearsim_db.errors import InputError
from nearsim_db.readers.writers.file_format import FileFormat, chosen_encoding
from nearsim_db.records import STANDARD_OUTPUT, Keep

_Keep = Annotated[
    Keep | None,
    typer.Option(
        "--keep",
        metavar="WHICH",
        help="Documents to write: survivors (the document to keep of each cluster, and all documents without "
        "near-duplicates), duplicates (all others) or all. (default: survivors; all with --mark)",
    ),
]
_Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME,...",
        help="Columns to write, in this order (repeatable): id, title, text, source, url, published_at, vector, "
        "attributes, doc_id, revision, created_at, updated_at, cluster, survivor, or any key of the attributes. "
        "(default: id to published_at, keys of the attributes, cluster, survivor)",
    ),
]
_Output = Annotated[
    Path,
    options.output_option(
        "Output file, whose suffix is the format: .jsonl, .json, .csv, .tsv (each also .gz, .zst) or .parquet; "
        "- for standard output."
    ),
]

_PageFormat = Literal["html", "json"]
_PageFormatOption = Annotated[
    _PageFormat | None,
    typer.Option(
        "--format",
        callback=options.resolved,
        help="Format, if the suffix of --output names none: html for a page, json for the figures of the page.",
        rich_help_panel=options.OUTPUT,
    ),
]


def export(
    *,
    scope: options.Scope,
    keep: _Keep = None,
    columns: _Columns = None,
    marks: MarkOptions,
    format: options.FileFormatOption = None,
    output: _Output = STANDARD_OUTPUT,
    delimiter: inputs.OutputDelimiter = None,
    limit: options.ExportLimit = None,
    reporting: options.Reporting,
) -> None:
    """Write the documents to keep, the duplicates or all to a file.

    Documents are in the order of insertion. Each has the number of its cluster and the id of the cluster's survivor;
    both are null for a document without near-duplicates. A key of the attributes with the name of a column is written
    as attributes.source. In csv, text that a spreadsheet would run as a formula gets a leading apostrophe; in csv-exact
    it does not. With --mark, the columns that nearsim dedupe --mark writes take the place of cluster and survivor. An
    output file is complete or absent.
    """
    from nearsim_db.search.exports import Target, parse_columns, write_export

    try:
        chosen = parse_columns(columns or [], marks.prefix)
        encoding = chosen_encoding(
            output, None if format is None else FileFormat(format), FileFormat.JSONL, delimiter
        )
    except InputError as error:
        raise UsageError(str(error)) from error

    keep = keep or ("all" if marks.mark else "survivors")
    target = Target(output, encoding, terminal.visible, terminal.escaped_strings)
    database, collection = options.connect_to(scope.collection)
    with reporting.progress() as progress, database:
        written, warnings = write_export(
            database, collection, scope.profile, keep, chosen, target, limit, progress
        )

    if not reporting.quiet:
        if output != STANDARD_OUTPUT:
            terminal.print_info(f"wrote documents to {output}: {written:,}")
        terminal.print_warnings(warnings)


def report(
    *,
    output: Annotated[
        Path | None, options.output_option("HTML or JSON file to write; - for standard output.")
    ] = None,
    scope: options.Scope,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number of rows in each table.")
    ] = 25,
    diffs: Annotated[
        int, typer.Option(metavar="N", min=0, max=200, help="Number of pairs to show side by side.")
    ] = 12,
    rejects: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Reject file whose records are counted by reason (repeatable)."),
    ] = None,
    format: _PageFormatOption = None,
    reporting: options.Reporting,
) -> None:
    """Write a report on an index as one HTML page.

    The page shows figures, clusters, pairs side by side, sources and exclusions. It is a self-contained file that makes
    no requests. Lists have at most --top rows.
    """
    as_json = _is_json(format, output)
    from nearsim_db import readers
    from nearsim_db.analysis.report import Options, gather
    from nearsim_db.analysis.report import render as render_page
    from nearsim_db.cli.output.streams import json_row
    from nearsim_db.readers.output import open_output

    place = output or STANDARD_OUTPUT
    readers.refuse_overwriting_inputs([place], rejects or [])
    chosen = Options(top, diffs, title, tuple(rejects or ()))
    database, collection = options.connect_to(scope.collection)
    with reporting.progress(for_programs=as_json) as progress, database:
        figures = gather(database, collection, scope.profile, chosen, progress)
        page = None if as_json else render_page(figures)

    with open_output(place) as stream:
        content = json_row(figures, stream) if page is None else page
        stream.write(content)
    if not reporting.quiet and place != STANDARD_OUTPUT:
        terminal.print_line(f"{place}: {len(content):,} bytes")


def _is_json(format: _PageFormat | None, output: Path | None) -> bool:
    """Whether the report is JSON. Raises UsageError if the output is missing, or if its suffix is of another format."""
    if output is None and format != "json":
        raise UsageError("give --output PATH (- for standard output), or --json")
    suffix = "" if output is None else output.suffix.lower()
    as_json = format == "json" or (format is None and suffix == ".json")
    if suffix not in ({"", ".json"} if as_json else {"", ".html", ".htm"}):
        written = "JSON; end it in .json" if as_json else "HTML; end it in .html"
        raise UsageError(f"cannot write the report to {output}: it is {written}")
    return as_json

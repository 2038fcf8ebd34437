"""The command `nearsim report`: an index as one HTML page or one JSON document."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.records import STANDARD_OUTPUT

PageFormat = Literal["html", "json"]
PageFormatOption = Annotated[
    PageFormat | None,
    typer.Option(
        "--format",
        callback=formats.resolved,
        help="html for a page, json for its figures as one JSON document, on standard output by default. "
        "[default: by the suffix of --output, otherwise html]",
        show_default=False,
    ),
]


def report(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            parser=formats.path,
            help="HTML or JSON file to write; - for standard output.",
        ),
    ] = None,
    collection: options.Collection = options.DEFAULT,
    profile: options.Profile = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.")] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, max=1000, help="Maximum number of rows per table.")
    ] = 25,
    diffs: Annotated[
        int, typer.Option("--diffs", metavar="N", min=0, max=200, help="Number of pairs shown side by side.")
    ] = 12,
    rejects: Annotated[
        list[Path] | None,
        typer.Option("--rejects", metavar="PATH", help="Reject file to count by reason (repeatable)."),
    ] = None,
    format: PageFormatOption = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a report on an index as one HTML page: figures, clusters, pairs side by side, sources, exclusions.

    The page is a self-contained file that makes no requests. Long lists are cut to --top rows.
    """
    as_json = _is_json(format, output)
    from nearsim_db import readers
    from nearsim_db.analysis.report import Options, gather
    from nearsim_db.analysis.report import render as render_page
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import json_row
    from nearsim_db.readers.output import open_output
    from nearsim_db.store.database import Database

    place = output or STANDARD_OUTPUT
    readers.refuse_overwriting_inputs([place], rejects or [])
    chosen = Options(top, diffs, title, tuple(rejects or ()))
    with progress_bars(quiet or as_json) as progress, Database.connect() as database:
        found = gather(database, collection, profile, chosen, progress)
        page = None if as_json else render_page(found)
    with open_output(place) as stream:
        content = json_row(found, stream) if page is None else page
        stream.write(content)
    if not quiet and place != STANDARD_OUTPUT:
        terminal.print_line(f"{place}: {len(content):,} bytes")


def _is_json(format: PageFormat | None, output: Path | None) -> bool:
    """Whether the report is JSON. Raises UsageError for an output that is missing, or has another suffix."""
    if output is None and format != "json":
        raise UsageError("give --output PATH (- for standard output), or --json")
    suffix = "" if output is None else output.suffix.lower()
    as_json = format == "json" or (format is None and suffix == ".json")
    if suffix not in ({"", ".json"} if as_json else {"", ".html", ".htm"}):
        written = "JSON; end it in .json" if as_json else "HTML; end it in .html"
        raise UsageError(f"cannot write the report to {output}: it is {written}")
    return as_json

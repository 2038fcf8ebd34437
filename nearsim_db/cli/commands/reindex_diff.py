"""The command reindex diff: differences between the pending generation and the live one."""

from pathlib import Path
from typing import Annotated

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.records import STANDARD_OUTPUT

EXCEEDED = 3

Generation = Annotated[
    int | None,
    typer.Option(
        "--generation",
        "-g",
        metavar="N",
        help="Compare this one instead of the pending one.",
        show_default=False,
    ),
]


def diff(
    *,
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    generation: Generation = None,
    samples: Annotated[
        int,
        typer.Option("--samples", metavar="N", min=0, max=1000, help="At most so many samples of each kind."),
    ] = 20,
    limit_options: options.LimitOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            parser=formats.path,
            help="Write an HTML page to this file, with texts side by side.",
        ),
    ] = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Compare the pending generation, or another, with the live one: pairs lost, gained and re-scored, clusters.

    Nothing is changed. Pairs are those that nearsim pairs shows, twins expanded. The exit code is 3 if the differences
    exceed a --max option. A LIMIT is a share of the live pairs or clusters, 0.1% or 0.001, or a count, 25.
    """
    from nearsim_db.admin.reindex import Reindex
    from nearsim_db.cli.output import diff as diff_output
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.readers.output import open_output
    from nearsim_db.store.database import Database

    allowed = limit_options.parsed()
    _refuse_output(output, format=format)
    with progress_bars(quiet or format.is_machine) as progress, Database.connect() as database:
        found = Reindex(database, collection, profile, progress).diff(
            generation, samples=samples, limits=allowed
        )
    if output is not None:
        from nearsim_db.analysis.report import render_difference

        page = render_difference(found)
        with open_output(output) as stream:
            stream.write(page)
    if format.is_machine:
        print_document(format, found)
    elif output != STANDARD_OUTPUT and not quiet:
        diff_output.print_difference(found, output)
    if found.exceeded:
        raise typer.Exit(EXCEEDED)


def _refuse_output(output: Path | None, *, format: Format) -> None:
    if output is None:
        return
    if format.is_machine and output == STANDARD_OUTPUT:
        raise UsageError("--json and --output - would both write to standard output; give --output a path")
    if output.suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(f"--output {output} is an HTML page; choose a name that ends in .html")

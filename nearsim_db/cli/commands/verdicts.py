"""Commands for verdicts on pairs: pin, veto, undo, list."""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import formats, options
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars

if TYPE_CHECKING:
    from nearsim_db.cli.output.layouts import Layout
    from nearsim_db.index import Index
    from nearsim_db.records import Verdict

verdicts = typer.Typer(
    no_args_is_help=True,
    help="Decide whether two documents belong in one cluster, overriding their similarity.",
)

One = Annotated[str, typer.Argument(metavar="ID", help="Id of a document.", show_default=False)]
Other = Annotated[str, typer.Argument(metavar="ID", help="Id of another document.", show_default=False)]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Reason, stored with the verdict.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="NAME", help="Author of the verdict. (default: the database user)", show_default=False
    ),
]

_COLUMNS = ("left", "right", "verdict", "by", "at", "why")
_UNDONE_COLUMNS = ("undone_by", "undone_at", "undone_why")


@verdicts.command(
    epilog='Example: nearsim verdict pin story-17 story-18 --why "the same interview, rewritten"'
)
def pin(
    one: One,
    other: Other,
    why: Why,
    by: By = None,
    collection: options.Collection = options.DEFAULT,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Put two documents in one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    with _opened(collection, quiet or format.is_machine) as index:
        index.pin(one, other, why, by)
        _print(index, "pinned", one, other, format=format, quiet=quiet)


@verdicts.command(epilog='Example: nearsim verdict veto story-17 story-19 --why "two storms" --by anna')
def veto(
    one: One,
    other: Other,
    why: Why,
    by: By = None,
    collection: options.Collection = options.DEFAULT,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Keep two documents out of one cluster, whatever their similarity.

    Replaces an earlier verdict on the pair.
    """
    with _opened(collection, quiet or format.is_machine) as index:
        index.veto(one, other, why, by)
        _print(index, "vetoed", one, other, format=format, quiet=quiet)


@verdicts.command(epilog='Example: nearsim verdict undo story-17 story-19 --why "it was one storm after all"')
def undo(
    one: One,
    other: Other,
    why: Why,
    by: By = None,
    collection: options.Collection = options.DEFAULT,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Undo the verdict on two documents; it stays on record."""
    with _opened(collection, quiet or format.is_machine) as index:
        index.undo(one, other, why, by)
        _print(index, "undone", one, other, format=format, quiet=quiet)


@verdicts.command("list", epilog="Example: nearsim verdict list --collection news --by anna --undone")
def list_verdicts(
    collection: options.Collection = options.DEFAULT,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="NAME",
            help="Only verdicts made or undone by NAME. (default: all)",
            show_default=False,
        ),
    ] = None,
    undone: Annotated[
        bool, typer.Option("--undone", help="Include verdicts that were undone or replaced.")
    ] = False,
    format: formats.AnswerFormat = None,
    output: formats.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """List verdicts, newest first.

    Deleted documents are shown as # and their number.
    """
    from nearsim_db.cli.output import streams
    from nearsim_db.search.answers import Answers

    chosen = formats.chosen_format(format, output)
    with Answers.connect(collection=collection) as answers:
        found = answers.verdicts(by, undone=undone)
        streams.write(_layout(undone=undone), found, chosen, output, limit, quiet=quiet)


@contextmanager
def _opened(collection: str, quiet: bool) -> "Iterator[Index]":
    from nearsim_db.index import Index

    with progress_bars(quiet) as progress, Index.connect(collection=collection, progress=progress) as index:
        yield index


def _print(index: "Index", done: str, one: str, other: str, *, format: Format, quiet: bool) -> None:
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document

    if format.is_machine:
        print_document(format, {done: [one, other]})
    elif not quiet:
        terminal.print_line(f"{done} {one} and {other}")
    terminal.print_warnings(index.warnings)


def _layout(*, undone: bool) -> "Layout[Verdict]":
    from nearsim_db.cli.output.layouts import Layout

    columns = _COLUMNS + (_UNDONE_COLUMNS if undone else ())
    row = attrgetter(*columns)
    every = attrgetter(*_COLUMNS, *_UNDONE_COLUMNS)
    return Layout(
        plural="verdicts",
        key="verdicts",
        as_json=lambda verdict: verdict,
        csv_columns=(*_COLUMNS, *_UNDONE_COLUMNS),
        csv_rows=lambda verdict: (every(verdict),),
        table_columns=columns,
        table_row=row,
        wrap=("why", "undone_why"),
    )

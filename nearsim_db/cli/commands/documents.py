"""Commands on what a collection holds: get, delete, stats."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import NotFoundError


class Shape(StrEnum):
    """How a single thing is shown."""

    JSON = "json"
    TABLE = "table"


def get(
    id: Annotated[str, typer.Argument(metavar="ID", help="The document's id.", show_default=False)],
    collection: options.Collection = options.DEFAULT_COLLECTION,
    format: Annotated[Shape, typer.Option("--format", help="json is the whole document.")] = Shape.JSON,
) -> None:
    """Show a document as it is stored."""
    from nearsim_db.cli.output import tables, terminal
    from nearsim_db.index import Index

    with Index.connect(collection=collection) as index:
        stored = index.get(id)
    # SQLAlchemy's names are a kind of str that the JSON encoder refuses.
    values = {str(name): value for name, value in stored.items()}
    shown = {"id": values.pop("external_id"), **values, "collection": collection}
    del shown["collection_id"]
    if format is Shape.JSON:
        terminal.print_json(shown)
    else:
        tables.print_facts(shown)


def delete(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of documents.", show_default=False)],
    collection: options.Collection = options.DEFAULT_COLLECTION,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge", help="Forget them: at once from every index, queue and cache, and say from where."
        ),
    ] = False,
    rejects: Annotated[
        list[Path] | None,
        typer.Option("--rejects", metavar="PATH", help="With --purge, a reject file to clean too (repeat)."),
    ] = None,
    as_json: options.AsJson = False,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Delete documents, with their pairs; on a terminal it asks first.

    Ends with exit code 1 if some of them were not there; the others are deleted all the same.
    """
    if rejects and not purge:
        raise UsageError("--rejects goes with --purge")
    from nearsim_db.cli.output import purge as purge_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index

    verb = "Purge" if purge else "Delete"
    confirm(f"{verb} {len(ids):,} documents from collection {collection!r}?", yes=yes)
    with (
        progress_bars(quiet or as_json) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        purged = index.purge(ids, rejects or ()) if purge else None
        gone = index.delete(ids) if purged is None else purged.deleted
    missing = sorted(set(ids) - set(gone)) if purged is None else purged.not_found
    if as_json:
        found = {} if purged is None else {"purged": purge_output.purge_document(purged)}
        terminal.print_json({"deleted": gone, "not_found": missing, **found})
    elif not quiet:
        for deleted in gone:
            terminal.print_line(f"deleted {deleted}")
        if purged is not None:
            purge_output.print_purge(purged)
    terminal.print_warnings(index.warnings)
    if missing:
        raise NotFoundError(f"collection {collection!r} has no document {', '.join(map(repr, missing))}")


def stats(
    collection: options.Collection = options.DEFAULT_COLLECTION,
    profile: options.Profile = None,
    recount: Annotated[
        bool, typer.Option("--recount", help="Count the buckets now; without it they are the build's.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a collection and its index hold, in counts, bytes and probabilities."""
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import tables, terminal
    from nearsim_db.index import Index

    with Index.connect(collection=collection, profile=profile) as index:
        found = index.stats(recount=recount)
    if as_json:
        terminal.print_json(found)
        return
    tables.print_facts({_in_words(name): value for name, value in found.items() if _is_plain(value)})
    profiles_output.print_curve(found)


def asks(*, yes: bool) -> bool:
    """Whether there is somebody to ask, and that was not forbidden."""
    return not yes and sys.stdin.isatty()


def confirm(question: str, *, yes: bool = False) -> None:
    """Ask on a terminal, unless told not to; a refusal ends the command."""
    if asks(yes=yes):
        typer.confirm(question, abort=True, err=True)


def _in_words(name: str) -> str:
    return name.replace("_", " ")


def _is_plain(value: Any) -> bool:
    return not isinstance(value, list | dict)

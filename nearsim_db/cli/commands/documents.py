"""The commands `nearsim document` (get, delete and purge) and `nearsim stats`."""

import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.options import Format
from nearsim_db.cli.output import summaries, tables, terminal
from nearsim_db.errors import NotFoundError
from nearsim_db.messages import count_of

document: typer.Typer = typer.Typer(no_args_is_help=True, help="Show, delete and purge documents.")

Ids = Annotated[list[str], options.argument("ID...", "Ids of documents.")]


@document.command(epilog="Example: nearsim document get story-17")
def get(
    id: Annotated[str, options.argument("ID", "Id of the document.")],
    collection: options.Collection = None,
    format: options.ResultFormat = Format.JSON,
) -> None:
    """Show a stored document."""
    with options.Scope(collection).answers() as answers:
        values = answers.get(id)
    shown = {"id": values.pop("external_id"), **values, "collection": answers.collection}
    shown["vector"] = _with_names_of_numbers(shown["vector"])
    del shown["collection_id"]
    options.Result(format).show(shown, lambda: tables.print_facts(shown))


def _with_names_of_numbers(vector: object) -> object:
    """Return a vector with the numbers that JSON lacks as strings, spelled as in PostgreSQL, such as "NaN"."""
    if isinstance(vector, list):
        return [_with_names_of_numbers(number) for number in vector]
    if isinstance(vector, float) and not isfinite(vector):
        return str(Decimal(vector))
    return vector


@document.command(epilog="Example: nearsim document delete story-17 story-18 --yes")
def delete(
    ids: Ids,
    collection: options.Collection = None,
    purge: Annotated[
        bool, typer.Option("--purge", hidden=True, help="The same as nearsim document purge.")
    ] = False,
    rejects: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", hidden=True, help="The same as for nearsim document purge."),
    ] = None,
    format: options.MessageFormat = Format.TABLE,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Delete documents and their pairs; asks for confirmation on a terminal.

    Exits with 1 if any id does not exist; the other documents are deleted.
    """
    if rejects and not purge:
        raise UsageError("--rejects requires --purge")
    outcome = options.Outcome(format, quiet)
    _delete(ids, collection, outcome, yes=yes, purge_from=(rejects or ()) if purge else None)


@document.command("purge", epilog="Example: nearsim document purge story-17 --rejects rejects.jsonl")
def purge_documents(
    ids: Ids,
    collection: options.Collection = None,
    rejects: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="Reject file to erase the documents from, too (repeatable)."),
    ] = None,
    format: options.MessageFormat = Format.TABLE,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Erase documents at once from every index, queue and cache; asks for confirmation on a terminal.

    Lists the places that had data of the documents. Exits with 1 if any id does not exist; the other documents are
    erased.
    """
    _delete(ids, collection, options.Outcome(format, quiet), yes=yes, purge_from=rejects or ())


def _delete(
    ids: list[str],
    collection: str | None,
    outcome: options.Outcome,
    *,
    yes: bool,
    purge_from: Sequence[Path] | None,
) -> None:
    """Delete documents; if `purge_from` is not None, purge them from all places and from these reject files."""
    from nearsim_db.store.access.collection_rows import get_collection

    database, name = options.connect_to(collection)
    # Check that the collection exists before asking for confirmation.
    with database, database.transaction() as connection:
        get_collection(connection, name)

    verb = "Delete" if purge_from is None else "Purge"
    confirm(f"{verb} {count_of(len(ids), 'document')} from collection {name!r}?", yes=yes)

    with outcome.index(name) as index:
        purged = None if purge_from is None else index.purge(ids, purge_from)
        deleted = index.delete(ids) if purged is None else purged.deleted
        missing = sorted(set(ids) - set(deleted)) if purged is None else purged.not_found
        erased = {} if purged is None else {"purged": summaries.purge_document(purged)}

        def print_text() -> None:
            for id in deleted:
                terminal.print_line(f"deleted {id}")
            if purged is not None:
                summaries.print_purge(purged)

        outcome.show({"deleted": deleted, "not_found": missing, **erased}, print_text)

    if missing:
        raise NotFoundError(f"collection {name!r} has no document {', '.join(map(repr, missing))}")


def stats(
    *,
    scope: options.Scope,
    recount: Annotated[
        bool,
        typer.Option("--recount", help="Count the buckets now, instead of showing the counts of the build."),
    ] = False,
    result: options.Result,
) -> None:
    """Show the figures of an index: counts, bytes and probabilities."""
    with scope.answers() as answers:
        statistics = answers.stats(recount=recount)
    result.show(statistics, lambda: summaries.print_statistics(statistics))


def confirm(question: str | Callable[[], str], *, yes: bool = False) -> None:
    """Ask for confirmation, on a terminal and without --yes. Raises typer.Exit(1) if the user refuses."""
    if yes or not sys.stdin.isatty():
        return
    try:
        is_confirmed = typer.confirm(question if isinstance(question, str) else question(), err=True)
    except typer.Abort:
        # Typer turns Ctrl-C into Abort, whose exit code would be that of a refusal.
        raise KeyboardInterrupt from None
    if not is_confirmed:
        typer.echo("nothing was changed", err=True)
        raise typer.Exit(1)

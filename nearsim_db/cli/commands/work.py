"""Commands on what is still to be done: list, retry, discard."""

from collections import Counter
from collections.abc import Generator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import NotFoundError, count_of

if TYPE_CHECKING:
    from nearsim_db.records import CollectionId
    from nearsim_db.store.database import Database
    from nearsim_db.store.work.work_items import WorkItem

work = typer.Typer(
    no_args_is_help=True, help="Show what workers have still to do, and decide on what they set aside."
)


class Stage(StrEnum):
    """The stages of work."""

    COMPARE = "compare"
    SIGN = "sign"
    SEARCH = "search"
    ANCHOR = "anchor"
    LINK = "link"
    TELL = "tell"


Collection = Annotated[
    str | None,
    typer.Option("--collection", "-c", metavar="NAME", help="Only this collection. (default: all)"),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Ids as the list shows them.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="All that failed or was set aside.")]


@work.command("list", epilog="Example: nearsim work list --failed --collection news")
def list_work(
    collection: Collection = None,
    stage: Annotated[Stage | None, typer.Option("--stage", help="Only this stage.")] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only what went wrong: failing, or set aside.")
    ] = False,
    format: options.AnswerFormat = None,
    limit: options.Limit = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Show work that waits, is being done, fails, or was set aside after the last attempt.

    Work for an index that is being built, or whose build is paused, is held until that goes on or is done.
    Documents that are gone are shown by their number after a #; #0 is a whole index.
    """
    from contextlib import closing
    from itertools import islice

    from nearsim_db.cli.output import layouts, streams, terminal
    from nearsim_db.indexing.collections import open_database

    if as_json and format is not None:
        raise UsageError("give either --json or --format, not both")
    with (
        open_database() as database,
        closing(_items(database, collection, stage, failed=failed)) as items,
    ):
        changes = _count_changes(database, collection)
        if as_json:
            terminal.print_json({"work": list(islice(items, limit)), "changes_waiting": changes})
            return
        chosen, states = format or options.Format.TABLE, Counter[str]()
        streams.write(layouts.WORK, _counted(items, states), chosen, None, limit, quiet=quiet)
    if chosen is options.Format.TABLE and not quiet:
        _print_totals(states, changes)


@work.command(epilog="Example: nearsim work retry story-17")
def retry(
    ids: Ids = None,
    everything: All = False,
    collection: Collection = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Make documents that failed or were set aside due now; a worker takes them up.

    Ends with exit code 1 if some of the ids neither failed nor were set aside; the others are due all the same.
    """
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database
    from nearsim_db.store.work import work_items

    wanted = _wanted(ids, everything)
    with open_database() as database, database.transaction() as connection:
        found = work_items.retry(connection, _collection_id(database, collection), wanted)
    if as_json:
        terminal.print_json({"retried": sorted(found)})
    elif not quiet:
        terminal.print_info(f"due again: {len(found):,}" if found else "nothing to retry")
    _complain_of_unknown(wanted, found)


@work.command(epilog="Example: nearsim work discard story-17 --yes")
def discard(
    ids: Ids = None,
    everything: All = False,
    collection: Collection = None,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Take documents that failed or were set aside off the queue for good; on a terminal it asks first.

    Until they change again they stay out of the index, or without part of their pairs, or in it by an older text. Ends
    with exit code 1 if some of the ids neither failed nor were set aside; the others are discarded all the same.
    """
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database
    from nearsim_db.store.work import work_items

    wanted = _wanted(ids, everything)
    every = "all documents that failed or were set aside"
    shown = every if wanted is None else count_of(len(wanted), "document")
    confirm(
        f"Take {shown} off the queue? What is in the index of them stays until they change again.", yes=yes
    )
    with open_database() as database, database.transaction() as connection:
        found = work_items.discard(connection, _collection_id(database, collection), wanted)
    if as_json:
        terminal.print_json({"discarded": sorted(found)})
    elif not quiet:
        stays = "what is in the index of them stays until they change again"
        terminal.print_info(f"discarded: {len(found):,}; {stays}" if found else "nothing to discard")
    _complain_of_unknown(wanted, found)


def _items(
    database: "Database", collection: str | None, stage: Stage | None, *, failed: bool
) -> "Generator[WorkItem, None, None]":
    from nearsim_db.store.work import work_items
    from nearsim_db.store.work.queue import STAGES

    collection_id = _collection_id(database, collection)
    with database.transaction() as connection:
        chosen = None if stage is None else STAGES[list(Stage).index(stage)]
        yield from work_items.stream_work(connection, collection_id, chosen, failed=failed)


def _counted(
    items: "Generator[WorkItem, None, None]", states: Counter[str]
) -> "Generator[WorkItem, None, None]":
    for item in items:
        states[item.state] += 1
        yield item


def _count_changes(database: "Database", collection: str | None) -> int:
    from nearsim_db.store.work import backlog

    collection_id = _collection_id(database, collection)
    with database.transaction() as connection:
        return backlog.count_changes(connection, collection_id)


def _print_totals(states: Counter[str], changes: int) -> None:
    from nearsim_db.cli.output import terminal

    if states:
        named = ("waiting", "held", "being done", "failing", "set aside")
        terminal.print_line(", ".join(f"{state} {states[state]:,}" for state in named if states[state]))
    if changes:
        wait, them = ("waits", "it") if changes == 1 else ("wait", "them")
        told = f"{count_of(changes, 'change')} of documents {wait} to be dispatched"
        terminal.print_line(f"{told}: a worker or nearsim build takes {them} in")


def _collection_id(database: "Database", name: str | None) -> "CollectionId | None":
    from nearsim_db.store import catalog

    if name is None:
        return None
    with database.transaction() as connection:
        return catalog.get_collection(connection, name).collection_id


def _wanted(ids: list[str] | None, everything: bool) -> list[str] | None:
    """The ids, or None for all."""
    if bool(ids) == everything:
        raise UsageError("give either ids or --all")
    return None if everything else ids


def _complain_of_unknown(wanted: list[str] | None, found: list[str]) -> None:
    unknown = sorted(set(wanted or ()) - set(found))
    if unknown:
        raise NotFoundError(
            f"nothing failed or is set aside of {', '.join(map(repr, unknown))}; see: nearsim work list --failed"
        )

"""The commands `nearsim work`, on the work queue: list, retry and discard."""

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import layouts, terminal
from nearsim_db.errors import NotFoundError
from nearsim_db.messages import count_of
from nearsim_db.records import WorkStage

if TYPE_CHECKING:
    from nearsim_db.records import CollectionId
    from nearsim_db.store.database import Database
    from nearsim_db.store.work.backlog import WorkItem

work: typer.Typer = typer.Typer(
    no_args_is_help=True, help="Show the work queue; retry or discard work that failed."
)


@dataclass(eq=False, repr=False)
class _Chosen:
    """The documents whose work a command changes."""

    ids: Annotated[list[str] | None, options.argument("[ID]...", "Ids, as nearsim work list shows them.")] = (
        None
    )
    everything: Annotated[
        bool, typer.Option("--all", help="Choose all work that failed or was set aside.")
    ] = False
    collection: options.OneCollection = None

    def wanted(self) -> list[str] | None:
        """Return the ids, or None for all documents. Raises UsageError unless either ids or --all are given."""
        if bool(self.ids) == self.everything:
            raise UsageError("give either ids or --all")
        return None if self.everything else self.ids

    def change(self, how: Literal["retry", "discard"]) -> list[str]:
        """Retry or discard the documents' work; return the ids of the changed documents."""
        from nearsim_db.store.work import backlog

        wanted = self.wanted()
        with options.connect() as database, database.transaction() as connection:
            collection_id = _collection_id(database, self.collection)
            changed: list[str] = getattr(backlog, how)(connection, collection_id, wanted)
            return changed

    def refuse_unknown(self, changed: list[str]) -> None:
        """Raise NotFoundError for ids whose work was not changed."""
        unknown = sorted(set(self.wanted() or ()) - set(changed))
        if unknown:
            ids = ", ".join(map(repr, unknown))
            raise NotFoundError(f"neither failed nor set aside: {ids}; see: nearsim work list --failed")


@work.command("list", epilog="Example: nearsim work list --failed --collection news")
def list_work(
    *,
    collection: options.OneCollection = None,
    stage: Annotated[
        WorkStage | None,
        typer.Option(metavar="STAGE", help="Only this stage: sign, search, compare, anchor or link."),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only work that is failing or was set aside.")
    ] = False,
    rows: options.Rows,
) -> None:
    """Show work that is waiting, in progress, failing, or set aside after its last attempt.

    Work for an index is held while the index is being built or its build is paused. A deleted document is shown by its
    doc_id, such as #7; #0 stands for a whole index.
    """
    from nearsim_db.store.work import backlog

    states = Counter[str]()
    with options.connect() as database:
        collection_id = _collection_id(database, collection)
        with database.transaction() as connection:
            changes = backlog.count_changes(connection, collection_id)
        items = _items(database, collection_id, stage, states, failed=failed)
        rows.write(layouts.WORK, items, facts={"changes_waiting": changes})
    if not rows.chosen().is_machine and not rows.quiet:
        _print_totals(states, changes)


@work.command(epilog="Example: nearsim work retry story-17")
def retry(chosen: _Chosen, outcome: options.ShortOutcome) -> None:
    """Retry documents that failed or were set aside: a worker takes them next.

    The exit code is 1 if some of the documents neither failed nor were set aside; the others are retried.
    """
    retried = chosen.change("retry")
    done = f"to be retried: {len(retried):,}" if retried else "nothing to retry"
    outcome.show({"retried": sorted(retried)}, done)
    chosen.refuse_unknown(retried)


@work.command(epilog="Example: nearsim work discard story-17 --yes")
def discard(*, chosen: _Chosen, yes: options.Yes = False, outcome: options.ShortOutcome) -> None:
    """Remove documents that failed or were set aside from the queue; asks for confirmation on a terminal.

    Until a discarded document changes again, it is missing from the index, lacks some pairs, or is indexed with an old
    text. The exit code is 1 if some of the documents neither failed nor were set aside; the others are discarded.
    """
    wanted = chosen.wanted()
    shown = (
        "all documents that failed or were set aside" if wanted is None else count_of(len(wanted), "document")
    )
    confirm(
        f"Remove {shown} from the queue? Their index entries stay unchanged until the documents change again.",
        yes=yes,
    )
    discarded = chosen.change("discard")
    stays = "their index entries stay unchanged until the documents change again"
    done = f"discarded: {len(discarded):,}; {stays}" if discarded else "nothing to discard"
    outcome.show({"discarded": sorted(discarded)}, done)
    chosen.refuse_unknown(discarded)


def _items(
    database: "Database",
    collection_id: "CollectionId | None",
    stage: WorkStage | None,
    states: Counter[str],
    *,
    failed: bool,
) -> "Generator[WorkItem, None, None]":
    """Yield the work, and count it by state."""
    from nearsim_db.store.work import backlog

    with database.transaction() as connection:
        for item in backlog.stream_work(connection, collection_id, stage, failed=failed):
            states[item.state] += 1
            yield item


def _print_totals(states: Counter[str], changes: int) -> None:
    if states:
        order = ("waiting", "held", "being done", "failing", "set aside")
        terminal.print_line(", ".join(f"{state} {states[state]:,}" for state in order if states[state]))
    if changes:
        wait, them = ("waits", "it") if changes == 1 else ("wait", "them")
        waiting = f"{count_of(changes, 'change')} of documents {wait} to be dispatched"
        terminal.print_line(f"{waiting}: a worker or nearsim build processes {them}")


def _collection_id(database: "Database", name: str | None) -> "CollectionId | None":
    from nearsim_db.store.access import collection_rows

    if name is None:
        return None
    with database.transaction() as connection:
        return collection_rows.get_collection(connection, name).collection_id

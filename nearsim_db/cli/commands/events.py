"""The commands `nearsim events`: list and follow the changes of pairs and clusters, and delete old events."""

import signal
from enum import StrEnum
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.options import Format
from nearsim_db.cli.output import layouts, terminal

if TYPE_CHECKING:
    from nearsim_db.store.clusters.events import Kind as KindName

events: typer.Typer = typer.Typer(
    invoke_without_command=True, epilog="Example: nearsim events --collection news --follow --after 1000"
)


class Kind(StrEnum):
    """The kinds of events."""

    PAIR_FOUND = "pair_found"
    PAIR_GONE = "pair_gone"
    CLUSTER_FORMED = "cluster_formed"
    CLUSTER_GONE = "cluster_gone"
    CLUSTER_MERGED = "cluster_merged"
    CLUSTER_SPLIT = "cluster_split"
    CLUSTER_RENAMED = "cluster_renamed"
    CLUSTER_CHANGED = "cluster_changed"
    SURVIVOR_CHANGED = "survivor_changed"
    GENERATION_LIVE = "generation_live"
    GENERATION_GONE = "generation_gone"


Profile = Annotated[str | None, options.profile_option("Only events of this profile. (default: all)")]
After = Annotated[
    int | None,
    typer.Option("--after", min=0, metavar="ID", help="Only events after this event_id. (default: all)"),
]
New = Annotated[bool, typer.Option("--new", help="With --follow, only events from now on.")]
Kinds = Annotated[
    list[Kind] | None,
    typer.Option(
        "--kind", "-k", metavar="KIND", help=f"Only events of this kind (repeatable): {', '.join(Kind)}."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Wait for further events, until Ctrl-C or SIGTERM.")
]
OlderThan = Annotated[
    str,
    typer.Option("--older-than", metavar="AGE", help='Age in minutes, hours, days or weeks, e.g. "7 days".'),
]


@events.callback()
def show(
    *,
    context: typer.Context,
    collection: options.OneCollection = None,
    profile: Profile = None,
    after: After = None,
    new: New = False,
    kind: Kinds = None,
    limit: options.Limit = None,
    follow: Follow = False,
    format: options.AnswerFormat = None,
    output: options.Output = None,
    quiet: options.Quiet = False,
) -> None:
    """List the changes of pairs and clusters, in commit order.

    A consumer stores the event_id of the last line, and resumes with --after; if events after it were removed, the
    command fails. The similarity of a pair is an estimate if verified is false. --follow writes JSON lines or csv as
    events occur, and appends them to --output; Ctrl-C or SIGTERM ends it.
    """
    if context.invoked_subcommand is not None:
        return
    if new and (after is not None or not follow):
        raise UsageError("--new requires --follow, and cannot be combined with --after")
    is_default = follow and format is None and output in (None, Path("-"))
    chosen = Format.JSONL if is_default else options.chosen_format(format, output, as_rows=not follow)
    if follow and chosen is Format.TABLE:
        raise UsageError("--follow requires --format jsonl or csv")
    from nearsim_db.cli.output import streams
    from nearsim_db.search.events import Follower, choose, read

    with options.connect() as database:
        if profile is not None and collection is None:
            collection = database.default_collection()
        wanted = choose(database, collection, profile, _names(kind))
        if follow:
            received = Flag()
            follower = Follower(database, wanted, after, new=new, stopping=received.is_set)
            with (
                terminal.on_signals(lambda number: received.set(), signal.SIGTERM),
                terminal.logged_to(terminal.NoteHandler(), "nearsim.events"),
            ):
                streams.append(layouts.EVENTS, follower.follow(), chosen, output, limit)
        else:
            rows = options.Rows(format, output, limit, quiet)
            rows.write(layouts.EVENTS, read(database, wanted, after))


@events.command(epilog='Example: nearsim events prune --older-than "2 days"')
def prune(older_than: OlderThan, outcome: options.ShortOutcome) -> None:
    """Remove old events of all collections; workers also do so periodically."""
    from nearsim_db.search import events

    age_seconds = events.kept_seconds(older_than, "--older-than")
    if age_seconds is None:
        raise UsageError("--older-than requires an age")
    with options.connect() as database:
        removed = events.prune(database.engine, age_seconds)
    outcome.show({"removed": removed}, f"removed events: {removed:,}")


def _names(kinds: list[Kind] | None) -> "list[KindName] | None":
    return [kind.value for kind in kinds] if kinds else None

"""The commands events: what happened to pairs and clusters, shown or followed, and the removal of old ones."""

import csv
import io
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.options import Format
from nearsim_db.errors import NearsimError

if TYPE_CHECKING:
    from nearsim_db.cli.output.layouts import Layout
    from nearsim_db.search.events import Event
    from nearsim_db.search.events import Kind as KindName

events = typer.Typer(
    invoke_without_command=True,
    epilog="Example: nearsim events --collection news --follow --after 1000",
)


class Kind(StrEnum):
    """What may have happened."""

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


Collection = Annotated[
    str | None,
    typer.Option("--collection", "-c", metavar="NAME", help="Only of this collection. (default: all)"),
]
Profile = Annotated[
    str | None,
    typer.Option("--profile", "-p", metavar="NAME", help="Only of this profile of it. (default: all)"),
]
After = Annotated[
    int | None,
    typer.Option("--after", min=0, metavar="ID", help="Only events after this one. (default: all there are)"),
]
New = Annotated[bool, typer.Option("--new", help="With --follow, only those that come from now on.")]
Kinds = Annotated[list[Kind] | None, typer.Option("--kind", "-k", help="Only events of this kind (repeat).")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Wait for more, until Ctrl-C.")]
OlderThan = Annotated[
    str,
    typer.Option("--older-than", metavar="AGE", help='Minutes, hours, days or weeks, as in "7 days".'),
]

_FIELDS = (
    *("event_id", "kind", "at", "collection", "profile", "left", "right", "similarity", "survivor"),
    *("left_id", "right_id", "cluster_id", "survivor_id", "other_ids", "other_survivor_ids", "generation_id"),
)
_SHOWN = (
    *("event_id", "at", "kind", "collection", "profile", "left", "right", "similarity"),
    *("cluster_id", "survivor"),
)


@events.callback()
def show(
    context: typer.Context,
    collection: Collection = None,
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
    """Show what happened to pairs and clusters, in the order in which it was committed.

    A consumer remembers the event_id of the last line and goes on with --after; it is told if events were removed in
    between. --follow writes JSON lines (or csv) as they come, and appends them to --output; SIGTERM ends it.
    """
    if context.invoked_subcommand is not None:
        return
    if profile is not None and collection is None:
        raise UsageError("--profile goes with --collection")
    if new and (after is not None or not follow):
        raise UsageError("--new goes with --follow, and not with --after")
    unasked = follow and format is None and output in (None, Path("-"))
    chosen = Format.JSONL if unasked else options.chosen_format(format, output)
    if follow and chosen is Format.TABLE:
        raise UsageError("--follow needs --format jsonl or csv")
    from nearsim_db.cli.output import streams
    from nearsim_db.cli.output.logs import NoteHandler, logged_to
    from nearsim_db.indexing.collections import open_database
    from nearsim_db.search.events import Follower, choose, read

    with open_database() as database, _until_terminated(follow) as received:
        wanted = choose(database, collection, profile, _names(kind))
        if follow:
            follower = Follower(database, wanted, after, new=new, stopping=received.is_set)
            with logged_to(NoteHandler(), "nearsim.events"):
                _write_on(follower.follow(), chosen, output, limit)
        else:
            streams.write(_layout(), read(database, wanted, after), chosen, output, limit, quiet=quiet)


@events.command(epilog='Example: nearsim events prune --older-than "2 days"')
def prune(older_than: OlderThan, quiet: options.Quiet = False) -> None:
    """Remove old events, of all collections; workers do it by themselves."""
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database
    from nearsim_db.search import events

    age_seconds = events.kept_seconds(older_than)
    if age_seconds is None:
        raise NearsimError("--older-than needs an age")
    with open_database() as database:
        removed = events.prune(database.engine, age_seconds)
    if not quiet:
        terminal.print_info(f"removed events: {removed:,}")


def _names(kinds: list[Kind] | None) -> "list[KindName] | None":
    return [one.value for one in kinds] if kinds else None


def _layout() -> "Layout[Event]":
    from nearsim_db.cli.output.layouts import Layout

    row = attrgetter(*_FIELDS)
    return Layout(
        plural="events",
        as_json=lambda event: event,
        csv_columns=_FIELDS,
        csv_rows=lambda event: (row(event),),
        table_columns=(*_SHOWN, "other_ids"),
        table_row=_shown,
    )


def _shown(event: "Event") -> tuple[object, ...]:
    others = ", ".join(map(str, event.other_ids or ()))
    return *attrgetter(*_SHOWN)(event), others or None


def _write_on(
    found: "Generator[Event, None, None]", format: Format, output: Path | None, limit: int | None
) -> None:
    """Write each event as soon as it comes, at the end of the file that is there."""
    from nearsim_db.readers.output import json_line

    row = attrgetter(*_FIELDS)
    with closing(found), _appending(output) as stream:
        if format is Format.CSV and not (stream.seekable() and stream.tell()):
            stream.write(_csv_line(_FIELDS))
        for event in islice(found, limit):
            stream.write(json_line(event) if format is Format.JSONL else _csv_line(row(event)))
            stream.flush()


def _csv_line(values: tuple[object, ...]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue().encode()


@contextmanager
def _appending(path: Path | None) -> Iterator[BinaryIO]:
    if path is None or path == Path("-"):
        yield sys.stdout.buffer
        return
    try:
        with path.open("ab") as stream:
            yield stream
    except OSError as error:
        raise NearsimError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def _until_terminated(follow: bool) -> Iterator[Flag]:
    """In the block SIGTERM sets the flag, if something is followed."""
    received = Flag()
    if not follow:
        yield received
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.set())
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)

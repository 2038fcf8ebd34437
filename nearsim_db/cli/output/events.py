"""Output of `nearsim events`."""

import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO

from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.documents import csv_lines, json_row
from nearsim_db.cli.output.layouts import Layout
from nearsim_db.errors import NearsimError
from nearsim_db.search.events import Event

_FIELDS = (
    *("event_id", "kind", "at", "collection", "profile", "left", "right", "similarity", "survivor"),
    *("left_id", "right_id", "cluster_id", "survivor_id", "other_ids", "other_survivor_ids", "generation_id"),
)
_SHOWN = (
    *("event_id", "at", "kind", "collection", "profile", "left", "right", "similarity"),
    *("cluster_id", "survivor"),
)
_row = attrgetter(*_FIELDS)


def _shown(event: Event) -> tuple[object, ...]:
    other_ids = ", ".join(map(str, event.other_ids or ()))
    return *attrgetter(*_SHOWN)(event), other_ids or None


EVENTS: Layout[Event] = Layout(
    plural="events",
    as_json=lambda event: event,
    csv_columns=_FIELDS,
    csv_rows=lambda event: (_row(event),),
    table_columns=(*_SHOWN, "other_ids"),
    table_row=_shown,
)


def append(
    found: Generator[Event, None, None], format: Format, output: Path | None, limit: int | None
) -> None:
    """Append each event to standard output or a file as soon as it occurs."""
    with closing(found), _appending(output) as stream:
        cells = csv_lines(format, stream)
        if format is not Format.JSONL and not (stream.seekable() and stream.tell()):
            stream.write(cells.line(_FIELDS).encode())
        for event in islice(found, limit):
            is_json = format is Format.JSONL
            stream.write(json_row(event, stream) if is_json else cells.line(_row(event)).encode())
            stream.flush()


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

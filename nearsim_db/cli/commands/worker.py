"""The command worker."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli.failures import INTERRUPTED
from nearsim_db.errors import NearsimError

if TYPE_CHECKING:
    from nearsim_db.records import Notable
    from nearsim_db.worker.worker import Worker

Collection = Annotated[
    str | None,
    typer.Option("--collection", "-c", metavar="NAME", help="Only this collection. (default: all)"),
]
Once = Annotated[bool, typer.Option("--once", help="Work until nothing is left to do, then end.")]
Port = Annotated[
    int | None,
    typer.Option(
        "--http", min=0, max=65_535, metavar="PORT", help="Serve /healthz and /metrics; 0 takes a free port."
    ),
]
Host = Annotated[str, typer.Option("--http-host", metavar="HOST", help="The address to serve them at.")]
KeepEvents = Annotated[
    str | None,
    typer.Option(
        "--keep-events",
        metavar="AGE",
        help='Remove events that are older, as in "2 days"; or none. [default: NEARSIM_KEEP_EVENTS, else 7 days]',
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Tell of errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Tell what happens in JSON lines.")]


def worker(
    collection: Collection = None,
    once: Once = False,
    http: Port = None,
    http_host: Host = "127.0.0.1",
    keep_events: KeepEvents = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Follow documents as applications write, change and delete them, until told to stop.

    Any number of workers may run, on any number of machines. On SIGTERM or Ctrl-C a worker finishes what it is at and
    ends; killed, it leaves what it had to the others. What happens is told on standard error.
    """
    from nearsim_db.cli.commands import monitoring
    from nearsim_db.records import Notable
    from nearsim_db.search.events import kept_seconds
    from nearsim_db.worker.worker import Worker

    if keep_events is not None:
        kept_seconds(keep_events)

    # That the database is lost is told in a line; the pool would add the traceback of every connection.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
    teller = _Teller(quiet=quiet, as_json=as_json)
    at_work = Worker(collection=collection, tell=teller, keep_events=keep_events)
    served = nullcontext() if http is None else monitoring.serve(at_work.monitor, http_host, http)
    try:
        with _until_signalled(at_work) as received, served as address:
            facts = {"pid": os.getpid(), "http": address}
            shown = f", its metrics at {address}/metrics" if address else ""
            start = Notable("start", f"worker {os.getpid()} starts{shown}", facts=facts)
            # Nobody else knows which port was free.
            teller.write(start) if http == 0 else teller(start)
            if once:
                _warn(teller, at_work.drain())
            else:
                at_work.run()
    except NearsimError as error:
        if not as_json:
            raise
        teller(Notable("failed", str(error), "error"))
        raise typer.Exit(error.exit_code) from error
    teller(Notable("stop", f"worker {os.getpid()} stops", facts={"pid": os.getpid()}))
    if signal.SIGINT in received:
        raise typer.Exit(INTERRUPTED)


def _warn(teller: "_Teller", set_aside: int) -> None:
    from nearsim_db.errors import count_of
    from nearsim_db.records import Notable

    if set_aside:
        message = f"set aside: {count_of(set_aside, 'document')}; see: nearsim work list --failed"
        teller(Notable("set_aside", message, "warning", {"documents": set_aside}))


class _Teller:
    """Writes a line for each notable thing on standard error."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self._quiet = quiet
        self._as_json = as_json

    def __call__(self, notable: "Notable") -> None:
        if not self._quiet or notable.level == "error":
            self.write(notable)

    def write(self, notable: "Notable") -> None:
        """Write it even when quiet."""
        from nearsim_db.cli.output import terminal
        from nearsim_db.readers.output import json_line

        now = datetime.now(UTC)
        if self._as_json:
            told = {"time": now, "level": notable.level, "event": notable.event, "message": notable.message}
            sys.stderr.write(json_line(told | dict(notable.facts)).decode())
        else:
            message = terminal.visible(" ".join(notable.message.split()))
            level = "" if notable.level == "info" else f"{notable.level}: "
            sys.stderr.write(f"{now.isoformat(timespec='seconds')} {level}{message}\n")
        sys.stderr.flush()


@contextmanager
def _until_signalled(at_work: "Worker") -> Iterator[list[int]]:
    """In the block SIGTERM and SIGINT stop the worker, a second SIGINT ends at once; yields what was received."""
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and signal.SIGINT in received:
            os._exit(INTERRUPTED)
        received.append(number)
        at_work.stop()

    before = {number: signal.signal(number, receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

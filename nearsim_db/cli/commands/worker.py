"""The command `nearsim worker`: index what applications write, until the worker is stopped."""

import logging
import os
import signal
from contextlib import nullcontext
from functools import partial
from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import INTERRUPTED, UsageError
from nearsim_db.cli.output.terminal import logged_to, on_signals, stderr_handler
from nearsim_db.errors import NearsimError
from nearsim_db.messages import count_of

Once = Annotated[bool, typer.Option("--once", help="Work until the queue is empty, then end.")]
Port = Annotated[
    int | None,
    typer.Option(
        "--http",
        min=0,
        max=65_535,
        metavar="PORT",
        help="Serve /healthz, /livez and /metrics; 0 chooses a free port.",
    ),
]
Host = Annotated[str, typer.Option("--http-host", metavar="HOST", help="Address for --http.")]
KeepEvents = Annotated[
    str | None,
    typer.Option(
        "--keep-events",
        metavar="AGE",
        help='Delete events older than AGE, such as "2 days"; none keeps all. (default: NEARSIM_KEEP_EVENTS, else 7 '
        "days)",
    ),
]
_log_option = partial(typer.Option, rich_help_panel=options.OUTPUT)
Quiet = Annotated[bool, _log_option("--quiet", "-q", help="Log errors only.")]
Verbose = Annotated[bool, _log_option("--verbose", "-v", help="Also log each batch.")]
AsJson = Annotated[bool, _log_option("--json", help="Log JSON lines.")]


def worker(
    collection: options.OneCollection = None,
    once: Once = False,
    http: Port = None,
    http_host: Host = "127.0.0.1",
    keep_events: KeepEvents = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Keep indexes up to date with what applications write.

    Runs until it is stopped, and indexes the documents that applications insert, change and delete. Any number of
    workers may run, on any number of machines. On SIGTERM or Ctrl-C, a worker finishes its current batch and ends. If a
    worker is killed, other workers take over its work. The log on standard error has a summary of the work each minute.
    """
    from nearsim_db.search.events import kept_seconds
    from nearsim_db.worker import metrics_server
    from nearsim_db.worker.worker import Worker

    if quiet and verbose:
        raise UsageError("give either --quiet or --verbose, not both")
    if keep_events is not None:
        kept_seconds(keep_events, "--keep-events")

    process = Worker(collection=collection, keep_events=keep_events)
    served = nullcontext() if http is None else metrics_server.serve(process.monitor, http_host, http)
    received: list[int] = []

    def receive(number: int) -> None:
        """Stop after the current batch, or at once on a second SIGINT."""
        if number == signal.SIGINT and signal.SIGINT in received:
            os._exit(INTERRUPTED)
        received.append(number)
        process.stop()

    handler = stderr_handler(as_json=as_json)
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO
    # The handler filters by level, not the logger, so that the start record can be let through below.
    with logged_to(handler, "nearsim.worker", min(level, logging.INFO)) as log:
        handler.setLevel(level)
        try:
            with on_signals(receive, signal.SIGTERM, signal.SIGINT), served as address:
                if http == 0:
                    # Only the start record names the chosen port, so write it even with --quiet.
                    handler.setLevel(logging.INFO)
                _log_start(log, collection, address)
                handler.setLevel(level)
                if once:
                    if documents := process.drain():
                        log.warning(
                            f"set aside: {count_of(documents, 'document')}; see: nearsim work list --failed",
                            extra={"event": "set_aside", "facts": {"documents": documents}},
                        )
                else:
                    process.run()
        except NearsimError as error:
            if not as_json:
                raise
            log.error(str(error), extra={"event": "failed"})
            raise typer.Exit(error.exit_code) from error
        log.info(f"worker {os.getpid()} stops", extra={"event": "stop", "facts": {"pid": os.getpid()}})
    if signal.SIGINT in received:
        raise typer.Exit(INTERRUPTED)


def _log_start(log: logging.Logger, collection: str | None, address: str | None) -> None:
    works_on = "" if collection is None else f" on collection {collection}"
    metrics = f", its metrics at {address}/metrics" if address else ""
    facts = {"pid": os.getpid(), "http": address, "works_on": collection}
    log.info(f"worker {os.getpid()} starts{works_on}{metrics}", extra={"event": "start", "facts": facts})

"""Processes of a server: its postmaster, its clients, and what a killed one left behind."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nearsim_db.errors import ServerError

if TYPE_CHECKING:
    import psutil

_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Postmaster:
    """The first process of a running server; `state` is starting, ready, standby or stopping."""

    pid: int
    state: str

    @cached_property
    def process(self) -> "psutil.Process":
        """Return the process. Raises psutil.NoSuchProcess if it has ended."""
        import psutil

        return psutil.Process(self.pid)


def find_postmaster(data_directory: Path) -> Postmaster | None:
    """Return the postmaster of a data directory, or None.

    The process id in postmaster.pid may be that of a killed server and in use by another program: it counts only if the
    process is a postgres in this directory. Raises OSError if the file is not readable.
    """
    try:
        lines = (data_directory / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None
    if not _serves(pid, data_directory):
        return None
    return Postmaster(pid, lines[7].strip() if len(lines) > 7 else "starting")


def _serves(pid: int, data_directory: Path) -> bool:
    folder = Path("/proc") / str(pid)
    arguments: list[str] = []
    try:
        arguments = os.fsdecode((folder / "cmdline").read_bytes()).split("\0")
        if Path(arguments[0]).name != "postgres":
            return False
        return (folder / "cwd").readlink() == data_directory
    except PermissionError:
        # In a container root may not inspect other users' processes, but may read their arguments.
        return str(data_directory) in arguments
    except (FileNotFoundError, ProcessLookupError):
        return False


def count_clients(postmaster: Postmaster) -> int:
    """Return the number of connected clients, by the titles of PostgreSQL's processes."""
    import psutil

    try:
        children = postmaster.process.children()
    except psutil.NoSuchProcess:
        return 0
    return sum(" [local]" in _title(child) for child in children)


def end_orphans(cluster_name: str, timeout_seconds: float = 10.0) -> None:
    """End the processes that a killed postmaster left behind.

    Most end by themselves, but one executing a long statement continues and prevents a new server from starting.
    The new server recovers from the write-ahead log. Raises ServerError if some do not end.
    """
    import psutil

    orphans = [process for process in psutil.process_iter() if _is_orphan(process, cluster_name)]
    for number in (signal.SIGQUIT, signal.SIGKILL):
        for orphan in orphans:
            with suppress(psutil.NoSuchProcess):
                orphan.send_signal(number)
        if wait_until(lambda: not any(map(_title, orphans)), timeout_seconds / 2):
            return
    remaining = ", ".join(str(orphan.pid) for orphan in orphans if _title(orphan))
    raise ServerError(f"Could not terminate leftover processes of a killed server: PIDs {remaining}.")


def _is_orphan(process: "psutil.Process", cluster_name: str) -> bool:
    import psutil

    if not _title(process).startswith(f"postgres: {cluster_name}: "):
        return False
    try:
        parent = process.parent()
        # A server in another container may have the same name; its processes have a postmaster.
        return parent is None or parent.name() != "postgres"
    except psutil.NoSuchProcess:
        return False


def _title(process: "psutil.Process") -> str:
    """Return the title of a process as in ps; empty once it has ended, even if not yet reaped."""
    import psutil

    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


def stop_postmaster(data_directory: Path, timeout_seconds: float = 300.0) -> bool:
    """Shut the server down without loss, closing its clients' connections; False if none was running.

    Raises ServerError if it still runs after `timeout_seconds`.
    """
    postmaster = find_postmaster(data_directory)
    if postmaster is None:
        return False
    try:
        os.kill(postmaster.pid, signal.SIGINT)
    except ProcessLookupError:
        return True
    if not wait_until(lambda: find_postmaster(data_directory) is None, timeout_seconds):
        raise ServerError(f"Process {postmaster.pid}, the server, has not ended in {timeout_seconds:.0f} s.")
    return True


def wait_until(condition: Callable[[], bool], timeout_seconds: float) -> bool:
    """Wait for a condition; False if it does not become true within `timeout_seconds`."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True

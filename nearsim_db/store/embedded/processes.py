"""The processes of a server, its log, whose size is bounded, and file locks, which end with their process."""

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


import fcntl
from typing import Self

from nearsim_db.store.embedded.account import Account

_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Postmaster:
    """The first process of a running server."""

    pid: int
    state: str  # starting, ready, standby or stopping

    @cached_property
    def process(self) -> "psutil.Process":
        """Return the process. Raises psutil.NoSuchProcess if it has ended."""
        import psutil

        return psutil.Process(self.pid)


def find_postmaster(data_directory: Path) -> Postmaster | None:
    """Return the postmaster of a data directory, or None if none is running.

    After a postmaster was killed, another program may have the process id in postmaster.pid. So the process counts only
    if it is a postgres in this directory. Raises OSError if the file is not readable.
    """
    try:
        lines = (data_directory / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None
    if not _serves(pid, data_directory):
        return None
    # The eighth line has the state, once the postmaster has written it.
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
        # In a container, root may not inspect the processes of other users, but may read their arguments.
        return str(data_directory) in arguments
    except (FileNotFoundError, ProcessLookupError):
        return False


def count_clients(postmaster: Postmaster) -> int:
    """Return the number of connected clients, counted by the titles of PostgreSQL's processes."""
    import psutil

    try:
        children = postmaster.process.children()
    except psutil.NoSuchProcess:
        return 0
    return sum(" [local]" in _title(child) for child in children)


def end_orphans(cluster_name: str, timeout_seconds: float = 10.0) -> None:
    """End the processes that a killed postmaster left behind. Raises ServerError if any of them does not end.

    Most of them end by themselves, but a process that executes a long statement continues, and prevents a new server
    from starting. The new server recovers from the write-ahead log.
    """
    import psutil

    orphans = [process for process in psutil.process_iter() if _is_orphan(process, cluster_name)]
    for signal_number in (signal.SIGQUIT, signal.SIGKILL):
        for orphan in orphans:
            with suppress(psutil.NoSuchProcess):
                orphan.send_signal(signal_number)
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
        # A server in another container may have the same name, but its processes have a postmaster.
        return parent is None or parent.name() != "postgres"
    except psutil.NoSuchProcess:
        return False


def _title(process: "psutil.Process") -> str:
    """Return the title of a process as ps shows it; empty if it has ended, even if nobody has waited for it yet."""
    import psutil

    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


def stop_postmaster(data_directory: Path, timeout_seconds: float = 300.0) -> bool:
    """Shut the server down without loss of data, and close the connections of its clients.

    Returns False if it was not running. Raises ServerError if it is still running after `timeout_seconds`.
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
    """Wait for a condition; return False if it does not become true within `timeout_seconds`."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


_MAX_LOG_BYTES = 10 * 1024 * 1024
_KEPT_LOG_BYTES = 1024 * 1024


def open_log(log: Path, account: Account) -> None:
    """Create the log if it does not exist, make it writable for the server's user, and bound its size."""
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    account.give(log)
    bound_log(log)


def bound_log(log: Path) -> None:
    """Empty a log that is larger than 10 MB, and keep its end in a file beside it; the server may be writing to it."""
    if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
        with log.open("rb") as file:
            file.seek(-_KEPT_LOG_BYTES, os.SEEK_END)
            end = file.read()

        # The file is private, because details of errors may quote documents.
        kept = log.with_name(f"{log.name}.1")
        with os.fdopen(
            os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb"
        ) as older:
            os.fchmod(older.fileno(), 0o600)
            older.write(end)
        os.truncate(log, 0)


def log_tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of the log, each indented on its own line; empty if there is no log."""
    try:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    except FileNotFoundError:
        return ""
    return "".join(f"\n  {line}" for line in tail)


class LockTimeout(Exception):
    """Raised if another process keeps a lock for too long."""


class FileLock:
    """A lock on a file; the end of a `with` block releases it. Unless `create`, the file must exist.

    The file is private to this user, because everybody who can open it, even only to read, can lock it.
    """

    def __init__(self, path: Path, timeout_seconds: float, *, create: bool = True) -> None:
        self._path = path
        self._flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
        self._timeout_seconds = timeout_seconds
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises LockTimeout, and OSError if the file cannot be opened."""
        with suppress(FileNotFoundError):
            self._path.chmod(0o600)
        descriptor = os.open(self._path, self._flags, 0o600)
        if not wait_until(lambda: try_lock(descriptor), self._timeout_seconds):
            os.close(descriptor)
            raise LockTimeout
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock; has no effect if the lock is not taken."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def try_lock(descriptor: int) -> bool:
    """Lock an open file, and return True, unless another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""A lock that one process holds at a time, released by the system when the process ends."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from nearsim_db.store.embedded.processes import wait_until


class LockTimeout(Exception):
    """Another process kept the lock for too long."""


class FileLock:
    """A lock on a file that no other user may open: who can open it, if only to read, can lock it.

    As a block it is released at the end. Unless `create` is set the file must exist.
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
        """Release the lock; without effect if it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def try_lock(descriptor: int) -> bool:
    """Lock an open file unless another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Files that killed processes leave behind: incomplete output files, and copies of inputs in temporary folders."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PART = re.compile(r"\..+\.[0-9a-f]{16}\.part")
_COPIES = "nearsim-copies-"


def part_of(target: Path) -> Path:
    """Return a new name, in the same folder, for a file that will replace `target`."""
    # Other users may create files in the folder, so use a name that they cannot guess.
    return target.with_name(f".{target.name}.{os.urandom(8).hex()}.part")


def sweep_parts(folder: Path) -> None:
    """Delete files that have names of `part_of` in a folder, except those that a process is still writing."""
    with suppress(OSError):  # if the folder cannot be listed, writing to it reports why
        for path in folder.iterdir():
            if _PART.fullmatch(path.name):
                _sweep(path)


def sweep_copies() -> None:
    """Delete folders of `temporary_copies` whose processes were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_COPIES}*"):
        _sweep(folder)


@contextmanager
def temporary_copies() -> Iterator[Path]:
    """Make a folder for copies of inputs, which is deleted after the block; also delete folders of killed processes."""
    sweep_copies()
    while True:
        with tempfile.TemporaryDirectory(prefix=_COPIES) as folder:
            try:
                descriptor = os.open(folder, os.O_RDONLY)
            except FileNotFoundError:
                continue  # another process swept it before it was locked
            try:
                if lock(descriptor):
                    yield Path(folder)
                    return
            finally:
                os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Mark a new file or folder as in use until it is closed; return False if another process deleted it before."""
    with suppress(OSError):  # where a file system has no locks, nothing is swept
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def _sweep(path: Path) -> None:
    """Delete a file or folder if it belongs to the current user and no process has locked it."""
    with suppress(OSError):  # it is gone, belongs to another user, or is in use
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if os.fstat(descriptor).st_uid != os.geteuid():
                return
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)

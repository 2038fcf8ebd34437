"""Output files that appear only when they are complete, lines of JSON, and errors of temporary files."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import orjson

from nearsim_db.errors import NearsimError
from nearsim_db.readers.leftovers import lock, part_of, sweep_parts
from nearsim_db.records import STANDARD_OUTPUT

_OPENED = Path("/proc/self/fd")
# The errors of file systems and kernels that lack O_TMPFILE.
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


def json_line(record: object) -> bytes:
    """Serialise a record as a line of JSON that ends in a newline; dataclasses become objects."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


@contextmanager
def open_output(path: Path, *, sweep: bool = True) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` at the end of the block, and only if the block succeeds.

    So a file may be read while its replacement is being written. Pipes, devices and, for the path '-', standard output
    are written to directly. With `sweep`, files that killed processes left in the folder are deleted. Raises
    NearsimError if the file cannot be written.
    """
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as stream:
                yield stream
        else:
            yield from _replacing(path.resolve(), sweep=sweep)
    except OSError as error:
        raise NearsimError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def full_disk() -> Iterator[None]:
    """Raise NearsimError if a temporary file cannot be written in the block."""
    try:
        yield
    except OSError as error:
        raise NearsimError(
            f"cannot write a temporary file: {error.strerror or error}; set TMPDIR to a folder with room"
        ) from error


def _replacing(target: Path, *, sweep: bool) -> Iterator[BinaryIO]:
    if sweep:
        sweep_parts(target.parent)
    descriptor = _open_unnamed(target.parent)
    if descriptor is None:
        yield from _replacing_by_name(target)
        return

    part = part_of(target)
    with os.fdopen(descriptor, "w+b") as stream:
        lock(descriptor)
        _keep_mode(target, descriptor)
        yield stream
        stream.flush()
        try:
            # A file can be linked only under a name that does not exist, so use a new name first, and then replace.
            os.link(_OPENED / str(descriptor), part, src_dir_fd=descriptor)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _open_unnamed(folder: Path) -> int | None:
    """Open a file without a name, which disappears with the process, even if the process is killed.

    Returns None if the file system does not support such files, or if /proc, which is needed to name them later, is
    missing.
    """
    if not _OPENED.is_dir():
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError as error:
        if error.errno not in _NO_UNNAMED or not folder.is_dir():
            raise
        return None


def _replacing_by_name(target: Path) -> Iterator[BinaryIO]:
    """Write to a named file first, for file systems without unnamed files."""
    while True:
        part = part_of(target)
        try:
            with part.open("xb") as stream:
                if not lock(stream.fileno()):
                    continue  # another process swept it before it was locked
                _keep_mode(target, stream.fileno())
                yield stream
            part.replace(target)
            return
        finally:
            part.unlink(missing_ok=True)


def _keep_mode(target: Path, descriptor: int) -> None:
    """Give a file the mode of the file that it replaces, if there is one."""
    if target.exists():
        os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))

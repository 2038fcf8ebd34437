"""Output files: JSON lines, files that appear only when they are complete, and errors of temporary ones."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import orjson

from nearsim_db.errors import NearsimError
from nearsim_db.records import STANDARD_OUTPUT


def json_line(record: object) -> bytes:
    """Serialise a record as one line of JSON, newline included; dataclasses become objects."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


@contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` at the end of the block, and only if the block succeeds.

    So a file may be read while its replacement is written. Pipes, devices and, for the path '-', standard
    output are written to directly. Raises NearsimError if it cannot be written.
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
            yield from _replacing(path.resolve())
    except OSError as error:
        raise NearsimError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def full_disk() -> Iterator[None]:
    """Raise NearsimError if a temporary file cannot be written."""
    try:
        yield
    except OSError as error:
        raise NearsimError(
            f"cannot write a temporary file: {error.strerror or error}; set TMPDIR to a folder with room"
        ) from error


def _replacing(target: Path) -> Iterator[BinaryIO]:
    # Others may create files in the folder: a name that they cannot guess, opened only if it is new.
    part = target.with_name(f".{target.name}.{os.urandom(8).hex()}.part")
    try:
        with part.open("xb") as stream:
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            yield stream
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)

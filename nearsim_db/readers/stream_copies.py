"""Inputs that can be read only once, copied to disk."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from nearsim_db.errors import InputError
from nearsim_db.readers.input_file import STANDARD_INPUT, Readable, pieces_of
from nearsim_db.readers.source import JSON, STANDARD_INPUT_DEVICE
from nearsim_db.records import Progress, silent

_PIECE_BYTES = 1 << 20


@contextmanager
def readable_twice(
    paths: Sequence[Path], suffix: str | None, progress: Progress = silent
) -> Iterator[list[Path]]:
    """Return the paths, with temporary copies of standard input and pipes, which are deleted after the block.

    A copy has the name of its pipe, with a suffix if that has none: the one given, else that of a JSON array, which may
    be JSON lines. Raises InputError if it cannot be written.
    """
    if not any(map(_is_stream, paths)):
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="nearsim-") as folder:
        yield [
            _copied(path, Path(folder, str(at)), suffix or JSON, progress) if _is_stream(path) else path
            for at, path in enumerate(paths)
        ]


def _is_stream(path: Path) -> bool:
    return path in (STANDARD_INPUT, STANDARD_INPUT_DEVICE) or path.is_fifo()


def _copied(path: Path, folder: Path, suffix: str, progress: Progress) -> Path:
    is_standard = path in (STANDARD_INPUT, STANDARD_INPUT_DEVICE)
    name = "standard-input" if is_standard else path.name
    copy = folder / (name if Path(name).suffix else f"{name}{suffix}")
    try:
        folder.mkdir()
        with copy.open("wb") as target:
            if is_standard:
                _copy(cast(Readable, sys.stdin.buffer), target, progress)
            else:
                with path.open("rb") as stream:
                    _copy(stream, target, progress)
    except OSError as error:
        raise InputError(
            f"cannot copy {path} to {folder}: {error.strerror or error}; set TMPDIR to a folder with room"
        ) from error
    return copy


def _copy(stream: Readable, target: BinaryIO, progress: Progress) -> None:
    done = 0
    for piece in pieces_of(stream, _PIECE_BYTES):
        target.write(piece)
        done += len(piece)
        progress("spool", done // 1_000_000, None)

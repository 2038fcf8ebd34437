"""Inputs that can be read only once, copied to disk."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nearsim_db.errors import InputError
from nearsim_db.readers.input_file import STANDARD_INPUT
from nearsim_db.readers.source import JSON, STANDARD_INPUT_DEVICE

_PIECE_BYTES = 1 << 20


@contextmanager
def readable_twice(paths: Sequence[Path], suffix: str | None) -> Iterator[list[Path]]:
    """Return the paths, with temporary copies of standard input and pipes, which are deleted after the block.

    A copy has the name of its pipe, with a suffix if that has none: the one given, else that of a JSON array, which may
    be JSON lines. Raises InputError if it cannot be written.
    """
    if not any(map(_is_stream, paths)):
        yield list(paths)
        return
    with tempfile.TemporaryDirectory(prefix="nearsim-") as folder:
        yield [
            _copied(path, Path(folder, str(at)), suffix or JSON) if _is_stream(path) else path
            for at, path in enumerate(paths)
        ]


def _is_stream(path: Path) -> bool:
    return path in (STANDARD_INPUT, STANDARD_INPUT_DEVICE) or path.is_fifo()


def _copied(path: Path, folder: Path, suffix: str) -> Path:
    is_standard = path in (STANDARD_INPUT, STANDARD_INPUT_DEVICE)
    name = "standard-input" if is_standard else path.name
    copy = folder / (name if Path(name).suffix else f"{name}{suffix}")
    try:
        folder.mkdir()
        with copy.open("wb") as target:
            if is_standard:
                shutil.copyfileobj(sys.stdin.buffer, target, _PIECE_BYTES)
            else:
                with path.open("rb") as stream:
                    shutil.copyfileobj(stream, target, _PIECE_BYTES)
    except OSError as error:
        raise InputError(
            f"cannot copy {path} to {folder}: {error.strerror or error}; set TMPDIR to a folder with room"
        ) from error
    return copy

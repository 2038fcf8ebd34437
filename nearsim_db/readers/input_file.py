"""An input file as lines of bytes, decompressed."""

import codecs
import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePath
from typing import Protocol, cast

from nearsim_db.errors import InputError
from nearsim_db.readers.compression import DAMAGE_ERRORS, DECOMPRESSORS, PIECE_BYTES, decompressed
from nearsim_db.similarity.text.clean import clean

MAX_RECORD_BYTES = 200_000_000
STANDARD_INPUT = Path("-")

_PIECE_BYTES = 1 << 18


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class OpenRefusal(Flag):
    """What is not opened: symbolic links, and anything but regular files, such as a FIFO that blocks."""

    NOTHING = 0
    LINKS = auto()
    SPECIAL_FILES = auto()


class _DamagedError(InputError):
    """A file could not be read to its end."""


@dataclass(slots=True)
class ReadProgress:
    """The number of bytes read so far, as stored on disk (compressed)."""

    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read, or standard input for the path '-'; records longer than `limit` bytes are rejected.

    `refused` are flags of `OpenRefusal`: kinds of files that are an error, even if the path became one just now.
    """

    path: Path
    progress: ReadProgress = field(default_factory=ReadProgress)
    limit: int = MAX_RECORD_BYTES
    refused: OpenRefusal = OpenRefusal.NOTHING

    @property
    def name(self) -> str:
        """The path for messages; bytes that are not UTF-8 are replaced by U+FFFD."""
        return clean(str(self.path))[0]

    @property
    def too_long(self) -> str:
        """The reason for rejecting a record beyond the limit."""
        return f"longer than {self.limit:,} bytes, the maximum for one document"

    def content(self) -> bytes | None:
        """Read the whole file, without a byte order mark; None if it exceeds the limit.

        Raises InputError if it cannot be read.
        """
        content = bytearray()
        for piece in self._pieces():
            content += piece
            if len(content) > self.limit:
                return None
        return self._without_mark(bytes(content))

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield each line with its number from 1, without its newline; None for one that exceeds the limit.

        Raises InputError if the file cannot be read further, after yielding every complete line before.
        """
        number = 0
        try:
            for number, line in self._split():
                yield number, self._without_mark(line) if number == 1 and line else line
        except _DamagedError as error:
            raise InputError(
                f"{error}, after {number:,} complete lines; repair or download the file again and rerun the command"
            ) from error

    def _split(self) -> Iterator[tuple[int, bytes | None]]:
        number = 0
        begun: list[bytes] = []
        size = 0
        for piece in self._pieces():
            *ends, rest = piece.split(b"\n")
            for end in ends:
                number += 1
                if size + len(end) > self.limit:
                    yield number, None
                else:
                    yield number, b"".join([*begun, end]) if begun else end
                begun, size = [], 0
            size += len(rest)
            if size > self.limit:
                begun = []
            elif rest:
                begun.append(rest)
        if size:
            yield number + 1, b"".join(begun) if size <= self.limit else None

    def _pieces(self) -> Iterator[bytes]:
        """Yield the decompressed content piece by piece."""
        suffix = self.path.suffix.lower()
        try:
            if suffix in DECOMPRESSORS:
                size = PIECE_BYTES[suffix]
                reread = partial(self._raw_again, size) if self.path.is_file() else None
                yield from decompressed(suffix, self._raw(size), reread)
            else:
                yield from self._raw(_PIECE_BYTES)
        except DAMAGE_ERRORS as error:
            raise _DamagedError(f"{self.name} is truncated or damaged ({error})") from error
        except OSError as error:
            raise _DamagedError(f"cannot read {self.name}: {error.strerror or error}") from error

    def _raw(self, size: int) -> Iterator[bytes]:
        if self.path == STANDARD_INPUT:
            yield from self._counted(cast(_Readable, sys.stdin.buffer), size)
        else:
            with self._opened() as stream:
                yield from self._counted(stream, size)

    @contextmanager
    def _opened(self) -> Iterator[BufferedReader]:
        flags = os.O_RDONLY | os.O_CLOEXEC
        if OpenRefusal.LINKS in self.refused:
            flags |= os.O_NOFOLLOW
        if OpenRefusal.SPECIAL_FILES in self.refused:
            flags |= os.O_NONBLOCK
        with os.fdopen(os.open(self.path, flags), "rb") as stream:
            is_regular = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            if OpenRefusal.SPECIAL_FILES in self.refused and not is_regular:
                raise OSError(errno.EINVAL, "not a regular file")
            yield stream

    def _raw_again(self, size: int) -> Iterator[bytes]:
        """Yield the raw content once more, without counting it."""
        yield from replace(self, progress=ReadProgress())._raw(size)

    def _counted(self, stream: _Readable, size: int) -> Iterator[bytes]:
        while piece := stream.read1(size):
            self.progress.bytes_read += len(piece)
            yield piece

    def _without_mark(self, start: bytes) -> bytes:
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(f"{self.name} is UTF-16; convert it with: iconv -f UTF-16 -t UTF-8")
        return start.removeprefix(codecs.BOM_UTF8)


def file_type(path: Path) -> str:
    """Return the suffix that identifies the format, in lower case and without that of the compression."""
    whole = PurePath(path.name.lower())
    return whole.with_suffix("").suffix if whole.suffix in DECOMPRESSORS else whole.suffix

"""An input file as lines of bytes, decompressed."""

import codecs
import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader, UnsupportedOperation
from itertools import chain
from pathlib import Path
from select import POLLIN, poll
from typing import Protocol, cast

from nearsim_db.errors import InputError
from nearsim_db.readers.decoding import (
    DAMAGE_ERRORS,
    DECOMPRESSORS,
    PIECE_BYTES,
    compression_of,
    control_share,
    decompressed,
    in_utf8,
    is_utf8,
)
from nearsim_db.similarity.text.clean import clean

MAX_RECORD_BYTES = 200_000_000
# Numbers, lists and the like, which take some 40 bytes each in memory.
MAX_RECORD_VALUES = 5_000_000
STANDARD_INPUT = Path("-")

_PIECE_BYTES = 1 << 18
_WAIT_MILLISECONDS = 200
# A text of more lines, which are shorter on average, may have a document a line.
_MIN_HINT_LINES = 1_000
_MAX_MEAN_LINE_BYTES = 400
_LFS_POINTER = b"version https://git-lfs"
MAX_POINTER_BYTES = 1024


class Readable(Protocol):
    """A binary stream."""

    def read1(self, size: int, /) -> bytes: ...
    def fileno(self) -> int: ...


class _DamagedError(InputError):
    """A file could not be read to its end."""


@dataclass(slots=True)
class ReadProgress:
    """What was read so far, and what was noticed about the files."""

    bytes_read: int = 0
    """Bytes as stored on disk, compressed."""
    compressed: dict[str, str] = field(default_factory=dict)
    """The compression of files whose suffix does not say that they are compressed, by name."""
    not_utf8: dict[str, None] = field(default_factory=dict)
    """Names of files whose beginning is not UTF-8."""
    held_lines: dict[str, "HeldLines"] = field(default_factory=dict)
    """Lines in quoted cells of CSV that look like rows, by name of the file."""
    many_lines: dict[str, int] = field(default_factory=dict)
    """The number of lines of files that are one text of many short lines, by name."""
    other_tables: dict[str, str] = field(default_factory=dict)
    """The sheets of spreadsheets that were not read, by name of the file."""

    def note_held_lines(self, name: str, begin: int, end: int, lines: int) -> None:
        """Note that a row of a file, from one line to another, has cells with so many lines that look like rows."""
        held = self.held_lines.setdefault(name, HeldLines(begin, end))
        held.lines += lines

    def note_lines(self, name: str, content: bytes) -> None:
        """Note that a file is one text, if it has many short lines."""
        lines = content.count(b"\n")
        if lines > _MIN_HINT_LINES and len(content) < _MAX_MEAN_LINE_BYTES * lines:
            self.many_lines[name] = lines


@dataclass(slots=True)
class HeldLines:
    """Lines of quoted cells that look like rows; the first row that has some is from line `begin` to `end`."""

    begin: int
    end: int
    lines: int = 0


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read and how to read it; the path '-' is standard input."""

    path: Path
    progress: ReadProgress = field(default_factory=ReadProgress)
    limit: int = MAX_RECORD_BYTES
    """Longer records are rejected, in bytes."""
    most_values: int = MAX_RECORD_VALUES
    """Records of more values are rejected."""
    is_regular: bool = False
    """Whether anything but a regular file is an error, such as a FIFO, even if the path became one just now."""
    follow_links: bool = True
    """If not, a symbolic link is an error, even if the path became one just now."""
    encoding: str | None = None
    """The encoding of the text, which is converted to UTF-8."""
    delimiter: str | None = None
    """The character between the columns of CSV and TSV, by default the one of the format."""
    quote: str | None = None
    """The character that encloses cells, by default the double quote; or `none`."""
    escape: str | None = None
    """The character before one that is taken as it is."""
    comment: str | None = None
    """Rows that begin so are skipped."""
    has_header: bool = True
    """If not, the columns are called 1, 2 and so on."""
    records: str | None = None
    """The path of the array of records in a JSON object."""
    table: str | None = None
    """The name of a sheet or a table."""
    query: str | None = None
    """Selects rows of SQLite."""
    names_encodings: bool = False
    """Whether the content says how it is encoded, and is not converted."""
    begun: Iterator[bytes] | None = None
    """The content in pieces of UTF-8, if reading it has begun."""
    original: Path | None = None
    """The path of which this file is a copy."""
    split: tuple[str, int] | None = None
    """The split of a data set that the file is part of, and the number of rows in the parts before."""

    @property
    def name(self) -> str:
        """The path for messages; bytes that are not UTF-8 are replaced by U+FFFD."""
        return clean(str(self.original or self.path))[0]

    @property
    def too_long(self) -> str:
        """The reason for rejecting a record beyond the limit."""
        return f"longer than {self.limit:,} bytes, the maximum for one document"

    @property
    def too_many(self) -> str:
        """The reason for rejecting a record with more values."""
        return f"more than {self.most_values:,} values, the maximum for one document"

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

    def has_mark(self) -> bool:
        """Whether the content begins with a byte order mark of UTF-8."""
        # With a progress of its own, as the content is read again.
        first = next(filter(None, replace(self, progress=ReadProgress())._pieces()), b"")
        return first.startswith(codecs.BOM_UTF8)

    def on_disk(self, kind: str) -> Path:
        """Return the path of a file of a kind that is not read from its beginning to its end.

        Raises InputError for standard input, pipes, and compressed files.
        """
        if not self.path.is_file():
            raise InputError(
                f"{self.name} is not a regular file; {kind} cannot be read from a pipe: save it to a file first"
            )
        with self.path.open("rb") as stream:
            start = stream.read(MAX_POINTER_BYTES)
        refuse_pointer(self.name, start)
        if compression_of(start):
            raise InputError(f"{self.name} is compressed; decompress the file first")
        return self.path

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield each line with its number from 1, without its newline; None for one that exceeds the limit.

        Raises InputError if the file cannot be read further, after yielding every complete line before.
        """
        for first, lines in self.blocks():
            yield from enumerate(lines, first)

    def blocks(self) -> Iterator[tuple[int, list[bytes | None]]]:
        """Yield what `lines` does in lists, each with the number of its first line."""
        done = 0
        try:
            for lines in self._split():
                if not done and lines[0]:
                    lines[0] = self._without_mark(lines[0])
                yield done + 1, lines
                done += len(lines)
        except _DamagedError as error:
            raise InputError(
                f"{error}, after {done:,} complete lines; repair or download the file again and rerun the command"
            ) from error

    def pieces(self) -> Iterator[bytes]:
        """Yield the content piece by piece. Raises InputError if it cannot be read further."""
        for number, piece in enumerate(self._pieces()):
            yield self._without_mark(piece) if number == 0 else piece

    def _split(self) -> Iterator[list[bytes | None]]:
        # The pieces of a line that goes on, dropped once it is too long, and its size so far.
        begun: list[bytes] = []
        size = 0
        for piece in self._pieces():
            first, *lines = piece.split(b"\n")
            size += len(first)
            if size > self.limit:
                begun = []
            elif first:
                begun.append(first)

            if lines:
                rest = lines.pop()
                whole = b"".join(begun) if size <= self.limit else None
                # No line is longer than the piece that has all of it.
                yield [whole, *(lines if len(piece) <= self.limit else map(self._within_limit, lines))]
                size = len(rest)
                begun = [rest] if rest and size <= self.limit else []

        # The last line may have no newline.
        if size:
            yield [b"".join(begun) if size <= self.limit else None]

    def _within_limit(self, line: bytes) -> bytes | None:
        return line if len(line) <= self.limit else None

    def _pieces(self) -> Iterator[bytes]:
        """Yield the decompressed content in UTF-8, piece by piece."""
        if self.begun is not None:
            yield from self.begun
            return
        try:
            pieces = self._decompressed()
            is_converted = self.encoding is not None and not self.names_encodings
            yield from in_utf8(pieces, cast(str, self.encoding)) if is_converted else pieces
        except DAMAGE_ERRORS as error:
            raise _DamagedError(f"{self.name} is truncated or damaged ({error})") from error
        except OSError as error:
            raise _DamagedError(f"cannot read {self.name}: {error.strerror or error}") from error

    def _decompressed(self) -> Iterator[bytes]:
        suffix = self.path.suffix.lower()
        if suffix in DECOMPRESSORS:
            pieces = self._decompress(suffix, self._raw(PIECE_BYTES[suffix]))
        else:
            raw = self._raw(_PIECE_BYTES)
            start = next(raw, b"")
            pieces = chain((start,), raw)
            if suffix := compression_of(start):
                self.progress.compressed[self.name] = suffix
                pieces = self._decompress(suffix, _cut(pieces, PIECE_BYTES[suffix]))

        first = next(filter(None, pieces), b"")  # a large block of bzip2 ends after several pieces
        refuse_pointer(self.name, first)
        is_unknown = self.encoding is None and not self.names_encodings
        if is_unknown and not is_utf8(first) and control_share(first) is None:
            self.progress.not_utf8[self.name] = None
        yield first
        yield from pieces

    def _decompress(self, suffix: str, raw: Iterator[bytes]) -> Iterator[bytes]:
        reread = partial(self._raw_again, PIECE_BYTES[suffix]) if self.path.is_file() else None
        return decompressed(suffix, raw, reread)

    def _raw(self, size: int) -> Iterator[bytes]:
        if self.path == STANDARD_INPUT:
            yield from self._counted(cast(Readable, sys.stdin.buffer), size)
        else:
            with self._opened() as stream:
                yield from self._counted(stream, size)

    @contextmanager
    def _opened(self) -> Iterator[BufferedReader]:
        flags = os.O_RDONLY | os.O_CLOEXEC
        if not self.follow_links:
            flags |= os.O_NOFOLLOW
        if self.is_regular:
            # Otherwise opening a FIFO waits for a writer.
            flags |= os.O_NONBLOCK
        with os.fdopen(os.open(self.path, flags), "rb") as stream:
            # The open file is asked, as the path may have changed.
            if self.is_regular and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            yield stream

    def _raw_again(self, size: int) -> Iterator[bytes]:
        """Yield the raw content once more, without counting it."""
        yield from replace(self, progress=ReadProgress())._raw(size)

    def _counted(self, stream: Readable, size: int) -> Iterator[bytes]:
        for piece in pieces_of(stream, size):
            self.progress.bytes_read += len(piece)
            yield piece

    def _without_mark(self, start: bytes) -> bytes:
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(f"{self.name} is UTF-16; give --encoding utf-16")
        return start.removeprefix(codecs.BOM_UTF8)


def refuse_pointer(name: str, start: bytes) -> None:
    """Raise InputError for a file that Git LFS keeps elsewhere, by its first bytes."""
    if start.startswith(_LFS_POINTER):
        raise InputError(f"{name} is a pointer of Git LFS, not the file itself; run: git lfs pull")


def pieces_of(stream: Readable, size: int) -> Iterator[bytes]:
    """Yield the content of a stream in pieces of at most `size` bytes.

    Reading waits for content in steps: a signal just before a blocking read would be handled only after that.
    """
    try:
        descriptor = stream.fileno()
    except UnsupportedOperation:  # it is in memory
        wait = None
    else:
        wait = poll()
        wait.register(descriptor, POLLIN)
    while True:
        while wait is not None and not wait.poll(_WAIT_MILLISECONDS):
            pass
        if not (piece := stream.read1(size)):
            return
        yield piece


def _cut(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        for begin in range(0, len(piece), size):
            yield piece[begin : begin + size]

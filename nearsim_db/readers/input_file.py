"""Input files: their content in UTF-8, decompressed, as a whole, in pieces or in lines."""

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
# Numbers, lists and other values, each of which takes some 40 bytes in memory.
MAX_RECORD_VALUES = 5_000_000
STANDARD_INPUT = Path("-")

_PIECE_BYTES = 1 << 18
_WAIT_MILLISECONDS = 200
# If a text has more lines than this, and shorter ones on average, each line may be meant as a document.
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
    """How much was read so far, and what was noticed about the files."""

    bytes_read: int = 0
    """The number of bytes read from disk, before decompression."""
    compressed: dict[str, str] = field(default_factory=dict)
    """The compression of files whose suffix does not say that they are compressed, by file name."""
    not_utf8: dict[str, None] = field(default_factory=dict)
    """The names of files whose beginning is not UTF-8."""
    quoted_lines: dict[str, "QuotedLines"] = field(default_factory=dict)
    """Lines in quoted cells of CSV that look like rows, by file name."""
    many_lines: dict[str, int] = field(default_factory=dict)
    """The number of lines of files that are one text with many short lines, by file name."""
    other_tables: dict[str, str] = field(default_factory=dict)
    """The sheets of spreadsheets that were not read, by file name."""

    def note_quoted_lines(self, name: str, begin: int, end: int, lines: int) -> None:
        """Note that cells of the row from line `begin` to line `end` contain `lines` lines that look like rows."""
        quoted = self.quoted_lines.setdefault(name, QuotedLines(begin, end))
        quoted.lines += lines

    def note_lines(self, name: str, content: bytes) -> None:
        """Note that a file is one text, if it has many short lines."""
        lines = content.count(b"\n")
        if lines > _MIN_HINT_LINES and len(content) < _MAX_MEAN_LINE_BYTES * lines:
            self.many_lines[name] = lines


@dataclass(slots=True)
class QuotedLines:
    """Lines in quoted cells that look like rows."""

    begin: int  # the first line of the first row that contains such lines
    end: int  # the last line of this row
    lines: int = 0  # the number of such lines in all rows


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file and the options with which it is read; the path '-' is standard input."""

    path: Path
    progress: ReadProgress = field(default_factory=ReadProgress)
    limit: int = MAX_RECORD_BYTES
    """The maximum size of a record in bytes; longer records are rejected."""
    max_values: int = MAX_RECORD_VALUES
    """The maximum number of values in a record; records with more values are rejected."""
    is_regular: bool = False
    """Whether it is an error if the file is not a regular one, for example a FIFO that has just taken its place."""
    follow_links: bool = True
    """If false, it is an error if the file is a symbolic link, even one that has just taken its place."""
    encoding: str | None = None
    """The encoding of the text, which is converted to UTF-8."""
    delimiter: str | None = None
    """The character between the columns of CSV and TSV, by default that of the format."""
    quote: str | None = None
    """The character that encloses cells, by default the double quote; or `none`."""
    escape: str | None = None
    """The character that makes the next character an ordinary one."""
    comment: str | None = None
    """The character that begins rows to skip."""
    has_header: bool = True
    """Whether the first row names the columns; if not, the columns are called 1, 2 and so on."""
    records: str | None = None
    """The path of the array of records in a JSON object."""
    table: str | None = None
    """The name of a sheet, or of a table of SQLite."""
    query: str | None = None
    """A query that selects rows of SQLite, instead of a table."""
    names_encodings: bool = False
    """Whether the content itself names its encodings, so that it must not be converted."""
    begun: Iterator[bytes] | None = None
    """The content in pieces of UTF-8, if reading has begun already."""
    original: Path | None = None
    """The path of the original, if this file is a copy."""
    split: tuple[str, int] | None = None
    """The split of a data set that this file is a part of, and the number of rows in earlier parts of the split."""

    @property
    def name(self) -> str:
        """The path as messages show it, with U+FFFD in place of bytes that are not UTF-8."""
        return clean(str(self.original or self.path))[0]

    @property
    def too_long(self) -> str:
        """The reason for rejecting a record that is longer than the limit."""
        return f"longer than {self.limit:,} bytes, the maximum for one document"

    @property
    def too_many(self) -> str:
        """The reason for rejecting a record with too many values."""
        return f"more than {self.max_values:,} values, the maximum for one document"

    def content(self) -> bytes | None:
        """Return the whole content without a byte order mark, or None if it exceeds the limit.

        Raises InputError if the file cannot be read.
        """
        content = bytearray()
        for piece in self._pieces():
            content += piece
            if len(content) > self.limit:
                return None
        return self._without_mark(bytes(content))

    def has_mark(self) -> bool:
        """Whether the content begins with a byte order mark of UTF-8."""
        # Use a new progress, so that the bytes are not counted twice.
        first = next(filter(None, replace(self, progress=ReadProgress())._pieces()), b"")
        return first.startswith(codecs.BOM_UTF8)

    def on_disk(self, kind: str) -> Path:
        """Return the path of a file that cannot be read from beginning to end, such as a spreadsheet.

        `kind` names the kind of file in messages. Raises InputError for standard input, pipes and compressed files.
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
        """Yield each line with its number from 1, without its newline; None instead of a line that exceeds the limit.

        If the file cannot be read further, InputError is raised after all complete lines before that were yielded.
        """
        for first, lines in self.blocks():
            yield from enumerate(lines, first)

    def blocks(self) -> Iterator[tuple[int, list[bytes | None]]]:
        """Yield the lines of `lines` in lists, each with the number of its first line."""
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
        # The pieces of an unfinished line, which are dropped once the line is too long, and its size so far.
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
                unfinished = lines.pop()
                whole = b"".join(begun) if size <= self.limit else None
                # A line within a piece cannot be longer than the piece.
                yield [whole, *(lines if len(piece) <= self.limit else map(self._within_limit, lines))]
                size = len(unfinished)
                begun = [unfinished] if unfinished and size <= self.limit else []

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

        first = next(filter(None, pieces), b"")  # bzip2 yields empty pieces until its first block is complete
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
            # Without this flag, opening a FIFO would wait for a writer.
            flags |= os.O_NONBLOCK
        with os.fdopen(os.open(self.path, flags), "rb") as stream:
            # Examine the open file, because another file may have taken the path.
            if self.is_regular and not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            yield stream

    def _raw_again(self, size: int) -> Iterator[bytes]:
        """Yield the raw content again, without counting its bytes."""
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
    """Raise InputError if the first bytes of a file show that it is a pointer of Git LFS."""
    if start.startswith(_LFS_POINTER):
        raise InputError(f"{name} is a pointer of Git LFS, not the file itself; run: git lfs pull")


def pieces_of(stream: Readable, size: int) -> Iterator[bytes]:
    """Yield the content of a stream in pieces of at most `size` bytes.

    It waits for content in short steps, because a signal just before a blocking read would be handled only after it.
    """
    try:
        descriptor = stream.fileno()
    except UnsupportedOperation:  # the stream is in memory
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

"""One input file as lines of bytes, whatever it is compressed with."""

import codecs
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Protocol, cast

from nearsim_db.errors import InputError
from nearsim_db.readers.compression import DAMAGE, DECOMPRESSORS, decompressed
from nearsim_db.similarity.text.clean import clean

MAX_RECORD_BYTES = 200_000_000
STANDARD_INPUT = Path("-")

_PIECE_BYTES = 1 << 18
# Small, because it may decompress to a thousand times as much.
_COMPRESSED_PIECE_BYTES = 1 << 12


class _Readable(Protocol):
    def read1(self, size: int, /) -> bytes: ...


class _DamagedError(InputError):
    """Reading broke off within a file."""


@dataclass(slots=True)
class Tally:
    """How many bytes were read, as they are on disk (compressed)."""

    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read, or standard input for the path '-'; records longer than `limit` bytes are refused."""

    path: Path
    tally: Tally = field(default_factory=Tally)
    limit: int = MAX_RECORD_BYTES

    @property
    def name(self) -> str:
        """The path as it is shown; bytes of it that are not UTF-8 are U+FFFD."""
        return clean(str(self.path))[0]

    @property
    def too_long(self) -> str:
        """The reason for refusing a record beyond the limit."""
        return f"longer than {self.limit:,} bytes, the most that one document may have"

    def content(self) -> bytes | None:
        """The whole file without a byte order mark; None if it is beyond the limit.

        Raises InputError if it cannot be read.
        """
        content = bytearray()
        for piece in self._pieces():
            content += piece
            if len(content) > self.limit:
                return None
        return self._without_mark(bytes(content))

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Each line with its number from 1, without its newline; None for one that is beyond the limit.

        Raises InputError where the file cannot be read on; every complete line before is given first.
        """
        number = 0
        try:
            for number, line in self._split():
                yield number, self._without_mark(line) if number == 1 and line else line
        except _DamagedError as error:
            raise InputError(
                f"{error}, after {number:,} complete lines; "
                "repair the file, or fetch it again, and repeat the command"
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
        """The decompressed content, piece by piece."""
        suffix = self.path.suffix.lower()
        try:
            if suffix in DECOMPRESSORS:
                yield from decompressed(suffix, self._raw(_COMPRESSED_PIECE_BYTES), self._raw_again)
            else:
                yield from self._raw(_PIECE_BYTES)
        except DAMAGE as error:
            raise _DamagedError(f"{self.name} is cut short or damaged ({error})") from error
        except OSError as error:
            raise _DamagedError(f"{self.name} cannot be read: {error.strerror or error}") from error

    def _raw(self, size: int) -> Iterator[bytes]:
        if self.path == STANDARD_INPUT:
            yield from self._counted(cast(_Readable, sys.stdin.buffer), size)
        else:
            with self.path.open("rb") as stream:
                yield from self._counted(stream, size)

    def _raw_again(self) -> Iterator[bytes]:
        """The raw content once more, uncounted; nothing where it cannot be read twice."""
        if self.path.is_file():
            yield from replace(self, tally=Tally())._raw(_COMPRESSED_PIECE_BYTES)

    def _counted(self, stream: _Readable, size: int) -> Iterator[bytes]:
        while piece := stream.read1(size):
            self.tally.bytes_read += len(piece)
            yield piece

    def _without_mark(self, start: bytes) -> bytes:
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(f"{self.name} is UTF-16; convert it with: iconv -f UTF-16 -t UTF-8")
        return start.removeprefix(codecs.BOM_UTF8)


def file_type(path: Path) -> str:
    """The ending that tells what a file holds, in lower case and without that of its compression."""
    whole = PurePath(path.name.lower())
    return whole.with_suffix("").suffix if whole.suffix in DECOMPRESSORS else whole.suffix

"""Decompression, and conversion of text encodings to UTF-8, both piece by piece.

Decompression salvages everything before the damage in a damaged file.
"""

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol, cast

import zstandard

from nearsim_db.errors import InputError


class Decompressor(Protocol):
    """The common interface of zlib and zstandard, which decompresses one of the members that a file consists of."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


StartMember = Callable[[], Decompressor]


def _gzip() -> StartMember:
    # Adding 16 makes zlib expect the header and the checksum of gzip.
    return partial(zlib.decompressobj, wbits=16 + zlib.MAX_WBITS)


def _zstandard() -> StartMember:
    """Share one context among all members, because creating it takes longer than reading a small member."""
    return cast(StartMember, zstandard.ZstdDecompressor().decompressobj)


class _DamagedBlockError(ValueError):
    """Data that bzip2 cannot decompress."""


class _Bzip2:
    """The decompression of bz2; damage raises an error other than OSError, which would look like a failed read."""

    def __init__(self) -> None:
        self._member = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, /) -> bytes:
        try:
            return self._member.decompress(data)
        except OSError as error:
            raise _DamagedBlockError(str(error)) from error


DECOMPRESSORS: dict[str, Callable[[], StartMember]] = {
    ".gz": _gzip,
    ".zst": _zstandard,
    ".bz2": lambda: _Bzip2,
    ".xz": lambda: lzma.LZMADecompressor,
}
# The number of bytes read at once. They are few, because data may decompress to a thousand times its size, or with
# formats other than gzip to even more.
PIECE_BYTES = {".gz": 1 << 14, ".zst": 1 << 12, ".bz2": 1 << 10, ".xz": 1 << 12}
_CORRUPTION_ERRORS = (zlib.error, zstandard.ZstdError, _DamagedBlockError, lzma.LZMAError)
DAMAGE_ERRORS = (EOFError, *_CORRUPTION_ERRORS)


def decompressed(
    suffix: str, pieces: Iterator[bytes], reread: Callable[[], Iterator[bytes]] | None
) -> Iterator[bytes]:
    """Decompress the pieces of a file; `reread` reads them again after damage, None if that is impossible.

    If the data is damaged or truncated, one of DAMAGE_ERRORS is raised after everything before the damage was yielded.
    """
    fast = _fast_gzip() if suffix == ".gz" and reread is not None else None
    if fast is None or reread is None:
        yield from _salvaging(pieces, reread or (lambda: iter(())), DECOMPRESSORS[suffix]())
        return
    start, errors = fast
    yielded = 0
    try:
        for content in _plain(pieces, start):
            yielded += len(content)
            yield content
    except errors:
        # Read again with zlib, so that the salvaged content and the error message do not depend on the library.
        yield from _after(yielded, _salvaging(reread(), reread, DECOMPRESSORS[suffix]()))


def _fast_gzip() -> tuple[StartMember, tuple[type[Exception], ...]] | None:
    """Return ISA-L's decompression, which takes less than half of zlib's time, and its errors.

    Returns None if ISA-L is not installed.
    """
    try:
        from isal import isal_zlib
    except ImportError:
        return None
    start = partial(isal_zlib.decompressobj, wbits=16 + zlib.MAX_WBITS)
    return start, (EOFError, cast(type[Exception], isal_zlib.error))


def _salvaging(
    pieces: Iterator[bytes], reread: Callable[[], Iterator[bytes]], start: StartMember
) -> Iterator[bytes]:
    consumed = 0
    yielded = 0

    def counting() -> Iterator[bytes]:
        nonlocal consumed
        for piece in pieces:
            yield piece
            # Count a piece only when the next one is requested: a piece that fails is read again, byte by byte.
            consumed += len(piece)

    try:
        for content in _plain(counting(), start):
            yielded += len(content)
            yield content
    except _CORRUPTION_ERRORS:
        yield from _salvaged(_bytewise(reread(), consumed), start, yielded)
        raise


def _plain(pieces: Iterator[bytes], start: StartMember) -> Iterator[bytes]:
    decompressor: Decompressor | None = None
    for piece in pieces:
        remaining = piece
        while remaining:
            if decompressor is None:
                decompressor = start()
            yield decompressor.decompress(remaining)
            if not decompressor.eof:
                break
            # The next member begins where this one ended.
            remaining = decompressor.unused_data
            decompressor = None
    if decompressor is not None:
        raise EOFError("the compressed data is truncated")


def _salvaged(pieces: Iterator[bytes], start: StartMember, yielded: int) -> Iterator[bytes]:
    """Yield the content after the first `yielded` bytes, up to the damage.

    A call that fails does not return what it has decompressed, so the pieces have to be small.
    """
    try:
        yield from _after(yielded, _plain(pieces, start))
    except DAMAGE_ERRORS:
        return


def _after(skipped: int, contents: Iterator[bytes]) -> Iterator[bytes]:
    """Yield all content except the first `skipped` bytes."""
    passed = 0
    for content in contents:
        yield content[max(0, skipped - passed) :]
        passed += len(content)


def _bytewise(pieces: Iterator[bytes], after: int) -> Iterator[bytes]:
    """Yield the first `after` bytes in pieces, and all later bytes one by one."""
    passed = 0
    for piece in pieces:
        cut = min(len(piece), max(0, after - passed))
        if cut:
            yield piece[:cut]
        for position in range(cut, len(piece)):
            yield piece[position : position + 1]
        passed += len(piece)


COMPRESSION_MARKS = {
    b"\x1f\x8b": ".gz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"\xfd7zXZ\x00": ".xz",
    **{b"BZh%d1AY&SY" % level: ".bz2" for level in range(1, 10)},
}

_INVALID = "nearsim.invalid"
_MAX_UTF8_BYTES = 4
_INSPECTED_BYTES, _MIN_INSPECTED_BYTES = 8192, 12
_MAX_CONTROL_SHARE = 0.05
# All control characters except tab, line ends, form feed, backspace and escape. A tenth of compressed data are these.
_CONTROL_BYTES = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\r\f\b\x1b")


def _replacement(error: UnicodeError) -> tuple[str, int]:
    """Replace undecodable bytes by a lone surrogate, which `in_utf8` encodes as a byte that is not valid in UTF-8."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error(_INVALID, _replacement)


def checked_encoding(name: str) -> str:
    """Return Python's name of a text encoding. Raises InputError if Python has no text encoding of this name."""
    try:
        codec = codecs.lookup(name)
        # lookup() also finds codecs that convert bytes, such as hex; encode() raises LookupError for these.
        "".encode(codec.name)
    except LookupError as error:
        raise InputError(
            f"{name!r} is not a text encoding; use a name such as utf-8, cp1252, latin-1 or utf-16"
        ) from error
    return codec.name


def in_utf8(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Convert pieces of text to UTF-8; bytes that cannot be decoded become bytes that are not valid in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)(_INVALID)
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", True).encode("utf-8", "surrogateescape")


def compression_of(start: bytes) -> str:
    """Return the suffix of the compression that the first bytes of a file indicate, or an empty string."""
    return next((suffix for mark, suffix in COMPRESSION_MARKS.items() if start.startswith(mark)), "")


def is_utf8(start: bytes) -> bool:
    """Whether the first bytes of a text are UTF-8; a character that is cut off at their end is allowed."""
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and error.start > len(start) - _MAX_UTF8_BYTES
    return True


def control_share(content: bytes) -> float | None:
    """Return the fraction of control characters at the start of a binary file; None for text and very short files."""
    start = content[:_INSPECTED_BYTES]
    if len(start) < _MIN_INSPECTED_BYTES:
        return None
    share = 1 - len(start.translate(None, _CONTROL_BYTES)) / len(start)
    return share if share > _MAX_CONTROL_SHARE else None

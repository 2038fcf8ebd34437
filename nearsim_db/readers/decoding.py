"""Incremental decompression, which salvages everything before the damage in a damaged file, and text encodings.

Texts are converted to UTF-8.
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
    """The common interface of zlib and zstandard: decompresses one member of a file, which may have several."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


StartMember = Callable[[], Decompressor]


def _gzip() -> StartMember:
    # 16 more: with the header and the checksum of gzip.
    return partial(zlib.decompressobj, wbits=16 + zlib.MAX_WBITS)


def _zstandard() -> StartMember:
    """Share one context among all members: to create it takes longer than to read a small one."""
    return cast(StartMember, zstandard.ZstdDecompressor().decompressobj)


class _DamagedBlockError(ValueError):
    """Data that bzip2 cannot decompress."""


class _Bzip2:
    """bz2's decompression, which reports damage as an OSError, as a file system reports a read that failed."""

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
# Read at once. Small, because it may decompress to a thousand times its size, and but for gzip to more.
PIECE_BYTES = {".gz": 1 << 14, ".zst": 1 << 12, ".bz2": 1 << 10, ".xz": 1 << 12}
_CORRUPTION_ERRORS = (zlib.error, zstandard.ZstdError, _DamagedBlockError, lzma.LZMAError)
DAMAGE_ERRORS = (EOFError, *_CORRUPTION_ERRORS)


def decompressed(
    suffix: str, pieces: Iterator[bytes], reread: Callable[[], Iterator[bytes]] | None
) -> Iterator[bytes]:
    """Decompress a file given in pieces; `reread` reads them again after damage, None if they cannot be.

    Raises one of DAMAGE_ERRORS if the data is damaged or truncated, after yielding everything before that
    point.
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
        # What can be read before the damage, and its description, are zlib's with either library.
        yield from _after(yielded, _salvaging(reread(), reread, DECOMPRESSORS[suffix]()))


def _fast_gzip() -> tuple[StartMember, tuple[type[Exception], ...]] | None:
    """Return ISA-L's decompression, which takes less than half of zlib's time, and its errors; None without it."""
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
            # Only once the next piece is asked for: a piece that fails is read again, byte by byte.
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
    """Yield the content after the first `yielded` bytes, which a failing call decompresses but does not return."""
    try:
        yield from _after(yielded, _plain(pieces, start))
    except DAMAGE_ERRORS:
        return


def _after(skipped: int, contents: Iterator[bytes]) -> Iterator[bytes]:
    """Yield all but the first bytes."""
    passed = 0
    for content in contents:
        yield content[max(0, skipped - passed) :]
        passed += len(content)


def _bytewise(pieces: Iterator[bytes], after: int) -> Iterator[bytes]:
    """Cut the data into single bytes after the first `after` of them."""
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
_INSPECTED_BYTES, _LEAST_BYTES = 8192, 12
_MAX_CONTROL_SHARE = 0.05
# All but tab, line ends, form feed, backspace and escape; compressed data has a tenth of them.
_CONTROL_BYTES = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\r\f\b\x1b")


def _replacement(error: UnicodeError) -> tuple[str, int]:
    """Replace undecodable bytes by a lone surrogate, which `in_utf8` writes as a byte that is not UTF-8."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff", error.end


codecs.register_error(_INVALID, _replacement)


def checked_encoding(name: str) -> str:
    """Return the name of a text encoding as Python knows it. Raises InputError for any other."""
    try:
        codec = codecs.lookup(name)
        # lookup() also finds codecs of bytes, such as hex; encode() refuses these.
        "".encode(codec.name)
    except LookupError as error:
        raise InputError(
            f"{name!r} is not a text encoding; use a name such as utf-8, cp1252, latin-1 or utf-16"
        ) from error
    return codec.name


def in_utf8(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Convert pieces of text to UTF-8; what cannot be decoded becomes bytes that are not UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)(_INVALID)
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "surrogateescape")
    yield decoder.decode(b"", True).encode("utf-8", "surrogateescape")


def compression_of(start: bytes) -> str:
    """Return the suffix of the compression that the first bytes of a file show, or an empty string."""
    return next((suffix for mark, suffix in COMPRESSION_MARKS.items() if start.startswith(mark)), "")


def is_utf8(start: bytes) -> bool:
    """Whether the first bytes of a text are UTF-8, but for a character that is cut at their end."""
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and error.start > len(start) - _MAX_UTF8_BYTES
    return True


def control_share(content: bytes) -> float | None:
    """Return the share of control characters at the start of a binary file; None for text and very short files."""
    start = content[:_INSPECTED_BYTES]
    if len(start) < _LEAST_BYTES:
        return None
    share = 1 - len(start.translate(None, _CONTROL_BYTES)) / len(start)
    return share if share > _MAX_CONTROL_SHARE else None

"""Incremental decompression, which salvages everything before the damage in a damaged file."""

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, cast

import zstandard


class Decompressor(Protocol):
    """The common interface of zlib and zstandard: decompresses one member of a file, which may have several."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


StartMember = Callable[[], Decompressor]


def _gzip() -> StartMember:
    return partial(zlib.decompressobj, wbits=16 + zlib.MAX_WBITS)


def _zstandard() -> StartMember:
    """Share one context among all members: to create it takes longer than to read a small one."""
    return cast(StartMember, zstandard.ZstdDecompressor().decompressobj)


DECOMPRESSORS: dict[str, Callable[[], StartMember]] = {".gz": _gzip, ".zst": _zstandard}
DAMAGE_ERRORS = (EOFError, zlib.error, zstandard.ZstdError)
_CORRUPTION_ERRORS = (zlib.error, zstandard.ZstdError)


def decompressed(
    suffix: str, pieces: Iterator[bytes], reread: Callable[[], Iterator[bytes]]
) -> Iterator[bytes]:
    """Decompress a file given in pieces; `reread` reads them a second time after damage.

    Raises one of DAMAGE_ERRORS if the data is damaged or truncated, after yielding everything before that
    point.
    """
    consumed = 0
    yielded = 0
    start = DECOMPRESSORS[suffix]()

    def counting() -> Iterator[bytes]:
        nonlocal consumed
        for piece in pieces:
            yield piece
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
            remaining = decompressor.unused_data
            decompressor = None
    if decompressor is not None:
        raise EOFError("the compressed data is truncated")


def _salvaged(pieces: Iterator[bytes], start: StartMember, yielded: int) -> Iterator[bytes]:
    """Yield the content after the first `yielded` bytes, which a failing call decompresses but does not return."""
    passed = 0
    try:
        for content in _plain(pieces, start):
            yield content[max(0, yielded - passed) :]
            passed += len(content)
    except DAMAGE_ERRORS:
        return


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

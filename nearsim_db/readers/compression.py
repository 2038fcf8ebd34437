"""Compressed files, piece by piece; of a damaged one, all that stands before the damage."""

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol, cast

import zstandard


class Decompressor(Protocol):
    """What zlib and zstandard have in common: it takes one part of a file, which may consist of several."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> Decompressor:
    return zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)


def _zstandard() -> Decompressor:
    return cast(Decompressor, zstandard.ZstdDecompressor().decompressobj())


DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {".gz": _gzip, ".zst": _zstandard}
DAMAGE = (EOFError, zlib.error, zstandard.ZstdError)
_CORRUPTION = (zlib.error, zstandard.ZstdError)


def decompressed(
    suffix: str, pieces: Iterator[bytes], again: Callable[[], Iterator[bytes]]
) -> Iterator[bytes]:
    """The content of a compressed file given in pieces, which `again` reads a second time after damage.

    Raises one of DAMAGE where the data is damaged or ends too early; what stands before is given first.
    """
    whole = 0
    given = 0
    start = DECOMPRESSORS[suffix]

    def counted() -> Iterator[bytes]:
        nonlocal whole
        for piece in pieces:
            yield piece
            whole += len(piece)

    try:
        for content in _plain(counted(), start):
            given += len(content)
            yield content
    except _CORRUPTION:
        yield from _salvaged(_bytewise(again(), whole), start, given)
        raise


def _plain(pieces: Iterator[bytes], start: Callable[[], Decompressor]) -> Iterator[bytes]:
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
        raise EOFError("the compressed data ends too early")


def _salvaged(pieces: Iterator[bytes], start: Callable[[], Decompressor], given: int) -> Iterator[bytes]:
    """What comes after the first `given` bytes: a call that fails keeps what it had decompressed to itself."""
    passed = 0
    try:
        for content in _plain(pieces, start):
            yield content[max(0, given - passed) :]
            passed += len(content)
    except DAMAGE:
        return


def _bytewise(pieces: Iterator[bytes], after: int) -> Iterator[bytes]:
    """The same data, cut into single bytes after the first `after` of them."""
    passed = 0
    for piece in pieces:
        cut = min(len(piece), max(0, after - passed))
        if cut:
            yield piece[:cut]
        for position in range(cut, len(piece)):
            yield piece[position : position + 1]
        passed += len(piece)

"""Text encodings of input files: conversion to UTF-8, and what the first bytes of a file show."""

import codecs
from collections.abc import Iterable, Iterator

from nearsim_db.errors import InputError

COMPRESSION_MARKS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}

_INVALID = "nearsim.invalid"
_LONGEST_CHARACTER = 4  # bytes of UTF-8
_INSPECTED_BYTES, _LEAST_BYTES = 8192, 12
_MOST_CONTROL = 0.05
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
        found = codecs.lookup(name)
        "".encode(found.name)
    except LookupError as error:
        raise InputError(
            f"{name!r} is not a text encoding; use a name such as utf-8, cp1252, latin-1 or utf-16"
        ) from error
    return found.name


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
        return error.reason == "unexpected end of data" and error.start > len(start) - _LONGEST_CHARACTER
    return True


def control_share(content: bytes) -> float | None:
    """Return the share of control characters at the start of a binary file; None for text and very short files."""
    start = content[:_INSPECTED_BYTES]
    if len(start) < _LEAST_BYTES:
        return None
    share = 1 - len(start.translate(None, _CONTROL_BYTES)) / len(start)
    return share if share > _MOST_CONTROL else None

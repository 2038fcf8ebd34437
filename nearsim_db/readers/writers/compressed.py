"""Compression of output streams."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import zstandard


@contextmanager
def compressed(stream: BinaryIO, compression: str) -> Iterator[BinaryIO]:
    """Return a stream that compresses into another, which is left open; compression is '.gz', '.zst' or ''."""
    match compression:
        case ".gz":
            # Without a time in its header, equal content gives equal files.
            with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0, filename="") as packed:
                yield cast(BinaryIO, packed)
        case ".zst":
            with zstandard.ZstdCompressor().stream_writer(stream, closefd=False) as packed:
                yield cast(BinaryIO, packed)
        case _:
            yield stream

"""Conversion between unsigned 64-bit values and bigint, and between sketches and bytea."""

import uuid

import numpy as np
from numpy.typing import NDArray


def to_bigint(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Reinterpret 64 bits as signed, for a bigint column."""
    return np.ascontiguousarray(values, np.uint64).view(np.int64)


def from_bigint(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Reinterpret bigint values as unsigned."""
    return np.ascontiguousarray(values, np.int64).view(np.uint64)


def sketch_bytes(sketches: NDArray[np.generic]) -> NDArray[np.void]:
    """Return each row of an (n, k) sketch matrix as little-endian bytes: (n,) of void."""
    little = np.ascontiguousarray(sketches, sketches.dtype.newbyteorder("<"))
    return little.view(np.dtype((np.void, little.shape[1] * little.itemsize))).reshape(len(little))


def sketches_from(blobs: list[bytes], dtype: np.dtype[np.generic], k: int) -> NDArray[np.generic]:
    """Return the (n, k) sketch matrix of stored bytes."""
    return sketches_packed(b"".join(blobs), dtype, k)


def sketches_packed(content: bytes, dtype: np.dtype[np.generic], k: int) -> NDArray[np.generic]:
    """Return the (n, k) sketch matrix of stored bytes, one after the other."""
    return np.frombuffer(content, dtype.newbyteorder("<")).reshape(-1, k).astype(dtype, copy=False)


def digest_uuid(digest: bytes) -> uuid.UUID:
    """Return a 128-bit digest as uuid."""
    return uuid.UUID(bytes=digest)

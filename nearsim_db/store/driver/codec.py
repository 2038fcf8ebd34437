"""The one place where unsigned 64-bit values become bigint, and sketches become bytea."""

import uuid

import numpy as np
from numpy.typing import NDArray


def to_bigint(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The same 64 bits, signed: what a bigint column holds."""
    return np.ascontiguousarray(values, np.uint64).view(np.int64)


def from_bigint(values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The way back."""
    return np.ascontiguousarray(values, np.int64).view(np.uint64)


def sketch_bytes(sketches: NDArray[np.generic]) -> NDArray[np.void]:
    """Each row of an (n, k) sketch matrix as little-endian bytes: (n,) of void."""
    little = np.ascontiguousarray(sketches, sketches.dtype.newbyteorder("<"))
    return little.view(np.dtype((np.void, little.shape[1] * little.itemsize))).reshape(len(little))


def sketches_from(blobs: list[bytes], dtype: np.dtype[np.generic], k: int) -> NDArray[np.generic]:
    """The (n, k) matrix of sketches read back."""
    joined = np.frombuffer(b"".join(blobs), dtype.newbyteorder("<")).reshape(len(blobs), k)
    return joined.astype(dtype, copy=False)


def digest_uuid(digest: bytes) -> uuid.UUID:
    """A 128-bit digest as the uuid column holds it."""
    return uuid.UUID(bytes=digest)

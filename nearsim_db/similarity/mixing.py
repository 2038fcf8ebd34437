"""Mixing of 64-bit values, and the pseudo-random words from which the parameters of all sketches are drawn."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.arrays import Hashes

# The constants of MurmurHash3's finaliser (Appleby 2011).
FMIX64_FIRST = 0xFF51AFD7ED558CCD
FMIX64_SECOND = 0xC4CEB9FE1A85EC53

# The constants of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
GOLDEN = 0x9E3779B97F4A7C15
_SPLIT_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SPLIT_SECOND = np.uint64(0x94D049BB133111EB)


def fmix64(values: Hashes) -> Hashes:
    """Return mixed values in a new array. Mixing is a bijection of uint64 in which every bit depends on every bit."""
    mixed = values ^ (values >> np.uint64(33))
    mixed *= np.uint64(FMIX64_FIRST)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(FMIX64_SECOND)
    mixed ^= mixed >> np.uint64(33)
    return mixed


def fmix32(values: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return mixed uint32 values; see `fmix64`."""
    mixed = values ^ (values >> np.uint32(16))
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed


def random_words(seed: int, purpose: str, count: int) -> Hashes:
    """Return the first `count` uint64 of the SplitMix64 stream for a seed and a purpose.

    The initial state is the first 8 bytes, little-endian, of the SHA-256 of "purpose:seed" in UTF-8. A longer stream
    begins with the words of a shorter one. NumPy's generators are not used, because their streams may change between
    versions.
    """
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    state = np.uint64(int.from_bytes(digest[:8], "little"))
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN) + state
    words = (words ^ (words >> np.uint64(30))) * _SPLIT_FIRST
    words = (words ^ (words >> np.uint64(27))) * _SPLIT_SECOND
    return words ^ (words >> np.uint64(31))

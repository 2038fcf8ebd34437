"""Band keys: a sketch is cut into bands of rows, and each band is hashed to 64 bits.

The top byte of a key is the number of the band, and the low 56 bits are a hash of the band, so only bands of the same
number can have equal keys. Positions after bands * rows are not used. There are three hash schemes:
- mix64, the default: a seeded 64-bit mix of the rows in their order, cut to 56 bits.
- xor: the exclusive or of (A v + B) mod 4294967311 over the rows v, below 2^33. It ignores the order of rows, and equal
  rows cancel each other. It is meant for compatibility with systems that use it.
- djb2a-joined: the low 32 bits of djb2a over the rows in decimal, joined by ".". It is meant for compatibility, too.
mix64 and xor take signed positions (java32) as 32-bit two's complement; djb2a-joined writes their sign.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.messages import count_of
from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.arrays import Hashes, Ints, Mask
from nearsim_db.similarity.backend import sketch_kernels
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.sketch.kernels import PRIME

MAX_BANDS = 256
# Increment this number when the keys of a scheme change.
BAND_SCHEME_VERSION = 1
SCHEMES = ("mix64", "xor", "djb2a-joined")

HASH_MASK = np.uint64((1 << 56) - 1)
_BAND_SHIFT = np.uint64(56)
_PRIME = np.uint64(PRIME)
_DJB2A_START, _DJB2A_FACTOR = np.uint32(5381), np.uint32(33)
_MAX_DIGITS = 10


class Banding(NamedTuple):
    """How sketches are cut into bands."""

    bands: int
    rows: int  # number of positions in a band
    scheme: str = "mix64"  # how the rows of a band are hashed
    seed: int = 1  # the seed of mix64 and xor


def band_keys(sketches: NDArray[Any], banding: Banding, *, backend: str | None = None) -> Hashes:
    """Return the keys (n, bands) of sketches (n, k) of uint8, uint32, int32, or uint64 below 2^32 + 15.

    Raises RecipeError for an unknown scheme, more than 256 bands, or more rows than the sketch has.
    """
    _check(banding, sketches.shape[1])
    bands, rows, scheme, seed = banding
    if scheme == "djb2a-joined":
        hashes = _djb2a_joined(_table(sketches, bands, rows).astype(np.int64))
    elif scheme == "xor":
        table = _table(_unsigned(sketches), bands, rows).astype(np.uint64)
        hashes = exclusive_or(table, *_draw_coefficients(seed))
    else:
        kernels = sketch_kernels(backends.resolve(backend))
        hashes = kernels.mixed_bands(_unsigned(sketches), bands, rows, mix_start(seed))
        hashes &= HASH_MASK
    hashes |= _numbers(bands)
    return hashes


def matched_bands(left: NDArray[Any], right: NDArray[Any], banding: Banding) -> Mask:
    """Return which bands two sketches share, row by row: (m, k) and (m, k) to bool of (m, bands).

    With mix64 the values of the bands are compared, which is faster and excludes keys that are equal by chance (2^-56).
    With the other schemes a band is shared if the keys are equal.
    """
    bands, rows, scheme, _ = banding
    matched: Mask
    if scheme != "mix64":
        matched = band_keys(left, banding) == band_keys(right, banding)
        return matched
    _check(banding, left.shape[1])
    matched = (_table(left, bands, rows) == _table(right, bands, rows)).all(axis=2)
    return matched


def _check(banding: Banding, k: int) -> None:
    bands, rows, scheme, _ = banding
    if scheme not in SCHEMES:
        raise RecipeError(f"unknown band hash {scheme!r}; choose one of {', '.join(SCHEMES)}")
    if not 1 <= bands <= MAX_BANDS:
        raise RecipeError(f"{bands} bands are out of range: the band number is a byte; choose 1..{MAX_BANDS}")
    if rows < 1 or bands * rows > k:
        raise RecipeError(
            f"{count_of(bands, 'band')} of {count_of(rows, 'row')} {'does' if bands == 1 else 'do'} not fit "
            f"a sketch of {count_of(k, 'position')}"
        )


@cache
def _numbers(bands: int) -> Hashes:
    """Return the number of each band, shifted to the top byte of a key."""
    return np.arange(bands, dtype=np.uint64) << _BAND_SHIFT


def _table(sketches: NDArray[Any], bands: int, rows: int) -> NDArray[Any]:
    return sketches[:, : bands * rows].reshape(len(sketches), bands, rows)


def _unsigned(sketches: NDArray[Any]) -> NDArray[Any]:
    return sketches.view(np.uint32) if sketches.dtype == np.int32 else sketches


@cache
def mix_start(seed: int) -> np.uint64:
    """Return the start value of mix64 for a seed."""
    return np.uint64(random_words(seed, "band keys mix64", 1)[0])


def _draw_coefficients(seed: int) -> tuple[int, int]:
    words = random_words(seed, "band keys xor", 2)
    return 1 + int(words[0]) % (2**32 - 1), int(words[1]) % PRIME


def exclusive_or(table: Hashes, multiplier: int, addend: int) -> Hashes:
    """Hash bands (n, bands, rows) by the scheme xor. A is the multiplier, in 1..2^32 - 1, and B is the addend."""
    low = table & np.uint64(2**32 - 1)
    hashes = (low * np.uint64(multiplier) + np.uint64(addend % PRIME)) % _PRIME
    # A value may reach 2^32 + 14, and its product would overflow, so the product of its upper bits is added separately.
    hashes += (table >> np.uint64(32)) * np.uint64((multiplier << 32) % PRIME)
    hashes %= _PRIME
    combined: Hashes = np.bitwise_xor.reduce(hashes, axis=2)
    return combined


def _djb2a_joined(table: Ints) -> Hashes:
    """Hash all bands at once, digit by digit. Only the low 32 bits of the 64-bit djb2a are needed."""
    hashes = np.full(table.shape[:2], _DJB2A_START, np.uint32)
    for row in range(table.shape[2]):
        if row:
            hashes = _djb2a_step(hashes, np.uint32(ord(".")))
        values = table[:, :, row]
        hashes = np.where(values < 0, _djb2a_step(hashes, np.uint32(ord("-"))), hashes)
        values = np.abs(values)
        for power in range(_MAX_DIGITS - 1, -1, -1):
            digits = (values // 10**power % 10 + ord("0")).astype(np.uint32)
            has_digit = (values >= 10**power) | (power == 0)
            hashes = np.where(has_digit, _djb2a_step(hashes, digits), hashes)
    return hashes.astype(np.uint64)


def _djb2a_step(hashes: NDArray[np.uint32], characters: NDArray[np.uint32] | np.uint32) -> NDArray[np.uint32]:
    return (hashes * _DJB2A_FACTOR) ^ characters

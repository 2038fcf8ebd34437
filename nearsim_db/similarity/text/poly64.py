"""The constants and powers of the poly64 hash.

poly64 of a byte string c is fmix64(sum of c[j] * BASE^j mod 2^64). The sum of a window is the difference of two
prefix sums, shifted to exponent 0 by the inverse of BASE, so its cost does not depend on its length.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

BASE = 0x9E3779B97F4A7C15
INVERSE = pow(BASE, -1, 1 << 64)
SEGMENT = 1 << 16  # bytes of text for which powers are precomputed


@cache
def powers() -> NDArray[np.uint64]:
    """Return BASE^0 .. BASE^(SEGMENT-1), uint64."""
    return _powers_of(BASE)


@cache
def inverse_powers() -> NDArray[np.uint64]:
    """Return BASE^-0 .. BASE^-(SEGMENT-1), uint64."""
    return _powers_of(INVERSE)


def _powers_of(base: int) -> NDArray[np.uint64]:
    factors = np.full(SEGMENT, base, np.uint64)
    factors[0] = 1
    table: NDArray[np.uint64] = np.multiply.accumulate(factors)
    table.flags.writeable = False
    return table

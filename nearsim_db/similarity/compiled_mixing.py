"""Mixing in compiled kernels; see `nearsim_db.similarity.mixing`."""

import numpy as np
from numba import uint64

from nearsim_db.similarity.jit import inlined
from nearsim_db.similarity.mixing import FMIX64_FIRST, FMIX64_SECOND

_FIRST = np.uint64(FMIX64_FIRST)
_SECOND = np.uint64(FMIX64_SECOND)


@inlined
def fmix64(value: np.uint64) -> np.uint64:
    """Mix one value."""
    value = uint64(value)
    value = (value ^ (value >> uint64(33))) * _FIRST
    value = (value ^ (value >> uint64(33))) * _SECOND
    return value ^ (value >> uint64(33))

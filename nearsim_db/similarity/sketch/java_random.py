"""The part of java.util.Random that the java32 hash functions use."""

import numpy as np
from numpy.typing import NDArray

_MULTIPLIER = 0x5DEECE66D
_ADDEND = 0xB
_STATE_MASK = (1 << 48) - 1


def next_ints(seed: int, count: int) -> NDArray[np.int32]:
    """Return the first `count` results of nextInt() of a java.util.Random with this seed (any 64-bit long)."""
    state = (seed ^ _MULTIPLIER) & _STATE_MASK
    words = []
    for _ in range(count):
        state = (state * _MULTIPLIER + _ADDEND) & _STATE_MASK
        words.append(state >> 16)
    return np.array(words, np.uint32).view(np.int32)

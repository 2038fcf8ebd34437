"""The kernel of random directions compiled by numba; see `SketchKernels`."""

from typing import Any

import numpy as np
from numba import int64, uint64
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, fmix64
from nearsim_db.similarity.mixing import GOLDEN
from nearsim_db.similarity.sketch.kernels import Counts, Directions, Ids, Offsets

_GOLDEN = np.uint64(GOLDEN)
_INDEX = np.uint64(4095)


def projections(
    ids: Ids, offsets: Offsets, whole: Counts, directions: Directions, k: int
) -> NDArray[np.int64]:
    words = -(-k // directions.per_word)
    sums = np.zeros((len(offsets) - 1, words * directions.per_word), np.int64)
    if directions.per_word == 64:
        _project_signs(ids, offsets, whole, directions.mask, words, sums)
    else:
        _project(ids, offsets, whole, directions.mask, directions.table, words, sums)
    return sums[:, :k]


@compiled
def _draw(ids: Ids, at: int, mask: np.uint64, drawn: NDArray[np.uint64]) -> None:
    """Draw the words of one id. Kept separate from their use so that drawing is vectorised."""
    state = fmix64(ids[at] ^ mask)
    for word in range(len(drawn)):
        drawn[word] = fmix64(state + uint64(word + 1) * _GOLDEN)


@compiled
def _project_signs(
    ids: Ids, offsets: Offsets, whole: Counts, mask: np.uint64, words: int, sums: NDArray[np.int64]
) -> None:
    drawn = np.empty(words, np.uint64)
    for document in range(len(offsets) - 1):
        row = sums[document]
        total = int64(0)
        for at in range(offsets[document], offsets[document + 1]):
            _draw(ids, at, mask, drawn)
            weight = whole[at]
            total += weight
            for word in range(words):
                bits = drawn[word]
                own = row[64 * word : 64 * word + 64]
                for place in range(64):
                    own[place] += weight & -int64((bits >> uint64(place)) & uint64(1))
        # The sum over + bits, converted to the sum with both signs.
        for position in range(len(row)):
            row[position] = 2 * row[position] - total


@compiled
def _project(
    ids: Ids,
    offsets: Offsets,
    whole: Counts,
    mask: np.uint64,
    table: NDArray[Any],
    words: int,
    sums: NDArray[np.int64],
) -> None:
    drawn = np.empty(words, np.uint64)
    for document in range(len(offsets) - 1):
        row = sums[document]
        for at in range(offsets[document], offsets[document + 1]):
            _draw(ids, at, mask, drawn)
            weight = whole[at]
            for word in range(words):
                bits = drawn[word]
                place = 4 * word
                row[place] += weight * int64(table[(bits >> uint64(4)) & _INDEX])
                row[place + 1] += weight * int64(table[(bits >> uint64(20)) & _INDEX])
                row[place + 2] += weight * int64(table[(bits >> uint64(36)) & _INDEX])
                row[place + 3] += weight * int64(table[bits >> uint64(52)])

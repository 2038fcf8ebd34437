"""The kernel of dart_minhash; see `SketchKernels` and `Darts`."""

import numpy as np
from numba import float64, int64, uint32, uint64
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, fmix64, inlined
from nearsim_db.similarity.mixing import GOLDEN
from nearsim_db.similarity.sketch.kernels import Darts, Ids, Offsets, Weights

_GOLDEN = np.uint64(GOLDEN)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_UNIT = 2.0**-32


def dart_minhash(
    ids: Ids, weights: Weights, offsets: Offsets, limits: NDArray[np.float64], darts: Darts, k: int
) -> NDArray[np.uint32]:
    sketches = np.zeros((len(offsets) - 1, k), np.uint32)
    _dart_minhash(ids, weights, offsets, limits, darts, sketches)
    return sketches


@compiled
def _dart_minhash(
    ids: Ids,
    weights: Weights,
    offsets: Offsets,
    limits: NDArray[np.float64],
    darts: Darts,
    sketches: NDArray[np.uint32],
) -> None:
    ranks = np.empty(sketches.shape[1])
    for document in range(len(offsets) - 1):
        begin, end = offsets[document], offsets[document + 1]
        limit = limits[document]
        unfinished = begin < end
        while unfinished:
            ranks[:] = np.inf
            for at in range(begin, end):
                _throw(
                    fmix64(ids[at] ^ darts.mask), weights[at], limit, darts.counts, ranks, sketches[document]
                )
            unfinished = np.isinf(ranks.max())
            limit *= 2


@compiled
def _throw(
    point: np.uint64,
    weight: float,
    limit: float,
    counts: NDArray[np.uint64],
    ranks: NDArray[np.float64],
    values: NDArray[np.uint32],
) -> None:
    """Throw all darts of one id below its weight and the limit; a block is 2^a wide and 2^b high."""
    a, breadth = uint64(0), 1.0
    while breadth - 1 < weight:
        b, height = uint64(0), 1.0
        while height - 1 < limit:
            slices = np.int64(min(height, np.ceil((weight - (breadth - 1)) / (breadth / height))))
            layers = np.int64(min(breadth, np.ceil((limit - (height - 1)) / (height / breadth))))
            block = point ^ (a << uint64(56) | b << uint64(48))
            for one in range(slices):
                for layer in range(layers):
                    cell = fmix64(block ^ (uint64(one) << uint64(24) | uint64(layer)))
                    _throw_cell(cell, one, layer, breadth, height, weight, limit, counts, ranks, values)
            b, height = b + uint64(1), height * 2
        a, breadth = a + uint64(1), breadth * 2


@inlined
def _throw_cell(
    cell: np.uint64,
    one: int,
    layer: int,
    breadth: float,
    height: float,
    weight: float,
    limit: float,
    counts: NDArray[np.uint64],
    ranks: NDArray[np.float64],
    values: NDArray[np.uint32],
) -> None:
    k = uint64(uint32(len(ranks)))
    dart, word = 0, cell
    while dart < len(counts) and counts[dart] <= cell:
        within = fmix64(word + _GOLDEN)
        word += _GOLDEN + _GOLDEN
        dart += 1
        at = (breadth - 1) + (float64(one) + float64(within >> _HALF) * _UNIT) * (breadth / height)
        rank = (height - 1) + (float64(layer) + float64(within & _LOW) * _UNIT) * (height / breadth)
        if at < weight and rank < limit:
            chosen = fmix64(word)
            position = int64(((chosen >> _HALF) * k) >> _HALF)
            value = uint32(chosen)
            if rank < ranks[position] or (rank == ranks[position] and value < values[position]):
                ranks[position], values[position] = rank, value

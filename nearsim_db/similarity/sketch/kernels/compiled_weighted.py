"""Kernels of weighted features compiled by numba: dart_minhash and random vectors; see `Darts` and `plain`."""

import numpy as np
from numba import float64, int64, uint32, uint64

from nearsim_db.similarity.jit import compiled, fmix64, inlined
from nearsim_db.similarity.mixing import GOLDEN

_GOLDEN = np.uint64(GOLDEN)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_UNIT = 2.0**-32
_INDEX = np.uint64(4095)


@compiled
def dart_minhash(ids, weights, offsets, limits, darts, k):
    sketches, ranks = np.zeros((len(offsets) - 1, k), np.uint32), np.empty(k)
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
    return sketches


@compiled
def _throw(point, weight, limit, counts, ranks, values):
    """Throw all darts of an id below its weight and the limit. Block (a, b) is 2^a wide and 2^b high."""
    a, breadth = uint64(0), 1.0
    while breadth - 1 < weight:
        b, height = uint64(0), 1.0
        while height - 1 < limit:
            slices = np.int64(min(height, np.ceil((weight - (breadth - 1)) / (breadth / height))))
            layers = np.int64(min(breadth, np.ceil((limit - (height - 1)) / (height / breadth))))
            block = point ^ (a << uint64(56) | b << uint64(48))
            for slice_no in range(slices):
                for layer in range(layers):
                    cell = fmix64(block ^ (uint64(slice_no) << uint64(24) | uint64(layer)))
                    _throw_cell(cell, slice_no, layer, breadth, height, weight, limit, counts, ranks, values)
            b, height = b + uint64(1), height * 2
        a, breadth = a + uint64(1), breadth * 2


@inlined
def _throw_cell(cell, slice_no, layer, breadth, height, weight, limit, counts, ranks, values):
    k = uint64(uint32(len(ranks)))
    dart, word = 0, cell
    while dart < len(counts) and counts[dart] <= cell:
        within = fmix64(word + _GOLDEN)
        word += _GOLDEN + _GOLDEN
        dart += 1
        at = (breadth - 1) + (float64(slice_no) + float64(within >> _HALF) * _UNIT) * (breadth / height)
        rank = (height - 1) + (float64(layer) + float64(within & _LOW) * _UNIT) * (height / breadth)
        if at < weight and rank < limit:
            chosen = fmix64(word)
            position = int64(((chosen >> _HALF) * k) >> _HALF)
            value = uint32(chosen)
            if rank < ranks[position] or (rank == ranks[position] and value < values[position]):
                ranks[position], values[position] = rank, value


def projections(ids, offsets, whole, directions, k):
    words = -(-k // directions.per_word)
    sums = np.zeros((len(offsets) - 1, words * directions.per_word), np.int64)
    (_project_signs if directions.per_word == 64 else _project)(ids, offsets, whole, directions, words, sums)
    return sums[:, :k]


@compiled
def _draw(ids, at, mask, drawn):
    """Draw the words of an id. A loop that does nothing else is vectorised."""
    state = fmix64(ids[at] ^ mask)
    for word in range(len(drawn)):
        drawn[word] = fmix64(state + uint64(word + 1) * _GOLDEN)


@compiled
def _project_signs(ids, offsets, whole, directions, words, sums):
    drawn = np.empty(words, np.uint64)
    for document in range(len(offsets) - 1):
        row = sums[document]
        total = int64(0)
        for at in range(offsets[document], offsets[document + 1]):
            _draw(ids, at, directions.mask, drawn)
            weight = whole[at]
            total += weight
            for word in range(words):
                bits = drawn[word]
                components = row[64 * word : 64 * word + 64]
                for place in range(64):
                    components[place] += weight & -int64((bits >> uint64(place)) & uint64(1))

        # Convert the sum over the bits that are 1 to the sum with both signs.
        for position in range(len(row)):
            row[position] = 2 * row[position] - total


@compiled
def _project(ids, offsets, whole, directions, words, sums):
    drawn, table = np.empty(words, np.uint64), directions.table
    for document in range(len(offsets) - 1):
        row = sums[document]
        for at in range(offsets[document], offsets[document + 1]):
            _draw(ids, at, directions.mask, drawn)
            weight = whole[at]
            for word in range(words):
                bits = drawn[word]
                place = 4 * word
                row[place] += weight * int64(table[(bits >> uint64(4)) & _INDEX])
                row[place + 1] += weight * int64(table[(bits >> uint64(20)) & _INDEX])
                row[place + 2] += weight * int64(table[(bits >> uint64(36)) & _INDEX])
                row[place + 3] += weight * int64(table[bits >> uint64(52)])

"""The kernels that compare all sketches of a result set, compiled by numba; see `SketchKernels`."""

from typing import Any

import numpy as np
from numba import int64, uint32
from numpy.typing import NDArray

from nearsim_db.similarity.jit import compiled, inlined
from nearsim_db.similarity.sketch.kernels import Counts, KnownPairs
from nearsim_db.similarity.sketch.kernels.compiled_sorted import distinct_length

_POSITIONS_AT_ONCE = 64


def first_similar_sorted(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, needs: Counts, decided: KnownPairs
) -> Counts:
    first = np.empty(len(sketches), np.int64)
    _first_similar_sorted(sketches, present, need, needs, decided.pairs, decided.alike, first)
    return first


def first_similar_positions(
    sketches: NDArray[Any], present: NDArray[np.bool_], need: int, decided: KnownPairs
) -> Counts:
    first = np.empty(len(sketches), np.int64)
    _first_similar_positions(sketches, present, need, decided.pairs, decided.alike, first)
    return first


@compiled
def _first_similar_sorted(
    sketches: NDArray[Any],
    present: NDArray[np.bool_],
    need: int,
    needs: Counts,
    pairs: Counts,
    alike: NDArray[np.bool_],
    first: Counts,
) -> None:
    size = len(sketches)
    lengths, kept = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        lengths[row] = distinct_length(sketches[row])
        first[row] = -1
        for place in range(count):
            other = kept[place]
            known = _decided(pairs, alike, row * size + other)
            if known < 0 and present[row] and present[other]:
                known = _share_enough(
                    sketches[row], sketches[other], lengths[row], lengths[other], need, needs
                )
            if known > 0:
                first[row] = other
                break
        if first[row] < 0:
            kept[count] = row
            count += 1


@inlined
def _decided(pairs: Counts, alike: NDArray[np.bool_], pair: int) -> int:
    """Return 1 for similar, 0 for not, -1 if the sketches decide."""
    if not len(pairs):
        return -1
    place = np.searchsorted(pairs, pair)
    if place == len(pairs) or pairs[place] != pair:
        return -1
    return int(alike[place])


@compiled
def _share_enough(
    left: NDArray[Any], right: NDArray[Any], left_size: int, right_size: int, need: int, needs: Counts
) -> int:
    width = len(left)
    unshared = 2 * width
    if left_size < width and right_size < width:
        need = needs[left_size + right_size]
    else:
        unshared = width - need
    begin = end = both = 0
    # How many ids of each side need no partner; negative at once if a set is too small, so no index overruns.
    spare_left, spare_right = left_size - need, right_size - need
    while begin - both <= spare_left and end - both <= spare_right and begin + end - 2 * both <= unshared:
        ahead, behind = left[begin], right[end]
        both += int64(ahead == behind)
        begin += int64(ahead <= behind)
        end += int64(behind <= ahead)
        if both == need:
            return 1
    return 0


@compiled
def _first_similar_positions(
    sketches: NDArray[Any],
    present: NDArray[np.bool_],
    need: int,
    pairs: Counts,
    alike: NDArray[np.bool_],
    first: Counts,
) -> None:
    size = len(sketches)
    kept = np.empty(size, np.int64)
    count = 0
    for row in range(size):
        first[row] = -1
        for place in range(count):
            other = kept[place]
            known = _decided(pairs, alike, row * size + other)
            if known < 0 and present[row] and present[other]:
                known = _agree_enough(sketches[row], sketches[other], need)
            if known > 0:
                first[row] = other
                break
        if first[row] < 0:
            kept[count] = row
            count += 1


@compiled
def _agree_enough(left: NDArray[Any], right: NDArray[Any], need: int) -> int:
    width = len(left)
    equal, begin = int64(0), 0
    # Blocks of constant length are compared by vector instructions: six times faster.
    while begin + _POSITIONS_AT_ONCE <= width:
        part = uint32(0)
        for position in range(_POSITIONS_AT_ONCE):
            part += uint32(left[begin + position] == right[begin + position])
        equal += int64(part)
        begin += _POSITIONS_AT_ONCE
        if equal >= need:
            return 1
        if equal + width - begin < need:
            return 0
    for position in range(begin, width):
        equal += int64(left[position] == right[position])
    return int(equal >= need)


def count_agreements(
    sketches: NDArray[Any], left: Counts, right: Counts, bands: int, rows: int
) -> tuple[Counts, Counts]:
    equal, runs = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    _count_agreements(sketches, left, right, bands, rows, equal, runs)
    return equal, runs


@compiled
def _count_agreements(
    sketches: NDArray[Any], left: Counts, right: Counts, bands: int, rows: int, equal: Counts, runs: Counts
) -> None:
    for pair in range(len(left)):
        one, other = sketches[left[pair]], sketches[right[pair]]
        positions, matched = int64(0), int64(0)
        for position in range(len(one)):
            positions += int64(one[position] == other[position])
        for band in range(bands):
            run = int64(1)
            for position in range(band * rows, (band + 1) * rows):
                run &= int64(one[position] == other[position])
            matched += run
        equal[pair], runs[pair] = positions, matched

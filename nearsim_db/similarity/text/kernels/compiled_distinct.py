"""The kernel that sorts and counts each document's ids, compiled by numba; see `TextKernels`."""

import numpy as np
from numba import uint32, uint64, uintp

from nearsim_db.similarity.jit import compiled

_MOST_BUCKETS = np.uintp(1 << 14)
_MOST_IN_BUCKET = np.uint32(64)  # above that a radix sort takes less time than insertions
_DIGITS = np.uintp(8)
_DIGIT_BITS = np.uintp(8)
_DIGIT_VALUES = np.uintp(256)


@compiled
def distinct(ids, offsets):
    found, counts = np.empty(len(ids), np.uint64), np.empty(len(ids), np.int64)
    out_offsets = np.zeros(len(offsets), np.int64)
    longest = uintp(0)
    for document in range(len(offsets) - 1):
        longest = max(longest, uintp(offsets[document + 1] - offsets[document]))
    ends = np.empty(min(longest + longest, _MOST_BUCKETS) + uintp(1), np.uint32)
    spare = np.empty(0, np.uint64)
    written = uintp(0)
    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin < end:
            if not _bucket_sort(ids, begin, end, ends, found, written):
                if len(spare) == 0:
                    spare = np.empty(longest, np.uint64)
                _radix_sort(ids, begin, end, found, written, spare)
            written = _compact(found, written, end - begin, counts)
        out_offsets[document + 1] = written
    return found[: out_offsets[-1]], out_offsets, counts[: out_offsets[-1]]


@compiled
def _bucket_sort(ids, begin, end, ends, found, first):
    """Sort ids[begin:end] into `found` from `first` on, in buckets by their top bits, about one id in each.

    Returns whether it is sorted: not if the ids are far from uniform.
    """
    every = uint64(0)
    for at in range(begin, end):
        every |= ids[at]
    shift, buckets = uint64(0), uintp(1)
    while every >> shift > uint64(1) and shift < uint64(63):
        shift += uint64(1)
    shift += uint64(1)
    while buckets < end - begin and buckets < _MOST_BUCKETS and shift > uint64(0):
        buckets += buckets
        shift -= uint64(1)
    ends[: buckets + uintp(1)] = uint32(0)
    # Two shifts, as all 64 bits at once are too many for one.
    half = shift >> uint64(1)
    rest = shift - half
    for at in range(begin, end):
        ends[uintp((ids[at] >> half) >> rest) + uintp(1)] += uint32(1)
    fullest = uint32(0)
    for bucket in range(buckets):
        fullest = max(fullest, ends[bucket + uintp(1)])
        ends[bucket + uintp(1)] += ends[bucket]
    if fullest > _MOST_IN_BUCKET:
        return False
    for at in range(begin, end):
        bucket = uintp((ids[at] >> half) >> rest)
        found[first + uintp(ends[bucket])] = ids[at]
        ends[bucket] += uint32(1)
    _insertion_sort(found, first, first + end - begin)
    return True


@compiled
def _insertion_sort(found, begin, end):
    for at in range(begin + uintp(1), end):
        one, place = found[at], at
        while place > begin and found[place - uintp(1)] > one:
            found[place] = found[place - uintp(1)]
            place -= uintp(1)
        found[place] = one


@compiled
def _radix_sort(ids, begin, end, found, first, spare):
    """Sort ids[begin:end] into `found` from `first` on, whatever their distribution."""
    starts = np.empty(_DIGIT_VALUES + uintp(1), np.uintp)
    one, other = found[first : first + end - begin], spare[: end - begin]
    # Assigning the slice would compile numba's error for unequal lengths, some 4 s of the first call.
    for at in range(uintp(len(one))):
        one[at] = ids[begin + at]
    for digit in range(_DIGITS):
        shift = uint64(digit * _DIGIT_BITS)
        starts[:] = uintp(0)
        for at in range(uintp(len(one))):
            starts[uintp((one[at] >> shift) & uint64(0xFF)) + uintp(1)] += uintp(1)
        for value in range(_DIGIT_VALUES):
            starts[value + uintp(1)] += starts[value]
        for at in range(uintp(len(one))):
            value = uintp((one[at] >> shift) & uint64(0xFF))
            other[starts[value]] = one[at]
            starts[value] += uintp(1)
        one, other = other, one


@compiled
def _compact(found, first, count, counts):
    """Move the distinct ids to the front of the sorted ones and count each; return the end of them."""
    kept = first
    counts[kept] = 1
    for at in range(first + uintp(1), first + count):
        repeated = found[at] == found[kept]
        kept += uintp(not repeated)
        found[kept] = found[at]
        counts[kept] = counts[kept] + 1 if repeated else 1
    return kept + uintp(1)

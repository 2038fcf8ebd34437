"""Find, in memory, the pairs of heads that share a bucket; in the database, a self-join of band rows finds them.

The first `bucket_limit` heads of a bucket are its anchors; a limit of 0 makes all heads anchors. Two heads are linked
if they share a bucket in which one of them is an anchor. Whether a linked pair is a candidate depends on the bands that
their sketches share, and `screening.screen` decides it.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeGuard

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Ints, Keys, Mask, Ragged, are_fresh, flat, lengths
from nearsim_db.similarity.backend import Backend, sketch_kernels
from nearsim_db.similarity.mixing import GOLDEN
from nearsim_db.similarity.sketch.kernels import FullRows

# The shift to the top byte of a key, which is the number of its band.
_BAND_SHIFT = np.uint64(56)
_LINKS_AT_ONCE = 1 << 17
# Sorting a group of buckets takes 26 bytes of memory for each head, so few groups are sorted at the same time.
_GROUPS_SORTED_AT_ONCE = 2
# A function that returns the keys and the rows of all buckets with several rows, sorted by key and row.
_Group = Callable[[], tuple[Hashes, Ints]]


def are_by_band(keys: Keys) -> TypeGuard[Hashes]:
    """Whether keys are an array (n, bands) in which each column has the keys of one band.

    This is not so for bottom_k, rare and winnow, whose keys all have the band number 0.
    """
    if isinstance(keys, Ragged):
        return False
    return bool(((keys[:1] >> _BAND_SHIFT) == np.arange(keys.shape[1], dtype=np.uint64)).all())


@dataclass(frozen=True, slots=True)
class FullBuckets:
    """The buckets with more members than the bucket limit."""

    rows: FullRows
    links_left_out: (
        int  # pairs that the limit leaves out; a pair counts once for each bucket that leaves it out
    )


def find_full_buckets(keys: Keys, bucket_limit: int, pool: Executor | None = None) -> FullBuckets:
    """Find the buckets that have more than `bucket_limit` members. `keys` are the band keys of n heads.

    With a `bucket_limit` of 0 there are none. With `pool`, two of its threads sort buckets.
    """

    def find(group: _Group) -> tuple[Hashes, Ints, int]:
        hashes, rows = group()
        starts = np.flatnonzero(are_fresh(hashes))
        sizes = np.diff(np.append(starts, len(hashes)))
        starts, sizes = starts[sizes > bucket_limit], sizes[sizes > bucket_limit] - bucket_limit
        return hashes[starts], rows[starts + bucket_limit - 1] + 1, int((sizes * (sizes - 1) // 2).sum())

    groups = _groups(keys) if bucket_limit else iter(())
    parts = list[tuple[Hashes, Ints, int]]()
    while batch := [*islice(groups, _GROUPS_SORTED_AT_ONCE)]:
        parts += map(find, batch) if pool is None else pool.map(find, batch)

    full = np.concatenate([np.zeros(0, np.uint64), *(hashes for hashes, _, _ in parts)]).view(np.int64)
    ends = np.concatenate([np.zeros(0, np.int64), *(ends for _, ends, _ in parts)])
    order = np.argsort(full)
    return FullBuckets(FullRows(full[order], ends[order]), sum(left_out for _, _, left_out in parts))


def linked_pairs(
    keys: Keys, bucket_limit: int, full: FullBuckets, backend: Backend
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the linked pairs of n heads in blocks, each pair once, as int64 rows left < right of `keys`.

    The keys of a head are distinct. A pair that several buckets link is yielded for the first of these buckets, in the
    order of `plain.first_links`, so yielded pairs need not be remembered. Groups of buckets are sorted one at a time.
    """
    are_first = _first_links(keys, full.rows, backend)
    for group in _groups(keys):
        hashes, rows = group()
        for buckets, left, right in links(hashes, rows, bucket_limit):
            first = are_first(buckets.view(np.int64), left, right)
            yield left[first], right[first]


def _first_links(keys: Keys, full: FullRows, backend: Backend) -> Callable[[Ints, Ints, Ints], Mask]:
    """Return the function that decides which links are the first of their pair.

    It takes the buckets, the left rows and the right rows of m links, and returns bool of m.
    """
    kernels = sketch_kernels(backend)
    if isinstance(keys, Ragged):
        return lambda buckets, left, right: kernels.first_ragged_links(
            keys.values, keys.offsets, buckets, left, right, full
        )
    by_band = are_by_band(keys)
    stored = keys.view(np.int64) if by_band else np.sort(keys.view(np.int64), axis=1)
    return lambda buckets, left, right: kernels.first_links(stored, by_band, buckets, left, right, full)


def _groups(keys: Keys) -> Iterator[_Group]:
    """Cut the buckets into about as many groups as a head has bands, and yield a function that returns each group."""
    if are_by_band(keys):
        for band in range(keys.shape[1]):
            yield partial(_of_band, keys, band)
        return
    values, owners = flat(keys), np.repeat(np.arange(len(keys)), lengths(keys))
    groups = max(1, -(-len(values) // max(1, len(keys))))
    for group in range(groups):
        yield partial(_of_group, values, owners, groups, group)


def _of_band(keys: Hashes, band: int) -> tuple[Hashes, Ints]:
    return _shared(np.ascontiguousarray(keys[:, band]))


def _of_group(values: Hashes, owners: Ints, groups: int, group: int) -> tuple[Hashes, Ints]:
    chosen = (values * np.uint64(GOLDEN) >> np.uint64(32)) % np.uint64(groups) == group
    hashes, places = _shared(values[chosen])
    return hashes, owners[chosen][places]


def _shared(hashes: Hashes) -> tuple[Hashes, Ints]:
    """Return the hashes that occur more than once, sorted, and their places."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    fresh = np.append(are_fresh(ordered), True)
    shared = ~(fresh[:-1] & fresh[1:])
    return ordered[shared], order[shared]


def begins(hashes: Hashes) -> Ints:
    """Return for each place of sorted hashes the place at which its bucket begins."""
    return np.maximum.accumulate(np.where(are_fresh(hashes), np.arange(len(hashes)), 0))


def links(
    hashes: Hashes, rows: Ints, bucket_limit: int, at_once: int = _LINKS_AT_ONCE
) -> Iterator[tuple[Hashes, Ints, Ints]]:
    """Yield the links of sorted buckets in blocks of about `at_once`. Each member is linked with every earlier anchor.

    A block has the bucket, the left row (the anchor) and the right row of each link.
    """
    starts = begins(hashes)
    anchor_counts = np.arange(len(hashes)) - starts
    if bucket_limit:
        anchor_counts = np.minimum(anchor_counts, bucket_limit)
    ends = np.cumsum(anchor_counts)

    begin = 0
    while begin < len(hashes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + at_once, side="right")))
        counts = anchor_counts[begin:end]
        nth = np.arange(before, int(ends[end - 1])) - np.repeat(ends[begin:end] - counts, counts)
        if len(nth):
            members = np.repeat(np.arange(begin, end), counts)
            yield hashes[members], rows[starts[members] + nth], rows[members]
        begin = end

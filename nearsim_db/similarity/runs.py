"""Runs: the longest sequences of consecutive shingles that two texts have in common."""

import numpy as np

from nearsim_db.similarity.arrays import FeatureSets, Hashes, Ints, Mask, Ragged
from nearsim_db.similarity.backend import resolve, sketch_kernels
from nearsim_db.similarity.metrics import count_overlaps
from nearsim_db.similarity.mixing import GOLDEN, fmix64
from nearsim_db.similarity.passages import matching_runs


def share_runs(
    sequences: FeatureSets, left: Ints, right: Ints, length: int, backend: str | None = None
) -> Mask:
    """Return which of m pairs of sequences have a run of `length` consecutive ids in common: bool of m.

    `left` and `right` are int64 indexes into `sequences`. The time is about linear in the lengths of the sequences,
    even if ids repeat.
    """
    used, places = np.unique(np.concatenate((left, right)), return_inverse=True)
    runs = [np.unique(run_ids(sequences[row], length)) for row in used.tolist()]
    shared, _ = count_overlaps(runs, places[: len(left)], places[len(left) :], backend)
    return shared > 0


def longest_runs(sequences: FeatureSets, left: Ints, right: Ints, backend: str | None = None) -> Ints:
    """Return the length of the longest run of consecutive ids that each of m pairs has in common: int64 of m.

    `left` and `right` are int64 indexes into `sequences`.
    """
    order = [np.argsort(sequence, kind="stable") for sequence in sequences]
    ragged = Ragged.of(sequences)
    begins = np.repeat(ragged.offsets[:-1], np.diff(ragged.offsets))
    places = np.concatenate([np.zeros(0, np.int64), *order]) + begins
    longest = sketch_kernels(resolve(backend)).longest_runs(
        ragged.values, places, ragged.offsets, left, right
    )

    # The kernel gives up on pairs for which it would take too long. `longest_run` is slower, but its time is bounded.
    for pair in np.flatnonzero(longest < 0).tolist():
        longest[pair] = longest_run(sequences[left[pair]], sequences[right[pair]])
    return longest


def longest_run(left: Hashes, right: Hashes) -> int:
    """Return the length of the longest run of consecutive ids that two sequences have in common."""
    # This is exact unless ids repeat so often that `matching_runs` does not pair all of their places.
    longest = int(matching_runs(left, right)[:, 2].max(initial=0))

    # Search for a longer run: first upwards in growing steps, then by bisection.
    too_long = min(len(left), len(right)) + 1
    step = 1
    while longest + 1 < too_long:
        middle = min(longest + step, too_long - 1)
        if len(np.intersect1d(run_ids(left, middle), run_ids(right, middle))):
            longest, step = middle, 2 * step
        else:
            too_long, step = middle, max(1, (middle - longest) // 2)
    return longest


def run_ids(ids: Hashes, length: int) -> Hashes:
    """Return the id of each run of `length` consecutive ids: uint64 of n - length + 1, or empty if n is too small.

    The id of a run is hashed from the ids of its two halves, and from its last id if the length is odd.
    """
    if len(ids) < length:
        return ids[:0]
    runs, size = ids, 1
    for bit in f"{length:b}"[1:]:
        runs, size = _joined(runs[:-size], runs[size:]), 2 * size
        if bit == "1":
            runs, size = _joined(runs[:-1], ids[size:]), size + 1
    return runs


def _joined(first: Hashes, second: Hashes) -> Hashes:
    return fmix64(first * np.uint64(GOLDEN) + second)

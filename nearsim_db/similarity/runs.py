"""Runs of consecutive shingles: whether two texts have one of a given length in common."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.metrics import count_overlaps
from nearsim_db.similarity.mixing import GOLDEN, fmix64

Ids = NDArray[np.uint64]
Rows = NDArray[np.int64]


def share_runs(
    sequences: Sequence[NDArray[Any]], left: Rows, right: Rows, length: int, backend: str | None = None
) -> NDArray[np.bool_]:
    """Return which of m pairs have a run of `length` consecutive ids in common, given as int64 rows into sequences.

    In time about linear in the lengths of the sequences, whatever they repeat.
    """
    used, places = np.unique(np.concatenate((left, right)), return_inverse=True)
    runs = [np.unique(run_ids(sequences[row], length)) for row in used.tolist()]
    shared, _ = count_overlaps(runs, places[: len(left)], places[len(left) :], backend)
    return shared > 0


def run_ids(ids: Ids, length: int) -> Ids:
    """Return the id of each run of `length` consecutive ids: uint64 of n - length + 1, none if there are fewer.

    A run is made of two halves, and of one id more if its length is odd.
    """
    if len(ids) < length:
        return ids[:0]
    runs, size = ids, 1
    for bit in f"{length:b}"[1:]:
        runs, size = _joined(runs[:-size], runs[size:]), 2 * size
        if bit == "1":
            runs, size = _joined(runs[:-1], ids[size:]), size + 1
    return runs


def _joined(first: Ids, second: Ids) -> Ids:
    return fmix64(first * np.uint64(GOLDEN) + second)

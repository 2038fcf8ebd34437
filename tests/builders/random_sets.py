"""Pairs of random sets of known similarity, and batches made of them."""

import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.uint64]


class Batch(NamedTuple):
    """Documents in the form in which a family sketches them: document i has ids[offsets[i]:offsets[i + 1]]."""

    ids: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None


def random_pairs(
    count: int, union: int, intersection: int, seed: int, id_bits: int = 64
) -> tuple[Matrix, Matrix]:
    """`count` pairs of sets of about equal size with exactly these counts. Each row is a set."""
    drawn = np.frombuffer(random.Random(seed).randbytes(8 * count * union), np.uint64).reshape(count, union)
    ids = drawn >> np.uint64(64 - id_bits)
    left_end = intersection + (union - intersection) // 2
    left = ids[:, :left_end]
    right = np.concatenate((ids[:, left_end:], ids[:, :intersection]), axis=1)
    return left, right


def flatten(sets: Matrix) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Sets of equal size as flat ids and offsets."""
    count, size = sets.shape
    return np.ascontiguousarray(sets).reshape(-1), np.arange(count + 1, dtype=np.int64) * size


def ragged(sets: list[list[int]]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Sets of any sizes as flat ids and offsets."""
    ids = np.array([id for ids in sets for id in ids], np.uint64)
    return ids, np.cumsum([0] + [len(ids) for ids in sets], dtype=np.int64)

"""Pairs of random vectors whose cosine, distance or weighted Jaccard similarity is known exactly."""

import math

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.mixing import random_words
from tests.builders.random_sets import Batch

Matrix = NDArray[np.float64]


def cosine_pairs(similarity: float, size: int, count: int, seed: int) -> tuple[Batch, Batch]:
    """Vectors over some ids, and others over these and as many more, at the angle whose cosine is the similarity."""
    ids, first, second = _parts(size // 2, count, seed)
    second *= np.linalg.norm(first, axis=1, keepdims=True) / np.linalg.norm(second, axis=1, keepdims=True)
    turned = np.concatenate((similarity * first, math.sqrt(1 - similarity**2) * second), axis=1)
    return batch(ids[:, : size // 2], first), batch(ids, turned)


def euclidean_pairs(similarity: float, size: int, count: int, seed: int) -> tuple[Batch, Batch]:
    """Vectors over some ids, and those moved by the distance 1 / s - 1 in a random direction over these and others."""
    ids, first, second = _parts(size // 2, count, seed)
    moves = np.concatenate((_signed(first), _signed(second)), axis=1)
    moves *= (1 / similarity - 1) / np.linalg.norm(moves, axis=1, keepdims=True)
    moved = moves + np.concatenate((first, np.zeros_like(second)), axis=1)
    return batch(ids[:, : size // 2], first), batch(ids, moved)


def weighted_jaccard_pairs(similarity: float, size: int, count: int, seed: int) -> tuple[Batch, Batch]:
    """Vectors of positive weights, of which each is the larger one on half of the ids."""
    ids, first, second = _parts(size // 2, count, seed)
    least = np.concatenate((first, second), axis=1)
    more = least[:, ::-1] * (1 / similarity - 1)
    on_left = np.arange(least.shape[1]) % 2 == 0
    more *= least.sum(axis=1, keepdims=True) / least[:, ::-1].sum(axis=1, keepdims=True)
    return batch(ids, least + more * on_left), batch(ids, least + more * ~on_left)


def batch(ids: NDArray[np.uint64], weights: Matrix) -> Batch:
    """Documents of equal size, one a row, their ids sorted."""
    order = np.argsort(ids, axis=1)
    sorted_ids, own = np.take_along_axis(ids, order, axis=1), np.take_along_axis(weights, order, axis=1)
    return Batch(sorted_ids.ravel(), np.arange(len(ids) + 1, dtype=np.int64) * ids.shape[1], own.ravel())


def _parts(half: int, count: int, seed: int) -> tuple[NDArray[np.uint64], Matrix, Matrix]:
    """Ids (count, 2 half), and weights in 0.5..1.5 of each half."""
    ids = random_words(seed, "ids of pairs", 2 * half * count).reshape(count, 2 * half)
    drawn = random_words(seed, "weights of pairs", 2 * half * count).reshape(count, 2 * half)
    weights = 0.5 + (drawn >> np.uint64(11)).astype(np.float64) / 2**53
    return ids, weights[:, :half], weights[:, half:]


def _signed(weights: Matrix) -> Matrix:
    """Weights of either sign, by whether a digit of theirs is odd."""
    return np.where(np.floor(weights * 1e6) % 2 == 0, weights, -weights)

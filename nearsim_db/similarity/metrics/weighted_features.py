"""Weighted features: conversion from plain vectors, sums over pairs, comparison to 12 decimals."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearsim_db.errors import InputError
from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.metrics.contract import FEATURE
from nearsim_db.similarity.metrics.kernels import Sums, metric_kernels
from nearsim_db.similarity.metrics.kernels.plain import add_up
from nearsim_db.similarity.sketch.kernels import Counts

DECIMALS = 12

Weighted = NDArray[Any] | ArrayLike


class Compared(NamedTuple):
    """The sums of m pairs, and each document's sum of squared weights, added in order of ids."""

    sums: Sums
    squares: NDArray[np.float64]


def compare(
    features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None = None
) -> Compared:
    """Compute the sums of pairs of documents, given as int64 rows into `features`, each an array of `FEATURE`."""
    sizes = np.array([len(document) for document in features], np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    flat = np.concatenate([np.zeros(0, FEATURE), *features])
    ids, weights = np.ascontiguousarray(flat["id"]), np.ascontiguousarray(flat["weight"])
    sums = metric_kernels(backends.resolve(backend)).sums(ids, weights, offsets, left, right)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return Compared(sums, add_up(owners, weights * weights, len(sizes)))


def as_features(vector: Weighted) -> NDArray[Any]:
    """Convert a plain vector of finite numbers to an array of `FEATURE` without its zeros.

    Arrays of `FEATURE` are returned unchanged. Raises InputError for anything else.
    """
    array = np.asarray(vector)
    if array.dtype == FEATURE:
        return array
    numbers = array.astype(np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InputError("a vector to compare must be one row of finite numbers, or of ids with weights")
    dimensions = np.flatnonzero(numbers)
    features = np.empty(len(dimensions), FEATURE)
    features["id"], features["weight"] = dimensions, numbers[dimensions]
    return features


def compare_two(left: Weighted, right: Weighted) -> Compared:
    """Compute the sums of two vectors or documents."""
    first, second = np.zeros(1, np.int64), np.ones(1, np.int64)
    return compare([as_features(left), as_features(right)], first, second, "numpy")


def rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to 12 decimals, so that sums of rounded numbers can reach 1, 0.9 or 0 exactly."""
    return np.round(values, DECIMALS)


def reach_mask(similarity: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return which similarities are at least the threshold, both rounded to 12 decimals."""
    reached: NDArray[np.bool_] = rounded(similarity) >= round(threshold, DECIMALS)
    return reached

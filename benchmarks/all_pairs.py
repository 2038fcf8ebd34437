"""All pairs of a corpus that reach a threshold, for every metric and without sketches: the truth for `accuracy`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.exact import exact_pairs
from benchmarks.truth import Ints
from nearsim_db.similarity.encoder import Encoder

Matrix = npt.NDArray[np.float64]

_ROWS_AT_ONCE = 512
_PAIRS_AT_ONCE = 2_000_000
# Much larger than the rounding error of a matrix product.
_MARGIN = 1e-5
# The number of decimals with which a similarity is compared with the threshold.
_DECIMALS = 12


@dataclass(frozen=True, slots=True)
class TruePairs:
    """Pairs in the order of their rows."""

    left: Ints  # rows
    right: Ints  # rows, larger than the left ones
    similarity: npt.NDArray[np.float64]  # on the metric's own scale


def true_pairs(encoder: Encoder, sets: Sequence[npt.NDArray[Any]]) -> TruePairs:
    """Return every pair of documents that reaches the threshold of the encoder's recipe; `sets` are their features.

    Sets are compared by prefix filtering and vectors by matrix products. For weighted terms, all pairs whose sums of
    weights are similar enough are compared.
    """
    threshold = encoder.profile.recipe.match.threshold
    if not encoder.metric.weighted:
        exact = exact_pairs(sets, threshold)
        return TruePairs(exact.left, exact.right, exact.intersection / exact.union)
    if encoder.takes_vectors and encoder.metric.signed:
        return _joined(_by_products(as_matrix(sets), encoder.metric.name, threshold))
    return _joined(_by_comparing(encoder, sets))


def as_matrix(sets: Sequence[npt.NDArray[Any]]) -> Matrix:
    """Return the vectors of documents as rows of a matrix, padded to the longest vector."""
    columns = max((int(features["id"][-1]) + 1 for features in sets if len(features)), default=0)
    matrix = np.zeros((len(sets), columns))
    for row, features in enumerate(sets):
        matrix[row, features["id"].astype(np.int64)] = features["weight"]
    return matrix


def _by_products(vectors: Matrix, metric: str, threshold: float) -> Iterator[TruePairs]:
    lengths = np.linalg.norm(vectors, axis=1)
    for begin in range(0, len(vectors), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        products = vectors[rows] @ vectors[begin:].T
        if metric == "cosine":
            near = products >= (threshold - _MARGIN) * np.outer(lengths[rows], lengths[begin:])
        else:
            squares = np.add.outer(lengths[rows] ** 2, lengths[begin:] ** 2) - 2 * products
            near = squares <= (threshold + _MARGIN) ** 2
        # Earlier blocks contained the pairs with rows before `begin`; triu keeps the pairs of each row with later rows.
        left, right = (places + begin for places in np.nonzero(np.triu(near, 1)))
        yield _decided(vectors, lengths, metric, threshold, left, right)


def _decided(
    vectors: Matrix, lengths: Matrix, metric: str, threshold: float, left: Ints, right: Ints
) -> TruePairs:
    """Compute the similarity of pairs near the threshold exactly; return the pairs that reach it."""
    if metric == "cosine":
        products = np.einsum("ij,ij->i", vectors[left], vectors[right])
        similarity = products / (lengths[left] * lengths[right])
        kept = similarity.round(_DECIMALS) >= threshold
    else:
        distance = np.linalg.norm(vectors[left] - vectors[right], axis=1)
        similarity = 1 / (1 + distance)
        kept = distance.round(_DECIMALS) <= threshold
    return TruePairs(left[kept], right[kept], similarity[kept])


def _by_comparing(encoder: Encoder, sets: Sequence[npt.NDArray[Any]]) -> Iterator[TruePairs]:
    threshold, metric = encoder.profile.recipe.match.threshold, encoder.metric
    for first, second in _similar_sums(encoder, sets):
        scores = encoder.compare(sets, first, second)
        kept = metric.reaches(scores, threshold)
        left, right = np.minimum(first, second)[kept], np.maximum(first, second)[kept]
        yield TruePairs(left, right, scores.similarity[kept])


def _similar_sums(encoder: Encoder, sets: Sequence[npt.NDArray[Any]]) -> Iterator[tuple[Ints, Ints]]:
    """Yield all pairs in blocks; for weighted Jaccard only those whose sums of weights permit the threshold."""
    sums = np.array([features["weight"].sum() for features in sets])
    order, ends = np.argsort(sums, kind="stable"), np.full(len(sets), len(sets))
    if not encoder.metric.signed:
        # The similarity is at most the smaller sum divided by the larger sum; 1e-9 allows for rounding.
        reachable = sums[order] / encoder.profile.recipe.match.threshold * (1 + 1e-9)
        ends = np.searchsorted(sums[order], reachable, side="right")

    partners = np.maximum(ends - np.arange(len(sets)) - 1, 0)
    total, begin = np.cumsum(partners), 0
    # A block has all partners of at least one document, so it may exceed _PAIRS_AT_ONCE.
    while begin < len(sets):
        before = int(total[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, before + _PAIRS_AT_ONCE, side="right")))
        counts = partners[begin:end]
        firsts = np.repeat(np.arange(begin, end), counts)
        nth = np.arange(len(firsts)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield order[firsts], order[firsts + 1 + nth]
        begin = end


def _joined(parts: Iterator[TruePairs]) -> TruePairs:
    # np.concatenate needs at least one array.
    nothing = TruePairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    pairs = [nothing, *parts]
    left = np.concatenate([part.left for part in pairs])
    right = np.concatenate([part.right for part in pairs])
    order = np.lexsort((right, left))
    similarity = np.concatenate([part.similarity for part in pairs])
    return TruePairs(left[order], right[order], similarity[order])

"""Distinct feature sets of a sample: documents with equal features share a set, which has the weights of features."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.records import Progress, silent
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, are_fresh
from nearsim_db.similarity.backend import Backend, sketch_kernels
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import intersections
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text import ID_BITS

_Value = TypeVar("_Value", np.int64, np.uint64)
_CHARACTERS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class DistinctSets:
    """The distinct feature sets of n documents. Set i is `ids[offsets[i]:offsets[i + 1]]`, sorted and never empty."""

    ids: Hashes
    offsets: Ints
    set_of: Ints  # the number of each document's set, -1 for a document without features; int64 of n
    bits: int  # of an id
    backend: Backend
    weights: Floats | None = None  # as long as `ids`, None if the metric has no weights
    metric: str = "jaccard"  # or cosine, weighted_jaccard

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        """Number of features of each set."""
        return np.diff(self.offsets)

    @property
    def members(self) -> Ints:
        """Number of documents that have each set."""
        return np.bincount(self.set_of[self.set_of >= 0], minlength=len(self))

    @property
    def featureless(self) -> int:
        """Number of documents without features."""
        return int((self.set_of < 0).sum())

    @property
    def twins(self) -> int:
        """Number of documents with the same features as an earlier document."""
        return len(self.set_of) - self.featureless - len(self)

    @property
    def twin_pairs(self) -> int:
        """Number of pairs of documents with the same features."""
        members = self.members
        return int((members * (members - 1) // 2).sum())

    def similarities(self, left: Ints, right: Ints) -> Floats:
        """Return the similarities of m pairs of sets under the metric, float64 of m."""
        if self.weights is None:
            shared = intersections(self.ids, self.offsets, left, right, self.backend)
            return np.asarray(shared / (self.sizes[left] + self.sizes[right] - shared), np.float64)
        sums = sketch_kernels(self.backend).sums(self.ids, self.weights, self.offsets, left, right)
        if self.metric == "weighted_jaccard":
            return np.asarray(sums.minima / sums.maxima, np.float64)
        squares = np.concatenate((np.zeros(1), np.cumsum(self.weights**2)))[self.offsets]
        lengths = np.sqrt(np.diff(squares))
        return np.asarray(np.clip(sums.products / (lengths[left] * lengths[right]), 0, 1), np.float64)


def encoder_of(recipe: Recipe, texts: Sequence[str]) -> Encoder:
    """Return the encoder of a recipe. If the recipe needs document frequencies, they are counted in `texts`."""
    encoder = Encoder(resolve(recipe))
    if encoder.freezes:
        encoder.count_features(lambda: map(partial(_ids, encoder), _batches(texts)))
    return encoder


def _ids(encoder: Encoder, texts: Sequence[str]) -> list[Hashes]:
    features = encoder.features(texts)
    return [features.ids_of(row) for row in range(len(texts))]


def distinct_sets(
    encoder: Encoder, texts: Sequence[str], threads: int = 1, progress: Progress = silent
) -> DistinctSets:
    """Extract the features of texts, and keep each distinct set once."""
    numbers: dict[bytes, int] = {}
    set_of = np.full(len(texts), -1, np.int64)
    sets: list[Hashes] = []
    weights: list[Floats] = []
    row = 0

    with ThreadPoolExecutor(threads) as pool:
        for features in pool.map(encoder.features, _batches(texts)):
            for at, (begin, end) in enumerate(pairwise(features.offsets.tolist())):
                if end > begin:
                    number = numbers.setdefault(encoder.digest(features.of(at)), len(numbers))
                    set_of[row] = number
                    if number == len(sets):
                        sets.append(features.ids[begin:end])
                        if features.weights is not None:
                            weights.append(features.weights[begin:end])
                row += 1
            progress("shingle", row, len(texts))

    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum([len(ids) for ids in sets], out=offsets[1:])
    flat = np.concatenate(sets) if sets else np.zeros(0, np.uint64)
    bits = ID_BITS[encoder.profile.recipe.hash.base]
    flat_weights = np.concatenate([np.zeros(0), *weights]) if encoder.metric.weighted else None
    return DistinctSets(flat, offsets, set_of, bits, encoder.backend, flat_weights, encoder.metric.name)


def distinct(values: NDArray[_Value]) -> NDArray[_Value]:
    """Return the distinct values in ascending order. This is faster than np.unique, which builds a hash table."""
    ordered = np.sort(values)
    return ordered[are_fresh(ordered)]


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield batches of consecutive texts, each of about a million characters."""
    begin, characters = 0, 0
    for end, text in enumerate(texts):
        if characters and characters + len(text) > _CHARACTERS_AT_ONCE:
            yield texts[begin:end]
            begin, characters = end, 0
        characters += len(text)
    if begin < len(texts):
        yield texts[begin:]

"""From documents to verified pairs without a database: nearsim's own pure functions, combined with NumPy.

Accuracy tests repeat this for many seeds, and the pairs of a database are compared with its result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.truth import Ints
from nearsim_db.records import Document
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import count_overlaps, reach_mask
from nearsim_db.similarity.screening import screen

Ids = npt.NDArray[np.uint64]

PAIRS_AT_ONCE = 10_000_000

_TEXTS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class FeatureSets:
    """The features of a corpus of n documents, stored for heads only.

    `head_of` is int64 of n: the row of the first document with the same features, -1 for one without features.
    `heads` are the rows that are heads, ascending; head i has the features `sets[i]`.
    """

    head_of: Ints
    heads: Ints
    sets: list[Ids]

    def group_sizes(self) -> Ints:
        """Return the number of documents with the features of each row: int64 of n, 0 for rows that are not heads."""
        return np.bincount(self.head_of[self.head_of >= 0], minlength=len(self.head_of))

    def members(self) -> dict[int, list[int]]:
        """The rows of each head's documents, itself included."""
        found: dict[int, list[int]] = {head: [] for head in self.heads.tolist()}
        for row, head in enumerate(self.head_of.tolist()):
            if head >= 0:
                found[head].append(row)
        return found


def read_features(encoder: Encoder, documents: Sequence[Document]) -> FeatureSets:
    """Compute the features of all documents; documents with equal digests are twins of the first."""
    head_of = np.full(len(documents), -1, np.int64)
    by_digest: dict[bytes, int] = {}
    heads, sets = [], []
    for begin in range(0, len(documents), _TEXTS_AT_ONCE):
        batch = documents[begin : begin + _TEXTS_AT_ONCE]
        features = encoder.features([encoder.content_of(one.title, one.body, one.vector) for one in batch])
        for place in range(len(batch)):
            ids = features.of(place)
            if not len(ids):
                continue
            row = begin + place
            head_of[row] = head = by_digest.setdefault(encoder.digest(ids), row)
            if head == row:
                heads.append(row)
                sets.append(ids.copy())
    return FeatureSets(head_of, np.array(heads, np.int64), sets)


def sketch_heads(encoder: Encoder, features: FeatureSets) -> npt.NDArray[np.generic]:
    """Return the sketches of the heads, in their order: (heads, k)."""
    offsets = np.zeros(len(features.sets) + 1, np.int64)
    np.cumsum([len(one) for one in features.sets], out=offsets[1:])
    flat = np.concatenate(features.sets) if features.sets else np.zeros(0, np.uint64)
    return encoder.family.sketch(flat, offsets)


def linked_pairs(keys: Ids, bucket_limit: int) -> Ints:
    """Apply the candidate relation to band keys (n, bands), row i being the i-th document by doc_id: (m, 2) of
    rows.

    Two rows are linked if they share a key for which one of them is among the first `bucket_limit` rows (0:
    any). Each pair occurs once, the smaller row first, sorted.
    """
    rows = np.arange(len(keys))
    codes = np.zeros(0, np.int64)
    for band in range(keys.shape[1]):
        for left, right in bucket_pairs(keys[:, band], rows, bucket_limit):
            codes = distinct(np.concatenate((codes, left * len(keys) + right)))
    return np.stack(np.divmod(codes, max(len(keys), 1)), axis=1)


def distinct(values: Ints) -> Ints:
    """Return the distinct values, ascending. NumPy 2.4 implements np.unique by hashing: 50 times slower on ten
    million.
    """
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def bucket_pairs(
    keys: npt.NDArray[np.generic], rows: Ints, bucket_limit: int, at_once: int = PAIRS_AT_ONCE
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs (left, right) of rows of equal keys, left among the key's first `bucket_limit` rows (0:
    any).

    `keys` and `rows` have length n; `rows` ascend among equal keys. Pairs are yielded in blocks of about
    `at_once`.
    """
    order = np.argsort(keys, kind="stable")
    members, ordered = rows[order], keys[order]
    fresh = np.ones(len(keys), np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    places = np.arange(len(keys))
    begins = np.maximum.accumulate(np.where(fresh, places, 0))
    # Each member is tied to every earlier anchor of its bucket.
    anchors = places - begins
    if bucket_limit:
        anchors = np.minimum(anchors, bucket_limit)
    ends = np.cumsum(anchors)
    begin = 0
    while begin < len(keys):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + at_once, side="right")))
        tied = anchors[begin:end]
        nth = np.arange(before, int(ends[end - 1])) - np.repeat(ends[begin:end] - tied, tied)
        if len(nth):
            yield members[np.repeat(begins[begin:end], tied) + nth], np.repeat(members[begin:end], tied)
        begin = end


class Overlaps:
    """Exact overlaps of heads, each computed once for all seeds."""

    def __init__(self, features: FeatureSets, backend: str) -> None:
        self._sets = features.sets
        self._backend = backend
        self._codes = np.zeros(0, np.int64)
        self._counts = np.zeros((0, 2), np.int64)

    def count(self, left: Ints, right: Ints) -> tuple[Ints, Ints]:
        """Return sizes of intersection and union; `left` and `right` are int64 of m, indexes of heads."""
        codes = left * len(self._sets) + right
        self._learn(np.setdiff1d(codes, self._codes))
        found = self._counts[np.searchsorted(self._codes, codes)]
        return found[:, 0], found[:, 1]

    def _learn(self, codes: Ints) -> None:
        used, places = np.unique(np.concatenate(np.divmod(codes, len(self._sets))), return_inverse=True)
        left, right = places[: len(codes)], places[len(codes) :]
        counts = count_overlaps([self._sets[place] for place in used.tolist()], left, right, self._backend)
        merged = np.concatenate((self._codes, codes))
        order = np.argsort(merged)
        self._codes = merged[order]
        self._counts = np.concatenate((self._counts, np.stack(counts, axis=1)))[order]


@dataclass(frozen=True, slots=True)
class FoundPairs:
    """Verified pairs of heads, rows of the corpus with left < right; int64 of m.

    `linked`, `candidates` and `screened` are counts of pairs.
    """

    left: Ints
    right: Ints
    intersection: Ints
    union: Ints
    linked: int
    candidates: int
    screened: int


def find_pairs(
    encoder: Encoder, features: FeatureSets, sketches: npt.NDArray[np.generic], overlaps: Overlaps
) -> FoundPairs:
    """Find candidates, screen and verify them exactly under the encoder's profile."""
    match = encoder.profile.recipe.match
    linked = linked_pairs(encoder.band_keys(sketches), match.bucket_limit)
    screened = screen(encoder, Signatures(features.heads, sketches, []), linked[:, 0], linked[:, 1])
    intersection, union = overlaps.count(screened.left, screened.right)
    kept = reach_mask(intersection, union, match.threshold)
    return FoundPairs(
        features.heads[screened.left[kept]],
        features.heads[screened.right[kept]],
        intersection[kept],
        union[kept],
        len(linked),
        screened.candidates,
        len(screened.left),
    )


def expand_twins(features: FeatureSets, found: FoundPairs) -> set[tuple[int, int, int, int]]:
    """Return every reported pair of documents: (left row, right row, intersection, union), left < right."""
    members = features.members()
    expanded = {
        (min(left, right), max(left, right), intersection, union)
        for one, other, intersection, union in zip(
            *(column.tolist() for column in (found.left, found.right, found.intersection, found.union)),
            strict=True,
        )
        for left in members[one]
        for right in members[other]
    }
    for head, ids in zip(features.heads.tolist(), features.sets, strict=True):
        group = members[head]
        expanded.update(
            (left, right, len(ids), len(ids))
            for place, left in enumerate(group)
            for right in group[place + 1 :]
        )
    return expanded

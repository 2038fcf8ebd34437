"""Screening and verification: drop candidates whose sketches rule out a pair, and compare the others exactly."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.records import Evidence
from nearsim_db.similarity.arrays import Floats, Ints, Mask
from nearsim_db.similarity.batches import ColumnBatch, Signatures
from nearsim_db.similarity.cache import BoundedCache
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.recipe.sections import MatchRules

# The size of the sketches on each side of the pairs of a step: 32,768 pairs of 128 positions of 4 bytes.
_SKETCH_BYTES_AT_ONCE = 1 << 24
# With k = 128, five standard errors lose one pair in a million at the threshold 0.7, and 3 in 10,000 at 0.99.
_MAX_STANDARD_ERRORS = 5
_NOTHING: tuple[None, None] = (None, None)


@dataclass(frozen=True, slots=True)
class Screened(ColumnBatch):
    """m candidates that passed screening."""

    left: Ints  # rows of the signatures
    right: Ints  # rows of the signatures
    shared_bands: Ints
    sketch_scores: Scores  # agreeing and compared positions of the sketches
    candidates: int  # number of candidates before screening

    @property
    def estimate(self) -> Floats:
        """The estimated similarities, float64 of m."""
        return self.sketch_scores.similarity


@dataclass(frozen=True, slots=True)
class VerifiedPairs(Screened):
    """Pairs of heads. `left` and `right` are doc_ids, and left < right."""

    scores: Scores
    in_review: Mask  # which pairs are below the threshold, and stored for a person to look at
    left_digests: Sequence[UUID]  # the digests of the features that were compared
    right_digests: Sequence[UUID]

    def evidence(self, *, is_exact: bool) -> Iterator[Evidence]:
        """Yield the evidence of each pair. Unless `is_exact`, only pairs with equal digests count as verified."""
        both = zip(self.left_digests, self.right_digests, strict=True)
        verified = [is_exact or left == right for left, right in both]
        return (Evidence(*values) for values in evidence_values(self, self.scores, verified))


def evidence_values(
    screened: Screened, scores: Scores, verified: Sequence[bool]
) -> Iterator[tuple[float, int | None, int | None, float, int, float | None, bool]]:
    """Yield the fields of `Evidence` for each pair, in their order."""
    unknown = [None] * len(screened.left)
    return zip(
        scores.similarity.tolist(),
        unknown if scores.intersection is None else scores.intersection.tolist(),
        unknown if scores.union is None else scores.union.tolist(),
        screened.estimate.round(6).tolist(),
        screened.shared_bands.tolist(),
        unknown if scores.distance is None else scores.distance.tolist(),
        verified,
        strict=True,
    )


def screen(
    encoder: Encoder,
    signatures: Signatures,
    left: Ints,
    right: Ints,
    *,
    review: bool = False,
    count_late: bool = False,
) -> Screened:
    """Return the linked pairs that are candidates, and that the sketches do not rule out.

    `left` and `right` are int64 rows of `signatures`. A linked pair is a candidate if its shared bands satisfy the
    amplification. Documents that share no bucket never satisfy it, so linked pairs include all candidates.

    With `verify = "exact"` a candidate is dropped if its positions agree less often than those of a pair at the
    threshold, by more than five standard errors (see `Family.may_reach`). With "estimate" it is dropped if its estimate
    is below the threshold. It is kept in any case if it shares `certain_shared_bands`, or if the recipe has
    match.passage_words.

    With `review`, match.review replaces the threshold if the recipe has it. With `count_late`, `verify` may have to
    count the shared bands, and then needs the signatures.
    """
    if count_late and _counts_late(encoder):
        none = np.zeros(len(left), np.int64)
        return Screened(left, right, none, Scores(none.astype(float)), len(left))
    step = max(1, _SKETCH_BYTES_AT_ONCE // max(1, signatures.sketches[:1].nbytes))
    parts = [
        _screen(encoder, signatures, left[at : at + step], right[at : at + step], review)
        for at in range(0, max(1, len(left)), step)
    ]
    return parts[0] if len(parts) == 1 else Screened.joined(parts)


def _counts_late(encoder: Encoder) -> bool:
    """Whether shared bands need to be counted only for pairs.

    This is so if one shared bucket makes a candidate, and if sketches cannot rule out a pair.
    """
    match = encoder.profile.recipe.match
    is_enough = encoder.profile.amplification.min_shared_bands == 1 and not match.certain_shared_bands
    return is_enough and encoder.is_exact and match.passage_words is not None


def _screen(encoder: Encoder, signatures: Signatures, left: Ints, right: Ints, review: bool) -> Screened:
    match, family, metric = encoder.profile.recipe.match, encoder.family, encoder.metric
    counts, enough = encoder.match_rows(signatures.sketches, left, right)
    candidates, kept = int(np.count_nonzero(enough)), enough
    if encoder.is_exact and match.passage_words is None:
        similarity = metric.similarity_at_threshold(_threshold(match, review))
        may_reach = family.may_reach(counts, similarity, _MAX_STANDARD_ERRORS)
        kept = enough & (may_reach | are_certain(match, counts.shared))

    estimate = encoder.scores_of(counts.agreeing[kept], counts.compared[kept])
    screened = Screened(left[kept], right[kept], counts.shared[kept], estimate, candidates)
    if encoder.is_exact:
        return screened
    return screened.take(are_pairs(encoder, estimate, screened.shared_bands, review=review))


def are_pairs(encoder: Encoder, scores: Scores, shared_bands: Ints, *, review: bool = False) -> Mask:
    """Return which candidates are pairs, from the scores that the recipe decides by: bool of m.

    With `review`, pairs to be reviewed count, too.
    """
    match = encoder.profile.recipe.match
    pairs = encoder.metric.reaches(scores, _threshold(match, review)) | are_certain(match, shared_bands)
    return pairs if scores.by_passage is None else pairs | scores.by_passage


def _threshold(match: MatchRules, review: bool) -> float:
    """Return the threshold. With `review`, return match.review instead, if the recipe has it."""
    return (review and match.review) or match.threshold


def are_certain(match: MatchRules, shared_bands: Ints) -> Mask:
    """Return which candidates are pairs at any similarity, because of the number of shared bands: bool of m."""
    if match.verify == "bands":
        return np.ones(len(shared_bands), bool)
    certain: Mask = shared_bands >= (match.certain_shared_bands or np.iinfo(np.int64).max)
    return certain


def verify(
    encoder: Encoder,
    screened: Screened,
    read: Callable[[Sequence[int]], Mapping[int, NDArray[Any]]],
    signatures: Signatures | None = None,
    *,
    review: bool = False,
    passages: bool = False,
) -> tuple[Screened, Scores]:
    """Return the pairs among screened candidates, decided by the recipe's `verify`, with their scores.

    `read` returns the features of rows by row; candidates without features are left out. With `review`, pairs to be
    reviewed are returned, too, if `screen` has kept them. With `passages` the scores include the longest passage of
    each pair. `signatures` are required if `screen` was called with `count_late`.
    """
    if not encoder.is_exact:
        return screened, screened.sketch_scores
    match = encoder.profile.recipe.match

    # Leave out candidates whose features cannot be read.
    used = np.union1d(screened.left, screened.right).tolist()
    features_by_row = read(used)
    rows = np.array([row for row in used if row in features_by_row], np.int64)
    if len(rows) < len(used):
        screened = screened.take(np.isin(screened.left, rows) & np.isin(screened.right, rows))

    # Rule out pairs cheaply before they are compared.
    features, left, right = _rows_of(screened, features_by_row)
    may_be_pairs = encoder.may_be_pairs(features, left, right, _threshold(match, review))
    may_be_pairs |= are_certain(match, screened.shared_bands)
    may_be_pairs &= encoder.have_similar_sizes(features, left, right)
    if not may_be_pairs.all():
        screened = screened.take(may_be_pairs)
        features, left, right = _rows_of(screened, features_by_row)

    scores = encoder.compare(features, left, right)
    kept = are_pairs(encoder, scores, screened.shared_bands, review=review)
    scores = scores.take(kept)
    if passages:
        scores = replace(scores, longest_passage=encoder.longest_passages(features, left[kept], right[kept]))
    screened = screened.take(kept)
    if signatures is None or not _counts_late(encoder):
        return screened, scores

    counts, enough = encoder.match_rows(signatures.sketches, screened.left, screened.right)
    estimate = encoder.scores_of(counts.agreeing, counts.compared)
    counted = replace(screened, shared_bands=counts.shared, sketch_scores=estimate)
    return counted.take(enough), scores.take(enough)


def _rows_of(
    screened: Screened, features_by_row: Mapping[int, NDArray[Any]]
) -> tuple[list[NDArray[Any]], Ints, Ints]:
    """Return the features of the documents of candidates, and the indexes of both documents of each candidate
    in them.
    """
    used = np.union1d(screened.left, screened.right)
    features = [features_by_row[row] for row in used.tolist()]
    return features, used.searchsorted(screened.left), used.searchsorted(screened.right)


# The memory that an entry takes besides the content of its array, measured with tracemalloc.
ENTRY_BYTES = 375


class FeatureCache:
    """A cache of recently used features of documents, which takes at most `capacity_bytes`.

    An entry is valid only for the digest with which it was stored. Threads may share the cache.
    """

    def __init__(self, capacity_bytes: int = 64 << 20) -> None:
        self._entries = BoundedCache[int, tuple[UUID, NDArray[Any]]](capacity_bytes)

    def get_all(self, doc_ids: Sequence[int], digests: Sequence[UUID]) -> list[NDArray[Any] | None]:
        """Return the features of documents, with None for documents that are not cached with this digest."""
        entries = [entry or _NOTHING for entry in self._entries.get_many(doc_ids)]
        # Most of these digests are the same object, and comparing UUIDs takes longer than everything else here.
        return [
            features if stored is digest or stored == digest else None
            for (stored, features), digest in zip(entries, digests, strict=True)
        ]

    def put(self, doc_id: int, digest: UUID, features: NDArray[Any]) -> None:
        """Cache the features of a document. The least recently used entries are dropped if memory runs out."""
        self._entries.put(doc_id, (digest, features), features.nbytes + ENTRY_BYTES)

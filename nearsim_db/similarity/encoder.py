"""Encode documents: counts, digests and sketches for the store, and features for verification."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.records import Document
from nearsim_db.similarity import backend as backends
from nearsim_db.similarity.arrays import (
    FeatureSets,
    Floats,
    Hashes,
    Ints,
    Keys,
    Mask,
    Ragged,
    Sketches,
    offsets_of,
)
from nearsim_db.similarity.backend import sketch_kernels, text_kernels
from nearsim_db.similarity.batches import ColumnBatch
from nearsim_db.similarity.common_shingles import (
    NOTHING_COUNTED,
    CommonShingles,
    Frequencies,
    find_common,
    ignored_ids,
    without,
)
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.metrics import FEATURE, METRICS, Metric, Scores, reach_mask
from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.runs import longest_runs, share_runs
from nearsim_db.similarity.sketch.family import Family, RowAgreements
from nearsim_db.similarity.text import Shingler
from nearsim_db.similarity.text.clean import clean

# The ids of a chunk fit the cache of one core; eight times as many are 40 % slower. A word has four characters or more.
_CHUNK_IDS = 1 << 16
_CHARACTERS_PER_WORD = 4
# NumPy encodes so many characters in the time that it takes to compare two stories.
_CHARACTERS_PER_PAIR = 100

Vector = Sequence[float] | NDArray[np.floating[Any]]
# The text of a document; for profiles that compare vectors its vector, if any.
Content = str | Vector | None


@dataclass(frozen=True, slots=True)
class Features:
    """Distinct features of n documents, sorted by id: document i has `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Hashes  # of shingles or dimensions
    offsets: Ints  # int64 of n + 1
    numbers: Hashes  # digest of the runs of digits in each text, 0 for none
    weights: Floats | None = None  # as long as `ids`, none of them 0; None if features have no weights
    sequence: tuple[Hashes, Ints] | None = (
        None  # ids in the order of the text, and offsets; None if unordered
    )

    def of(self, index: int) -> NDArray[Any]:
        """Return the features of one document: its uint64 ids, or an array of `FEATURE` if they have weights.

        If the family takes ids in the order of the text, these are all ids of `sequence`.
        """
        items, offsets = self.items()
        return items[offsets[index] : offsets[index + 1]]

    def ids_of(self, index: int) -> Hashes:
        """Return the ids of one document: all of `sequence`, or the distinct ones."""
        ids, offsets = self.sequence or (self.ids, self.offsets)
        return ids[offsets[index] : offsets[index + 1]]

    def items(self) -> tuple[NDArray[Any], Ints]:
        """Return the features of all documents, as `of` does, and their offsets."""
        if self.sequence is not None:
            return self.sequence
        if self.weights is None:
            return self.ids, self.offsets
        weighted = np.empty(len(self.ids), FEATURE)
        weighted["id"], weighted["weight"] = self.ids, self.weights
        return weighted, self.offsets


@dataclass(frozen=True, slots=True)
class Encoded(ColumnBatch):
    """n encoded documents for the store; without features, a document has a meaningless digest and sketch."""

    counts: NDArray[np.int32]  # features
    digests: NDArray[np.void]  # of the features, 16 bytes each
    sketches: Sketches  # (n, k)
    numbers: Hashes  # digest of the runs of digits in each text, 0 for none
    items: NDArray[
        Any
    ]  # the features of all documents, one after the other; empty unless they were asked for
    sizes: Ints  # items of each document; empty unless they were asked for

    @property
    def features(self) -> list[NDArray[Any]]:
        """The features of each document, if they were asked for, all in the memory of one array."""
        return [self.items[begin:end] for begin, end in pairwise(offsets_of(self.sizes).tolist())]


class Encoder:
    """Encodes documents under one profile; threads may share it.

    The first `plain_characters` are encoded without numba, unless the process has started it, as its start takes
    longer; the results are the same.
    """

    has_sketches = True

    def __init__(self, profile: Profile, backend: str | None = None, plain_characters: int = 0) -> None:
        self.profile = profile
        chosen = backends.resolve(backend)
        self.backend: backends.Backend = "later" if plain_characters and chosen == "numba" else chosen
        # Characters still to be encoded without numba, negative after them.
        self.plain_left = plain_characters

        self.family: Family = make_family(profile.recipe, self.backend)
        self.metric: Metric = METRICS[self.family.metric]
        self._banding = profile.banding
        self._digest_key = bytes.fromhex(profile.fingerprint)
        # Whether pairs are decided on features, not on sketches.
        self.is_exact: bool = profile.recipe.match.verify == "exact"
        self.field_rules: FieldRules | None = FieldRules.of(profile.recipe)

        self._shingler = Shingler(profile.recipe, self.backend)
        self._ignored_texts = ignored_ids(profile.recipe, self._shingler)
        self.frequencies: Frequencies = NOTHING_COUNTED
        self.ignored: Hashes = self._ignored_texts

        self.takes_vectors: bool = profile.recipe.sketch.input == "vector"
        self._places = [("title", "body").index(name) for name in profile.recipe.fields]
        self._between = "\n\n" if profile.recipe.shingle.scheme == "sentence" else "\n"
        has_words = not self.takes_vectors and profile.recipe.shingle.scheme != "char"
        self._chunk_size = _CHUNK_IDS * (_CHARACTERS_PER_WORD if has_words else 1)

    def _count(self, characters: int) -> None:
        """Start numba once this process has encoded as many characters without it as its start takes."""
        self.plain_left -= characters
        if self.backend == "later" and self.plain_left < 0:
            backends.NUMBA_STARTED.set()

    def text_of(self, title: str | None, body: str | None) -> str:
        """Join the recipe's fields by a newline, without missing and empty ones; by a blank line if sentences count."""
        fields = title, body
        return clean(self._between.join([value for place in self._places if (value := fields[place])]))[0]

    def refusal(self, title: str | None, body: str | None) -> str | None:
        """Return why a document is not compared, None if it is: as source code it may take too long."""
        lexer = None if self.takes_vectors else self._shingler.lexer
        return None if lexer is None else lexer.refusal(self.text_of(title, body))

    def written_features(self, text: str) -> list[tuple[str, int]]:
        """Return the shingles of a cleaned text as they are hashed, in its order, each with its id."""
        ids = self._shingler.shingles([text]).ids.tolist()
        return list(zip(self._shingler.written(text), ids, strict=True))

    def normalised(self, text: str) -> str:
        """Return a cleaned text as it is split into shingles."""
        return self._shingler.shingles([text]).canonical.text(0)

    def content_of(self, title: str | None, body: str | None, vector: Vector | None) -> Content:
        """Return the part of a document that is encoded."""
        return vector if self.takes_vectors else self.text_of(title, body)

    def contents_of(self, documents: Sequence[Document]) -> list[Content]:
        """Return the parts of documents of a reader, which has cleaned their texts, that are encoded."""
        if self.takes_vectors:
            return [document.vector for document in documents]
        if self._places == [0, 1]:
            between = self._between
            return [
                f"{document.title}{between}{document.body}"
                if document.title and document.body
                else document.title or document.body or ""
                for document in documents
            ]
        return [self.text_of(document.title, document.body) for document in documents]

    def encode(self, contents: Sequence[Content], *, keep_features: bool = False) -> Encoded:
        """Return counts, digests and sketches of a batch, with `keep_features` the features too."""
        self._count(sum(len(content) for content in contents if content is not None))
        parts = [self._encode_chunk(chunk, keep_features) for chunk in _chunks(contents, self._chunk_size)]
        parts = parts or [self._encode_chunk([], keep_features)]
        return parts[0] if len(parts) == 1 else Encoded.joined(parts)

    def features(self, contents: Sequence[Content]) -> Features:
        """Return the sorted distinct features of a batch."""
        if self.takes_vectors:
            return _dimensions(cast(Sequence[Vector | None], contents), signed=self.metric.signed)
        shingles = self._shingler.shingles(cast(Sequence[str], contents))
        if self.family.ordered:
            return self.ordered_features(shingles.ids, shingles.offsets, shingles.numbers)
        ids, offsets, counts = shingles.distinct()
        return Features(ids, offsets, shingles.numbers, self._weights(ids, counts))

    def _weights(self, ids: Hashes, counts: Ints) -> Floats | None:
        if not self.metric.weighted:
            return None
        match self.profile.recipe.sketch.weights:
            case "idf":
                return self.frequencies.weights(ids)
            case "log":
                return _logarithmic(counts)
            case _:
                return counts.astype(np.float64)

    def features_again(self, items: NDArray[Any], offsets: Ints, numbers: Hashes) -> Features:
        """Return the features of documents that were encoded before, without ignored ones and weighted anew."""
        if self.family.ordered:
            return self.ordered_features(items, offsets, numbers)
        ids = np.ascontiguousarray(items["id"])
        return Features(ids, offsets, numbers, self.frequencies.weights(ids))

    def ordered_features(self, ids: Hashes, offsets: Ints, numbers: Hashes) -> Features:
        """Return the features of a family that takes ids in the order of the text, without ignored ones."""
        sequence = without(self.ignored, ids, offsets)
        distinct, bounds, _ = text_kernels(self.backend).distinct(*sequence)
        return Features(distinct, bounds, numbers, None, sequence)

    def ignore(self, ids: Hashes) -> None:
        """Leave shingles out of all documents, besides the shingles of texts that the recipe ignores."""
        self.ignored = np.union1d(self._ignored_texts, ids) if len(ids) else self._ignored_texts

    @property
    def freezes(self) -> bool:
        """Whether features are weighted by document frequencies, which a build has to count first."""
        return self.profile.recipe.sketch.weights == "idf"

    def freeze(self, frequencies: Frequencies) -> None:
        """Weight features by these document frequencies from now on."""
        self.frequencies = frequencies

    def count_features(self, read: Callable[[], Iterable[Sequence[Hashes]]]) -> CommonShingles | None:
        """Count the features of a sample that `read` returns in batches, if the recipe requires it.

        From now on features are weighted by their frequencies, or common shingles, which are returned, are left out.
        """
        if self.freezes:
            self.freeze(Frequencies.of(read()))
        if not self.profile.recipe.match.ignore_common:
            return None
        common = find_common(read, self.profile.recipe)
        self.ignore(common.ids)
        return common

    def sketch(self, features: Features) -> Sketches:
        """Return the sketches (n, k) of a batch."""
        if features.sequence is not None:
            return self.family.sketch(*features.sequence)
        return self.family.sketch(features.ids, features.offsets, features.weights)

    def band_keys(self, sketches: Sketches) -> Keys:
        """Return the bucket hashes of sketches: (n, bands) uint64, or rows of different lengths."""
        return self.family.band_keys(sketches, self._banding)

    def ragged_keys(self, sketches: Sketches) -> Ragged:
        """Return the bucket hashes of sketches of a family whose documents have different numbers of them."""
        keys = self.band_keys(sketches)
        assert isinstance(keys, Ragged), "only families that take ids in order have such keys"
        return keys

    def matrix_keys(self, sketches: Sketches) -> Hashes:
        """Return the bucket hashes (n, bands) of sketches of any other family."""
        keys = self.band_keys(sketches)
        assert not isinstance(keys, Ragged), "families that take ids in order have other keys"
        return keys

    def shared_bands(self, left: Sketches, right: Sketches) -> Ints:
        """Count the bands that two sketches share, row by row: (m, k) and (m, k) to int64 of m."""
        return self.family.count_shared_bands(left, right, self._banding)

    def match_bands(self, left: Sketches, right: Sketches) -> tuple[Ints, Mask]:
        """Count shared bands, int64 of m, and check them against the profile's amplification, bool of m."""
        amplification = self.profile.amplification
        if amplification.min_shared_bands is not None:
            shared = self.shared_bands(left, right)
            return shared, shared >= amplification.min_shared_bands
        matched = self.family.matched_bands(left, right, self._banding)
        return np.count_nonzero(matched, axis=1), amplification.evaluate(matched)

    def match_rows(self, sketches: Sketches, left: Ints, right: Ints) -> tuple[RowAgreements, Mask]:
        """Compare m pairs of rows of sketches, and check their bands as `match_bands` does, bool of m."""
        counts = self.family.compare_rows(sketches, left, right, self._banding)
        min_shared_bands = self.profile.amplification.min_shared_bands
        if min_shared_bands is not None:
            return counts, counts.shared >= min_shared_bands
        shared, enough = self.match_bands(sketches[left], sketches[right])
        return counts._replace(shared=shared), enough

    def sketch_scores(self, left: Sketches, right: Sketches) -> Scores:
        """Score m pairs by their sketches, (m, k) and (m, k); for Jaccard with counts of sketch positions.

        A distance is derived from the estimated similarity, to 12 decimals; infinite if no position agrees.
        """
        return self.scores_of(*self.family.agreements(left, right))

    def scores_of(self, agreeing: Ints, compared: Ints) -> Scores:
        """Score m pairs as `sketch_scores` does, by the agreeing and compared places of their sketches."""
        similarity = self.family.similarities(agreeing, compared)
        if self.metric.name == "euclidean":
            with np.errstate(divide="ignore"):
                return Scores(similarity, distance=np.round(1 / similarity - 1, 12))
        if self.metric.name != "jaccard":
            return Scores(similarity)
        return Scores(similarity, agreeing, compared)

    def compare(self, features: FeatureSets, left: Ints, right: Ints) -> Scores:
        """Return the exact scores of m pairs of documents, given as rows into their features."""
        self._count(len(left) * _CHARACTERS_PER_PAIR)
        scores = self.metric.compare(features, left, right, self.backend)
        recipe = self.profile.recipe
        if recipe.run_length is None:
            return scores
        by_passage = ~self.metric.reaches(scores, recipe.match.threshold)
        rows = left[by_passage], right[by_passage]
        by_passage[by_passage] = share_runs(features, *rows, recipe.run_length, self.backend)
        return replace(scores, by_passage=by_passage)

    def may_be_pairs(self, features: FeatureSets, left: Ints, right: Ints, threshold: float) -> Mask:
        """Return which of m pairs may reach the threshold, or have a passage that makes them a pair."""
        if self.profile.recipe.run_length is not None:
            return np.ones(len(left), np.bool_)
        return self.metric.may_reach(features, left, right, threshold, self.backend)

    def have_similar_sizes(self, features: FeatureSets, left: Ints, right: Ints) -> Mask:
        """Return of which m pairs both documents have about as many features as the recipe requires."""
        ratio = self.profile.recipe.match.length_ratio
        if not ratio:
            return np.ones(len(left), np.bool_)
        sizes = self.sizes(features)
        return reach_mask(np.minimum(sizes[left], sizes[right]), np.maximum(sizes[left], sizes[right]), ratio)

    def sizes(self, features: FeatureSets) -> Ints:
        """Return the number of distinct features of documents, int64 of n."""
        if not self.family.ordered:
            return np.fromiter(map(len, features), np.int64, len(features))
        sequences = Ragged.of(features)
        _, offsets, _ = text_kernels(self.backend).distinct(sequences.values, sequences.offsets)
        return np.diff(offsets)

    def longest_passages(self, features: FeatureSets, left: Ints, right: Ints) -> Ints | None:
        """Return the words of the longest run that both documents have, int64 of m; None without ids in order."""
        if not self.family.ordered:
            return None
        used, places = np.unique(np.concatenate((left, right)), return_inverse=True)
        sequences = [features[row] for row in used.tolist()]
        shingles = longest_runs(sequences, places[: len(left)], places[len(left) :], self.backend)
        return np.where(shingles > 0, shingles + self.profile.recipe.words_around, 0)

    def digest(self, features: NDArray[Any]) -> bytes:
        """Return a 128-bit digest of the features of one document under this profile."""
        return self.digest_bytes(features.view(np.uint8).data)

    def is_digest(self, digest: UUID, features: NDArray[Any], doc_id: int) -> bool:
        """Whether a stored digest is of these features of a document."""
        expected = self.digest(features)
        if self.field_rules is None:
            return digest.bytes == expected
        return self.field_rules.is_digest(digest, expected, doc_id)

    def digest_bytes(self, content: memoryview) -> bytes:
        """Return a 128-bit digest of any content of one document under this profile."""
        return hashlib.blake2b(content, digest_size=16, key=self._digest_key).digest()

    def _encode_chunk(self, contents: Sequence[Content], keep_features: bool) -> Encoded:
        return self.encode_features(self.features(contents), keep_features=keep_features)

    def encode_features(self, features: Features, *, keep_features: bool = False) -> Encoded:
        """Return counts, digests and sketches of a batch of features, with `keep_features` these too."""
        counts = np.diff(features.offsets).astype(np.int32)
        items, offsets = features.items()
        words = items.view(np.uint64)
        word_offsets = offsets * (items.itemsize // words.itemsize)
        digests = sketch_kernels(self.backend).digests(words, word_offsets, self._digest_key)
        kept = (items, np.diff(offsets)) if keep_features else (items[:0], offsets[:0])
        return Encoded(counts, digests, self.sketch(features), features.numbers, *kept)


def _chunks(contents: Sequence[Content], max_size: int) -> Iterator[Sequence[Content]]:
    """Yield consecutive contents of at most `max_size` characters or dimensions together, or a longer single one."""
    begin, size = 0, 0
    for end, content in enumerate(contents):
        length = 0 if content is None else len(content)
        if size and size + length > max_size:
            yield contents[begin:end]
            begin, size = end, 0
        size += length
    if begin < len(contents):
        yield contents[begin:]


def _logarithmic(counts: Ints) -> Floats:
    """Return 1 + ln(count) rounded to 32-bit floats: the last bits of a logarithm differ between processors."""
    return (1 + np.log(counts)).astype(np.float32).astype(np.float64)


def _dimensions(vectors: Sequence[Vector | None], *, signed: bool) -> Features:
    """Convert vectors to features: the dimensions that are not 0, with their numbers rounded to 32-bit floats.

    A vector has no features if it is missing, has NaN or numbers too large for 32 bits, or has negative numbers under
    a metric without `signed` weights.
    """
    with np.errstate(over="ignore"):
        rows = [
            np.asarray(() if vector is None else vector, np.float32).astype(np.float64) for vector in vectors
        ]
    rows = [row if np.isfinite(row).all() and (signed or (row >= 0).all()) else row[:0] for row in rows]
    dimensions = [np.flatnonzero(row) for row in rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(nonzero) for nonzero in dimensions], out=offsets[1:])
    ids = np.concatenate([np.zeros(0, np.int64), *dimensions]).astype(np.uint64)
    weights = np.concatenate(
        [np.zeros(0), *(row[nonzero] for row, nonzero in zip(rows, dimensions, strict=True))]
    )
    return Features(ids, offsets, np.zeros(len(rows), np.uint64), weights)

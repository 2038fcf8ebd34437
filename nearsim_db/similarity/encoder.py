"""Encoding: compute counts, digests and sketches of documents for the store, and features for verification."""

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
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.runs import longest_runs, share_runs
from nearsim_db.similarity.sketch.family import Family, RowAgreements
from nearsim_db.similarity.text import Shingler
from nearsim_db.similarity.text.clean import clean

# The ids of a chunk fit into the cache of a core; chunks of eight times this size are 40 % slower.
_CHUNK_IDS = 1 << 16
# A word, with the space after it, has at least about this number of characters.
_CHARACTERS_PER_WORD = 4
# The number of characters that NumPy encodes in the time in which it compares two stories.
_CHARACTERS_PER_PAIR = 100

Vector = Sequence[float] | NDArray[np.floating[Any]]
# What is encoded of a document: its text, or under a profile that compares vectors its vector, or None without one.
Content = str | Vector | None


@dataclass(frozen=True, slots=True)
class Features:
    """The distinct features of n documents, sorted by id. Document i has `ids[offsets[i]:offsets[i + 1]]`."""

    ids: Hashes  # ids of shingles, or dimensions
    offsets: Ints  # n + 1
    numbers: Hashes  # a digest of the runs of digits in each text, 0 for a text without digits
    weights: Floats | None = None  # the weight of each id, never 0; None if features have no weights
    # The ids in the order of the text, with repetitions, and their offsets; None if the family ignores the order.
    sequence: tuple[Hashes, Ints] | None = None

    def of(self, index: int) -> NDArray[Any]:
        """Return the features of a document as its metric takes them.

        These are distinct uint64 ids, an array of `FEATURE` if features have weights, or the ids of `sequence` if the
        family takes ids in the order of the text.
        """
        items, offsets = self.items()
        return items[offsets[index] : offsets[index + 1]]

    def ids_of(self, index: int) -> Hashes:
        """Return the ids of a document: those of `sequence` if there is one, otherwise the distinct ids."""
        ids, offsets = self.sequence or (self.ids, self.offsets)
        return ids[offsets[index] : offsets[index + 1]]

    def items(self) -> tuple[NDArray[Any], Ints]:
        """Return the features of all documents in the form of `of`, one document after the other, and their offsets."""
        if self.sequence is not None:
            return self.sequence
        if self.weights is None:
            return self.ids, self.offsets
        weighted = np.empty(len(self.ids), FEATURE)
        weighted["id"], weighted["weight"] = self.ids, self.weights
        return weighted, self.offsets


@dataclass(frozen=True, slots=True)
class Encoded(ColumnBatch):
    """n encoded documents for the store. The digest and the sketch of a document without features are meaningless."""

    counts: NDArray[np.int32]  # number of features
    digests: NDArray[np.void]  # digests of the features, 16 bytes each
    sketches: Sketches  # (n, k)
    numbers: Hashes  # digests of the runs of digits in each text, 0 for a text without digits
    items: NDArray[Any]  # the features of all documents, one after the other; empty without `keep_features`
    sizes: Ints  # the number of items of each document; empty without `keep_features`

    @property
    def features(self) -> list[NDArray[Any]]:
        """The features of each document, as views of one array; empty if they were not kept."""
        return [self.items[begin:end] for begin, end in pairwise(offsets_of(self.sizes).tolist())]


class Encoder:
    """Encodes documents under one profile. Threads may share it.

    The first `plain_characters` are encoded with NumPy, because starting numba would take longer, unless the process
    has already started numba. The results are the same. Texts are split by `text_recipe` if it is passed, else by the
    recipe of the profile.
    """

    has_sketches = True

    def __init__(
        self,
        profile: Profile,
        backend: str | None = None,
        plain_characters: int = 0,
        text_recipe: Recipe | None = None,
    ) -> None:
        self.profile = profile
        resolved = backends.resolve(backend)
        self.backend: backends.Backend = "later" if plain_characters and resolved == "numba" else resolved
        # The number of characters that are still to be encoded without numba; afterwards it is negative.
        self.plain_left = plain_characters

        self.family: Family = make_family(profile.recipe, self.backend)
        self.metric: Metric = METRICS[self.family.metric]
        self._banding = profile.banding
        self._digest_key = bytes.fromhex(profile.fingerprint)
        # Whether pairs are decided on features instead of sketches.
        self.is_exact: bool = profile.recipe.match.verify == "exact"
        self.field_rules: FieldRules | None = FieldRules.of(profile.recipe)

        self._shingler = Shingler(text_recipe or profile.recipe, self.backend)
        self._ignored_texts = ignored_ids(profile.recipe, self._shingler)
        self.frequencies: Frequencies = NOTHING_COUNTED
        self.ignored: Hashes = self._ignored_texts

        self.takes_vectors: bool = profile.recipe.sketch.input == "vector"
        self._places = [("title", "body").index(name) for name in profile.recipe.fields]
        self._between = "\n\n" if profile.recipe.shingle.scheme == "sentence" else "\n"
        has_words = not self.takes_vectors and profile.recipe.shingle.scheme != "char"
        self._chunk_size = _CHUNK_IDS * (_CHARACTERS_PER_WORD if has_words else 1)

    def _count(self, characters: int) -> None:
        """Count encoded characters, and start numba when `plain_characters` have been encoded without it."""
        self.plain_left -= characters
        if self.backend == "later" and self.plain_left < 0:
            backends.NUMBA_STARTED.set()

    def text_of(self, title: str | None, body: str | None) -> str:
        """Return the compared text of a document: the recipe's fields, cleaned and joined by a newline.

        Missing and empty fields are left out. If shingles are sentences, fields are joined by a blank line, which ends
        a sentence.
        """
        fields = title, body
        return clean(self._between.join([value for place in self._places if (value := fields[place])]))[0]

    def refusal(self, title: str | None, body: str | None) -> str | None:
        """Return why a document is not compared, or None if it is. Source code is not compared if lexing takes too
        long.
        """
        lexer = None if self.takes_vectors else self._shingler.lexer
        return None if lexer is None else lexer.refusal(self.text_of(title, body))

    def written_features(self, text: str) -> list[tuple[str, int]]:
        """Return the shingles of a cleaned text as strings, in the order of the text, each with its id."""
        ids = self._shingler.shingles([text]).ids.tolist()
        return list(zip(self._shingler.written(text), ids, strict=True))

    def normalised(self, text: str) -> str:
        """Normalise a cleaned text. The result is what is split into shingles."""
        return self._shingler.shingles([text]).canonical.text(0)

    def content_of(self, title: str | None, body: str | None, vector: Vector | None) -> Content:
        """Return the part of a document that is encoded."""
        return vector if self.takes_vectors else self.text_of(title, body)

    def contents_of(self, documents: Sequence[Document]) -> list[Content]:
        """Return the parts of documents that are encoded. A reader has already cleaned the texts of these documents."""
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
        """Return the counts, digests and sketches of a batch of documents. With `keep_features`, add the features."""
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
        """Return the features of documents from the `items` of an earlier encoding.

        Shingles that are ignored by now are left out, and weights follow the present document frequencies.
        """
        if self.family.ordered:
            return self.ordered_features(items, offsets, numbers)
        ids = np.ascontiguousarray(items["id"])
        return Features(ids, offsets, numbers, self.frequencies.weights(ids))

    def ordered_features(self, ids: Hashes, offsets: Ints, numbers: Hashes) -> Features:
        """Return features for a family that takes ids in the order of the text. Ignored shingles are left out."""
        sequence = without(self.ignored, ids, offsets)
        distinct, bounds, _ = text_kernels(self.backend).distinct(*sequence)
        return Features(distinct, bounds, numbers, None, sequence)

    def ignore(self, ids: Hashes) -> None:
        """From now on leave out these shingles, in addition to the shingles of texts that the recipe ignores."""
        self.ignored = np.union1d(self._ignored_texts, ids) if len(ids) else self._ignored_texts

    @property
    def freezes(self) -> bool:
        """Whether features are weighted by document frequencies. A build has to count these first."""
        return self.profile.recipe.sketch.weights == "idf"

    def freeze(self, frequencies: Frequencies) -> None:
        """From now on weight features by these document frequencies."""
        self.frequencies = frequencies

    def count_features(self, read: Callable[[], Iterable[Sequence[Hashes]]]) -> CommonShingles | None:
        """Count the features of a sample, if the recipe requires it, and encode accordingly from now on.

        `read` returns the features of the sample in batches. With the weights idf, features are then weighted by their
        document frequencies. With match.ignore_common, common shingles are then left out, and returned.
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
        """Return the band keys of sketches: (n, bands) of uint64, or ragged rows for an ordered family."""
        return self.family.band_keys(sketches, self._banding)

    def ragged_keys(self, sketches: Sketches) -> Ragged:
        """Return the band keys of sketches of an ordered family, whose documents have different numbers of keys."""
        keys = self.band_keys(sketches)
        assert isinstance(keys, Ragged), "only ordered families have ragged keys"
        return keys

    def matrix_keys(self, sketches: Sketches) -> Hashes:
        """Return the band keys (n, bands) of sketches of a family that is not ordered."""
        keys = self.band_keys(sketches)
        assert not isinstance(keys, Ragged), "ordered families have ragged keys"
        return keys

    def shared_bands(self, left: Sketches, right: Sketches) -> Ints:
        """Count the bands that two sketches share, row by row: (m, k) and (m, k) to int64 of m."""
        return self.family.count_shared_bands(left, right, self._banding)

    def match_bands(self, left: Sketches, right: Sketches) -> tuple[Ints, Mask]:
        """Return the number of shared bands, int64 of m, and whether they satisfy the amplification, bool of m."""
        amplification = self.profile.amplification
        if amplification.min_shared_bands is not None:
            shared = self.shared_bands(left, right)
            return shared, shared >= amplification.min_shared_bands
        matched = self.family.matched_bands(left, right, self._banding)
        return np.count_nonzero(matched, axis=1), amplification.evaluate(matched)

    def match_rows(self, sketches: Sketches, left: Ints, right: Ints) -> tuple[RowAgreements, Mask]:
        """Compare m pairs of rows of sketches. Also return whether their bands satisfy the amplification, bool of m."""
        counts = self.family.compare_rows(sketches, left, right, self._banding)
        min_shared_bands = self.profile.amplification.min_shared_bands
        if min_shared_bands is not None:
            return counts, counts.shared >= min_shared_bands
        shared, enough = self.match_bands(sketches[left], sketches[right])
        return counts._replace(shared=shared), enough

    def sketch_scores(self, left: Sketches, right: Sketches) -> Scores:
        """Return the scores of m pairs, estimated from their sketches, (m, k) and (m, k).

        For Jaccard, intersection and union are the numbers of agreeing and compared positions. A distance is computed
        from the estimated similarity, to 12 decimals, and is infinite if no position agrees.
        """
        return self.scores_of(*self.family.agreements(left, right))

    def scores_of(self, agreeing: Ints, compared: Ints) -> Scores:
        """Return the scores of `sketch_scores` for m pairs with these numbers of agreeing and compared places."""
        similarity = self.family.similarities(agreeing, compared)
        if self.metric.name == "euclidean":
            with np.errstate(divide="ignore"):
                return Scores(similarity, distance=np.round(1 / similarity - 1, 12))
        if self.metric.name != "jaccard":
            return Scores(similarity)
        return Scores(similarity, agreeing, compared)

    def compare(self, features: FeatureSets, left: Ints, right: Ints) -> Scores:
        """Return the exact scores of m pairs of documents. `left` and `right` are indexes into `features`."""
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
        """Return which of m pairs may reach the threshold. Rule out none if a passage can make a pair: bool of m."""
        if self.profile.recipe.run_length is not None:
            return np.ones(len(left), np.bool_)
        return self.metric.may_reach(features, left, right, threshold, self.backend)

    def have_similar_sizes(self, features: FeatureSets, left: Ints, right: Ints) -> Mask:
        """Return for which of m pairs the numbers of features satisfy match.length_ratio: bool of m."""
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
        """Return for m pairs the number of words in the longest run that both documents have: int64 of m.

        Returns None for a family that is not ordered.
        """
        if not self.family.ordered:
            return None
        used, places = np.unique(np.concatenate((left, right)), return_inverse=True)
        sequences = [features[row] for row in used.tolist()]
        shingles = longest_runs(sequences, places[: len(left)], places[len(left) :], self.backend)
        return np.where(shingles > 0, shingles + self.profile.recipe.words_around, 0)

    def digest(self, features: NDArray[Any]) -> bytes:
        """Return the 128-bit digest of the features of a document under this profile."""
        return self.digest_bytes(features.view(np.uint8).data)

    def is_digest(self, digest: UUID, features: NDArray[Any], doc_id: int) -> bool:
        """Whether a stored digest belongs to a document with these features."""
        expected = self.digest(features)
        if self.field_rules is None:
            return digest.bytes == expected
        return self.field_rules.is_digest(digest, expected, doc_id)

    def digest_bytes(self, content: memoryview) -> bytes:
        """Return the 128-bit digest of any content of a document under this profile."""
        return hashlib.blake2b(content, digest_size=16, key=self._digest_key).digest()

    def _encode_chunk(self, contents: Sequence[Content], keep_features: bool) -> Encoded:
        return self.encode_features(self.features(contents), keep_features=keep_features)

    def encode_features(self, features: Features, *, keep_features: bool = False) -> Encoded:
        """Return the counts, digests and sketches of a batch of features. With `keep_features`, add the features."""
        counts = np.diff(features.offsets).astype(np.int32)
        items, offsets = features.items()
        words = items.view(np.uint64)
        word_offsets = offsets * (items.itemsize // words.itemsize)
        digests = sketch_kernels(self.backend).digests(words, word_offsets, self._digest_key)
        kept = (items, np.diff(offsets)) if keep_features else (items[:0], offsets[:0])
        return Encoded(counts, digests, self.sketch(features), features.numbers, *kept)


def _chunks(contents: Sequence[Content], max_size: int) -> Iterator[Sequence[Content]]:
    """Cut contents into chunks of at most `max_size` characters or dimensions; a longer content is a separate chunk."""
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
    """Return 1 + ln(count), rounded to 32-bit floats, because the last bits of a logarithm differ between
    processors.
    """
    return (1 + np.log(counts)).astype(np.float32).astype(np.float64)


def _dimensions(vectors: Sequence[Vector | None], *, signed: bool) -> Features:
    """Convert vectors to features: the ids are the dimensions that are not 0, and the weights their numbers.

    Numbers are rounded to 32-bit floats. A vector has no features if it is missing, if it has NaN or numbers that are
    too large for 32 bits, or if it has negative numbers and the metric does not take `signed` weights.
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

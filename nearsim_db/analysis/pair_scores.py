"""Pair scores: how similar two texts are under a recipe, for texts in memory or a file of pairs, without a database."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import overload

import numpy as np

from nearsim_db.analysis.tuning import labels as labelled
from nearsim_db.errors import InputError
from nearsim_db.readers import Source
from nearsim_db.readers.document_maker import number_as_text
from nearsim_db.readers.inputs import Input
from nearsim_db.readers.values import shown, value_at
from nearsim_db.records import ReadDocument
from nearsim_db.similarity.arrays import Hashes
from nearsim_db.similarity.backend import plain_characters
from nearsim_db.similarity.encoder import Content, Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.screening import are_pairs
from nearsim_db.similarity.text.clean import clean
from nearsim_db.store.settings import encoding_from_environment

_PAIRS_AT_ONCE = 1_000
_MAX_REASONS = 5
LABEL = "label"


@dataclass(frozen=True, slots=True)
class PairScore:
    """How similar two texts are under a recipe. The figures are None if one of the texts has no features."""

    similarity: float | None  # exact; 1 / (1 + distance) for a metric that is a distance
    estimate: float | None  # of the similarity, from the sketches
    left_in_right: float | None  # fraction of the left text's features that the right text has too
    right_in_left: float | None  # fraction of the right text's features that the left text has too
    intersection: int | None  # distinct features that both texts have
    union: int | None  # distinct features that at least one of the texts has
    shared_bands: int | None
    candidate: bool  # whether the two share enough bands to be a candidate
    pair: bool  # whether they are a candidate that reaches the recipe's threshold


_WITHOUT_FEATURES = PairScore(None, None, None, None, None, None, None, False, False)
TextPair = tuple[str, str]


@overload
def score(left: str, right: str, *, recipe: Recipe | None = None) -> PairScore: ...  # type: ignore[overload-overlap]
@overload
def score(left: Iterable[str], right: Iterable[str], *, recipe: Recipe | None = None) -> list[PairScore]: ...
def score(
    left: str | Iterable[str], right: str | Iterable[str], *, recipe: Recipe | None = None
) -> PairScore | list[PairScore]:
    """Compare two texts, or two sequences of texts pair by pair, without a database.

    If the recipe weights features by document frequency, the frequencies are counted in the texts of this call. Raises
    InputError if the sequences differ in length, a value is not a text, or the recipe compares vectors.
    """
    if isinstance(left, str) and isinstance(right, str):
        return score([left], [right], recipe=recipe)[0]
    if isinstance(left, str) or isinstance(right, str):
        raise InputError(
            "left and right are a text and a sequence; give two texts, or two sequences of texts"
        )
    lefts, rights = list(left), list(right)
    if len(lefts) != len(rights):
        raise InputError(f"left has {len(lefts):,} texts and right {len(rights):,}; give as many")
    for text in (*lefts, *rights):
        if not isinstance(text, str):
            raise InputError(f"{shown(text)} is not a text; give strings")

    pairs = [
        (clean(left_text)[0], clean(right_text)[0])
        for left_text, right_text in zip(lefts, rights, strict=True)
    ]
    scorer = PairScorer(recipe or Recipe(), lambda: [pairs], sum(map(len, (*lefts, *rights))))
    return scorer.score(pairs)


class PairScorer:
    """Scores pairs of texts under a recipe. The texts must have been cleaned, as readers clean them.

    `read` yields all pairs in batches. It is called only if the recipe needs document frequencies, to weight features
    or to ignore common ones. `expected_bytes` is the approximate size of the texts, None if unknown. Raises InputError
    if the recipe compares vectors.
    """

    def __init__(
        self, recipe: Recipe, read: Callable[[], Iterable[Sequence[TextPair]]], expected_bytes: int | None
    ) -> None:
        backend, _ = encoding_from_environment()
        self.encoder: Encoder = Encoder(resolve(recipe), backend, plain_characters(expected_bytes))
        if self.encoder.takes_vectors:
            raise InputError("the recipe compares vectors, not texts; choose another recipe")
        self.encoder.count_features(lambda: self._feature_ids(read()))

    def _feature_ids(self, batches: Iterable[Sequence[TextPair]]) -> Iterator[list[Hashes]]:
        """Yield the feature ids of each distinct text, in batches."""
        # The hashes of the texts take less memory than the texts.
        seen: set[int] = set()
        for pairs in batches:
            distinct = dict.fromkeys(text for pair in pairs for text in pair)
            texts = [text for text in distinct if hash(text) not in seen]
            seen.update(map(hash, texts))
            features = self.encoder.features(texts)
            yield [features.ids_of(row) for row in range(len(texts))]

    @property
    def threshold(self) -> float:
        """The lowest similarity at which a candidate is a pair."""
        return self.encoder.metric.similarity_at_threshold(self.encoder.profile.recipe.match.threshold)

    def score(self, pairs: Sequence[TextPair]) -> list[PairScore]:
        """Score pairs of texts, in their order."""
        return score_pairs(self.encoder, [text for pair in pairs for text in pair])


def score_pairs(encoder: Encoder, contents: Sequence[Content]) -> list[PairScore]:
    """Compare the first content with the second, the third with the fourth, and so on."""
    features, count = encoder.features(contents), len(contents)
    sets = [features.of(row) for row in range(count)]
    distinct = [np.unique(features.ids_of(row)) for row in range(count)]
    sketches = encoder.sketch(features)

    # The left row of each pair in which both texts have features; the right row is the next one.
    left = np.array([row for row in range(0, count, 2) if len(sets[row]) and len(sets[row + 1])], np.int64)
    scores = [_WITHOUT_FEATURES] * (count // 2)
    if not len(left):
        return scores
    exact = encoder.compare(sets, left, left + 1)
    estimated = encoder.sketch_scores(sketches[left], sketches[left + 1])
    shared, are_candidates = encoder.match_bands(sketches[left], sketches[left + 1])
    reaching = are_pairs(encoder, exact if encoder.is_exact else estimated, shared)

    for at, row in enumerate(left.tolist()):
        left_ids, right_ids = distinct[row], distinct[row + 1]
        both = len(np.intersect1d(left_ids, right_ids, assume_unique=True))
        scores[row // 2] = PairScore(
            float(exact.similarity[at]),
            round(float(estimated.similarity[at]), 6),
            both / len(left_ids),
            both / len(right_ids),
            both,
            len(left_ids) + len(right_ids) - both,
            int(shared[at]),
            bool(are_candidates[at]),
            bool(are_candidates[at] and reaching[at]),
        )
    return scores


@dataclass(frozen=True, slots=True)
class PairFields:
    """The columns of a file of pairs.

    Columns are named as readers name fields: by a path, or by 'a,b' to join the texts of two fields.
    """

    left: str  # the left text, or the id of a document of the corpus
    right: str  # the right text, or the id of a document of the corpus
    # Whether the two are duplicates; None for the column 'label', if the file has one
    label: str | None = None


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row of a file of pairs, with its score."""

    row: int  # from 1
    left: str  # text or id, as in the file
    right: str  # text or id, as in the file
    label: bool | None  # whether the two are labelled duplicates, None without a label
    score: PairScore


@dataclass(slots=True)
class _PairRow:
    row: int
    left: str
    right: str
    label: bool | None
    texts: TextPair


class PairFile:
    """The pairs of a file. With a corpus, the file has document ids, and the texts come from the corpus.

    `skipped` counts the rows that have no usable pair.
    """

    def __init__(self, source: Source, fields: PairFields, corpus: Source | None = None) -> None:
        self._inputs = [Input(source, path) for path in source.paths]
        self._fields = fields
        self.skipped: int = 0
        self.reasons: list[str] = []  # why the first skipped rows have no usable pair
        self.expected_bytes: int | None = (corpus or source).content_bytes
        self.threshold: float = 0.0
        self._similarities: list[float] = []
        self._labels: list[bool] = []
        self._texts: Mapping[str, str] | None = None if corpus is None else self._read_corpus(corpus)

    def _read_corpus(self, corpus: Source) -> dict[str, str]:
        """Return the texts of the documents that occur in the pairs, by id."""
        wanted = {
            name
            for _, record in self._records()
            for field_name in (self._fields.left, self._fields.right)
            if (name := _text_at(record, field_name)) is not None
        }
        return {
            read.document.external_id: "\n".join(filter(None, (read.document.title, read.document.body)))
            for read in corpus
            if isinstance(read, ReadDocument) and read.document.external_id in wanted
        }

    def _records(self) -> Iterator[tuple[int, Mapping[str, object]]]:
        """Yield the rows of all inputs, numbered from 1."""
        records = (record for part in self._inputs for _, record in part.records())
        return enumerate(records, 1)

    def read(self) -> Iterator[list[_PairRow]]:
        """Yield the usable pairs in batches, and count the skipped rows."""
        self.skipped, self.reasons = 0, []
        pairs = self._pairs()
        while batch := list(islice(pairs, _PAIRS_AT_ONCE)):
            yield batch

    def _pairs(self) -> Iterator[_PairRow]:
        for row, record in self._records():
            try:
                yield self._pair(row, record)
            except InputError as error:
                self.skipped += 1
                if len(self.reasons) < _MAX_REASONS:
                    self.reasons.append(f"row {row:,}: {error}")

    def _pair(self, row: int, record: Mapping[str, object]) -> _PairRow:
        """Return the pair of a record. Raises InputError if a text, a document or a usable label is missing."""
        values = []
        for name in (self._fields.left, self._fields.right):
            value = _text_at(record, name)
            if value is None:
                raise InputError(f"no {name!r} (columns: {', '.join(record)[:200]})")
            values.append(value)

        texts = values if self._texts is None else [self._texts.get(name) for name in values]
        missing = [name for name, text in zip(values, texts, strict=True) if text is None]
        if missing:
            raise InputError(f"the corpus has no document {missing[0]!r}")

        left, right = map(str, texts)
        return _PairRow(row, values[0], values[1], self._label(record), (left, right))

    def _label(self, record: Mapping[str, object]) -> bool | None:
        name = self._fields.label or LABEL
        if name not in record:
            if self._fields.label is not None:
                raise InputError(f"no {name!r}, which has the label")
            return None

        label = labelled.label_of(str(record[name]))
        # If the user did not name the column, it may be called label by chance and have any values.
        if label is None and self._fields.label is not None:
            raise InputError(
                f"the label {record[name]!r} is neither 1/0, yes/no, true/false nor duplicate/distinct"
            )
        return label

    def scores(self, recipe: Recipe) -> Iterator[ScoredRow]:
        """Yield the scores of all pairs, in the order of the file."""
        scorer = PairScorer(
            recipe, lambda: ([pair.texts for pair in batch] for batch in self.read()), self.expected_bytes
        )
        self.threshold = scorer.threshold
        for batch in self.read():
            for pair, scored in zip(batch, scorer.score([pair.texts for pair in batch]), strict=True):
                if pair.label is not None:
                    self._similarities.append(scored.similarity or 0.0)
                    self._labels.append(pair.label)
                yield ScoredRow(pair.row, pair.left, pair.right, pair.label, scored)

    def labels(self) -> labelled.LabelScores | None:
        """Return precision and recall by threshold, after all scores were read.

        Returns None unless there are both duplicate and distinct labels.
        """
        labels = np.array(self._labels, bool)
        if not labels.any() or labels.all():
            return None
        return labelled.score(np.array(self._similarities), labels, threshold=self.threshold)


def _text_at(record: Mapping[str, object], name: str) -> str | None:
    """Return the text of a field, or of several fields joined by line ends; None if no field has a text."""
    names = [name] if name in record else name.split(",")
    values = [number_as_text(record[key] if key in record else value_at(record, key)) for key in names]
    texts = [value for value in values if isinstance(value, str)]
    return "\n".join(texts) if texts else None

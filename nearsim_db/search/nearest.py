"""Find the k most similar documents of each document of a collection, or of other records, whatever the threshold."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields
from nearsim_db.readers.values import column_of, field_of, value_digest
from nearsim_db.records import Nearest, ReadDocument
from nearsim_db.similarity import presets
from nearsim_db.similarity.arrays import Ints, Ragged
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.mixing import fmix64
from nearsim_db.similarity.nearest import MAX_LINKS, NearestJoin, NearestPairs, Weights
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation

DEFAULT_PRESET = "records"
_RECORDS_PER_BATCH = 2_000
_VALUE_DIGEST_BYTES = 16
# Words are often rarer than the features of the recipe, so candidates are found by both.
_WORDS = from_mapping({"shingle": {"scheme": "bag"}})


@dataclass(frozen=True, slots=True)
class NearestQuery:
    """The conditions that the nearest documents of a record must meet."""

    max_matches: int = 5
    min_similarity: float = 0.2
    mutual: bool = False  # each of the two documents must be among the nearest of the other
    across: str | None = None  # a field whose values must differ
    weights: Weights = "idf"
    recipe: Recipe | None = None  # decides the features; None for the default preset
    margin: float = (
        0.0  # minimum lead of a match over the next best document, as a fraction of its similarity
    )
    within: tuple[str, ...] = ()  # fields whose values must be equal; None is a valid value

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields whose values are read: `within`, then `across`."""
        return self.within if self.across is None else (*self.within, self.across)

    def __post_init__(self) -> None:
        if self.max_matches < 1:
            raise InputError(f"k is {self.max_matches}; give 1 or more")
        if not 0 <= self.min_similarity <= 1:
            raise InputError(f"a similarity of {self.min_similarity} is outside 0..1")
        if not 0 <= self.margin < 1:
            raise InputError(f"a margin of {self.margin} is outside 0..1; give a share, such as 0.03")


class Record(NamedTuple):
    """A document of a collection, or a record that was read."""

    id: str
    title: str | None
    body: str | None
    values: tuple[object, ...]  # its values of the query's fields


def of_collection(connection: Connection, live: Generation, names: Sequence[str]) -> Iterator[Record]:
    """Yield the documents of a collection, with their values of the fields in `names`."""
    columns = ["text"] if set(names) <= {"source"} else ["text", "attributes"]
    for row in live.tables(connection).exports.stream_documents(live.collection_id, columns, duplicates=None):
        values = tuple(field_of(name, row.source, row.attributes) for name in names)
        yield Record(row.external_id, row.title, row.body, values)


def of_records(documents: Iterable[ReadDocument], names: Sequence[str], fields: Fields) -> Iterator[Record]:
    """Yield documents that were read with the mapping `fields`, with their values of the fields in `names`."""
    for read in documents:
        values = tuple(column_of(read, name, fields) for name in names)
        yield Record(read.document.external_id, read.document.title, read.document.body, values)


class NearestSearch:
    """Compares records with other records, or with each other; `warnings` say what was left out."""

    def __init__(self, query: NearestQuery, backend: str | None = None) -> None:
        self.query = query
        self.warnings: list[str] = []
        self._encoder = Encoder(resolve(query.recipe or presets.load(DEFAULT_PRESET)), backend)
        self._words = Encoder(resolve(_WORDS), backend)
        if self._encoder.takes_vectors:
            raise InputError("nearest compares texts, but sketch.input of the recipe is vector")
        # The numbers assigned to values, by the digests of the values.
        self._across_numbers: dict[bytes, int] = {}
        self._within_numbers: dict[bytes, int] = {}

    def find(self, records: Iterable[Record], targets: Iterable[Record] | None) -> Iterator[Nearest]:
        """Yield, for each record in order, the nearest of `targets`, or of the other records if `targets` is None."""
        left = self._encode(records)
        right = left if targets is None else self._encode(targets)
        if self.query.across is not None and len(self._across_numbers) < 2:
            raise InputError(
                f"no two documents differ in '{self.query.across}', across which they are compared; name another field"
            )

        for block in self._blocks(left, right):
            # The matches of a record are consecutive, the most similar first.
            ranks = np.arange(1, len(block.query) + 1) - np.searchsorted(block.query, block.query)
            columns = block.query, block.target, ranks, block.similarity
            for row, target, rank, similarity in zip(*(column.tolist() for column in columns), strict=True):
                titles = left.titles[row], right.titles[target]
                yield Nearest(left.ids[row], rank, right.ids[target], round(similarity, 6), *titles)

    def _encode(self, records: Iterable[Record]) -> "_ComparedRecords":
        """Read and encode records, and number their values of the query's fields; None counts as a value."""
        ids: list[str] = []
        titles: list[str | None] = []
        across: list[int] = []
        within: list[int] = []
        feature_parts, word_parts = [Ragged.of([])], [Ragged.of([])]
        within_count, remaining = len(self.query.within), iter(records)
        while batch := list(islice(remaining, _RECORDS_PER_BATCH)):
            texts = [self._encoder.text_of(record.title, record.body) for record in batch]
            for parts, encoder in ((feature_parts, self._encoder), (word_parts, self._words)):
                features = encoder.features(texts)
                parts.append(Ragged(features.ids, features.offsets))
            ids += [record.id for record in batch]
            titles += [record.title for record in batch]
            within += [_number(record.values[:within_count], self._within_numbers) for record in batch]
            across += [_number(record.values[within_count:], self._across_numbers) for record in batch]

        joined = Ragged.joined(feature_parts)
        keys = joined.united(Ragged.joined(word_parts))
        if self.query.within:
            # Documents with different values get different keys, so that only documents that may match count towards
            # the limit of links.
            salts = np.repeat(fmix64(np.array(within, np.uint64)), np.diff(keys.offsets))
            keys = Ragged(keys.values ^ salts, keys.offsets)
        return _ComparedRecords(
            ids, titles, np.array(across, np.int64), np.array(within, np.int64), joined, keys
        )

    def _blocks(self, left: "_ComparedRecords", right: "_ComparedRecords") -> Iterator[NearestPairs]:
        """Yield the pairs of `_search`; with `mutual`, only the pairs that a search from either side finds."""
        blocks = self._search(left, right)
        if not self.query.mutual:
            yield from blocks
            return

        forward = NearestPairs.joined([_NO_PAIRS, *blocks])
        backward = forward
        if left is not right:
            backward = NearestPairs.joined([_NO_PAIRS, *self._search(right, left)])
        yield forward.mutual(backward)

    def _search(self, left: "_ComparedRecords", right: "_ComparedRecords") -> Iterator[NearestPairs]:
        differing = None if self.query.across is None else (left.across, right.across)
        agreeing = (left.within, right.within) if self.query.within else None
        join = NearestJoin(
            left.features,
            None if left is right else right.features,
            weights=self.query.weights,
            keys=(left.keys, None if left is right else right.keys),
            differing=differing,
            agreeing=agreeing,
            backend=self._encoder.backend,
        )
        if join.left_out:
            self.warnings.append(
                f"each word and feature of {join.left_out:,} documents is in more than {MAX_LINKS} others, of which "
                f"the first {MAX_LINKS} were compared"
            )

        max_matches, margin = self.query.max_matches, self.query.margin
        min_similarity = self.query.min_similarity
        if not margin:
            yield from join.search(max_matches, min_similarity)
            return

        # The next best document after the matches may be less similar than the minimum.
        for pairs in join.search(max_matches + 1, min_similarity * (1 - margin)):
            clear = pairs.clear(max_matches, margin)
            yield clear.take(clear.similarity >= min_similarity)


def _number(values: tuple[object, ...], numbers: dict[bytes, int]) -> int:
    """Return the number assigned to values; values that were not seen before get the next number."""
    return numbers.setdefault(value_digest(values, _VALUE_DIGEST_BYTES), len(numbers))


@dataclass(frozen=True, slots=True)
class _ComparedRecords:
    """Encoded records."""

    ids: list[str]
    titles: list[str | None]
    across: Ints  # for each record, the number of its value of `NearestQuery.across`
    within: Ints  # for each record, the number of its values of `NearestQuery.within`
    features: Ragged  # these decide the similarity
    keys: Ragged  # features and words, by which candidates are found


_NO_PAIRS = NearestPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

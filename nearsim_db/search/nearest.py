"""The k most similar documents of every document, or of every record that is given, whatever the threshold."""

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

_RECORDS_AT_ONCE = 2_000
_VALUE_BYTES = 16
DEFAULT_PRESET = "records"
_WORDS = from_mapping({"shingle": {"scheme": "bag"}})  # often rarer than the features of a recipe


@dataclass(frozen=True, slots=True)
class NearestQuery:
    """What is asked for: the `most` nearest that are at least so similar, with the features of a recipe.

    With `mutual` only those of which each is among the nearest of the other; `across` is a field whose values must
    differ, `within` are fields whose values must be equal, where None is a value. `margin` is the share of its
    similarity by which each must be more similar than the one after the `most`.
    """

    most: int = 5
    min_similarity: float = 0.2
    mutual: bool = False
    across: str | None = None
    weights: Weights = "idf"
    recipe: Recipe | None = None
    margin: float = 0.0
    within: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields whose values are read: those of `within`, then the one of `across`."""
        return self.within if self.across is None else (*self.within, self.across)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InputError(f"k is {self.most}; give 1 or more")
        if not 0 <= self.min_similarity <= 1:
            raise InputError(f"a similarity of {self.min_similarity} is outside 0..1")
        if not 0 <= self.margin < 1:
            raise InputError(f"a margin of {self.margin} is outside 0..1; give a share, such as 0.03")


class Record(NamedTuple):
    """A document or a record; `values` are those of the query's fields."""

    id: str
    title: str | None
    body: str | None
    values: tuple[object, ...]


def of_collection(connection: Connection, live: Generation, names: Sequence[str]) -> Iterator[Record]:
    """Yield the documents of a collection, with their values of fields."""
    columns = ["text"] if set(names) <= {"source"} else ["text", "attributes"]
    for row in live.tables(connection).exports.stream_documents(live.collection_id, columns, duplicates=None):
        values = tuple(field_of(name, row.source, row.attributes) for name in names)
        yield Record(row.external_id, row.title, row.body, values)


def of_records(given: Iterable[ReadDocument], names: Sequence[str], fields: Fields) -> Iterator[Record]:
    """Yield records that were read, with their values of fields."""
    for one in given:
        values = tuple(column_of(one, name, fields) for name in names)
        yield Record(one.document.external_id, one.document.title, one.document.body, values)


class NearestSearch:
    """Compares records with others, or with each other; `warnings` say what was left out."""

    def __init__(self, query: NearestQuery, backend: str | None = None) -> None:
        self.query = query
        self.warnings: list[str] = []
        self._encoder = Encoder(resolve(query.recipe or presets.load(DEFAULT_PRESET)), backend)
        self._words = Encoder(resolve(_WORDS), backend)
        if self._encoder.takes_vectors:
            raise InputError("nearest compares texts, but sketch.input of the recipe is vector")
        self._across: dict[bytes, int] = {}
        self._within: dict[bytes, int] = {}

    def find(self, records: Iterable[Record], targets: Iterable[Record] | None) -> Iterator[Nearest]:
        """Yield the nearest of `targets` for each record, in order; None: of the other records."""
        left = self._encoded(records)
        right = left if targets is None else self._encoded(targets)
        if self.query.across is not None and len(self._across) < 2:
            raise InputError(
                f"no two documents differ in '{self.query.across}', across which they are compared; name another field"
            )
        for block in self._blocks(left, right):
            ranks = np.arange(1, len(block.query) + 1) - np.searchsorted(block.query, block.query)
            ends = zip(block.query.tolist(), block.target.tolist(), strict=True)
            for (one, other), rank, similarity in zip(
                ends, ranks.tolist(), block.similarity.tolist(), strict=True
            ):
                titles = left.titles[one], right.titles[other]
                yield Nearest(left.ids[one], rank, right.ids[other], round(similarity, 6), *titles)

    def _encoded(self, records: Iterable[Record]) -> "_Records":
        """Read and encode records; values of fields are numbered, None is one of its own."""
        ids: list[str] = []
        titles: list[str | None] = []
        across: list[int] = []
        within: list[int] = []
        parts, words = [Ragged.of([])], [Ragged.of([])]
        rest = iter(records)
        while batch := list(islice(rest, _RECORDS_AT_ONCE)):
            texts = [self._encoder.text_of(one.title, one.body) for one in batch]
            for kept, encoder in ((parts, self._encoder), (words, self._words)):
                features = encoder.features(texts)
                kept.append(Ragged(features.ids, features.offsets))
            ids += [one.id for one in batch]
            titles += [one.title for one in batch]
            agreeing = len(self.query.within)
            for one in batch:
                for numbers, known, values in (
                    (within, self._within, one.values[:agreeing]),
                    (across, self._across, one.values[agreeing:]),
                ):
                    numbers.append(known.setdefault(value_digest(values, _VALUE_BYTES), len(known)))
        own = Ragged.joined(parts)
        keys = own.united(Ragged.joined(words))
        if self.query.within:
            # A key of other values is another key, so that the documents of one value do not fill the limit of links.
            salts = np.repeat(fmix64(np.array(within, np.uint64)), np.diff(keys.offsets))
            keys = Ragged(keys.values ^ salts, keys.offsets)
        return _Records(ids, titles, np.array(across, np.int64), np.array(within, np.int64), own, keys)

    def _blocks(self, left: "_Records", right: "_Records") -> Iterator[NearestPairs]:
        found = self._search(left, right)
        if not self.query.mutual:
            yield from found
            return
        both = NearestPairs.joined([_NONE, *found])
        others = both if left is right else NearestPairs.joined([_NONE, *self._search(right, left)])
        yield both.mutual(others)

    def _search(self, left: "_Records", right: "_Records") -> Iterator[NearestPairs]:
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
        most, least, margin = self.query.most, self.query.min_similarity, self.query.margin
        if not margin:
            yield from join.search(most, least)
            return
        for found in join.search(most + 1, least * (1 - margin)):
            clear = found.clear(most, margin)
            yield clear.take(clear.similarity >= least)


@dataclass(frozen=True, slots=True)
class _Records:
    ids: list[str]
    titles: list[str | None]
    across: Ints
    within: Ints
    features: Ragged
    keys: Ragged


_NONE = NearestPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

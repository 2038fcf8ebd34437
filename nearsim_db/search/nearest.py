"""The k most similar documents of every document, or of every record that is given, whatever the threshold."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.readers import Fields
from nearsim_db.readers.values import column_of
from nearsim_db.records import Nearest, ReadDocument
from nearsim_db.similarity import presets
from nearsim_db.similarity.arrays import Ragged
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.nearest import LINKS, NearestJoin, Neighbours, Weights
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation

_RECORDS_AT_ONCE = 2_000
DEFAULT_PRESET = "records"
_WORDS = from_mapping({"shingle": {"scheme": "bag"}})  # often rarer than the features of a recipe


@dataclass(frozen=True, slots=True)
class NearestQuery:
    """What is asked for: the `most` nearest that are at least so similar, with the features of a recipe.

    With `mutual` only those of which each is among the nearest of the other; `across` is a field whose values must
    differ. `margin` is the share of its similarity by which each must be more similar than the one after the `most`.
    """

    most: int = 5
    min_similarity: float = 0.2
    mutual: bool = False
    across: str | None = None
    weights: Weights = "idf"
    recipe: Recipe | None = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        if self.most < 1:
            raise InputError(f"k is {self.most}; give 1 or more")
        if not 0 <= self.min_similarity <= 1:
            raise InputError(f"a similarity of {self.min_similarity} is outside 0..1")
        if not 0 <= self.margin < 1:
            raise InputError(f"a margin of {self.margin} is outside 0..1; give a share, such as 0.03")


class Record(NamedTuple):
    """A document or a record; `label` is its value of the field `across`."""

    id: str
    title: str | None
    body: str | None
    label: object


def of_collection(connection: Connection, live: Generation, across: str | None) -> Iterator[Record]:
    """Yield the documents of a collection."""
    columns = ["text"] if across in (None, "source") else ["text", "attributes"]
    for row in live.tables(connection).exports.stream_documents(live.collection_id, columns, duplicates=None):
        label = row.source if across == "source" else (row.attributes or {}).get(across or "")
        yield Record(row.external_id, row.title, row.body, label)


def of_records(given: Iterable[ReadDocument], across: str | None, fields: Fields) -> Iterator[Record]:
    """Yield records that were read."""
    for one in given:
        label = None if across is None else column_of(one, across, fields)
        yield Record(one.document.external_id, one.document.title, one.document.body, label)


class NearestSearch:
    """Compares records with others, or with each other; `warnings` say what was left out."""

    def __init__(self, query: NearestQuery, backend: str | None = None) -> None:
        self.query = query
        self.warnings: list[str] = []
        self._encoder = Encoder(resolve(query.recipe or presets.load(DEFAULT_PRESET)), backend)
        self._words = Encoder(resolve(_WORDS), backend)
        if self._encoder.takes_vectors:
            raise InputError("nearest compares texts, but sketch.input of the recipe is vector")
        self._labels: dict[object, int] = {}

    def find(self, records: Iterable[Record], targets: Iterable[Record] | None) -> Iterator[Nearest]:
        """Yield the nearest of `targets` for each record, in order; None: of the other records."""
        left = self._encoded(records)
        right = left if targets is None else self._encoded(targets)
        if self.query.across is not None and len(self._labels) < 2:
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
        """Read and encode records; values of the field `across` are numbered, None is one of its own."""
        ids: list[str] = []
        titles: list[str | None] = []
        labels: list[int] = []
        parts, words = [Ragged.of([])], [Ragged.of([])]
        rest = iter(records)
        while batch := list(islice(rest, _RECORDS_AT_ONCE)):
            texts = [self._encoder.text_of(one.title, one.body) for one in batch]
            for kept, encoder in ((parts, self._encoder), (words, self._words)):
                features = encoder.features(texts)
                kept.append(Ragged(features.ids, features.offsets))
            ids += [one.id for one in batch]
            titles += [one.title for one in batch]
            labels += [self._labels.setdefault(one.label, len(self._labels)) for one in batch]
        own = Ragged.joined(parts)
        return _Records(ids, titles, np.array(labels, np.int64), own, own.united(Ragged.joined(words)))

    def _blocks(self, left: "_Records", right: "_Records") -> Iterator[Neighbours]:
        found = self._search(left, right)
        if not self.query.mutual:
            yield from found
            return
        both = Neighbours.joined([_NONE, *found])
        others = both if left is right else Neighbours.joined([_NONE, *self._search(right, left)])
        yield both.mutual(others)

    def _search(self, left: "_Records", right: "_Records") -> Iterator[Neighbours]:
        labels = None if self.query.across is None else (left.labels, right.labels)
        join = NearestJoin(
            left.features,
            None if left is right else right.features,
            weights=self.query.weights,
            keys=(left.keys, None if left is right else right.keys),
            labels=labels,
            backend=self._encoder.backend,
        )
        if join.left_out:
            self.warnings.append(
                f"each word and feature of {join.left_out:,} documents is in more than {LINKS} others, of which "
                f"the first {LINKS} were compared"
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
    labels: np.ndarray[tuple[int], np.dtype[np.int64]]
    features: Ragged
    keys: Ragged


_NONE = Neighbours(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

"""Uniform samples of documents from files or from a collection, with limits for their documents and characters."""

import heapq
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.readers.rejects import place_of
from nearsim_db.records import CollectionId, Progress, ReadDocument, Reject, silent
from nearsim_db.store.access import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection

MAX_DOCUMENTS = 10_000
MAX_CHARACTERS = 30_000_000
MAX_CLUSTERED_DOCUMENTS = 50_000
_REPORT_EVERY = 1_000

TextOf = Callable[[str | None, str | None], str]
ValueOf = Callable[[ReadDocument], object]


@dataclass(slots=True)
class Sample:
    """A uniform sample of texts.

    If there is a larger sample, clusters are formed of the larger one, because a small sample has smaller clusters
    than the corpus.
    """

    texts: list[str]
    documents: int  # valid documents that were read or counted
    rejected: int = 0  # invalid records
    larger: list[str] = field(default_factory=list)  # a larger sample that includes `texts`, or empty
    # Title and body of each document that was requested by id, whether it was sampled or not.
    wanted: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    first_rejects: list[Reject] = field(default_factory=list)
    # The value of a field, such as the source, for each of the texts to cluster.
    values: list[object] = field(default_factory=list)
    # The row of each requested document among the texts to cluster, by id.
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the texts to cluster are all documents, and the value of each is available."""
        return len(self.values) == len(self.texts_to_cluster) == self.documents

    @property
    def texts_to_cluster(self) -> list[str]:
        """The larger sample, or `texts` if there is none."""
        return self.larger or self.texts

    @property
    def characters(self) -> int:
        """Number of characters of the sampled texts."""
        return sum(map(len, self.texts))


class Reservoir:
    """A sample of texts. Each text gets a random key, and the texts with the lowest keys are kept.

    When the sample is full, the text with the highest key is dropped. Each text has a tag, for example its id.
    """

    def __init__(self, size: int, characters: int, seed: int) -> None:
        self._size = size
        self._free_characters = characters
        self._random = random.Random(seed)
        self._sampled: list[tuple[float, int, str, object]] = []
        self._limit = 1.0
        self.seen: int = 0

    def offer(self, text: str, tag: object = None) -> None:
        """Add a text if its random key is low enough."""
        self.seen += 1
        number = self._random.random()
        if number >= self._limit:
            return
        heapq.heappush(self._sampled, (-number, self.seen, text, tag))
        self._free_characters -= len(text)
        while len(self._sampled) > self._size or (self._free_characters < 0 and len(self._sampled) > 2):
            number, _, dropped, _ = heapq.heappop(self._sampled)
            self._free_characters += len(dropped)
            # From now on, only a text with a lower key can enter the sample.
            self._limit = -number

    def texts(self, size: int | None = None) -> list[str]:
        """Return the sampled texts in input order.

        With `size`, return only the texts that a reservoir of that size would have kept.
        """
        return [text for text, _ in self.tagged(size)]

    def tagged(self, size: int | None = None) -> list[tuple[str, object]]:
        """Return the texts that `texts` returns, each with its tag."""
        sampled = self._sampled if size is None else heapq.nlargest(size, self._sampled, key=_order)
        return [(text, tag) for _, _, text, tag in sorted(sampled, key=lambda entry: entry[1])]


def _order(entry: tuple[float, int, str, object]) -> tuple[float, int]:
    """Return the key by which entries are ordered. Tags are left out, because they may not be comparable."""
    return entry[:2]


def draw(
    records: Iterable[ReadDocument | Reject],
    text_of: TextOf,
    size: int = MAX_DOCUMENTS,
    seed: int = 1,
    wanted: Collection[str] = (),
    progress: Progress = silent,
    value_of: ValueOf = lambda record: record.document.source,
) -> Sample:
    """Sample the records of a reader. Only the sample is in memory (reservoir sampling by random sort keys).

    `text_of` returns the text of a title and a body. `value_of` returns the value that is kept with a record. `wanted`
    has the ids of documents to return whether they are sampled or not.
    """
    reservoir = Reservoir(max(size, MAX_CLUSTERED_DOCUMENTS), MAX_CHARACTERS, seed)
    sample = Sample([], 0)

    progress("read", 0, None)
    for record in records:
        if isinstance(record, Reject):
            sample.rejected += 1
            if len(sample.first_rejects) < 5:
                sample.first_rejects.append(record)
            continue
        document = record.document
        tag = (document.external_id, value_of(record))
        reservoir.offer(text_of(document.title, document.body), tag)
        if document.external_id in wanted:
            contents = document.title, document.body
            if sample.wanted.setdefault(document.external_id, contents) != contents:
                raise InputError(
                    f"a label names {document.external_id!r}, but several records have this id, and "
                    f"{place_of(record)} is another text; give the labelled records ids of their own, or name the "
                    "field with --id-field"
                )
        if reservoir.seen % _REPORT_EVERY == 0:
            progress("read", reservoir.seen, None)

    progress("read", reservoir.seen, None)
    sample.texts, sample.larger, sample.documents = reservoir.texts(size), reservoir.texts(), reservoir.seen
    tags = [cast(tuple[str, object], tag) for _, tag in reservoir.tagged()]
    sample.values = [value for _, value in tags]
    sample.rows = {external_id: row for row, (external_id, _) in enumerate(tags) if external_id in wanted}
    return sample


def draw_from_collection(
    database: Database,
    name: str,
    text_of: TextOf,
    size: int = MAX_DOCUMENTS,
    seed: int = 1,
    wanted: Collection[str] = (),
    progress: Progress = silent,
    across: str = "source",
) -> Sample:
    """Sample the documents of a collection, as `draw` does, and keep the value of the field `across` of each.

    Raises NotFoundError if the collection does not exist.
    """
    with database.transaction() as connection:
        collection_id = collection_rows.get_collection(connection, name).collection_id
        total = collection_rows.count_documents(connection, collection_id)
        doc_ids = documents.sample_documents(connection, collection_id, size, seed)
        reservoir = Reservoir(size, MAX_CHARACTERS, seed)
        for stored in _read(connection, collection_id, doc_ids):
            reservoir.offer(text_of(stored.title, stored.body), stored.doc_id)
            progress("read", reservoir.seen, len(doc_ids))
        sample = Sample(reservoir.texts(), total)
        sampled_ids = [cast(int, doc_id) for _, doc_id in reservoir.tagged()]

        # The larger sample has about as many characters as the limit allows.
        mean = max(sample.characters / max(len(sample.texts), 1), 1.0)
        larger_size = min(int(MAX_CHARACTERS / mean), MAX_CLUSTERED_DOCUMENTS)
        if len(sample.texts) == size and larger_size > size:
            larger = documents.sample_documents(connection, collection_id, larger_size, seed)
            further = sorted(set(larger) - set(doc_ids))
            sample.larger = [*sample.texts]
            for stored in _read(connection, collection_id, further):
                sample.larger.append(text_of(stored.title, stored.body))
                sampled_ids.append(stored.doc_id)
                progress("read", len(sample.larger), len(larger))

        by_id = documents.read_doc_ids(connection, collection_id, sorted(wanted)) if wanted else {}
        external_ids = {doc_id: external_id for external_id, doc_id in by_id.items()}
        for stored in _read(connection, collection_id, sorted(external_ids)):
            sample.wanted[external_ids[stored.doc_id]] = stored.title, stored.body

        if len(sampled_ids) == total:
            values = documents.read_values(connection, np.array(sampled_ids, np.int64), [across])
            sample.values = [values[doc_id][0][0] if doc_id in values else None for doc_id in sampled_ids]
            rows = {doc_id: row for row, doc_id in enumerate(sampled_ids)}
            sample.rows = {name: rows[doc_id] for name, doc_id in by_id.items() if doc_id in rows}
    return sample


def _read(
    connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int]
) -> Iterator[StoredDocument]:
    with closing(documents.stream_documents(connection, collection_id, doc_ids)) as batches:
        for batch in batches:
            yield from batch

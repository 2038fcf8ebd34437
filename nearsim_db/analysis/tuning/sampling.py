"""Uniform samples of documents from files or from a collection, bounded in documents and in characters."""

import heapq
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class Sample:
    """A uniform sample of texts.

    Clusters are formed of a larger sample if there is one, as a small sample has smaller clusters than the corpus.
    """

    texts: list[str]
    documents: int  # valid documents that were read or counted
    rejected: int = 0  # invalid records
    larger: list[str] = field(default_factory=list)  # a larger sample that includes `texts`, or empty
    # Title and body of the documents that were requested by id, sampled or not.
    wanted: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    first_rejects: list[Reject] = field(default_factory=list)

    @property
    def texts_to_cluster(self) -> list[str]:
        """The larger sample, or `texts` if there is none."""
        return self.larger or self.texts

    @property
    def characters(self) -> int:
        """Number of characters of the sampled texts."""
        return sum(map(len, self.texts))


class Reservoir:
    """A sample of the texts with the lowest random keys; the highest keys are evicted when it is full."""

    def __init__(self, size: int, characters: int, seed: int) -> None:
        self._size = size
        self._free_characters = characters
        self._random = random.Random(seed)
        self._sampled: list[tuple[float, int, str]] = []
        self._limit = 1.0
        self.seen: int = 0

    def offer(self, text: str) -> None:
        """Add a text if its random key is low enough."""
        self.seen += 1
        number = self._random.random()
        if number >= self._limit:
            return
        heapq.heappush(self._sampled, (-number, self.seen, text))
        self._free_characters -= len(text)
        while len(self._sampled) > self._size or (self._free_characters < 0 and len(self._sampled) > 2):
            number, _, dropped = heapq.heappop(self._sampled)
            self._free_characters += len(dropped)
            # From now on only lower keys can enter the sample.
            self._limit = -number

    def texts(self, size: int | None = None) -> list[str]:
        """Return the sampled texts in input order, or the part that a reservoir of `size` would have."""
        sampled = self._sampled if size is None else heapq.nlargest(size, self._sampled)
        return [text for _, _, text in sorted(sampled, key=lambda entry: entry[1])]


def draw(
    records: Iterable[ReadDocument | Reject],
    text_of: TextOf,
    size: int = MAX_DOCUMENTS,
    seed: int = 1,
    wanted: Collection[str] = (),
    progress: Progress = silent,
) -> Sample:
    """Sample the records of a reader in memory bounded by the sample (reservoir sampling by random sort keys).

    `text_of` returns the text of a title and a body.
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
        reservoir.offer(text_of(document.title, document.body))
        if document.external_id in wanted:
            sample.wanted[document.external_id] = document.title, document.body
        if reservoir.seen % _REPORT_EVERY == 0:
            progress("read", reservoir.seen, None)

    progress("read", reservoir.seen, None)
    sample.texts, sample.larger, sample.documents = reservoir.texts(size), reservoir.texts(), reservoir.seen
    return sample


def draw_from_collection(
    database: Database,
    name: str,
    text_of: TextOf,
    size: int = MAX_DOCUMENTS,
    seed: int = 1,
    wanted: Collection[str] = (),
    progress: Progress = silent,
) -> Sample:
    """Sample the documents of a collection. Raises NotFoundError for an unknown collection."""
    with database.transaction() as connection:
        collection_id = collection_rows.get_collection(connection, name).collection_id
        total = collection_rows.count_documents(connection, collection_id)
        doc_ids = documents.sample_documents(connection, collection_id, size, seed)
        reservoir = Reservoir(size, MAX_CHARACTERS, seed)
        for stored in _read(connection, collection_id, doc_ids):
            reservoir.offer(text_of(stored.title, stored.body))
            progress("read", reservoir.seen, len(doc_ids))
        sample = Sample(reservoir.texts(), total)

        # The larger sample has about as many characters as the limit allows.
        mean = max(sample.characters / max(len(sample.texts), 1), 1.0)
        larger_size = min(int(MAX_CHARACTERS / mean), MAX_CLUSTERED_DOCUMENTS)
        if len(sample.texts) == size and larger_size > size:
            larger = documents.sample_documents(connection, collection_id, larger_size, seed)
            further = sorted(set(larger) - set(doc_ids))
            sample.larger = [*sample.texts]
            for stored in _read(connection, collection_id, further):
                sample.larger.append(text_of(stored.title, stored.body))
                progress("read", len(sample.larger), len(larger))

        by_id = documents.read_doc_ids(connection, collection_id, sorted(wanted)) if wanted else {}
        external_ids = {doc_id: external_id for external_id, doc_id in by_id.items()}
        for stored in _read(connection, collection_id, sorted(external_ids)):
            sample.wanted[external_ids[stored.doc_id]] = stored.title, stored.body
    return sample


def _read(
    connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int]
) -> Iterator[StoredDocument]:
    with closing(documents.stream_documents(connection, collection_id, doc_ids)) as batches:
        for batch in batches:
            yield from batch

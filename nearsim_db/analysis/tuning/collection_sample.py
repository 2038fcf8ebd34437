"""Sampling of the documents of a collection."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing

from nearsim_db.analysis.tuning.sampling import MOST_CHARACTERS, MOST_DOCUMENTS, Reservoir, Sample, TextOf
from nearsim_db.records import CollectionId, Progress, silent
from nearsim_db.store import collection_rows, documents
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection


def draw_from_collection(
    database: Database,
    name: str,
    text_of: TextOf,
    size: int = MOST_DOCUMENTS,
    seed: int = 1,
    wanted: Collection[str] = (),
    progress: Progress = silent,
) -> Sample:
    """Sample the documents of a collection. Raises NotFoundError for an unknown collection."""
    with database.transaction() as connection:
        collection_id = collection_rows.get_collection(connection, name).collection_id
        total = collection_rows.count_documents(connection, collection_id)
        chosen = documents.sample_documents(connection, collection_id, size, seed)
        reservoir = Reservoir(size, MOST_CHARACTERS, seed)
        for _, text in _texts(connection, collection_id, chosen, text_of):
            reservoir.offer(text)
            progress("read", reservoir.seen, len(chosen))
        sample = Sample(reservoir.texts(), total)
        by_id = documents.read_doc_ids(connection, collection_id, sorted(wanted)) if wanted else {}
        external_ids = {doc_id: external_id for external_id, doc_id in by_id.items()}
        for doc_id, text in _texts(connection, collection_id, sorted(external_ids), text_of):
            sample.wanted[external_ids[doc_id]] = text
    return sample


def _texts(
    connection: Connection, collection_id: CollectionId, doc_ids: Sequence[int], text_of: TextOf
) -> Iterator[tuple[int, str]]:
    with closing(documents.stream_documents(connection, collection_id, doc_ids)) as batches:
        for batch in batches:
            for one in batch:
                yield one.doc_id, text_of(one.title, one.body)

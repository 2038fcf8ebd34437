"""Warn of shingles that are too short for the documents of a collection, measured on a sample of them."""

from collections.abc import Sequence

from nearsim_db.records import CollectionId
from nearsim_db.similarity import k_rule
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile
from nearsim_db.store import documents, signatures
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation

_SEED = 1


def warn_of_index(
    connection: Connection, generation: Generation, profile: Profile, backend: str | None = None
) -> str | None:
    """Return a warning for a profile and the documents that a generation has signed, None if there is none."""
    if not k_rule.applies(profile):
        return None
    heads = signatures.sample_heads(connection, generation.leaves, k_rule.SAMPLE_SIZE)
    return _warn(connection, generation.collection_id, heads, profile, backend)


def warn_of_collection(connection: Connection, collection_id: CollectionId, profile: Profile) -> str | None:
    """Return a warning for a profile and the documents of a collection, None if there is none."""
    if not k_rule.applies(profile):
        return None
    sampled = documents.sample_documents(connection, collection_id, k_rule.SAMPLE_SIZE, _SEED)
    return _warn(connection, collection_id, sampled, profile, None)


def _warn(
    connection: Connection,
    collection_id: CollectionId,
    doc_ids: Sequence[int],
    profile: Profile,
    backend: str | None,
) -> str | None:
    encoder = Encoder(profile, backend)
    texts = [
        encoder.text_of(one.title, one.body)
        for batch in documents.stream_documents(connection, collection_id, doc_ids)
        for one in batch
    ]
    return k_rule.warning(profile, texts, backend)

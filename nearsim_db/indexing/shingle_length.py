"""Warn of shingles that are too short for the documents of a collection, measured on a sample of them."""

from collections.abc import Callable, Sequence

import numpy as np

from nearsim_db.records import CollectionId
from nearsim_db.similarity import k_rule
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile
from nearsim_db.store import documents, signatures
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation

_SEED = 1
_NO_DIGEST = bytes(16)


class HeadSample:
    """The texts with the smallest digests, each the first of its digest: those that `sample_heads` selects."""

    def __init__(self) -> None:
        self._texts: dict[bytes, tuple[int, str]] = {}  # with doc_ids, by digest
        self._highest = np.uint64(2**64 - 1)

    def add(self, rows: SignatureRows, text_of: Callable[[int], str]) -> None:
        """Add documents, with their texts by row."""
        beginnings = rows.digests.view(">u8").reshape(-1, 2)[:, 0]
        for place in np.flatnonzero(beginnings <= self._highest).tolist():
            digest, doc_id = rows.digests[place].tobytes(), int(rows.doc_ids[place])
            if digest != _NO_DIGEST and (digest not in self._texts or doc_id < self._texts[digest][0]):
                self._texts[digest] = doc_id, text_of(place)
        self._trim()

    def merge(self, other: "HeadSample") -> None:
        """Add what another sample has of the same collection."""
        for digest, one in other._texts.items():
            self._texts[digest] = min(one, self._texts.get(digest, one))
        self._trim()

    def _trim(self) -> None:
        if len(self._texts) > k_rule.SAMPLE_SIZE:
            kept = sorted(self._texts)[: k_rule.SAMPLE_SIZE]
            self._texts = {digest: self._texts[digest] for digest in kept}
            self._highest = np.uint64(int.from_bytes(kept[-1][:8]))

    def warning(self, profile: Profile, backend: str | None) -> str | None:
        """Return a warning for a profile and these texts, None if there is none."""
        return k_rule.warning(profile, self.texts(), backend) if k_rule.applies(profile) else None

    def texts(self) -> list[str]:
        """Return the texts, in the order of their digests."""
        return [self._texts[digest][1] for digest in sorted(self._texts)[: k_rule.SAMPLE_SIZE]]

    def __len__(self) -> int:
        return len(self._texts)


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

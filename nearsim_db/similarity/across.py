"""Digests of documents of which only pairs with different values of a field count (`match.across`).

Each document has a distinct digest: a hash of its features and doc_id (11 bytes), then a label, a hash of the value (5
bytes). So no two documents are twins, which would be pairs, and a digest shows which value a document has.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.batches import PackedDigests, SignatureRows

LABEL_BYTES = 5
_OWN_BYTES = 16 - LABEL_BYTES


def with_labels(rows: SignatureRows, labels: Iterable[bytes]) -> SignatureRows:
    """Return signatures with the digests that these documents have under labels, one for each."""
    columns = zip(rows.digests, rows.doc_ids.tolist(), labels, strict=True)
    digests = b"".join([own_digest(digest.tobytes(), doc_id, label) for digest, doc_id, label in columns])
    return replace(rows, digests=np.frombuffer(digests, "V16"))


def own_digest(features: bytes, doc_id: int, label: bytes) -> bytes:
    """Return the digest of a document, from that of its features."""
    return blake2b(features + doc_id.to_bytes(8, "little"), digest_size=_OWN_BYTES).digest() + label


def labels_of(digests: Sequence[UUID]) -> NDArray[np.uint8]:
    """Return the labels of digests: (n, 5)."""
    return PackedDigests.of(digests).array.view(np.uint8).reshape(-1, 16)[:, _OWN_BYTES:]

"""sign: from documents to signatures."""

from collections.abc import Sequence

import numpy as np

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.encoder import Encoded
from nearsim_db.store.documents import StoredDocument


def sign_documents(context: Context, batch: Sequence[StoredDocument]) -> SignatureRows:
    """Return the signatures of documents, encoded by all threads."""
    contents = [context.encoder.content_of(one.title, one.body, one.vector) for one in batch]
    step = max(1, -(-len(contents) // (context.threads * 2)))
    runs = [contents[at : at + step] for at in range(0, len(contents), step)]
    parts = list(context.pool.map(context.encoder.encode, runs)) or [context.encoder.encode([])]
    return _signature_rows(batch, parts)


def _signature_rows(batch: Sequence[StoredDocument], parts: Sequence[Encoded]) -> SignatureRows:
    return SignatureRows(
        np.array([one.doc_id for one in batch], np.int64),
        np.array([one.revision for one in batch], np.int64),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )

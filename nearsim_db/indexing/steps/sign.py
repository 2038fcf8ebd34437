"""sign: from documents to signatures."""

from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.encoder import Encoded
from nearsim_db.store.documents import StoredDocument


def sign_documents(
    context: Context, batch: Sequence[StoredDocument], *, keep_features: bool = False
) -> SignatureRows:
    """Return the signatures of documents, encoded by all threads.

    With `keep_features` the features are cached for the verification that follows. Those of HTML pages always are: to
    parse a page again would take longer than the rest.
    """
    contents = [context.encoder.content_of(one.title, one.body, one.vector) for one in batch]
    step = max(1, -(-len(contents) // (context.threads * 2)))
    runs = [contents[at : at + step] for at in range(0, len(contents), step)]
    is_html = context.encoder.profile.recipe.normalise.html
    encode = partial(context.encoder.encode, keep_features=keep_features or is_html)
    parts = list(context.pool.map(encode, runs)) or [encode([])]
    rows = _signature_rows(batch, parts)
    for row, features in enumerate(chain.from_iterable(part.features for part in parts)):
        if (digest := rows.digest(row)) is not None:
            context.cache.put(batch[row].doc_id, digest, features)
    return rows


def _signature_rows(batch: Sequence[StoredDocument], parts: Sequence[Encoded]) -> SignatureRows:
    return SignatureRows(
        np.array([one.doc_id for one in batch], np.int64),
        np.array([one.revision for one in batch], np.int64),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )

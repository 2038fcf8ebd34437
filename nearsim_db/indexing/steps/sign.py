"""sign: from documents to signatures."""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.encoder import Encoded
from nearsim_db.store.documents import StoredDocument


def sign_documents(
    context: Context,
    batch: Sequence[StoredDocument],
    *,
    keep_features: bool = False,
) -> SignatureRows:
    """Return the signatures of documents, encoded by all threads.

    With `keep_features` the features are cached for the verification that follows, unless there is a spool for them.
    Those of HTML pages always are kept: to parse a page again would take longer than the rest.
    """
    contents = [context.encoder.content_of(one.title, one.body, one.vector) for one in batch]
    step = max(1, -(-len(contents) // (context.threads * 2)))
    runs = [contents[at : at + step] for at in range(0, len(contents), step)]
    is_html = context.encoder.profile.recipe.normalise.html
    keep = keep_features or is_html or context.build.is_spooling
    encode = partial(context.encoder.encode, keep_features=keep)
    parts = list(context.pool.map(encode, runs)) or [encode([])]
    rows = _signature_rows(batch, parts)
    _keep(context, rows, list(chain.from_iterable(part.features for part in parts)))
    return rows


def _keep(context: Context, rows: SignatureRows, features: Sequence[NDArray[Any]]) -> None:
    if context.build.spool is not None and features and context.build.spool.add(rows, features):
        return
    for row, ids in enumerate(features):
        if (digest := rows.digest(row)) is not None:
            context.cache.put(int(rows.doc_ids[row]), digest, ids)


def _signature_rows(batch: Sequence[StoredDocument], parts: Sequence[Encoded]) -> SignatureRows:
    return SignatureRows(
        np.array([one.doc_id for one in batch], np.int64),
        np.array([one.revision for one in batch], np.int64),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )

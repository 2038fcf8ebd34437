"""search: from heads to their candidates."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.steps.context import Context
from nearsim_db.store import bands, signatures


def search(connection: Connection, context: Context, doc_ids: Sequence[int]) -> NDArray[np.int64]:
    """The candidates of some documents, as (m, 2) int64 with the smaller doc_id first, sorted, each once."""
    family = context.encoder.family
    heads = signatures.read_sketches(connection, context.leaves, doc_ids, family.dtype, family.k)
    if not len(heads.doc_ids):
        return np.zeros((0, 2), np.int64)
    keys = context.encoder.band_keys(heads.sketches)
    found = bands.look_up_candidates(connection, context.leaves, context.bucket_limit, heads.doc_ids, keys)
    return np.unique(np.sort(found, axis=1), axis=0)

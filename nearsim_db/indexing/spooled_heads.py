"""The signatures of all heads of a generation, if the features and sketches of all of them were spooled."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.similarity.batches import PackedDigests, Signatures
from nearsim_db.store import signatures
from nearsim_db.store.driver import Connection

_MOST_HEADS = 16_000_000  # whose digests are one value of 24 bytes each


@dataclass(frozen=True, slots=True)
class SpooledHeads:
    """A spool that has all heads: `doc_ids` int64 of n, ascending, with distinct digests."""

    spool: FeatureSpool
    doc_ids: NDArray[np.int64]

    @classmethod
    def load(cls, connection: Connection, context: Context, heads: int) -> Self | None:
        """Compare the digests of so many heads with the spool's; return None unless it has all of them."""
        spool = context.build.spool
        if spool is None or not 0 < heads <= min(len(spool), _MOST_HEADS):
            return None
        found = signatures.read_head_digests(connection, context.leaves)
        doc_ids, digests = found["doc_id"].astype(np.int64), np.ascontiguousarray(found["digest"])
        is_whole = spool.has_all(doc_ids, digests) and PackedDigests(digests).are_distinct()
        return cls(spool, doc_ids) if is_whole else None

    def stream(self) -> Iterator[Signatures]:
        """Yield the signatures of all heads, in order and in batches."""
        return self.spool.stream_signatures(self.doc_ids)

    def read(self, doc_ids: NDArray[np.int64]) -> Signatures | None:
        """Return the signatures of some documents, distinct and ascending; None if one of them is not in the spool."""
        found = self.spool.read_signatures(doc_ids)
        return found if found is None else replace(found, distinct=True)

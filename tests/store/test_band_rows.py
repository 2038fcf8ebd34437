"""The order of band rows: by bucket hash, then by doc_id."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.store.bands import BandRows

Keys = NDArray[np.uint64]

DOCUMENTS, BANDS, BUCKETS = 500, 6, 40
rng = np.random.default_rng(1)


def draw(lowest: int) -> Keys:
    """Band numbers from the lowest on in the top byte, and few different buckets."""
    numbers = np.arange(lowest, lowest + BANDS, dtype=np.uint64) << np.uint64(56)
    return rng.integers(0, BUCKETS, (DOCUMENTS, BANDS)).astype(np.uint64) | numbers


@pytest.mark.parametrize(
    ("keys", "arrange"),
    [
        (draw(0), np.sort),
        (draw(0), rng.permutation),
        (draw(125), np.sort),
        (draw(0)[:, ::-1], np.sort),
        (draw(0) & np.uint64(2**56 - 1), np.sort),
    ],
    ids=["by band", "documents unsorted", "numbers beyond 127", "bands reversed", "one band number"],
)
def test_rows_are_sorted_by_signed_hash_and_document(
    keys: Keys, arrange: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> None:
    doc_ids = arrange(rng.choice(10 * DOCUMENTS, DOCUMENTS, replace=False))
    rows = BandRows.of(doc_ids, keys)
    signed = [
        (key - 2**64 if key >= 2**63 else key, doc_id)
        for doc_id, own in zip(doc_ids.tolist(), keys.tolist(), strict=True)
        for key in own
    ]
    assert list(zip(rows.hashes.tolist(), rows.doc_ids.tolist(), strict=True)) == sorted(signed)

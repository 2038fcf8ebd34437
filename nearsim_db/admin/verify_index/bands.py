"""Check of all band rows of an index against the sketches of its heads."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.verify_index.changing import find_pending_documents
from nearsim_db.admin.verify_index.findings import Findings
from nearsim_db.indexing.context import Context
from nearsim_db.records import Progress
from nearsim_db.store import verify_index as store
from nearsim_db.store.driver import Connection

Ids = NDArray[np.int64]
# doc_ids in order, the number of band rows of each, and the XOR of their hashes
Sums = tuple[Ids, Ids, NDArray[np.uint64]]

_HEADS_AT_ONCE = 20_000


def check_all_bands(connection: Connection, context: Context, findings: Findings, progress: Progress) -> None:
    """Compare band rows with sketches, both read in order of doc_id in one snapshot."""
    store.set_scan_method(connection, context.leaves, by_index=False)
    actual = _Reader(store.stream_band_checksums(connection, context.leaves, _HEADS_AT_ONCE))
    family, done = context.encoder.family, 0
    for doc_ids, sketches in store.stream_heads(
        connection, context.leaves, family.dtype, family.k, _HEADS_AT_ONCE
    ):
        keys = context.encoder.band_keys(sketches)
        counts = np.full(len(doc_ids), keys.shape[1], np.int64)
        expected = doc_ids, counts, np.bitwise_xor.reduce(keys, axis=1)
        _compare(connection, findings, expected, actual.through(int(doc_ids[-1])))
        done += len(doc_ids)
        progress("check_bands", done, None)
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64)
    while len((rest := actual.next())[0]):
        _compare(connection, findings, nothing, rest)


class _Reader:
    """Reads blocks of sums, cut at given documents."""

    def __init__(self, blocks: Iterator[Sums]) -> None:
        self._blocks = blocks
        self._rest: Sums | None = None

    def next(self) -> Sums:
        """Return the rest of the current block, or the next one; empty at the end."""
        found, self._rest = self._rest, None
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64)
        return found if found is not None else next(self._blocks, nothing)

    def through(self, doc_id: int) -> Sums:
        """Return the sums of all documents up to one."""
        parts = []
        while True:
            block = self.next()
            cut = int(np.searchsorted(block[0], doc_id, "right"))
            parts.append(tuple(column[:cut] for column in block))
            if cut < len(block[0]):
                self._rest = block[0][cut:], block[1][cut:], block[2][cut:]
            if cut < len(block[0]) or not len(block[0]):
                ids, counts, sums = zip(*parts, strict=True)
                return np.concatenate(ids), np.concatenate(counts), np.concatenate(sums)


def _compare(connection: Connection, findings: Findings, expected: Sums, actual: Sums) -> None:
    findings.checked["all_band_rows"] += int(actual[1].sum())
    both, in_expected, in_actual = np.intersect1d(
        expected[0], actual[0], assume_unique=True, return_indices=True
    )
    fewer = expected[1][in_expected] > actual[1][in_actual]
    more = expected[1][in_expected] < actual[1][in_actual]
    differs = (expected[2][in_expected] != actual[2][in_actual]) | fewer | more
    missing = np.concatenate((np.setdiff1d(expected[0], both), both[fewer]))
    stray = np.concatenate((np.setdiff1d(actual[0], both), both[differs & ~fewer]))
    suspects = {int(one) for one in np.concatenate((missing, stray))} - findings.documents
    changing = find_pending_documents(connection, findings, suspects)
    findings.changing += sum(one in changing for one in suspects)
    has_missing = set(missing.tolist())
    for doc_id in sorted(one for one in suspects if one not in changing):
        findings.add_document("missing_bands" if doc_id in has_missing else "stray_bands", doc_id)

"""Checks of a generation's tables, and of all its band rows against the sketches of their heads."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.verify_index.findings import Findings, find_pending_documents
from nearsim_db.indexing.context import Context
from nearsim_db.records import Progress
from nearsim_db.store import verify_index as store
from nearsim_db.store.citus import placement
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import corruption_message
from nearsim_db.store.driver.statements import PARENTS

_INDEXES = {
    "signature": ("doc_id", "feature_digest, doc_id", "head_id, doc_id"),
    "band": ("bucket_hash, doc_id",),
    "similar_pair": ("left_id, right_id", "right_id"),
    "cluster_member": ("doc_id", "cluster_id, is_survivor, doc_id"),
}
_FOREIGN_KEYS = {"similar_pair": 2}


def check_catalog(connection: Connection, findings: Findings) -> None:
    """Check that every table exists, is attached and logged, and has its indexes and foreign keys."""
    leaves = findings.generation.leaves
    for parent in PARENTS:
        name, state = leaves.name(parent), store.read_leaf_state(connection, leaves, parent)
        findings.checked["tables"] += 1
        if state is None:
            findings.add_table("missing_table", name, "it does not exist")
            continue
        if not state.is_attached:
            findings.add_table("detached_table", name, f"it is not a partition of nearsim.{parent}")
        _check_storage(findings, parent, name, state)
        if state.foreign_keys < _FOREIGN_KEYS.get(parent, 0):
            findings.add_table("missing_constraint", name, "a foreign key to its signatures does not exist")
        if parent == "band" and leaves.distributed:
            _check_shards(connection, findings)


def _check_shards(connection: Connection, findings: Findings) -> None:
    """Check that every shard of the band table exists, is logged, and has its index."""
    for shard in placement.read_shards(connection, findings.generation.leaves.qualified("band")):
        findings.checked["shards"] += 1
        if shard.is_there:
            _check_storage(findings, "band", shard.name, shard, f" on {shard.node}")
        else:
            findings.add_table("missing_table", shard.name, f"it does not exist on {shard.node}")


def _check_storage(
    findings: Findings, parent: str, name: str, state: store.LeafState | placement.ShardState, where: str = ""
) -> None:
    if not state.is_logged:
        findings.add_table("unlogged_table", name, f"it is unlogged{where}: a server crash would empty it")
    for columns in state.unusable:
        findings.add_table("unusable_index", name, f"the index on ({columns}) is not valid{where}")
    for columns in _INDEXES[parent]:
        if columns not in (*state.indexes, *state.unusable):
            findings.add_table("missing_index", name, f"the index on ({columns}) does not exist{where}")


def check_content(connection: Connection, findings: Findings, progress: Progress) -> None:
    """Read each table in full, with and without its index, and compare the two."""
    leaves = findings.generation.leaves
    for number, parent in enumerate(PARENTS):
        progress("tables", number, len(PARENTS))
        sums = []
        for by_index in (False, True):
            try:
                store.set_scan_method(connection, leaves, by_index=by_index)
                sums.append(store.checksum_leaf(connection, leaves, parent))
            except Exception as error:
                damage = corruption_message(error)
                if damage is None:
                    raise
                findings.add_table("unreadable_table", leaves.name(parent), damage)
                connection.rollback()
                break
        if len(set(sums)) > 1:
            rows, entries = sums[0][0], sums[1][0]
            description = f"its index has {entries:,} entries that differ from its {rows:,} rows"
            findings.add_table("wrong_index", leaves.name(parent), description)
    connection.rollback()


def check_shapes(connection: Connection, context: Context, findings: Findings) -> bool:
    """Check that all sketches have the right size; return whether any has not, so that nothing can be compared."""
    family = context.encoder.family
    found = store.find_malformed_sketches(connection, context.leaves, family.k * family.dtype.itemsize)
    for doc_id in found:
        findings.add_document("wrong_sketch", doc_id)
    return bool(found)


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

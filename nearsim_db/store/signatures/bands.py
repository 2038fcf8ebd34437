"""The band rows of a generation: loading and deleting them, and streaming links from them.

A band row is (bucket_hash, doc_id) of a head. A link is a pair of heads that share a bucket in which one of them is an
anchor. The anchors of a bucket are its first documents, up to the bucket limit. A bucket with more documents is full.
"""

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import cast

import numpy as np
from psycopg import sql

from nearsim_db.similarity.arrays import Ints, Keys, Ragged, are_fresh, flat, lengths
from nearsim_db.similarity.batches import ColumnBatch
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.codec import copy_rows, to_bigint, unpacked_ids
from nearsim_db.store.driver.statements import GenerationStatements, Mode, StatementResult, statement

_ID_BYTES = 8
# The top byte of a bucket hash is the number of its band.
_BAND_SHIFT = 56
_MAX_BATCH_MEMBERS = 4_096
_MAX_BATCH_ANCHOR_BYTES = 8 << 20
# On a Citus cluster, this many buckets or more are grouped by shard, and each shard gets its own statement.
MIN_BUCKETS_BY_SHARD = 1_000
# The sample has one in this many loaded rows.
_SAMPLE_INTERVAL = 16

BUCKET_FIGURES = ("buckets", "largest_bucket", "buckets_over_limit", "links_left_out")


@dataclass(frozen=True, slots=True)
class LastAnchors(ColumnBatch):
    """Buckets over the limit, sorted by hash, each with its last anchor."""

    hashes: Ints  # int64, shape (n,)
    last_anchors: Ints  # doc_ids, int64, shape (n,)

    def between(self, low: int, high: int) -> "LastAnchors":
        """Return the buckets from `low` to `high`, both included."""
        return self.take((self.hashes >= low) & (self.hashes <= high))


@dataclass(frozen=True, slots=True)
class Links(ColumnBatch):
    """Pairs of heads that share a bucket in which the left head is an anchor; all arrays are int64 of shape (m,)."""

    buckets: Ints  # bucket hash of each link
    first: Ints  # doc_id of the first head of the bucket
    left: Ints  # smaller doc_id of the pair
    right: Ints  # larger doc_id of the pair


@dataclass(frozen=True, slots=True)
class BandRows:
    """Band rows, sorted by (bucket_hash, doc_id)."""

    hashes: Ints  # bucket hashes, int64, shape (n,)
    doc_ids: Ints  # int64, shape (n,)

    @classmethod
    def of(cls, doc_ids: Ints, keys: Keys) -> "BandRows":
        """Return the sorted band rows of heads; `keys` are the bucket hashes of each head."""
        if not isinstance(keys, Ragged) and _is_by_band(doc_ids, values := to_bigint(keys)):
            # Sorting each band separately takes less time than sorting all rows, and half of the memory.
            sorted_rows = np.empty((2, *values.T.shape), np.int64)
            for band, column in enumerate(values.T):
                order = np.argsort(column, kind="stable")
                sorted_rows[0, band], sorted_rows[1, band] = column[order], doc_ids[order]
            return cls(sorted_rows[0].reshape(-1), sorted_rows[1].reshape(-1))

        hashes, owners = to_bigint(flat(keys)), np.repeat(doc_ids, lengths(keys))
        order = np.lexsort((owners, hashes))
        return cls(hashes[order], owners[order])

    def full_buckets(self, bucket_limit: int) -> tuple[LastAnchors, dict[str, int]]:
        """Return the buckets over the limit, and the counts of BUCKET_FIGURES; no bucket may have rows elsewhere."""
        starts = np.flatnonzero(are_fresh(self.hashes))
        sizes = np.diff(np.append(starts, len(self.hashes)))
        full = (sizes > bucket_limit) & (bucket_limit > 0)
        last_anchors = self.doc_ids[starts[full] + bucket_limit - 1]
        figures = _bucket_figures(len(starts), int(sizes.max(initial=0)), sizes[full].tolist(), bucket_limit)
        return LastAnchors(self.hashes[starts[full]], last_anchors), figures


@dataclass(frozen=True, slots=True)
class LoadedBuckets:
    """What is known about the buckets of loaded band rows."""

    full: LastAnchors  # buckets over the limit
    figures: dict[str, int]  # counts of BUCKET_FIGURES
    sample: Ints  # bucket hashes of loaded rows, taken at equal distances

    @classmethod
    def of(cls, rows: BandRows, bucket_limit: int) -> "LoadedBuckets":
        """Describe the buckets of rows; no bucket may have further rows elsewhere."""
        full, figures = rows.full_buckets(bucket_limit)
        return cls(full, figures, rows.hashes[::_SAMPLE_INTERVAL].copy())

    @classmethod
    def joined(cls, parts: Sequence["LoadedBuckets"]) -> "LoadedBuckets":
        """Combine the buckets of ascending ranges of hashes."""
        figures = {name: sum(part.figures[name] for part in parts) for name in BUCKET_FIGURES}
        figures["largest_bucket"] = max(part.figures["largest_bucket"] for part in parts)
        full = LastAnchors.joined([part.full for part in parts])
        return cls(full, figures, np.concatenate([part.sample for part in parts]))


def _is_by_band(doc_ids: Ints, keys: Ints) -> bool:
    """Whether doc_ids ascend, and each column of keys belongs to one band, in the order of the bands."""
    if not keys.size or (doc_ids[1:] <= doc_ids[:-1]).any():
        return False
    bands = keys[0] >> _BAND_SHIFT
    ends = keys.min(axis=0) >> _BAND_SHIFT, keys.max(axis=0) >> _BAND_SHIFT
    return bool((bands[1:] > bands[:-1]).all() and all((end == bands).all() for end in ends))


class BandStatements(GenerationStatements):
    """Runs statements on many band rows; on a Citus cluster, with a separate statement for each shard."""

    def run_by_shard(
        self, name: str, doc_ids: Ints, hashes: Ints, mode: Mode = "text", **parameters: object
    ) -> list[tuple[Ints, StatementResult]]:
        """Run a named statement on band rows; return pairs of positions of rows and the result for these rows.

        For few rows there is one pair. For many distributed rows there is a pair for each shard, because a single
        statement would send all rows to every shard.
        """
        groups = self._by_shard(hashes)
        results = []
        with self.connection.backend.pipeline() if len(groups) > 1 else nullcontext():
            for positions in groups:
                rows = {"doc_ids": packed(doc_ids[positions]), "bucket_hashes": packed(hashes[positions])}
                results.append((positions, self.run(name, mode, **rows, **parameters)))
        return results

    def _by_shard(self, hashes: Ints) -> list[Ints]:
        """Return the positions of bucket hashes, grouped by shard if there are many."""
        if not self.leaves.distributed or len(hashes) < MIN_BUCKETS_BY_SHARD:
            return [np.arange(len(hashes))]
        shards = np.array(self.run("find_shards", "binary", bucket_hashes=packed(hashes)).value())
        order = np.argsort(shards, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(shards[order])) + 1)


class BandTable(BandStatements):
    """The band rows of a generation, and the links between heads that follow from them."""

    def truncate(self) -> None:
        """Delete all band rows of the generation."""
        self.run("clear_bands" if self.leaves.are_shared else "truncate_bands")

    def write(self, doc_ids: Ints, keys: Keys) -> int:
        """Load the band rows of heads, sorted by (bucket_hash, doc_id); return the number of rows."""
        return self.load(BandRows.of(doc_ids, keys)) if len(doc_ids) else 0

    def load(self, rows: BandRows, *, freeze: bool = False) -> int:
        """Load band rows and return their number; `freeze` is as in `copy_columns`, but ignored for a shared table."""
        columns = [("bucket_hash", rows.hashes), ("doc_id", rows.doc_ids)]
        return copy_rows(self, "band", columns, freeze=freeze and not self.leaves.are_shared)

    def index(self) -> None:
        """Create the only index of the generation's own band table after the load, and update planner statistics.

        Does nothing for a shared table, whose index always exists.
        """
        if self.leaves.are_shared:
            return
        name = sql.Identifier(f"{self.leaves.name('band')}_bucket_hash_doc_id_idx")
        for command in ("index_bands", "identify_bands"):
            self.run(statement(command, self.leaves, band_index=name))
        self.run("analyze_bands")

    def delete(self, doc_ids: Ints, keys: Keys) -> None:
        """Delete the band rows of heads by their bucket hashes."""
        if not len(doc_ids):
            return
        owners, hashes = np.repeat(doc_ids, lengths(keys)), to_bigint(flat(keys))
        self.run_by_shard("delete_bands", owners, hashes)

    def stream_links(self, bucket_limit: int, buckets: tuple[int, int]) -> Generator[Links, None, None]:
        """Yield the links of a range of buckets, both ends included, in batches of bounded size.

        A bucket links each of its members with the anchors that precede it. The anchors are the first `bucket_limit`
        members, or all members if the limit is 0.
        """
        parameters = {"bucket_limit": bucket_limit, "low": buckets[0], "high": buckets[1]}
        # A row has at most one anchor more than the row before it. This bounds the bytes of a batch.
        max_row_bytes, last_row_bytes = bucket_limit * _ID_BYTES or _MAX_BATCH_ANCHOR_BYTES, 0
        with self.connection.backend.cursor(name="nearsim_links", binary=True) as cursor:
            cursor.execute(statement("find_links", self.leaves), parameters)
            while True:
                row_bytes = min(last_row_bytes + _ID_BYTES * _MAX_BATCH_MEMBERS, max_row_bytes)
                rows = cursor.fetchmany(max(1, min(_MAX_BATCH_MEMBERS, _MAX_BATCH_ANCHOR_BYTES // row_bytes)))
                if not rows:
                    return

                hashes, members, anchors = zip(*cast(list[tuple[int, int, bytes]], rows), strict=True)
                anchor_counts = np.fromiter(map(len, anchors), np.int64, len(rows)) // _ID_BYTES
                left = unpacked_ids(b"".join(anchors))
                yield Links(
                    np.repeat(np.array(hashes, np.int64), anchor_counts),
                    np.repeat(left[np.cumsum(anchor_counts) - anchor_counts], anchor_counts),
                    left,
                    np.repeat(np.array(members, np.int64), anchor_counts),
                )
                last_row_bytes = len(anchors[-1])

    def find_full_buckets(self, bucket_limit: int) -> tuple[LastAnchors, dict[str, int]]:
        """Return the buckets over the limit, and the counts of BUCKET_FIGURES."""
        buckets, largest, hashes, sizes, last_anchors = self.run(
            "find_full_buckets", bucket_limit=bucket_limit
        ).row()
        figures = _bucket_figures(buckets, largest, sizes, bucket_limit)
        return LastAnchors(np.array(hashes, np.int64), np.array(last_anchors, np.int64)), figures

    def count_buckets(self, bucket_limit: int) -> dict[str, int]:
        """Return the counts of BUCKET_FIGURES.

        These are the number of buckets, the size of the largest bucket, the number of buckets over the limit, and the
        number of links that the limit leaves out.
        """
        row = self.run("count_buckets", bucket_limit=bucket_limit).row()
        return dict(zip(BUCKET_FIGURES, map(int, row), strict=True))


def _bucket_figures(
    buckets: int, largest: int, full_sizes: Sequence[int], bucket_limit: int
) -> dict[str, int]:
    """Return the counts of BUCKET_FIGURES; `full_sizes` are the sizes of the buckets over the limit."""
    # A bucket does not link two members of which neither is an anchor.
    left_out = sum((size - bucket_limit) * (size - bucket_limit - 1) // 2 for size in full_sizes)
    return dict(zip(BUCKET_FIGURES, (buckets, largest, len(full_sizes), left_out), strict=True))

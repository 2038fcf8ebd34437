"""The slices of a build: ranges of documents to sign, of heads whose bands to load, or of buckets to search for pairs.

A process takes a slice, works on it and finishes it in one transaction, which locks the slice's row against other
processes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from psycopg.types.json import Jsonb

from nearsim_db.records import CollectionId
from nearsim_db.similarity.arrays import Ints
from nearsim_db.store.driver.arrays import packed
from nearsim_db.store.driver.statements import GenerationStatements
from nearsim_db.store.signatures.bands import LastAnchors

SlicedStage = Literal["sign", "bands", "pairs"]

_MIN_BIGINT, _MAX_BIGINT = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Slice:
    """A range of doc_ids or bucket hashes, from `low` to `high`, both included."""

    slice_no: int
    low: int
    high: int
    by_age: bool  # whether only few of the doc_ids in the range belong to documents that have not expired


WHOLE_RANGE = Slice(0, _MIN_BIGINT, _MAX_BIGINT, False)


@dataclass(frozen=True, slots=True)
class SliceProgress:
    """Numbers of slices and documents of a stage."""

    slices: int
    unfinished: int  # number of slices that are not finished
    done: int  # number of documents in finished slices
    documents: int


class BuildSlices(GenerationStatements):
    """The slices of a generation's build."""

    __slots__ = ()

    def plan_signing(
        self,
        collection_id: CollectionId,
        documents: int,
        *,
        by_age: bool,
        all_signed: bool,
    ) -> None:
        """Divide the documents without a signature into slices of `documents` each; no slices if `all_signed`.

        `by_age`: use the index on age, because most documents may have expired
        """
        parameters = {
            "collection_id": collection_id,
            "documents": documents,
            "by_age": by_age,
            "all_signed": all_signed,
        }
        self.run("plan_sign_slices", **parameters)

    def plan_bands(self, heads: int) -> None:
        """Divide the heads into slices of `heads` each."""
        self.run("plan_band_slices", heads=heads)

    def plan_pairs(self, bounds: Sequence[int], heads: int, full: LastAnchors) -> None:
        """Divide all buckets into slices.

        `bounds`: the lowest bucket hash of each slice except the first
        `heads`: the number of all heads, of which each slice counts an equal part
        `full`: the buckets over the limit
        """
        lows = [_MIN_BIGINT, *bounds]
        highs = [*(bound - 1 for bound in bounds), _MAX_BIGINT]
        for slice_no, (low, high) in enumerate(zip(lows, highs, strict=True)):
            full_in_slice = full.between(low, high)
            parameters = {
                "slice_no": slice_no,
                "low": low,
                "high": high,
                "documents": heads * (slice_no + 1) // len(lows) - heads * slice_no // len(lows),
                "full_buckets": packed(full_in_slice.hashes),
                "last_anchors": packed(full_in_slice.last_anchors),
            }
            self.run("plan_pair_slice", **parameters)

    def take(self, stage: SlicedStage) -> Slice | None:
        """Take a slice on which no other process works, until the transaction ends; return None if there is none."""
        return self.run("take_slice", stage=stage).first(Slice)

    def finish(self, stage: SlicedStage, part: Slice, counts: dict[str, int]) -> None:
        """Mark a slice as done."""
        self.run("finish_slice", stage=stage, slice_no=part.slice_no, counts=Jsonb(counts))

    def read_progress(self, stage: SlicedStage) -> SliceProgress:
        """Return the progress of a stage; a stage without slices has not been planned."""
        return SliceProgress(*map(int, self.run("read_slices", stage=stage).row()))

    def sum_counts(self, stage: SlicedStage) -> dict[str, int]:
        """Return the sums of the counts with which the slices of a stage were finished."""
        rows = self.run("sum_slice_counts", stage=stage).rows()
        return {name: int(amount) for name, amount in rows}

    def read_full_buckets(self) -> LastAnchors:
        """Return the buckets over the limit, of all slices."""
        rows: Ints = np.array(self.run("read_full_buckets", "binary").rows(), np.int64).reshape(-1, 2)
        return LastAnchors(rows[:, 0], rows[:, 1])

    def delete(self) -> None:
        """Delete the slices of a finished build."""
        self.run("delete_slices")

"""Slices of a build: ranges of documents to sign, of heads whose bands are loaded, of buckets whose pairs are searched.

A slice is taken, worked on and finished in one transaction; its row lock keeps other processes off it until then.
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
from nearsim_db.store.signatures.bands import FullBuckets

SlicedStage = Literal["sign", "bands", "pairs"]

_LEAST, _LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Slice:
    """A range of doc_ids or bucket hashes, with both ends.

    `by_age`: its documents that have not expired are few for the width of its range.
    """

    slice_no: int
    low: int
    high: int
    by_age: bool


WHOLE = Slice(0, _LEAST, _LARGEST, False)


@dataclass(frozen=True, slots=True)
class SliceProgress:
    """Slices of a stage, those not done, and how many documents of all are done."""

    slices: int
    unfinished: int
    done: int
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
        """Divide the documents without a signature into slices of `documents` each, none if `all_signed`.

        `by_age`: documents that have not expired are looked up first, as they may be few of many.
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

    def plan_pairs(self, bounds: Sequence[int], heads: int, full: FullBuckets) -> None:
        """Divide all buckets into slices at `bounds`, the first bucket hashes of all slices but the first."""
        lows = [_LEAST, *bounds]
        highs = [*(bound - 1 for bound in bounds), _LARGEST]
        for number, (low, high) in enumerate(zip(lows, highs, strict=True)):
            inside = full.between(low, high)
            parameters = {
                "slice_no": number,
                "low": low,
                "high": high,
                "documents": heads * (number + 1) // len(lows) - heads * number // len(lows),
                "full_buckets": packed(inside.hashes),
                "last_anchors": packed(inside.last_anchors),
            }
            self.run("plan_pair_slice", **parameters)

    def take(self, stage: SlicedStage) -> Slice | None:
        """Take a slice that no other process works on, until the transaction ends; None if there is none."""
        return self.run("take_slice", stage=stage).first(Slice)

    def finish(self, stage: SlicedStage, part: Slice, counts: dict[str, int]) -> None:
        """Mark a slice as done."""
        self.run("finish_slice", stage=stage, slice_no=part.slice_no, counts=Jsonb(counts))

    def read_progress(self, stage: SlicedStage) -> SliceProgress:
        """Return how much of a stage is done; it has no slices if it was not planned."""
        found = self.run("read_slices", stage=stage).one(lambda *row: [int(one) for one in row])
        return SliceProgress(*found)

    def sum_counts(self, stage: SlicedStage) -> dict[str, int]:
        """Return what was counted in the slices of a stage."""
        rows = self.run("sum_slice_counts", stage=stage).rows()
        return {name: int(amount) for name, amount in rows}

    def read_full_buckets(self) -> FullBuckets:
        """Return the buckets over the limit, of all slices."""
        rows = self.run("read_full_buckets", "binary").rows()
        found: Ints = np.array(rows, np.int64).reshape(-1, 2)
        return FullBuckets(found[:, 0], found[:, 1])

    def delete(self) -> None:
        """Delete the slices of a finished build."""
        self.run("delete_slices")

"""The contract of a metric, and what it says of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.kernels import Counts

# A weighted feature: documents are sorted by id, each id once, no weight is 0.
FEATURE = np.dtype([("id", "<u8"), ("weight", "<f8")])


@dataclass(frozen=True, slots=True)
class Scores:
    """How alike m pairs are, each field of length m.

    `similarity` is float64, at most 1. `intersection` and `union` are int64 where the metric counts features, else
    None; `distance` is float64 where it measures one, else None.
    """

    similarity: NDArray[np.float64]
    intersection: Counts | None = None
    union: Counts | None = None
    distance: NDArray[np.float64] | None = None

    def take(self, chosen: NDArray[Any]) -> "Scores":
        """The scores that a mask or rows choose."""
        return Scores(
            self.similarity[chosen],
            None if self.intersection is None else self.intersection[chosen],
            None if self.union is None else self.union[chosen],
            None if self.distance is None else self.distance[chosen],
        )

    @classmethod
    def joined(cls, parts: Sequence["Scores"]) -> "Scores":
        """The scores of one metric one after the other; there is at least one part."""

        def join(values: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
            there = [value for value in values if value is not None]
            return np.concatenate(there) if there else None

        return cls(
            np.concatenate([part.similarity for part in parts]),
            join([part.intersection for part in parts]),
            join([part.union for part in parts]),
            join([part.distance for part in parts]),
        )


class Metric(Protocol):
    """A way to say how alike two documents are, exactly, from their features."""

    @property
    def name(self) -> str:
        """What sketch families call it: jaccard, weighted_jaccard, cosine, euclidean."""

    @property
    def weighted(self) -> bool:
        """Whether features are arrays of `FEATURE`; else they are sorted distinct uint64 ids."""

    @property
    def signed(self) -> bool:
        """Whether weights may be below 0; where they may not, a document that has such has no features."""

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """The scores of m pairs of documents, given as int64 rows into `features`; bit-identical in any company."""

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Which scores reach a recipe's threshold: bool of m."""

    def similarity_at_threshold(self, threshold: float) -> float:
        """The similarity of a pair right at a recipe's threshold, which may be a distance."""

"""The contract of a metric, and the scores it computes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.sketch.kernels import Counts

# A weighted feature. A document is sorted by id, has each id once and no weight of 0.
FEATURE = np.dtype([("id", "<u8"), ("weight", "<f8")])


@dataclass(frozen=True, slots=True)
class Scores:
    """The similarity of m pairs, each field of length m.

    `similarity` is float64, at most 1. `intersection` and `union` are int64 if the metric counts features, else
    None; `distance` is float64 if it measures one, else None.
    """

    similarity: NDArray[np.float64]
    intersection: Counts | None = None
    union: Counts | None = None
    distance: NDArray[np.float64] | None = None

    def take(self, chosen: NDArray[Any]) -> "Scores":
        """Return the scores selected by a mask or by rows."""
        return Scores(
            self.similarity[chosen],
            None if self.intersection is None else self.intersection[chosen],
            None if self.union is None else self.union[chosen],
            None if self.distance is None else self.distance[chosen],
        )

    @classmethod
    def joined(cls, parts: Sequence["Scores"]) -> "Scores":
        """Concatenate the scores of one metric; at least one part is required."""

        def join(values: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
            present = [value for value in values if value is not None]
            return np.concatenate(present) if present else None

        return cls(
            np.concatenate([part.similarity for part in parts]),
            join([part.intersection for part in parts]),
            join([part.union for part in parts]),
            join([part.distance for part in parts]),
        )


class Metric(Protocol):
    """An exact measure of the similarity of two documents, computed from their features."""

    @property
    def name(self) -> str:
        """Its name in sketch families: jaccard, weighted_jaccard, cosine, euclidean."""

    @property
    def weighted(self) -> bool:
        """Whether features are arrays of `FEATURE`; else they are sorted distinct uint64 ids."""

    @property
    def signed(self) -> bool:
        """Whether weights may be negative; if not, a document with a negative weight has no features."""

    def compare(
        self, features: Sequence[NDArray[Any]], left: Counts, right: Counts, backend: str | None
    ) -> Scores:
        """Score m pairs of documents, given as int64 rows into `features`.

        The scores of a pair are bit-identical, whatever else is in the batch.
        """

    def reaches(self, scores: Scores, threshold: float) -> NDArray[np.bool_]:
        """Return which scores reach a recipe's threshold: bool of m."""

    def similarity_at_threshold(self, threshold: float) -> float:
        """Return the similarity of a pair exactly at a recipe's threshold, which may be a distance."""

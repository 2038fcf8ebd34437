"""Files of documents and of exact similarities, passed to the scripts."""

import csv
import gzip
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nearsim_db.readers import Source
from nearsim_db.records import Document, ReadDocument

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LEAST_SIMILARITY = 0.3


@dataclass(frozen=True, slots=True)
class Truth:
    """All pairs of a corpus whose exact Jaccard is at least LEAST_SIMILARITY. All int64 of m.

    `left` and `right` are rows of the corpus, left < right; `intersection` and `union` count distinct features.
    """

    left: Ints
    right: Ints
    intersection: Ints
    union: Ints

    def take(self, chosen: Flags) -> "Truth":
        """Return the pairs selected by a mask."""
        return Truth(self.left[chosen], self.right[chosen], self.intersection[chosen], self.union[chosen])


def read_documents(path: Path) -> list[Document]:
    """Read the documents of a file in any format nearsim reads, skipping records that cannot be read."""
    return [record.document for record in Source([path]) if isinstance(record, ReadDocument)]


def read_truth(path: Path, documents: Sequence[Document]) -> Truth:
    """Read the truth from a CSV file with the columns id_a, id_b, inter and union, gzip-compressed or not."""
    rows = {document.external_id: row for row, document in enumerate(documents)}
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        pairs = [_pair(line, rows) for line in csv.DictReader(lines)]
    table = np.array(pairs, np.int64).reshape(-1, 4)
    return Truth(*(np.ascontiguousarray(column) for column in table.T))


def _pair(line: Mapping[str, str], rows: Mapping[str, int]) -> tuple[int, int, int, int]:
    left, right = sorted((rows[line["id_a"]], rows[line["id_b"]]))
    return left, right, int(line["inter"]), int(line["union"])


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a proportion (Wilson 1927), at 95 % by default; (0, 1) without trials."""
    if not trials:
        return 0.0, 1.0
    share, squared = successes / trials, z * z
    centre = (share + squared / (2 * trials)) / (1 + squared / trials)
    variance = share * (1 - share) / trials + squared / (4 * trials * trials)
    half = z * math.sqrt(variance) / (1 + squared / trials)
    return max(0.0, centre - half), min(1.0, centre + half)

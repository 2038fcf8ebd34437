"""Read files of documents, and compute confidence intervals of proportions."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nearsim_db.readers import Source
from nearsim_db.records import Document, ReadDocument

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def read_documents(path: Path) -> list[Document]:
    """Return the documents of a file in any format that nearsim reads; skip records that cannot be read."""
    return [record.document for record in Source([path]) if isinstance(record, ReadDocument)]


def wilson_interval(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Return the confidence interval of a proportion (Wilson 1927), by default for 95 %; (0, 1) without trials."""
    if not trials:
        return 0.0, 1.0
    share, squared = successes / trials, z * z
    centre = (share + squared / (2 * trials)) / (1 + squared / trials)
    variance = share * (1 - share) / trials + squared / (4 * trials * trials)
    half = z * math.sqrt(variance) / (1 + squared / trials)
    return max(0.0, centre - half), min(1.0, centre + half)

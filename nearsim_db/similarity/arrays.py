"""Types of arrays by their elements; names of parameters say what these are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]  # doc_ids, places, counts, offsets
Hashes = NDArray[np.uint64]  # of shingles, of bands
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Sketches = NDArray[np.generic]  # (n, k), of the type of a family
FeatureSets = Sequence[NDArray[Any]]  # of documents, each as the metric takes it

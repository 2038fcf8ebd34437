"""Types of arrays by their elements; names of parameters say what these are."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]  # doc_ids, places, counts, offsets
Hashes = NDArray[np.uint64]  # of shingles, of bands
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

"""What a banding will cost on a corpus, told from a sample of it."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.lsh import Amplification

SAMPLE_SIZE = 1_000
MANY_CANDIDATES = 100  # candidate pairs per document beyond which a recipe deserves a warning


def candidates_per_document(keys: NDArray[np.uint64], amplification: Amplification, documents: int) -> float:
    """How many candidate pairs the corpus will have for each document, the bucket limit left out of account.

    `keys` are the bucket hashes of a random sample, (n, bands) uint64; `documents` is the size of the corpus. The share
    of the sample's pairs whose shared bands meet the amplification is taken for the corpus's.
    """
    size = len(keys)
    if size < 2:
        return 0.0
    buckets, places = np.unique(keys, return_inverse=True)
    places, own = places.reshape(keys.shape), np.zeros(len(buckets), bool)
    linked = 0
    for mine in places:
        own[mine] = True
        linked += int(amplification.evaluate(own[places]).sum())
        own[mine] = False
    # Each document is linked with itself, which is no pair; each pair is met from both sides.
    pairs = (linked - size) / 2
    return pairs / (size * (size - 1) / 2) * (documents - 1) / 2


def warning(expected: float) -> str | None:
    """A warning with its remedy when a recipe will have too many candidates to verify, else None."""
    if expected <= MANY_CANDIDATES:
        return None
    return (
        f"about {expected:,.0f} candidate pairs per document are expected, of which most will fail verification; "
        "longer shingles (shingle.k), a larger sketch.k or more rows per band (a lower bands.recall, or bands.count "
        "and bands.rows) make them fewer"
    )

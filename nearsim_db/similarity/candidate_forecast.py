"""The number of candidates that a banding will produce on a corpus, estimated from a sample."""

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.amplification import Amplification

SAMPLE_SIZE = 1_000
MANY_CANDIDATES = 100  # per document; more produce a warning


def candidates_per_document(keys: NDArray[np.uint64], amplification: Amplification, documents: int) -> float:
    """Estimate the candidate pairs per document of a corpus, ignoring the bucket limit.

    `keys` are the bucket hashes of a random sample, (n, bands) uint64; `documents` is the size of the corpus.
    The share of the sample's pairs whose shared bands meet the amplification is applied to the corpus.
    """
    size = len(keys)
    if size < 2:
        return 0.0
    buckets, indexes, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    indexes, in_bucket = indexes.reshape(keys.shape), np.zeros(len(buckets), bool)
    # A document that is alone in its buckets is linked only with itself: few documents of a sample are not.
    indexes = indexes[(sizes[indexes] > 1).any(axis=1)]
    linked = 0
    for row in indexes:
        in_bucket[row] = True
        linked += int(amplification.evaluate(in_bucket[indexes]).sum())
        in_bucket[row] = False
    # Each document is linked with itself, which is not a pair; each pair is counted from both sides.
    pairs = (linked - len(indexes)) / 2
    return pairs / (size * (size - 1) / 2) * (documents - 1) / 2


def warning(expected: float, verify: str = "exact") -> str | None:
    """Return a warning with its remedy if a recipe will have too many candidates, else None."""
    if expected <= MANY_CANDIDATES:
        return None
    return (
        f"expecting about {expected:,.0f} candidate pairs per document, "
        f"{'all of which are pairs' if verify == 'bands' else 'most of which will fail verification'}; to "
        "reduce them, raise shingle.k or sketch.k, or use more rows per band (lower bands.recall, or set bands.count "
        "and bands.rows)"
    )

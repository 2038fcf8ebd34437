"""Clusters: the connected components of the graph of pairs."""

import numpy as np
from numpy.typing import NDArray


def connected_components(edges: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The documents on any edge, sorted, and for each the smallest document it is connected with.

    `edges` is (m, 2) int64. Labels are hooked to the smaller of each edge's and then shortened by pointer jumping
    until nothing changes (Shiloach and Vishkin 1982, in whole-array steps); both results are int64 of equal
    length.
    """
    documents, flat = np.unique(edges.reshape(-1), return_inverse=True)
    ends = flat.reshape(-1, 2)
    labels = np.arange(len(documents))
    while True:
        smaller = np.minimum(labels[ends[:, 0]], labels[ends[:, 1]])
        hooked = labels.copy()
        for side in (0, 1):
            np.minimum.at(hooked, labels[ends[:, side]], smaller)
            np.minimum.at(hooked, ends[:, side], smaller)
        while not np.array_equal(hooked, shorter := hooked[hooked]):
            hooked = shorter
        if np.array_equal(hooked, labels):
            return documents, documents[labels]
        labels = hooked

"""Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003): the least id of each window of consecutive shingles.

A sketch is the set of these fingerprints, as many as the text is long: about 2 / (w + 1) of its shingles for windows of
w. Two texts that share w consecutive shingles share the least of them, so a run of w + k - 1 equal units, of which k
make a shingle, is never missed. Of equal ids in a window the rightmost is taken; they are one fingerprint.

Each fingerprint is a band key under band number 0. Two texts share as many bands as they have fingerprints in common,
and the share of the smaller sketch that is in the other estimates the containment.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.mixing import fmix64, random_words
from nearsim_db.similarity.ragged import Keys, Ragged
from nearsim_db.similarity.sketch.bands import Banding
from nearsim_db.similarity.sketch.family import Family, RowAgreements
from nearsim_db.similarity.sketch.kernels import Counts, Ids, KnownPairs, Offsets, Weights

_WIDTH = np.dtype("<u8")
_MOST_SHARED = 2**15 - 1  # of a column of 16 bits


class Winnow(Family):
    """Sketches of one value: the fingerprints, uint64 below 2^56, ascending and distinct, as little-endian bytes.

    The seed determines which id is the least, by mixing the ids; seed 0 leaves ids of 64 bits unchanged.
    """

    name = "winnow"
    metric = "containment"
    positional = False
    ordered = True
    options: ClassVar[Mapping[str, Sequence[str]]] = {"window": ()}

    def __init__(
        self, k: int = 1, seed: int = 1, id_bits: int = 64, backend: str | None = None, window: int = 16
    ) -> None:
        """`window` is the number of consecutive ids of which the least is kept; `k` is ignored."""
        super().__init__(1, seed, id_bits, backend)
        if window < 1:
            raise RecipeError(f"a window of {window} shingles is out of range; choose 1 or more")
        self.dtype = np.dtype(object)
        self.window = window
        self._mask = random_words(seed, "winnow mask", 1)[0] if seed else None
        self._mixes = seed > 0 or id_bits == 32

    def sketch(self, ids: Ids, offsets: Offsets, weights: Weights | None = None) -> NDArray[Any]:
        """Return the sketches (n, 1) of documents whose ids are in the order of the text, with repetitions."""
        points = ids[offsets[0] : offsets[-1]]
        if self._mixes:
            points = fmix64(points if self._mask is None else points ^ self._mask)
        values, ends = self._kernels.window_minima(points, offsets - offsets[0], self.window)
        return _packed([values[begin:end] for begin, end in pairwise(ends.tolist())])

    def band_keys(self, sketches: NDArray[Any], banding: Banding) -> Keys:
        """Return the fingerprints, which are the band keys."""
        return fingerprints(sketches)

    def agreements(self, left: NDArray[Any], right: NDArray[Any]) -> tuple[Counts, Counts]:
        """Return |A ∩ B| and min(|A|, |B|) of fingerprints; see `Family.agreements`."""
        rows = np.arange(len(left))
        found = self.compare_rows(np.concatenate((left, right)), rows, rows + len(left), Banding(1, 1))
        return found.agreeing, found.compared

    def compare_rows(
        self, sketches: NDArray[Any], left: Counts, right: Counts, banding: Banding
    ) -> RowAgreements:
        """Count shared fingerprints; see `Family.compare_rows`."""
        used, places = np.unique(np.concatenate((left, right)), return_inverse=True)
        one, other = places[: len(left)], places[len(left) :]
        own = fingerprints(sketches[used])
        shared = self._kernels.intersections(own.values, own.offsets, one, other)
        sizes = np.diff(own.offsets)
        bands = np.minimum(shared, _MOST_SHARED)
        return RowAgreements(bands, shared, np.maximum(np.minimum(sizes[one], sizes[other]), 1))

    def count_shared_bands(self, left: NDArray[Any], right: NDArray[Any], banding: Banding) -> Counts:
        """Count the fingerprints that two sketches share, row by row."""
        return np.minimum(self.agreements(left, right)[0], _MOST_SHARED)

    def matched_bands(self, left: NDArray[Any], right: NDArray[Any], banding: Banding) -> NDArray[np.bool_]:
        """Raise RecipeError: fingerprints have no fixed number, so only a minimum of shared ones is supported."""
        raise RecipeError("winnow supports match.min_shared_bands only")

    def first_similar(
        self, sketches: NDArray[Any], present: NDArray[np.bool_], threshold: Fraction, decided: KnownPairs
    ) -> Counts:
        """Compare each row with the kept ones before it; see `Family.first_similar`."""
        known = dict(zip(decided.pairs.tolist(), decided.alike.tolist(), strict=True))
        first, kept = np.full(len(sketches), -1, np.int64), np.zeros(0, np.int64)
        for row in np.flatnonzero(present).tolist():
            found = self.compare_rows(sketches, np.full(len(kept), row), kept, Banding(1, 1))
            reached = found.agreeing * threshold.denominator >= found.compared * threshold.numerator
            keys = (row * len(sketches) + kept).tolist()
            alike = [known.get(key, own) for key, own in zip(keys, reached.tolist(), strict=True)]
            if True in alike:
                first[row] = kept[alike.index(True)]
            else:
                kept = np.append(kept, row)
        return first

    def least_share(self, similarity: float, errors: float) -> float:
        """Return 0: fingerprints of a text in another depend on the words around them, so they rule nothing out."""
        return 0.0


def run_probability(shingles: float, window: int) -> float:
    """Return the probability that two long texts share a fingerprint of a run of so many equal shingles.

    They do if and only if the least id of the run is a fingerprint of both: a window that has another one of the run
    as its least id, and reaches beyond the run, grows to one that has the least. Its value v is uniform on 0 to 1 and
    has the density n (1 - v)^(n - 1); in each text it is the least of a window if at least d = w - n of the next
    shingles on both sides are greater, (1 - v)^d (1 + d v). Their product is integrated.
    """
    if shingles >= window:
        return 1.0
    if shingles <= 0:
        return 0.0
    beyond = window - shingles
    size = shingles + 2 * beyond
    return shingles / size * (1 + 2 * beyond / (size + 1) + 2 * beyond**2 / ((size + 1) * (size + 2)))


def fingerprints(sketches: NDArray[Any]) -> Ragged:
    """Return the fingerprints of sketches (n, 1); none for a document without features."""
    return Ragged.of([np.frombuffer(one or b"", _WIDTH) for one in sketches[:, 0].tolist()])


def _packed(rows: Sequence[NDArray[np.uint64]]) -> NDArray[Any]:
    sketches = np.empty((len(rows), 1), object)
    sketches[:, 0] = [row.astype(_WIDTH, copy=False).tobytes() for row in rows]
    return sketches

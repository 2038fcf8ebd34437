"""Winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003): keep the least id of each window of consecutive shingles.

The ids that are kept are the fingerprints of a text. Their number grows with the length of the text: windows of w
shingles keep about 2 / (w + 1) of all shingles. Two texts that share w consecutive shingles share the least id of
these. A run of w + k - 1 equal words, whose shingles have k words, is therefore never missed. If the least id occurs
several times in a window, the rightmost is kept; equal ids are a single fingerprint.

A text that would have few fingerprints gets shorter windows, so that a short text is found within a longer one. If an
id is the least of a window, it is also the least of every shorter window inside it that contains the id. Two texts with
different windows therefore share the fingerprints that the longer windows select.

Each fingerprint is a band key with the band number 0, so two texts share one band for each fingerprint in common. For
the estimate of the containment, a shared fingerprint counts as (w + 1) / 2 shared shingles, where w is the longer of
the two windows.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Keys, Mask, Ragged, Sketches
from nearsim_db.similarity.mixing import fmix64, random_words
from nearsim_db.similarity.sketch.bands import Banding
from nearsim_db.similarity.sketch.family import Family, RowAgreements
from nearsim_db.similarity.sketch.kernels import KnownPairs

_VALUE = np.dtype("<u8")
_FINGERPRINT_MASK = np.uint64((1 << 56) - 1)
# The column shared_bands has the type smallint.
_MAX_SHARED_BANDS = 2**15 - 1

# On average, two texts share at least 0.62 of the expected fingerprints, even if no two shared shingles are consecutive
# (see `run_probability`). Measured on 41,753 pairs of news, web pages and licences with a containment of 0.5 or more:
# every pair that is expected to share 4 or more fingerprints shares at least 0.48 of the expected number.
_MIN_SHARE_OF_EXPECTED, _MIN_EXPECTED = 0.25, 6


class Winnow(Family):
    """Sketches of one value for containment: bytes of little-endian uint64, the window and then the fingerprints.

    Fingerprints are below 2^56, ascending and distinct. The seed determines the order of the ids, by mixing them. With
    seed 0, ids of 64 bits are not mixed.
    """

    name = "winnow"
    metric = "containment"
    positional = False
    ordered = True
    options: ClassVar[Mapping[str, Sequence[str]]] = {"window": (), "min_fingerprints": ()}

    def __init__(
        self,
        k: int = 1,
        seed: int = 1,
        id_bits: int = 64,
        backend: str | None = None,
        window: int = 16,
        min_fingerprints: int = 1,
    ) -> None:
        """Use windows of `window` shingles, or shorter windows for texts that would have fewer than `min_fingerprints`.

        `k` is ignored.
        """
        super().__init__(1, seed, id_bits, backend)
        if window < 1:
            raise RecipeError(f"a window of {window} shingles is out of range; choose 1 or more")
        self.dtype = np.dtype(object)
        self.window = window
        self.min_fingerprints = min_fingerprints
        self._mask = random_words(seed, "winnow mask", 1)[0] if seed else None
        self._mixes = seed > 0 or id_bits == 32

    def sketch(self, ids: Hashes, offsets: Ints, weights: Floats | None = None) -> Sketches:
        """Return the sketches (n, 1) of documents whose ids are in the order of the text, with repetitions."""
        points = ids[offsets[0] : offsets[-1]]
        if self._mixes:
            points = fmix64(points if self._mask is None else points ^ self._mask)
        windows = window_lengths(np.diff(offsets), self.window, self.min_fingerprints)
        values, ends = self._kernels.window_minima(points, offsets - offsets[0], windows)
        return _packed(windows, [values[begin:end] for begin, end in pairwise(ends.tolist())])

    def salted(self, sketches: Sketches, salts: Hashes) -> Sketches:
        """Alter the fingerprints of each document; see `Family.salted`."""
        unsalted = fingerprints(sketches)
        words = fmix64(salts) & _FINGERPRINT_MASK
        values = unsalted.values ^ np.repeat(words, np.diff(unsalted.offsets))
        rows = [np.sort(values[begin:end]) for begin, end in pairwise(unsalted.offsets.tolist())]
        return _packed(windows_of(sketches), rows)

    def band_keys(self, sketches: Sketches, banding: Banding) -> Keys:
        """Return the fingerprints, which are the band keys."""
        return fingerprints(sketches)

    def agreements(self, left: Sketches, right: Sketches) -> tuple[Ints, Ints]:
        """Return twice the estimated number of shared shingles, and of shingles of the smaller text.

        See `Family.agreements`.
        """
        counts = self._compare(left, right)
        return counts.agreeing, counts.compared

    def compare_rows(self, sketches: Sketches, left: Ints, right: Ints, banding: Banding) -> RowAgreements:
        """Count shared fingerprints; see `Family.compare_rows`."""
        used, places = np.unique(np.concatenate((left, right)), return_inverse=True)
        left_places, right_places = places[: len(left)], places[len(left) :]
        values, steps = fingerprints(sketches[used]), windows_of(sketches[used]) + 1
        shared = self._kernels.intersections(values.values, values.offsets, left_places, right_places)

        # A fingerprint counts as (w + 1) / 2 shingles, so these numbers are twice the numbers of shingles.
        sizes = np.diff(values.offsets) * steps
        compared = np.maximum(np.minimum(sizes[left_places], sizes[right_places]), 1)
        agreeing = np.minimum(shared * np.maximum(steps[left_places], steps[right_places]), compared)
        return RowAgreements(np.minimum(shared, _MAX_SHARED_BANDS), agreeing, compared)

    def count_shared_bands(self, left: Sketches, right: Sketches, banding: Banding) -> Ints:
        """Count the fingerprints that two sketches share, row by row."""
        return self._compare(left, right).shared

    def _compare(self, left: Sketches, right: Sketches) -> RowAgreements:
        rows = np.arange(len(left))
        return self.compare_rows(np.concatenate((left, right)), rows, rows + len(left), Banding(1, 1))

    def matched_bands(self, left: Sketches, right: Sketches, banding: Banding) -> Mask:
        """Raise RecipeError: the number of fingerprints varies, so a recipe can only require a minimum of
        shared ones.
        """
        raise RecipeError("winnow supports match.min_shared_bands only")

    def first_similar(
        self, sketches: Sketches, present: Mask, threshold: Fraction, decided: KnownPairs
    ) -> Ints:
        """Compare each row with the rows kept before it; see `Family.first_similar`."""
        decisions = dict(zip(decided.pairs.tolist(), decided.alike.tolist(), strict=True))
        first, kept = np.full(len(sketches), -1, np.int64), np.zeros(0, np.int64)
        for row in np.flatnonzero(present).tolist():
            counts = self.compare_rows(sketches, np.full(len(kept), row), kept, Banding(1, 1))
            reached = counts.agreeing * threshold.denominator >= counts.compared * threshold.numerator
            pairs = (row * len(sketches) + kept).tolist()
            alike = [
                decisions.get(pair, is_reached)
                for pair, is_reached in zip(pairs, reached.tolist(), strict=True)
            ]
            if True in alike:
                first[row] = kept[alike.index(True)]
            else:
                kept = np.append(kept, row)
        return first

    def may_reach(self, counts: RowAgreements, similarity: float, standard_errors: float) -> Mask:
        """Rule out pairs that share less than a quarter of the expected fingerprints, if 6 or more are expected.

        The number of shared fingerprints depends on the words around the equal words, so its error is not binomial, and
        `standard_errors` is ignored.
        """
        # Twice the expected number of shared shingles.
        expected = similarity * counts.compared
        expects_few = expected * counts.shared < _MIN_EXPECTED * counts.agreeing
        return expects_few | (counts.agreeing >= _MIN_SHARE_OF_EXPECTED * expected)


def run_probability(shingles: float, window: int) -> float:
    """Return the probability that two long texts share a fingerprint of a run of `shingles` equal shingles.

    They share one if and only if the least id of the run is a fingerprint of both texts: if another id of the run is
    the least of a window, the window can be shifted until the least id of the run is the least of the window. Let n be
    the length of the run, w the window, and d = w - n. If ids are uniform on 0 to 1, the least id v of the run has the
    density n (1 - v)^(n - 1). It is the least of a window of a text if together at least d consecutive shingles before
    and after the run are greater, which has the probability (1 - v)^d (1 + d v). The density times the square of this
    probability, for both texts, is integrated.
    """
    if shingles >= window:
        return 1.0
    if shingles <= 0:
        return 0.0
    beyond = window - shingles
    size = shingles + 2 * beyond
    return shingles / size * (1 + 2 * beyond / (size + 1) + 2 * beyond**2 / ((size + 1) * (size + 2)))


def window_lengths(shingles: Ints, longest: int, min_fingerprints: int) -> Ints:
    """Return the lengths of the windows of texts with these numbers of shingles: int64 of n.

    A window is `longest`, or shorter if the text would otherwise have fewer than `min_fingerprints`.
    """
    return np.clip(2 * shingles // min_fingerprints - 1, 1, longest)


def expected_fingerprints(shingles: Ints, longest: int, min_fingerprints: int) -> Floats:
    """Return the expected number of fingerprints of texts, 2 / (w + 1) of their shingles: float64 of n."""
    return 2 * shingles / (window_lengths(shingles, longest, min_fingerprints) + 1)


def windows_of(sketches: Sketches) -> Ints:
    """Return the lengths of the windows of sketches (n, 1): int64 of n, 0 for a document without features."""
    return np.array(
        [
            int.from_bytes((content or b"")[: _VALUE.itemsize], "little")
            for content in sketches[:, 0].tolist()
        ],
        np.int64,
    )


def fingerprints(sketches: Sketches) -> Ragged:
    """Return the fingerprints of sketches (n, 1). A document without features has none."""
    return Ragged.of([np.frombuffer(content or b"", _VALUE)[1:] for content in sketches[:, 0].tolist()])


def _packed(windows: Ints, rows: Sequence[Hashes]) -> NDArray[Any]:
    sketches = np.empty((len(rows), 1), object)
    first_values = windows.astype(_VALUE)
    sketches[:, 0] = [
        first_values[at : at + 1].tobytes() + row.astype(_VALUE, copy=False).tobytes() if len(row) else b""
        for at, row in enumerate(rows)
    ]
    return sketches

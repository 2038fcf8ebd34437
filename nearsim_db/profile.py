"""A recipe made ready for work: validated as a whole, bands chosen, fingerprinted."""

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from nearsim_db import lsh, sketch, text
from nearsim_db.backend import resolve as resolve_backend
from nearsim_db.errors import FingerprintError
from nearsim_db.metrics import METRICS
from nearsim_db.recipe import Recipe, from_mapping, to_mapping
from nearsim_db.recipe.checks import OPTIONS
from nearsim_db.text.words import word_filter

# Measured on PostgreSQL 18 with 100,000 documents: a band row with its index entry, a signature row without its
# sketch.
_BAND_ROW_BYTES = 84
_SIGNATURE_ROW_BYTES = 150

WIDTHS = (
    4.0  # a bucket of projection is so many times as wide as the threshold where the recipe gives no width
)


@dataclass(frozen=True, slots=True)
class Profile:
    """A resolved recipe. `bands` x `rows` values of the sketch are used, `unused_rows` are not.

    `expected_recall` is the probability, at the threshold, of sharing at least `min_shared_bands` bands.
    """

    recipe: Recipe
    bands: int
    rows: int
    unused_rows: int
    expected_recall: float
    fingerprint: str

    def match_probability(self, similarity: float) -> float:
        """The probability that a pair of this similarity, in what the family's metric measures, becomes a candidate."""
        base = make_family(self.recipe, "numpy").collision_probability(similarity)
        return lsh.match_probability(base, self.bands, self.rows, self.recipe.match.min_shared_bands)

    def curve(self) -> list[tuple[float, float]]:
        """(similarity, probability of becoming a candidate) around the threshold."""
        family = make_family(self.recipe, "numpy")
        least = METRICS[family.metric].least_similarity(self.recipe.match.threshold)
        return [
            (similarity, self.match_probability(similarity)) for similarity in lsh.similarities_around(least)
        ]

    def bytes_per_document(self) -> int:
        """About what the index of one document takes on disk."""
        family = make_family(self.recipe)
        sketch_bytes = family.k * family.dtype.itemsize
        return self.bands * _BAND_ROW_BYTES + sketch_bytes + _SIGNATURE_ROW_BYTES


def resolve(recipe: Recipe) -> Profile:
    """Choose bands where the recipe gives a recall, check languages, and fingerprint the whole.

    Raises RecipeError when no banding reaches the recall, or for an unknown language.
    """
    word_filter(recipe.shingle, str)
    given, match, k = recipe.bands, recipe.match, recipe.sketch.k
    family = make_family(recipe, "numpy")
    base = family.collision_probability(METRICS[family.metric].least_similarity(match.threshold))
    if given.recall is not None:
        choose = lsh.choose_bands if family.positional else lsh.choose_keys
        choice = choose(k, base, given.recall, match.min_shared_bands, threshold=match.threshold)
        bands, rows, recall = choice.bands, choice.rows, choice.expected_recall
    else:
        assert given.count is not None and given.rows is not None, "a recipe has both where it has no recall"
        bands, rows = given.count, given.rows
        recall = lsh.match_probability(base, bands, rows, match.min_shared_bands)
    return Profile(recipe, bands, rows, k - bands * rows, recall, _fingerprint(recipe, bands, rows))


def restore(stored: dict[str, Any], fingerprint: str) -> Profile:
    """The profile of a generation, from what it stored.

    Raises FingerprintError when this code would not make the same sketches from that recipe.
    """
    profile = resolve(from_mapping(stored))
    if profile.fingerprint != fingerprint:
        raise FingerprintError(
            "this version of nearsim, or of a library that it reads words with, does not make the sketches that the "
            "index was built with; install the earlier version, or delete the profile and create it again"
        )
    return profile


def make_family(recipe: Recipe, backend: str | None = None) -> sketch.Family:
    """The sketch family of a recipe."""
    options = {name: value for name in OPTIONS if (value := getattr(recipe.sketch, name)) is not None}
    if options.get("width") == 0:
        options["width"] = WIDTHS * recipe.match.threshold
    return sketch.make_family(
        recipe.sketch.family,
        recipe.sketch.k,
        recipe.sketch.seed,
        text.ID_BITS[recipe.hash.base],
        options,
        resolve_backend(backend),
    )


def _fingerprint(recipe: Recipe, bands: int, rows: int) -> str:
    """SHA-256 over all that decides a sketch, its bands and its pairs, and over the versions of the schemes."""
    deciding = {
        "recipe": to_mapping(recipe),
        "bands": [bands, rows],
        "text": text.SCHEME_VERSION,
        "bands_scheme": sketch.BAND_SCHEME_VERSION,
        "sketch": make_family(recipe, "numpy").scheme_version,
        "libraries": text.library_versions(recipe),
    }
    return hashlib.sha256(msgspec.json.encode(deciding, order="deterministic")).hexdigest()

"""A recipe made ready for work: validated as a whole, bands chosen, fingerprinted."""

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from nearsim_db import lsh, sketch, text
from nearsim_db.backend import resolve as resolve_backend
from nearsim_db.errors import FingerprintError
from nearsim_db.recipe import Recipe, from_mapping, to_mapping
from nearsim_db.text.words import word_filter

# Measured on PostgreSQL 18 with 100,000 documents: a band row with its index entry, a signature row without its
# sketch.
_BAND_ROW_BYTES = 84
_SIGNATURE_ROW_BYTES = 150


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

    def curve(self) -> list[tuple[float, float]]:
        """(similarity, probability of becoming a candidate) around the threshold."""
        minimum = self.recipe.match.min_shared_bands
        return lsh.curve(self.bands, self.rows, minimum, self.recipe.match.threshold)

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
    if given.recall is not None:
        choose = lsh.choose_bands if make_family(recipe, "numpy").positional else lsh.choose_keys
        choice = choose(k, match.threshold, given.recall, match.min_shared_bands)
        bands, rows, recall = choice.bands, choice.rows, choice.expected_recall
    else:
        assert given.count is not None and given.rows is not None, "a recipe has both where it has no recall"
        bands, rows = given.count, given.rows
        recall = lsh.match_probability(match.threshold, bands, rows, match.min_shared_bands)
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
    options = {"functions": recipe.sketch.functions} if recipe.sketch.functions else {}
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

"""Profiles: recipes that are resolved. Their bands are chosen, they are checked as a whole, and have a fingerprint."""

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.messages import count_of
from nearsim_db.similarity import lsh, sketch, text
from nearsim_db.similarity.amplification import Amplification, banding, parse
from nearsim_db.similarity.backend import resolve as resolve_backend
from nearsim_db.similarity.metrics import METRICS
from nearsim_db.similarity.recipe import (
    Recipe,
    from_mapping,
    to_mapping,
    with_earlier_values,
    without_later_keys,
)
from nearsim_db.similarity.recipe.validation import OPTIONS
from nearsim_db.similarity.sketch.winnow import expected_fingerprints, run_probability
from nearsim_db.similarity.text import confusables, masks
from nearsim_db.similarity.text.code import Lexer
from nearsim_db.similarity.text.words import word_filter

# Sizes measured on PostgreSQL 18 with 100,000 documents: a band row includes its index entry, and a signature row
# excludes its sketch.
_BAND_ROW_BYTES = 84
_SIGNATURE_ROW_BYTES = 150
_FINGERPRINT_BYTES = 8
_STORY_SHINGLES = 400

# The default bucket width of projection, in multiples of the threshold. Among widths from 3 to 6, this one had the
# fewest candidates at a recall of 0.99, measured over the distances of three corpora, thresholds from near to medium,
# and k from 128 to 4096. It had 10 % more candidates than the best width of each case on average, and 67 % more at
# worst. A width of 4 had 37 % more at worst.
WIDTH_PER_THRESHOLD = 4.25


@dataclass(frozen=True, slots=True)
class Profile:
    """A resolved recipe. Its bands use `bands` x `rows` values of a sketch."""

    recipe: Recipe
    bands: int
    rows: int
    unused_rows: int  # number of sketch values that are in no band
    expected_recall: float  # probability that a pair at the threshold becomes a candidate
    fingerprint: str
    # Which shared bands make a candidate, from match.amplification or from match.min_shared_bands.
    amplification: Amplification

    @property
    def banding(self) -> sketch.Banding:
        """How sketches are cut into bands."""
        return sketch.Banding(self.bands, self.rows, self.recipe.bands.hash, self.recipe.sketch.seed)

    @property
    def similarity_at_threshold(self) -> float:
        """The similarity of a pair exactly at the threshold. The threshold of projection is a distance."""
        metric = METRICS[make_family(self.recipe, "numpy").metric]
        return metric.similarity_at_threshold(self.recipe.match.threshold)

    def match_probability(self, similarity: float) -> float:
        """Return the probability that a pair of this similarity becomes a candidate.

        The similarity is measured by the metric of the sketch family.
        """
        base = make_family(self.recipe, "numpy").collision_probability(similarity)
        return self.amplification.probability(base)

    def curve(self) -> list[tuple[float, float]]:
        """Return points (similarity, probability of becoming a candidate) around the threshold.

        For winnow, return points (length of the longest run of equal words, probability), up to the length that is
        never missed.
        """
        window, around = self.recipe.window, self.recipe.words_around
        if window is not None:
            shingles = range(1, window + 1)
            return [(float(count + around), run_probability(count, window)) for count in shingles]
        similarities = lsh.similarities_around(self.similarity_at_threshold)
        return [(similarity, self.match_probability(similarity)) for similarity in similarities]

    def bytes_per_document(self) -> int:
        """Estimate the disk space that the index rows of a document take."""
        family = make_family(self.recipe)
        sketch_bytes = family.k * family.dtype.itemsize
        if self.recipe.window is not None:
            sketch_bytes = self.band_rows * _FINGERPRINT_BYTES
        return self.band_rows * _BAND_ROW_BYTES + sketch_bytes + _SIGNATURE_ROW_BYTES

    @property
    def band_rows(self) -> int:
        """The number of band rows of a document. For winnow it is the expected number for a text of 400 shingles."""
        window, min_fingerprints = self.recipe.window, self.recipe.match.min_fingerprints
        if window is None or min_fingerprints is None:
            return self.bands
        shingles = np.array([_STORY_SHINGLES])
        return round(float(expected_fingerprints(shingles, window, min_fingerprints)[0]))


def resolve(recipe: Recipe) -> Profile:
    """Return the profile of a recipe: choose its bands, check its languages, and compute its fingerprint.

    Raises RecipeError if no bands reach the recall, if a language is unknown, or if the amplification is invalid or
    does not fit the sketch.
    """
    bands, match = recipe.bands, recipe.match
    family = make_family(recipe, "numpy")
    base = _agreement_at_threshold(recipe, family)
    if family.ordered:
        return _resolve_with(recipe, banding(sketch.MAX_BANDS, 1, match.min_shared_bands))
    if match.amplification is not None:
        return _resolve_with(recipe, _fitting(match.amplification, family))

    if bands.recall is not None:
        review = match.review if bands.recall_at == "review" else None
        chosen = lsh.choose_bands(
            recipe.sketch.k,
            family.collision_probability(review) if review else base,
            bands.recall,
            match.min_shared_bands,
            threshold=review or match.threshold,
            positional=family.positional,
        )
        return _resolve_with(recipe, chosen)
    if bands.rule is not None:
        return _resolve_with(recipe, _picked_bands(base, recipe))
    assert bands.count is not None and bands.rows is not None, "a recipe without a recall has both"
    return _resolve_with(recipe, banding(bands.count, bands.rows, match.min_shared_bands))


def _resolve_with(recipe: Recipe, amplification: Amplification) -> Profile:
    """Return the profile of a recipe with these bands. Raises RecipeError for an unknown language."""
    word_filter(recipe.shingle, str)
    if recipe.shingle.language:
        Lexer(recipe.shingle.language)
    if recipe.match.amplification is not None:
        recipe = replace(recipe, match=replace(recipe.match, amplification=str(amplification)))
    fingerprint = _fingerprint(recipe, amplification.bands, amplification.rows)
    return _with_fingerprint(recipe, amplification, fingerprint)


def _with_fingerprint(recipe: Recipe, amplification: Amplification, fingerprint: str) -> Profile:
    base = _agreement_at_threshold(recipe, make_family(recipe, "numpy"))
    bands, rows = amplification.bands, amplification.rows
    unused, recall = max(0, recipe.sketch.k - bands * rows), amplification.probability(base)
    return Profile(recipe, bands, rows, unused, recall, fingerprint, amplification)


def _agreement_at_threshold(recipe: Recipe, family: sketch.Family) -> float:
    """Return the probability that two documents at the threshold agree in a value of their sketches."""
    similarity = METRICS[family.metric].similarity_at_threshold(recipe.match.threshold)
    return family.collision_probability(similarity)


def _picked_bands(base: float, recipe: Recipe) -> Amplification:
    """Choose bands by bands.rule. `base` is the probability that two documents at the threshold agree in a value."""
    k, minimum = recipe.sketch.k, recipe.match.min_shared_bands
    rule = f"bands.rule = {recipe.bands.rule}"
    try:
        count = lsh.pick_bands(base, k)
    except RecipeError as error:
        raise RecipeError(f"{rule}: {error}") from error

    if count > sketch.MAX_BANDS:
        raise RecipeError(
            f"{rule} needs {count} bands at the threshold {recipe.match.threshold:g} for sketch.k = {k}, more than the "
            f"maximum of {sketch.MAX_BANDS}; lower sketch.k or raise match.threshold"
        )
    if minimum > count:
        raise RecipeError(
            f"match.min_shared_bands is {minimum}, more than the {count_of(count, 'band')} that {rule} gives; lower it"
        )
    return banding(count, k // count, minimum)


def _fitting(text: str, family: sketch.Family) -> Amplification:
    """Parse the amplification of a recipe.

    Raises RecipeError if it is invalid, or does not fit the sketches of the family.
    """
    try:
        amplification = parse(text)
    except RecipeError as error:
        raise RecipeError(f"match.amplification: {error}") from error

    subject = f"match.amplification {amplification} uses"
    if amplification.functions > family.k:
        raise RecipeError(
            f"{subject} {amplification.functions:,} values, but the sketch has k = {family.k}; raise sketch.k or lower "
            "the counts"
        )
    if amplification.bands > sketch.MAX_BANDS:
        raise RecipeError(
            f"{subject} {amplification.bands:,} bands, more than the maximum of {sketch.MAX_BANDS}; put more rows "
            "into the innermost and, or lower the counts"
        )
    has_positions = amplification.min_shared_bands is None or amplification.levels[-1].kind == "and"
    if not family.positional and has_positions:
        raise RecipeError(
            f"match.amplification is {amplification}, but bands of {family.name} are single ids in no fixed order; use "
            "or(n) or at_least(m, n)"
        )
    return amplification


def restore(stored: dict[str, Any], fingerprint: str, bands: int, rows: int) -> Profile:
    """Return the profile of a generation from its stored recipe and bands.

    The bands are those of the generation, even if this version of nearsim would choose others for the recall. Keys that
    the stored recipe lacks get the values that behave as if they did not exist. In the recipes of the oldest indexes,
    stopwords = "en" means the long list, so they get the name of the long list. Raises FingerprintError if this version
    would not make the same sketches.
    """
    recipe = from_mapping(with_earlier_values(stored))
    profile = _resolve_with(recipe, _stored_amplification(recipe, bands, rows))
    if profile.fingerprint != fingerprint:
        if (kept := _with_earlier_stop_words(profile, fingerprint)) is not None:
            return kept
        raise FingerprintError(
            "this version of nearsim, or its tokenisation library, produces different sketches than the index "
            "contains, which is therefore read-only; build a new generation with the command reindex start, or "
            "install the earlier version"
        )
    return profile


def _stored_amplification(recipe: Recipe, bands: int, rows: int) -> Amplification:
    if recipe.match.amplification is not None:
        return parse(recipe.match.amplification)
    return banding(bands, rows, recipe.match.min_shared_bands)


def _with_earlier_stop_words(profile: Profile, fingerprint: str) -> Profile | None:
    long = text.with_long_english(profile.recipe)
    if (
        long is None
        or _fingerprint(profile.recipe, profile.bands, profile.rows, versions_of=long) != fingerprint
    ):
        return None
    return dataclasses.replace(profile, recipe=long, fingerprint=fingerprint)


def restore_for_reading(stored: dict[str, Any], fingerprint: str, bands: int, rows: int) -> Profile:
    """Return the profile of a generation for reading, even if this version would make other sketches."""
    try:
        return restore(stored, fingerprint, bands, rows)
    except (FingerprintError, RecipeError):
        recipe = from_mapping(with_earlier_values(stored))
        return _with_fingerprint(recipe, _stored_amplification(recipe, bands, rows), fingerprint)


def make_family(recipe: Recipe, backend: str | None = None) -> sketch.Family:
    """Return the sketch family of a recipe."""
    options = {name: value for name in OPTIONS if (value := getattr(recipe.sketch, name)) is not None}
    if recipe.window is not None:
        options |= {"window": recipe.window, "min_fingerprints": recipe.match.min_fingerprints}
    if recipe.sketch.family == "rare":
        options["min_cosine"] = recipe.match.review or recipe.match.threshold
    if options.get("width") == 0:
        options["width"] = WIDTH_PER_THRESHOLD * recipe.match.threshold

    return sketch.make_family(
        recipe.sketch.family,
        recipe.sketch.k,
        recipe.sketch.seed,
        text.ID_BITS[recipe.hash.base],
        options,
        resolve_backend(backend),
    )


def _fingerprint(recipe: Recipe, bands: int, rows: int, versions_of: Recipe | None = None) -> str:
    """Return the SHA-256 of everything that determines sketches, bands and pairs, including the scheme versions.

    `versions_of` is the recipe that determines which versions of libraries are included; by default it is `recipe`.
    """
    deciding = {
        "recipe": without_later_keys(to_mapping(recipe)),
        "bands": [bands, rows],
        "text": text.SCHEME_VERSION,
        "bands_scheme": sketch.BAND_SCHEME_VERSION,
        "sketch": make_family(recipe, "numpy").scheme_version,
        "libraries": text.library_versions(versions_of or recipe),
    }

    # Versions of parts that only some recipes use. They are left out of the other recipes, whose fingerprints must not
    # change.
    if recipe.shingle.scheme == "sentence":
        # In version 2 the end of a field ends a sentence.
        deciding["sentences"] = 2
    if recipe.normalise.mask:
        deciding["masks"] = masks.SCHEME_VERSION
    if recipe.normalise.confusables == "fold":
        deciding["confusables"] = confusables.VERSION
    return hashlib.sha256(msgspec.json.encode(deciding, order="deterministic")).hexdigest()

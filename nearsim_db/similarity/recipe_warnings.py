"""Known pitfalls: what a recipe, or a recipe on a certain corpus, gets wrong without anything failing."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.recipe import Shingle

FEW_FOUND = 0.9  # an expected recall at the threshold below which most users would be surprised
CROWDED_32_BITS = 10_000_000  # distinct shingles: a 32-bit hash then has some 11,600 collisions
NOTABLE_SHARE = 0.05  # of the documents, from which on a fault is told

# Scripts that are written without spaces between words, or whose words carry their grammar with them.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3041-\u30ff\u3130-\u318f\u3400-\u4dbf"
                       r"\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff]")  # fmt: skip
_LETTER = re.compile(r"[^\W\d_]")
_LOOKED_AT_CHARACTERS = 2_000


def of_profile(profile: Profile) -> list[str]:
    """What is wrong with a recipe whatever the corpus, each with its reason and the remedy."""
    recipe = profile.recipe
    found = [_single(recipe.shingle)] if recipe.sketch.input != "vector" else []
    found += [_unresolved(profile), _unused(profile), _missed(profile)]
    if recipe.bands.hash == "xor" and profile.rows > 1:
        found.append(
            "bands.hash = xor is blind to the order of the rows of a band, and equal rows cancel; it is meant for "
            "matching other systems' figures: mix64 costs the same and has neither fault"
        )
    return [one for one in found if one is not None]


def _single(shingle: Shingle) -> str | None:
    if shingle.k > 1 or shingle.scheme not in ("char", "word"):
        return None
    if shingle.scheme == "char":
        return (
            "shingle.k = 1 compares the characters that texts use: one with all letters equals the alphabet; take "
            "k = 3 or more"
        )
    return (
        "shingle.k = 1 makes each word a shingle of its own, so that texts of the same words in another order are "
        "equal: take k = 3 or more, or say scheme = bag if that is meant"
    )


def _unresolved(profile: Profile) -> str | None:
    """k positions tell shares of agreement apart in steps of 1 / k: beyond the last step they say nothing."""
    recipe = profile.recipe
    k = recipe.sketch.k
    often = make_family(recipe, "numpy").collision_probability(profile.similarity_at_threshold)
    if 1 / k <= often <= 1 - 1 / k or often == 1:
        return None
    end = "all" if often > 0.5 else "none"
    exact = recipe.match.verify == "exact"
    return (
        f"at the threshold {recipe.match.threshold:g} two sketches of {k} values agree in {often:.6f} of them, less "
        f"than a step of {1 / k:.6f} from {end}: they cannot resolve it; take a larger sketch.k"
        + ("" if exact else ", or verify = exact")
    )


def _unused(profile: Profile) -> str | None:
    """Where bands were chosen for a recall, a few rows left over are the price of it."""
    if profile.unused_rows == 0 or profile.recipe.bands.recall is not None:
        return None
    used = profile.bands * profile.rows
    return (
        f"{profile.unused_rows} of the {profile.recipe.sketch.k} values of a sketch are in no band: {profile.bands} "
        f"bands of {profile.rows} rows use {used}; lower sketch.k to {used}, or take more bands"
    )


def _missed(profile: Profile) -> str | None:
    if profile.expected_recall >= FEW_FOUND or profile.recipe.bands.recall is not None:
        return None
    return (
        f"of the pairs right at the threshold only {profile.expected_recall:.0%} share enough bands to be found; more "
        "alike ones are found more often: see nearsim profile show; more bands or fewer rows find more"
    )


@dataclass(slots=True)
class TextSample:
    """What was seen of the texts of a corpus while they were read: how many, and how many in scripts without spaces."""

    looked_at: int = 0
    unspaced: int = 0

    def add(self, texts: Iterable[str]) -> None:
        """Take in some texts; of each the beginning is looked at."""
        for text in texts:
            beginning = text[:_LOOKED_AT_CHARACTERS]
            letters = len(_LETTER.findall(beginning))
            self.looked_at += 1
            self.unspaced += 2 * len(_UNSPACED.findall(beginning)) > letters > 0


def of_texts(profile: Profile, texts: TextSample) -> list[str]:
    """What is wrong with a recipe for texts of these scripts."""
    if profile.recipe.shingle.scheme not in ("word", "bag") or not texts.looked_at:
        return []
    share = texts.unspaced / texts.looked_at
    if share < NOTABLE_SHARE:
        return []
    return [
        f"{share:.0%} of the texts are in Chinese, Japanese, Korean or another script whose words are not parted by "
        "spaces as in English: word shingles hardly agree there; take scheme = char with k = 3 or so (--preset cjk)"
    ]


@dataclass(frozen=True, slots=True)
class FeatureTotals:
    """What is known of the documents of an index: how many there are with features, with one only, and without.

    `features` are those of all documents that are not twins, added up: an upper bound of the different ones.
    """

    with_features: int
    with_one: int
    without: int
    features: int


def of_features(profile: Profile, sizes: FeatureTotals) -> list[str]:
    """What is wrong with a recipe for documents of these sizes."""
    recipe = profile.recipe
    documents, shortest, shingles = sizes.with_features, sizes.with_one, sizes.features
    found = _featureless(profile, sizes)
    if recipe.sketch.input == "vector":
        return found
    if recipe.shingle.scheme != "sentence" and documents and shortest / documents >= NOTABLE_SHARE:
        found.append(
            f"{shortest:,} of {documents:,} documents are one shingle or shorter: such a document is like none but its "
            "own copies; take a smaller shingle.k, or characters instead of words"
        )
    if recipe.hash.base != "poly64" and shingles > CROWDED_32_BITS:
        found.append(
            f"up to {shingles:,} different shingles share the 4,294,967,296 values of {recipe.hash.base}: about "
            f"{shingles**2 / 2**33:,.0f} pairs of them are taken for equal; hash.base = poly64 has 64 bits"
        )
    return found


def _featureless(profile: Profile, sizes: FeatureTotals) -> list[str]:
    documents = sizes.with_features + sizes.without
    if not documents or sizes.without / documents < NOTABLE_SHARE:
        return []
    lacking = (
        "a vector"
        if profile.recipe.sketch.input == "vector"
        else "text in " + " or ".join(profile.recipe.fields)
    )
    return [
        f"{sizes.without:,} of {documents:,} documents have no features, for want of {lacking} that can be used: they "
        "match nothing"
    ]


def of_sketches(profile: Profile, sketches: NDArray[np.generic]) -> list[str]:
    """What is wrong with a recipe for these sketches, (n, k) of a sample."""
    if profile.recipe.bands.hash != "xor" or profile.rows < 2 or not len(sketches):
        return []
    used = sketches[:, : profile.bands * profile.rows].reshape(-1, profile.rows)
    ordered = np.sort(used, axis=1)
    share = float((ordered[:, 1:] == ordered[:, :-1]).any(axis=1).mean())
    if share == 0:
        return []
    return [
        f"in {share:.2%} of the bands rows are equal, and cancel each other under bands.hash = xor, so that different "
        "documents meet in one bucket: take mix64, or a family whose values do not repeat"
    ]

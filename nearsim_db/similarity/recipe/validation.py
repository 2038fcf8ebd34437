"""Validation of a recipe as a whole: values that exclude each other, and values that types cannot check."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from nearsim_db.errors import RecipeError

if TYPE_CHECKING:
    from nearsim_db.similarity.recipe.sections import Bands, MatchRules, Normalise, Recipe, Shingle, Sketch

# The options of each family besides k and seed, with their defaults.
FAMILY_OPTIONS: Mapping[str, Mapping[str, str | float | None]] = {
    "minhash": {"functions": "prime32", "coefficients": None},
    "hyperplane": {"input": "terms", "weights": "count", "vectors": "gaussian"},
    "projection": {"input": "terms", "weights": "count", "width": 0.0},
    "dart_minhash": {"input": "terms", "weights": "count"},
    "rare": {"weights": "idf"},
}
# Defaults of keys that differ for a family, by section and key.
FAMILY_DEFAULTS: Mapping[str, Mapping[str, Mapping[str, str | float]]] = {
    "winnow": {
        "shingle": {"k": 5},
        "match": {"threshold": 0.5},
        "cluster": {"linkage": "representative", "keep": "longest"},
    },
    "rare": {"sketch": {"k": 10}, "match": {"threshold": 0.5}},
}
DEFAULT_PASSAGE = 20
DEFAULT_GAP_WORDS = 30
# Keys of the section match.
WINNOW_KEYS = (
    "passage",
    "min_fingerprints",
    "passage_gap",
    "passage_words",
    "ignore_common",
    "ignore",
)
# Limited because every generation stores the ignored texts with its recipe.
_MAX_IGNORED_CHARACTERS = 100_000
_DEFAULT_K = 128
OPTIONS = ("functions", "coefficients", "input", "weights", "vectors", "width")

# Families whose bands are single ids, with a description of these ids for messages.
_SINGLE_IDS = {"bottom_k": "one of the smallest ids", "rare": "one of the rarest ids"}

# Families whose bands may use the compatibility hashes.
_COMPATIBLE = ("fast_similarity", "minhash")

# Only poly64 is a rolling hash. The other hashes read all of each shingle: up to this length, a megabyte of text takes
# less than a second.
_LONGEST_UNROLLED_SHINGLE = 128

# The words of all shingles of a batch are sorted in memory, so k limits the memory.
_MAX_FREE_SHINGLE_WORDS = 32

# Estimated distances must be between this number and its reciprocal; see `_check_estimate`.
_ESTIMATED_DISTANCES = 1e6

_UNIT_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
# Far less than the 2.4 million days that PostgreSQL's calendar goes back.
_MAX_AGE_DAYS = 100_000
_LONGEST_AGE_SECONDS = _MAX_AGE_DAYS * 86_400


def check(recipe: "Recipe") -> None:
    """Raise RecipeError if values are invalid or exclude each other."""
    _check_fields(recipe.fields)
    _check_options(recipe.sketch)
    _check_threshold(recipe.match.threshold, recipe.sketch)
    _check_estimate(recipe.match, recipe.sketch)
    _check_review(recipe)
    _check_average(recipe)
    _check_passage(recipe)
    _check_rare(recipe)
    _check_bands(recipe.bands, recipe.sketch, recipe.match)
    _check_tokens(recipe.shingle)
    _check_order(recipe)
    _check_code(recipe)
    _check_length_ratio(recipe)

    # Keys of different sections that exclude each other.
    if recipe.normalise.confusables == "fold" and recipe.normalise.unicode != "nfkc":
        raise RecipeError(
            f"normalise.confusables is fold, but normalise.unicode is {recipe.normalise.unicode}, so fullwidth and "
            "mathematical letters would remain; set it to nfkc"
        )
    if recipe.hash.base != "poly64" and recipe.shingle.k > _LONGEST_UNROLLED_SHINGLE:
        raise RecipeError(
            f"shingle.k is {recipe.shingle.k}, but at most {_LONGEST_UNROLLED_SHINGLE} is allowed with hash.base = "
            f"{recipe.hash.base}, whose time is proportional to k; lower it, or set hash.base to poly64"
        )
    if recipe.hash.base == "djb2a-cast" and recipe.shingle.scheme != "char":
        raise RecipeError(
            f"hash.base = djb2a-cast hashes runs of characters, but shingle.scheme is {recipe.shingle.scheme}; set "
            "shingle.scheme to char, or hash.base to djb2a-signed"
        )

    _check_characters((*recipe.shingle.stopwords, recipe.shingle.stem, recipe.shingle.language or ""))
    _check_pair_fields(recipe.match)
    _check_characters([recipe.normalise.drop_repeated])
    if not recipe.normalise.drop_repeated.strip():
        raise RecipeError("normalise.drop_repeated is empty; name a field, such as source, or set it to none")
    _check_characters(map(str, recipe.cluster.policy.rules))
    if retained_seconds(recipe.retain.age) is None and recipe.retain.delete:
        raise RecipeError(
            "retain.delete = true requires an age after which documents are deleted; set retain.age"
        )


def refuse_repeated_lines(normalise: "Normalise") -> None:
    """Raise RecipeError if repeated lines have to be left out, which requires all pages of a source at once."""
    if normalise.drop_repeated == "none":
        return
    raise RecipeError(
        f"normalise.drop_repeated is {normalise.drop_repeated!r}, which requires all pages of a source at once: "
        "only nearsim dedupe applies it. Remove near-duplicates from the files with nearsim dedupe first, or set it to "
        "none and normalise.html to main, which compares the article of each page"
    )


def retained_seconds(age: str) -> int | None:
    """Convert an age such as "30 days" to seconds, and "none" to None. Raises RecipeError for an invalid age."""
    if age == "none":
        return None
    match = re.fullmatch(r"(?P<number>[0-9]{1,9}) (?P<unit>minute|hour|day|week)s?", age)
    if match is None:
        raise RecipeError(
            f'retain.age is {age!r}; give none, or a whole number of minutes, hours, days or weeks, as in "30 days"'
        )
    seconds = int(match["number"]) * _UNIT_SECONDS[match["unit"]]
    if not 0 < seconds <= _LONGEST_AGE_SECONDS:
        raise RecipeError(
            f"retain.age is {age!r}; it must be at least 1 minute and at most {_MAX_AGE_DAYS:,} days; "
            "none means no limit"
        )
    return seconds


def _check_fields(fields: tuple[str, ...]) -> None:
    if not fields or len(set(fields)) != len(fields):
        raise RecipeError(f"fields is {list(fields)}; give title, body or both, each once")


def _check_pair_fields(match: "MatchRules") -> None:
    """Check match.within, match.within_days and match.across."""
    within = match.fields_within
    _check_characters((match.across, *within))
    if not match.across.strip():
        raise RecipeError("match.across is empty; name a field, such as source, or give none")
    if not all(name.strip() for name in within):
        raise RecipeError("match.within has an empty name; name fields, such as source, or give none")
    if len(set(within)) < len(within) or match.across in within:
        raise RecipeError(
            f"match.within is {list(within)} and match.across {match.across}, which name a field twice; name each once"
        )
    if within and match.within_days and match.across != "none":
        raise RecipeError(
            "match.within, match.within_days and match.across are all set; set at most two of them"
        )


def _check_length_ratio(recipe: "Recipe") -> None:
    """Raise RecipeError for a ratio of lengths if features are not compared, or are dimensions of a vector."""
    match = recipe.match
    if not match.length_ratio:
        return
    if match.verify != "exact" or recipe.sketch.input == "vector":
        cause = "match.verify is " + match.verify if match.verify != "exact" else "sketch.input is vector"
        raise RecipeError(
            f"match.length_ratio is {match.length_ratio:g}, but {cause}; the ratio is decided on the features of "
            "texts: set match.length_ratio to 0"
        )


def _check_options(sketch: "Sketch") -> None:
    options_of_family = FAMILY_OPTIONS.get(sketch.family, {})
    for option in OPTIONS:
        if getattr(sketch, option) is not None and option not in options_of_family:
            families = [family for family, options in FAMILY_OPTIONS.items() if option in options]
            kind = "family" if len(families) == 1 else "families"
            raise RecipeError(
                f"sketch.{option} belongs to the {kind} {' and '.join(families)}, not to {sketch.family}; leave it out"
            )

    if sketch.coefficients is not None and len(sketch.coefficients) != sketch.k:
        raise RecipeError(
            f"sketch.coefficients has {len(sketch.coefficients)} pairs of a and b, but sketch.k is {sketch.k}; give "
            "exactly k pairs"
        )
    if sketch.input == "vector" and sketch.weights is not None:
        raise RecipeError("sketch.weights requires sketch.input = terms; remove sketch.weights")


def _check_threshold(threshold: float, sketch: "Sketch") -> None:
    if threshold != threshold or threshold == float("inf"):
        raise RecipeError(f"match.threshold is {threshold}; it must be a number")
    if threshold > 1 and sketch.family != "projection":
        raise RecipeError(f"match.threshold is {threshold}; it must be at most 1")


def _check_estimate(match: "MatchRules", sketch: "Sketch") -> None:
    """Raise RecipeError for distances that estimates cannot resolve.

    An estimate is stored as a similarity with 12 decimal places, from which the distance is computed.
    """
    if sketch.family != "projection" or match.verify == "exact":
        return
    if not 1 / _ESTIMATED_DISTANCES <= match.threshold <= _ESTIMATED_DISTANCES:
        raise RecipeError(
            f"match.threshold is {match.threshold:g}; match.verify = estimate only resolves distances from "
            f"{1 / _ESTIMATED_DISTANCES:g} to {_ESTIMATED_DISTANCES:,.0f}; scale "
            "the vectors, or set match.verify to exact"
        )


def _check_review(recipe: "Recipe") -> None:
    match, sketch, bands = recipe.match, recipe.sketch, recipe.bands
    are_chosen = (bands.recall is not None or bands.is_open) and match.amplification is None
    if bands.recall_at == "review" and not (match.review and are_chosen):
        raise RecipeError(
            "bands.recall_at is review, but bands are not chosen for a recall, or match.review is 0; set "
            "bands.recall_at to threshold"
        )

    if not match.review:
        return
    if sketch.family == "projection" or match.verify == "bands":
        cause = "sketch.family is projection" if sketch.family == "projection" else "match.verify is bands"
        raise RecipeError(
            f"match.review is {match.review:g}, but {cause}, for which no pairs can be reviewed; set match.review to 0"
        )

    if match.review >= match.threshold:
        raise RecipeError(
            f"match.review is {match.review:g}, not below match.threshold, which is {match.threshold:g}; lower it, or "
            "set it to 0 to store no pairs to be reviewed"
        )


def _check_average(recipe: "Recipe") -> None:
    """Raise RecipeError for average linkage if pairs may have any similarity."""
    match = recipe.match
    if recipe.cluster.linkage == "average" and (match.verify == "bands" or match.certain_shared_bands):
        cause = "match.verify is bands" if match.verify == "bands" else "match.certain_shared_bands is set"
        raise RecipeError(
            f"cluster.linkage is average, but {cause}, so pairs may have any similarity; choose connected or "
            "representative"
        )


def _check_passage(recipe: "Recipe") -> None:
    """Check the keys of winnow, and that no other family has them and winnow no keys of other families."""
    if recipe.sketch.family != "winnow":
        for key in WINNOW_KEYS:
            if getattr(recipe.match, key) is not None:
                raise RecipeError(
                    f"match.{key} belongs to the family winnow, not to {recipe.sketch.family}; leave it out"
                )
        return

    if recipe.window is not None and recipe.window < 1:
        raise RecipeError(
            f"match.passage is {recipe.match.passage}, shorter than a shingle of shingle.k = {recipe.shingle.k}, so no "
            "passage of this length can be found; raise match.passage, or lower shingle.k"
        )
    _check_passage_words(recipe)

    ignored = recipe.match.ignore or ()
    _check_characters(ignored)
    if (characters := sum(map(len, ignored))) > _MAX_IGNORED_CHARACTERS:
        raise RecipeError(
            f"match.ignore has {characters:,} characters, more than {_MAX_IGNORED_CHARACTERS:,}; remove texts that "
            "occur in few documents"
        )

    # Winnow keeps as many values as a text requires, so keys about the number of values and bands do not apply.
    if not recipe.bands.is_open or recipe.bands.hash != "mix64" or recipe.match.amplification is not None:
        raise RecipeError(
            "winnow keeps as many values as a text requires, each of which is a band; leave bands and "
            "match.amplification out, and set match.passage"
        )
    if recipe.sketch.k != _DEFAULT_K:
        raise RecipeError(
            f"sketch.k is {recipe.sketch.k}, but winnow keeps as many values as a text requires; leave it out, and set "
            "match.passage"
        )
    if recipe.cluster.linkage != "representative" and not recipe.cluster.allow_chains:
        raise RecipeError(
            f"cluster.linkage is {recipe.cluster.linkage}, but with containment it connects documents that have "
            "nothing in common, such as two articles that quote the same third one; set it to representative, or "
            "cluster.allow_chains to true"
        )


def _check_rare(recipe: "Recipe") -> None:
    """Raise RecipeError if the family is rare and similarities are not exact."""
    if recipe.sketch.family == "rare" and recipe.match.verify != "exact":
        raise RecipeError(
            f"match.verify is {recipe.match.verify}, but the rarest shingles alone do not estimate a similarity; set "
            "it to exact"
        )


def _check_passage_words(recipe: "Recipe") -> None:
    match = recipe.match
    if match.passage_words is None:
        return
    if match.verify != "exact" or match.certain_shared_bands:
        raise RecipeError(
            f"match.passage_words is {match.passage_words}, which is checked on the texts; set match.verify to exact "
            "and match.certain_shared_bands to 0"
        )
    if match.passage_words < (recipe.never_missed or 0):
        raise RecipeError(
            f"match.passage_words is {match.passage_words}, but with match.passage = {match.passage} and "
            f"match.min_shared_bands = {match.min_shared_bands} only runs of {recipe.never_missed} equal words are "
            "never missed; raise match.passage_words, or lower the other two"
        )


def _check_bands(bands: "Bands", sketch: "Sketch", match: "MatchRules") -> None:
    if match.amplification is not None:
        if not bands.is_open or match.min_shared_bands != 1:
            raise RecipeError(
                "match.amplification replaces bands.recall, bands.count, bands.rows, bands.rule and "
                "match.min_shared_bands; set either match.amplification or these keys"
            )
        return

    if (bands.count is None) != (bands.rows is None):
        raise RecipeError("bands: give count and rows together, or recall alone")
    if bands.rule is not None:
        _check_rule(bands, sketch)

    if sketch.family in _SINGLE_IDS and (bands.rows or 1) != 1:
        raise RecipeError(
            f"bands.rows is {bands.rows}; a band of {sketch.family} is {_SINGLE_IDS[sketch.family]}: give rows = 1, or "
            "recall alone"
        )
    if sketch.family in _SINGLE_IDS and bands.hash != "mix64":
        raise RecipeError(
            f"bands.hash is {bands.hash!r}, which hashes several values; a band of {sketch.family} is one id: leave it "
            "out"
        )
    if sketch.family not in _COMPATIBLE and bands.hash != "mix64":
        raise RecipeError(
            f"bands.hash is {bands.hash!r}, which was made for the values of minhash; leave it out for {sketch.family}"
        )

    if bands.count is not None and bands.rows is not None:
        _check_given_bands(bands.count, bands.rows, bands.recall, sketch, match)


def _check_rule(bands: "Bands", sketch: "Sketch") -> None:
    if bands.recall is not None or bands.count is not None:
        raise RecipeError(
            f"bands.rule = {bands.rule} chooses count and rows; give rule alone, or recall alone, or count and rows"
        )
    if sketch.family in _SINGLE_IDS:
        raise RecipeError(
            f"bands.rule = {bands.rule} chooses rows, but a band of {sketch.family} is one id; give bands.recall "
            "instead"
        )


def _check_given_bands(
    count: int, rows: int, recall: float | None, sketch: "Sketch", match: "MatchRules"
) -> None:
    if recall is not None:
        raise RecipeError("bands: give either recall, or count and rows, not both")
    if count * rows > sketch.k:
        raise RecipeError(
            f"bands: count x rows, {count} x {rows}, need {count * rows} values, "
            f"but the sketch has k = {sketch.k}; raise sketch.k, or lower bands.count or bands.rows"
        )
    if match.min_shared_bands > count:
        raise RecipeError(
            f"match.min_shared_bands is {match.min_shared_bands}, more than the {count} band{'s' * (count != 1)} that "
            "bands.count gives; lower it"
        )


def _check_tokens(shingle: "Shingle") -> None:
    if shingle.scheme == "char" and (
        shingle.stopwords != "none" or shingle.stem != "none" or shingle.min_token_length > 1
    ):
        raise RecipeError(
            "shingle.stopwords, stem and min_token_length work on words; with scheme = char leave them out"
        )


def _check_order(recipe: "Recipe") -> None:
    shingle = recipe.shingle
    if shingle.order == "kept":
        return
    if shingle.scheme != "word" or recipe.hash.base != "poly64":
        raise RecipeError(
            f"shingle.order = free sorts the words of a shingle, but shingle.scheme is {shingle.scheme} and hash.base "
            f"{recipe.hash.base}; set them to word and poly64, or shingle.order to kept"
        )
    if shingle.k > _MAX_FREE_SHINGLE_WORDS:
        raise RecipeError(
            f"shingle.k is {shingle.k}, but at most {_MAX_FREE_SHINGLE_WORDS} is allowed with shingle.order = free, "
            "which sorts the words of each shingle; lower it"
        )


def _check_code(recipe: "Recipe") -> None:
    shingle = recipe.shingle
    if (shingle.tokens == "code") != bool(shingle.language):
        raise RecipeError(
            f"shingle.tokens is {shingle.tokens} and shingle.language {shingle.language}; with tokens = code set the "
            "language of the source code, such as java, and with other tokens leave it out"
        )
    words = (shingle.stopwords, shingle.stem, shingle.min_token_length)
    is_page = recipe.normalise.html or recipe.normalise.drop_repeated != "none"
    if shingle.language and (is_page or words != ("none", "none", 1)):
        raise RecipeError(
            "normalise.html and drop_repeated, shingle.stopwords, stem and min_token_length are for prose; with "
            "shingle.tokens = code leave them out"
        )


def _check_characters(strings: Iterable[str]) -> None:
    for string in strings:
        if re.search("[\0\ud800-\udfff]", string):
            raise RecipeError(f"{string!r} contains NUL or a lone surrogate, which PostgreSQL cannot store")

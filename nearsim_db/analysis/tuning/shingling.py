"""Shinglings: the schemes and sizes of shingles to compare, and the choice of the best."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct_sets, encoder_of
from nearsim_db.analysis.tuning.pair_sample import WeightedPairs, sample_pairs
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.records import Progress
from nearsim_db.similarity import presets
from nearsim_db.similarity.arrays import Floats, Ints
from nearsim_db.similarity.k_rule import KRule, Units, Verdict
from nearsim_db.similarity.mixing import random_words
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe_warnings import NOTABLE_SHARE

_SIZES = {"word": range(1, 6), "char": range(3, 11), "bag": range(1, 2)}
_RECORDS, _LINKAGE = presets.load("records"), presets.load("record-linkage")
# The best threshold between 0.4 and 0.6 without labels. Lower thresholds join different records of similar form, higher
# thresholds lose matches.
_LINKAGE_THRESHOLD = 0.5
_MAX_TYPICAL_RECORD_WORDS = 60
# Sentences of two dozen words share more runs of characters than rare words.
_MAX_TYPICAL_LINKAGE_WORDS = 20
_MIN_SHARE_OF_DISTINCT_WORDS = 0.75
_MIN_RECORDS = 100
_MIN_NEAR_PAIRS = 10
# Gaps and F1 that differ by less are treated as equal, because another sample could rank them differently.
_EQUAL_GAPS = 0.03
EQUAL_F1 = 0.005
# Characters give five times as many shingles as words, so they are chosen only if their gap is wider by this.
_MIN_WIDER_GAP_OF_CHARACTERS = 0.1
_MAX_RANDOM_SIMILARITY_OF_SHORTEST = 0.2


@dataclass(frozen=True, slots=True)
class Shingling:
    """A shingling with its scores."""

    scheme: str
    k: int
    near: float  # lower quartile of the similarities of near pairs
    random: float  # 99.9th percentile of the similarities of random pairs
    shingles: float  # number of shingles of a typical document
    rule: KRule
    short: float  # fraction of the documents that have one shingle or less
    best_f1: float | None = None  # the best F1 on the labels, None without labels
    weighted_f1: float | None = None  # the best F1 if precision is weighted by the pairs of the corpus

    @property
    def gap(self) -> float:
        """Difference between the similarities of near and of random pairs."""
        return self.near - self.random

    @property
    def name(self) -> str:
        """Name to show, such as "3 words"."""
        if self.scheme == "bag":
            return "bag of words"
        unit = {"word": "word", "char": "character", "sentence": "sentence"}[self.scheme]
        return f"{self.k} {unit}{'' if self.k == 1 else 's'}"

    def apply(self, recipe: Recipe) -> Recipe:
        """Return the recipe with this shingling. Character shingles reset the options for words."""
        return with_shingles(recipe, self.scheme, self.k)


def with_shingles(recipe: Recipe, scheme: str, k: int) -> Recipe:
    """Return the recipe with other shingles. Character shingles reset the options for words."""
    settings = [f"shingle.scheme={scheme}", f"shingle.k={k}"]
    if scheme == "char":
        settings += ["shingle.stopwords=none", "shingle.stem=none", "shingle.min_token_length=1"]
    return override(recipe, settings)


def candidates(recipe: Recipe, options: TuningOptions) -> list[tuple[str, int]]:
    """Return the schemes and sizes to compare, the recipe's among them. Keys in `options.kept` are not varied."""
    recipe_scheme, recipe_k = recipe.shingle.scheme, recipe.shingle.k
    recipe_shingles: tuple[str, int] = recipe_scheme, recipe_k
    if options.fixes_shingles:
        return [recipe_shingles]

    if "scheme" in options.kept:
        schemes: list[str] = [recipe_scheme]
    else:
        schemes = [scheme for scheme in _SIZES if scheme != "bag" or recipe_scheme != "bag"]
    compared = [
        (scheme, k)
        for scheme in schemes
        for k in ([recipe_k] if "k" in options.kept else _SIZES.get(scheme, [recipe_k]))
    ]
    return compared if recipe_shingles in compared else [*compared, recipe_shingles]


def are_records(words: Units) -> bool:
    """Whether texts look like records: they are short, and few words recur within a text."""
    return (
        len(words.lengths) >= _MIN_RECORDS
        and words.distinct >= _MIN_SHARE_OF_DISTINCT_WORDS
        and 0 < words.typical_length <= _MAX_TYPICAL_RECORD_WORDS
    )


def are_default(recipe: Recipe, options: TuningOptions) -> bool:
    """Whether the recipe has the default shingles and sketches, and the user fixed neither scheme nor size."""
    default = Recipe()
    is_fixed = "scheme" in options.kept or "k" in options.kept
    has_default_shingles = (recipe.shingle.scheme, recipe.shingle.k) == (
        default.shingle.scheme,
        default.shingle.k,
    )
    return not is_fixed and has_default_shingles and recipe.sketch.family == default.sketch.family


def with_records_preset(recipe: Recipe) -> Recipe:
    """Return the recipe with the shingles and the threshold of the preset records."""
    shingled = with_shingles(recipe, _RECORDS.shingle.scheme, _RECORDS.shingle.k)
    return override(shingled, [f"match.threshold={_RECORDS.match.threshold!r}"])


def suit_record_linkage(words: Units, unspaced: float) -> bool:
    """Whether records should be compared by words: they have few words, and the script puts spaces between words."""
    return words.typical_length <= _MAX_TYPICAL_LINKAGE_WORDS and unspaced < NOTABLE_SHARE


def with_record_linkage(recipe: Recipe) -> Recipe:
    """Return the recipe with the shingles and sketches of the preset record-linkage, and a threshold for records."""
    shingled = with_shingles(recipe, _LINKAGE.shingle.scheme, _LINKAGE.shingle.k)
    sketch = _LINKAGE.sketch
    settings = [
        f"sketch.family={sketch.family}",
        f"sketch.k={sketch.k}",
        f"match.threshold={_LINKAGE_THRESHOLD!r}",
    ]
    return override(shingled, settings)


def unit_of(scheme: str) -> str:
    """Return the unit of a scheme's shingles: "char", "word" or "sentence"."""
    return {"char": "char", "sentence": "sentence"}.get(scheme, "word")


def choose(
    scored: Sequence[Shingling], near_pairs: int, unspaced: float, recipe_shingles: tuple[str, int]
) -> tuple[Shingling, str]:
    """Return the best shingling and the reason. `recipe_shingles` are the scheme and size of the starting recipe."""
    if len(scored) == 1:
        return scored[0], "set by the user"
    if scored[0].weighted_f1 is not None:
        highest = max(shingles.weighted_f1 or 0.0 for shingles in scored)
        alike = [shingles for shingles in scored if (shingles.weighted_f1 or 0.0) >= highest - EQUAL_F1]
        best = _widest(alike, recipe_shingles)
        return best, f"the highest F1 on the labelled pairs, {best.weighted_f1:.3f}"

    sound = _sound(scored, recipe_shingles[0])
    words = [shingles for shingles in sound if shingles.scheme == "word" and shingles.short < NOTABLE_SHARE]
    if unspaced >= NOTABLE_SHARE:
        words = []
    characters = [shingles for shingles in sound if shingles.scheme == "char"]
    if near_pairs < _MIN_NEAR_PAIRS:
        return _without_near_pairs(words or characters or sound, recipe_shingles)

    other_schemes = [shingles for shingles in sound if shingles.scheme not in ("word", "char")]
    groups = [group for group in (words, characters) if group] or [other_schemes or sound]
    widest = [_widest(group, recipe_shingles) for group in groups]
    best = widest[0]
    if len(widest) == 2 and widest[1].gap > widest[0].gap + _MIN_WIDER_GAP_OF_CHARACTERS:
        best = widest[1]
    return best, _reason(best, widest, bool(words), unspaced)


def _sound(scored: Sequence[Shingling], recipe_scheme: str) -> list[Shingling]:
    """Return the shinglings with the best verdict of the k rule, without shinglings that are only for comparison."""
    # Single words, bags of words and single characters ignore order, so they are only for comparison.
    ordered = [shingles for shingles in scored if shingles.scheme != "bag" or recipe_scheme == "bag"]
    single = ("word", 1), ("char", 1)
    longer = [shingles for shingles in ordered if (shingles.scheme, shingles.k) not in single] or scored

    verdicts: tuple[Verdict, ...] = ("ok", "warning", "problem")
    by_verdict = (
        [shingles for shingles in longer if shingles.rule.verdict == verdict] for verdict in verdicts
    )
    return next(group for group in by_verdict if group)


def _widest(group: Sequence[Shingling], recipe_shingles: tuple[str, int]) -> Shingling:
    """Return the recipe's shingling if its gap is among the widest, otherwise the shortest one with such a gap."""
    gap = max(shingles.gap for shingles in group)
    widest = [shingles for shingles in group if shingles.gap >= gap - _EQUAL_GAPS]
    return min(widest, key=lambda shingles: ((shingles.scheme, shingles.k) != recipe_shingles, shingles.k))


def _without_near_pairs(
    group: Sequence[Shingling], recipe_shingles: tuple[str, int]
) -> tuple[Shingling, str]:
    """Return the recipe's shingling if it is in the group, and the reason.

    Otherwise return the shortest shingling under which random pairs have few common shingles.
    """
    reason = "there are too few near pairs to score"
    for shingles in group:
        if (shingles.scheme, shingles.k) == recipe_shingles:
            return shingles, f"the recipe's own; {reason}"

    quiet = [
        shingles
        for shingles in group
        if shingles.random <= _MAX_RANDOM_SIMILARITY_OF_SHORTEST and shingles.rule.verdict == "ok"
    ]
    best = min(quiet or group, key=lambda shingles: shingles.k if quiet else shingles.random)
    return best, f"the shortest that random pairs rarely share; {reason}"


def _reason(best: Shingling, widest: Sequence[Shingling], has_words: bool, unspaced: float) -> str:
    scores = f"near pairs from {best.near:.2f}, random ones up to {best.random:.2f}"
    if best.scheme == "char" and not has_words:
        no_spaces = unspaced >= NOTABLE_SHARE
        return f"{scores}; {'the script has no spaces' if no_spaces else 'the texts are too short for words'}"
    if best.scheme == "word" and len(widest) == 2:
        other = widest[1]
        return f"{scores}; {other.name} give a gap of {other.gap:.2f} instead of {best.gap:.2f}, with more shingles"
    return scores


MAX_CHARACTERS_SCORED = 1_500_000
# The lowest similarity of a near pair is the first of these values that enough pairs reach.
_NEAR_SIMILARITIES = (0.8, 0.7, 0.6)
_MIN_NEAR_PAIRS_OF_LEVEL = 30
_MAX_RANDOM_SIMILARITY = 0.5
_RANDOM_PAIRS, _MAX_NEAR_PAIRS = 12_000, 600


@dataclass(frozen=True, slots=True)
class ReferencePairs:
    """Texts, and near and random pairs of these texts."""

    texts: list[str]
    near: tuple[Ints, Ints]  # indexes of the left and the right texts of near pairs
    random: tuple[Ints, Ints]  # indexes of the left and the right texts of random pairs

    @property
    def near_pairs(self) -> int:
        """Number of near pairs."""
        return len(self.near[0])


def find_reference_pairs(
    recipe: Recipe, texts: Sequence[str], unspaced: bool, seed: int, threads: int, progress: Progress
) -> ReferencePairs:
    """Draw near and random pairs by a neutral scheme: shingles of 5 characters, or of 3 in scripts without spaces."""
    encoder = encoder_of(with_shingles(recipe, "char", 3 if unspaced else 5), texts)
    sets = distinct_sets(encoder, texts, threads, progress)

    pairs = sample_pairs(sets, seed, max_random_pairs=50_000, max_near_pairs=300_000)
    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune test pairs", 4)))
    mean = max(float(np.mean([len(text) for text in texts])) if texts else 1.0, 1.0)
    near = _draw_near(pairs, generator, int(min(_MAX_NEAR_PAIRS, max(50, MAX_CHARACTERS_SCORED / 2 / mean))))
    random = _draw_random(sets, generator, int(min(500, max(60, MAX_CHARACTERS_SCORED / mean))))

    # Replace each set by the first text that has it, and number the texts that are used.
    used, places = np.unique(np.concatenate((*near, *random)), return_inverse=True)
    first = np.full(len(sets), -1, np.int64)
    # The rows are in reverse order, so the first text with a set is assigned last and stays.
    rows = np.flatnonzero(sets.set_of >= 0)[::-1]
    first[sets.set_of[rows]] = rows
    parts = np.split(places.astype(np.int64), np.cumsum([len(near[0]), len(near[1]), len(random[0])]))
    return ReferencePairs(
        [texts[row] for row in first[used].tolist()], (parts[0], parts[1]), (parts[2], parts[3])
    )


def _draw_near(pairs: WeightedPairs, generator: np.random.Generator, max_pairs: int) -> tuple[Ints, Ints]:
    counts = {level: int((pairs.similarity >= level).sum()) for level in _NEAR_SIMILARITIES}
    level = next(
        (level for level, count in counts.items() if count >= _MIN_NEAR_PAIRS_OF_LEVEL),
        _NEAR_SIMILARITIES[-1],
    )
    near = np.flatnonzero(pairs.similarity >= level)
    if len(near) > max_pairs:
        share = pairs.weight[near] / pairs.weight[near].sum()
        near = np.sort(generator.choice(near, max_pairs, replace=False, p=share))
    return pairs.left[near], pairs.right[near]


def _draw_random(sets: DistinctSets, generator: np.random.Generator, max_sets: int) -> tuple[Ints, Ints]:
    """Draw random pairs within a subset of at most `max_sets` sets, to limit the number of texts to shingle.

    Pairs with similarity 0.5 or more are dropped.
    """
    subset = generator.permutation(len(sets))[:max_sets]
    if len(subset) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    left, right = generator.integers(0, len(subset), (2, _RANDOM_PAIRS))
    is_pair = left != right
    left, right = subset[left[is_pair]], subset[right[is_pair]]
    is_random = sets.similarities(left, right) < _MAX_RANDOM_SIMILARITY
    return left[is_random], right[is_random]


def score(
    recipe: Recipe,
    schemes: Sequence[tuple[str, int]],
    pairs: ReferencePairs,
    units: dict[str, Units],
    texts: Sequence[str],
    threads: int,
    progress: Progress,
) -> Iterator[Shingling]:
    """Score each scheme and size on the same pairs. Document frequencies are counted in `texts`."""
    for done, (scheme, k) in enumerate(schemes, 1):
        sets = distinct_sets(encoder_of(with_shingles(recipe, scheme, k), texts), pairs.texts, threads)
        near, random = similarities(sets, *pairs.near), similarities(sets, *pairs.random)

        unit = units[unit_of(scheme)]
        size = 1 if scheme == "bag" else k
        yield Shingling(
            scheme,
            k,
            float(np.quantile(near, 0.25)) if len(near) else 0.0,
            float(np.quantile(random, 0.999)) if len(random) else 0.0,
            float(np.median(sets.sizes)) if len(sets) else 0.0,
            KRule(unit.alphabet, size, unit.typical_length),
            unit.short(size),
        )
        progress("judge", done, len(schemes))


def similarities(sets: DistinctSets, left: Ints, right: Ints) -> Floats:
    """Return the similarities of pairs of documents; 0 if one of the two has no features."""
    left_set, right_set = sets.set_of[left], sets.set_of[right]
    have_features = (left_set >= 0) & (right_set >= 0)
    similarity = np.zeros(len(left))
    similarity[have_features] = sets.similarities(left_set[have_features], right_set[have_features])
    return similarity


def draw_texts(texts: Sequence[str], seed: int, count: int = 2_000) -> list[str]:
    """Draw up to `count` texts, or fewer if the texts are long."""
    generator = np.random.Generator(np.random.PCG64(random_words(seed, "tune units", 4)))
    rows: Ints = generator.permutation(len(texts))[:count]
    drawn: list[str] = []
    characters = 0
    for row in rows.tolist():
        drawn.append(texts[row])
        characters += len(texts[row])
        if characters > MAX_CHARACTERS_SCORED:
            break
    return drawn

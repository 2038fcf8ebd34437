"""Checks of a corpus and a proposal, each with a verdict and advice, and the statistics behind them."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.corpus import Forecast, SampledCorpus
from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct
from nearsim_db.analysis.tuning.labels import LabelScores
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.shingling import EQUAL_F1, Shingling, unit_of
from nearsim_db.analysis.tuning.threshold_choice import ClustersAt
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.arrays import Hashes
from nearsim_db.similarity.k_rule import KRule, Verdict
from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe_warnings import MAX_CANDIDATES_PER_DOCUMENT, NOTABLE_SHARE
from nearsim_db.similarity.sketch import Family
from nearsim_db.similarity.text import ID_BITS

# The chi-squared test requires at least this expected number of ids in each bucket.
_MIN_EXPECTED_IDS = 5
_BUCKETS = (1009, 101, 13)
_MIN_P_VALUE = 0.001
_FUNCTION_BUCKETS = 13
_MAX_TESTED_IDS, _MAX_TESTED_VALUES = 100_000, 16_000_000
_MAX_COUNTED_IDS = 4_000_000
_MAX_SHINGLES_PER_HASH_VALUE = 1e-3
_MAX_LOST_BY_LIMIT = 0.005
_MIN_LABELS = 50
_UNITS = {"char": "characters", "word": "words", "sentence": "sentences"}


@dataclass(frozen=True, slots=True)
class Check:
    """A finding with its verdict, and advice if the verdict is not ok."""

    name: str
    verdict: Verdict
    finding: str
    advice: str = ""

    @classmethod
    def of(cls, name: str, verdict: Verdict, finding: str, advice: str) -> "Check":
        """Return a check, without the advice if the verdict is ok."""
        return cls(name, verdict, finding, "" if verdict == "ok" else advice)


@dataclass(frozen=True, slots=True)
class Uniformity:
    """Result of Pearson's chi-squared test of whether ids are uniform over buckets."""

    ids: int
    buckets: int
    chi_squared: float
    p_value: float

    @property
    def degrees_of_freedom(self) -> int:
        """Number of buckets minus 1."""
        return self.buckets - 1


def uniformity(ids: Hashes) -> Uniformity | None:
    """Test whether the remainders of distinct ids are uniform; return None if there are too few ids."""
    for buckets in _BUCKETS:
        if len(ids) >= _MIN_EXPECTED_IDS * buckets:
            return _pearson(ids, buckets)
    return None


def function_uniformity(family: Family, ids: Hashes) -> list[Uniformity]:
    """Test whether each function of a minhash family spreads distinct ids uniformly over 13 buckets.

    At most 100,000 ids are tested. The list is empty if there are too few ids. Remainders are in 0..12 even for
    negative values.
    """
    max_ids = min(_MAX_TESTED_IDS, _MAX_TESTED_VALUES // family.k)
    # Take every n-th id, with the smallest n that leaves at most `max_ids`.
    tested = ids[:: -(-len(ids) // max_ids) or 1]
    if len(tested) < _MIN_EXPECTED_IDS * _FUNCTION_BUCKETS:
        return []

    # The sketch of a set with a single id consists of the functions' values of this id.
    sketches = family.sketch(tested, np.arange(len(tested) + 1))
    return [_pearson(values, _FUNCTION_BUCKETS) for values in sketches.T]


def _pearson(values: NDArray[Any], buckets: int) -> Uniformity:
    counts = np.bincount((values % values.dtype.type(buckets)).astype(np.int64), minlength=buckets)
    expected = len(values) / buckets
    chi_squared = float(((counts - expected) ** 2).sum() / expected)
    return Uniformity(len(values), buckets, chi_squared, chi_squared_tail(chi_squared, buckets - 1))


def chi_squared_tail(value: float, degrees: int) -> float:
    """Return P(chi-squared >= value), by the approximation of Wilson and Hilferty (1931)."""
    spread = 2 / (9 * degrees)
    deviation = ((value / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 1 - NormalDist().cdf(deviation)


def different_ids(sets: DistinctSets, times: float) -> tuple[Hashes, float]:
    """Return the distinct ids of the sets, and the expected number of distinct ids in a corpus `times` as large.

    If there are too many ids, only the ids in a part of their range are returned. The number grows by Heaps' law; its
    exponent is measured by comparing the first half of the sets with all sets.
    """
    # Ids are hashes, so the ids in a part of the range are a random sample.
    parts = 1
    while len(sets.ids) // parts > _MAX_COUNTED_IDS:
        parts *= 2

    ids = _different(sets.ids, sets.bits, parts)
    half = _different(sets.ids[: sets.offsets[len(sets) // 2]], sets.bits, parts)
    exponent = min(max(math.log2(max(len(ids), 1) / max(len(half), 1)), 0.0), 1.0)
    return ids, len(ids) * parts * float(times**exponent)


def _different(ids: Hashes, bits: int, parts: int) -> Hashes:
    """Return the distinct ids in the first of `parts` equal parts of their range, ascending."""
    return distinct(ids if parts == 1 else ids[ids < np.uint64((1 << bits) // parts)])


def check_k_rule(rule: KRule, unit: str) -> Check:
    """Check whether shingles are long enough that unrelated documents rarely share them by chance."""
    return Check.of(
        "k rule",
        rule.verdict,
        f"c^k / (l - k + 1) = {magnitude(rule.ratio)}: c = {rule.alphabet:,.1f} {unit} effectively in use, "
        f"k = {rule.k}, l = {rule.length:,} {unit} in a typical document",
        "unrelated documents will share shingles by chance: use a larger shingle.k",
    )


def check_uniformity(test: Uniformity | None, base: str) -> Check:
    """Check whether the hash passed its chi-squared test."""
    if test is None:
        return Check("hash", "ok", "too few distinct shingles to test the uniformity of the hash")
    return Check.of(
        "hash",
        "ok" if test.p_value >= _MIN_P_VALUE else "warning",
        f"{base} spreads {test.ids:,} shingles over {test.buckets:,} buckets with chi-squared "
        f"{test.chi_squared:,.1f}, {test.degrees_of_freedom:,} degrees of freedom, p = {test.p_value:.3f}",
        "the hash is not uniform on these shingles; use hash.base = poly64",
    )


def check_functions(tests: Sequence[Uniformity]) -> Check:
    """Check whether the functions a x + b of minhash are uniform.

    The p-value of the least uniform function is multiplied by the number of functions (Bonferroni correction).
    """
    if not tests:
        return Check(
            "functions", "ok", "too few distinct shingles to test the uniformity of the functions a x + b"
        )

    number, worst = min(enumerate(tests), key=lambda numbered: numbered[1].p_value)
    uneven = sum(test.p_value * len(tests) < _MIN_P_VALUE for test in tests)
    return Check.of(
        "functions",
        "warning" if uneven else "ok",
        f"{len(tests):,} functions a x + b spread {worst.ids:,} shingles over {worst.buckets} buckets; "
        f"the least uniform is function {number}, with chi-squared {worst.chi_squared:,.1f}, "
        f"{worst.degrees_of_freedom} degrees of freedom, p = {min(1.0, worst.p_value * len(tests)):.3f} among "
        f"{len(tests):,}{f'; not uniform: {uneven:,}' if uneven else ''}",
        "estimates will be off: use another sketch.seed, other sketch.coefficients, or sketch.functions = prime32",
    )


def check_hash_width(base: str, different: float) -> Check:
    """Check whether the hash is wide enough for `different` distinct shingles."""
    bits = ID_BITS[base]
    collisions = magnitude(different**2 / 2 ** (bits + 1))
    return Check.of(
        "hash size",
        "ok" if different / 2**bits < _MAX_SHINGLES_PER_HASH_VALUE else "warning",
        f"{bits} bits for about {different:,.0f} distinct shingles: {collisions} collisions expected",
        "use hash.base = poly64, which has 64 bits",
    )


def _check_share(
    name: str,
    share: float,
    finding: str,
    advice: str,
    warning_from: float = NOTABLE_SHARE,
    problem_from: float = 0.5,
) -> Check:
    """Check a fraction that should be small."""
    verdict: Verdict = "ok" if share < warning_from else "warning" if share < problem_from else "problem"
    return Check.of(name, verdict, finding, advice)


def magnitude(value: float) -> str:
    """Format a number of any size in a few characters."""
    if value == 0 or 0.1 <= value < 1e6:
        return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def of_shingles(corpus: SampledCorpus, chosen: Shingling, recipe: Recipe) -> Sequence[Check]:
    """Check the k rule, the uniformity of the hash and of the functions of minhash, and the width of the hash."""
    different, grown = different_ids(corpus.sets, corpus.documents / corpus.sampled)
    base, family = recipe.hash.base, make_family(recipe)
    return [
        check_k_rule(chosen.rule, _UNITS[unit_of(chosen.scheme)]),
        check_uniformity(uniformity(different), base),
        *([check_functions(function_uniformity(family, different))] if family.name == "minhash" else ()),
        check_hash_width(base, grown),
    ]


def of_texts(corpus: SampledCorpus, chosen: Shingling, unspaced: float) -> Sequence[Check]:
    """Check whether the texts suit the shingling. `unspaced` is the fraction of texts in scripts without spaces."""
    featureless, twins = corpus.sets.featureless, corpus.sets.twins

    return [
        _check_share(
            "scripts",
            unspaced if chosen.scheme in ("word", "bag") else 0.0,
            f"{unspaced:.1%} of the texts are in Chinese, Japanese, Korean or another script without spaces",
            "word shingles rarely match there: use --set shingle.scheme=char",
        ),
        _check_share(
            "short texts",
            chosen.short,
            f"{chosen.short:.1%} of the documents are one shingle or shorter",
            "such a document matches only exact copies: use a smaller shingle.k, or characters",
        ),
        _check_share(
            "no features",
            featureless / corpus.sampled,
            f"{featureless / corpus.sampled:.1%} of the documents ({featureless:,} of the sample) have no features and "
            "match nothing",
            "check --body-field and the texts",
        ),
        Check(
            "identical",
            "ok",
            f"{twins / corpus.sampled:.1%} of the documents ({twins:,} of the sample) have the same shingles as "
            "another; they are found with any bands",
        ),
    ]


def of_sources(sample: Sample) -> Iterator[Check]:
    """Point to the nearest records if records are of two sources."""
    sources = Counter(map(str, sample.values))
    if sample.is_whole and len(sources) == 2 and None not in sample.values:
        names = " and ".join(f"{count:,} from {name}" for name, count in sources.items())
        yield Check(
            "sources",
            "warning",
            f"the records are of two sources: {names}",
            "nearsim nearest usually matches such records better (docs/how-to/nearest.md); give --labels to compare",
        )


def of_labels(scores: LabelScores) -> Check:
    """Check whether the labels determine a threshold, and whether there are enough labels of both kinds."""
    finding = f"{scores.duplicates:,} duplicate and {scores.distinct:,} distinct pairs were labelled"

    # No threshold follows from the labels.
    if scores.best.f1 == 0 and scores.points:
        return Check(
            "labels",
            "problem",
            f"{finding}; no threshold has the precision that is asked for",
            "lower --precision, or compare other fields or features",
        )
    if scores.best.f1 == 0:
        return Check(
            "labels",
            "problem",
            f"{finding}; no duplicates share a shingle, so the labels do not determine the threshold",
            "check the ids of the labels, or use shorter shingles",
        )
    if not scores.separate:
        return Check(
            "labels",
            "problem",
            f"{finding}; labels do not separate: the area under the curve is {scores.auc:.3f}, and the best threshold "
            f"has a precision of {scores.best.precision:.3f}, while accepting every pair has "
            f"{scores.accept_all.precision:.3f}",
            "the threshold is not taken from the labels; compare other fields or features, or label other pairs",
        )

    if min(scores.duplicates, scores.distinct) >= _MIN_LABELS:
        return Check("labels", "ok", finding)
    return Check(
        "labels",
        "warning",
        f"{finding}; with fewer than {_MIN_LABELS} of either kind the threshold is uncertain",
        "label more pairs near the intended threshold",
    )


def of_cost(forecast: Forecast, profile: Profile, kept: float) -> Sequence[Check]:
    """Check for too many candidates, pairs lost in large buckets, and recipe warnings."""
    limit = profile.recipe.match.bucket_limit
    keeps = f"match.bucket_limit = {limit} keeps {kept:.2%} of the pairs that share a bucket"

    return [
        _check_share(
            "candidates",
            forecast.candidates / MAX_CANDIDATES_PER_DOCUMENT,
            f"about {forecast.candidates:,.2f} candidate pairs per document are expected",
            "most will fail verification: use longer shingles, a larger sketch.k or a higher threshold",
            1.0,
            10.0,
        ),
        _check_share(
            "large buckets",
            1 - kept,
            keeps if limit else "no bucket limit",
            "clusters stay whole; to find every pair in large groups raise the limit, or set 0 for none",
            _MAX_LOST_BY_LIMIT,
            0.9,
        ),
        *(Check("recipe", "warning", message) for message in recipe_warnings.of_profile(profile)),
    ]


def of_fields(best: tuple[float, str, str], fields: Sequence[str], together: float) -> Check:
    """Check whether a single field has a better F1 than all fields together.

    `best` has the F1 of the best single field, the name of the field, and its shingles.
    """
    f1, field, shingles = best
    return Check.of(
        "fields",
        "warning" if f1 > together + EQUAL_F1 else "ok",
        f"F1 {f1:.3f} of the labelled pairs by {field} alone ({shingles}), {together:.3f} by {' and '.join(fields)}",
        f"to compare that field only: --set 'fields=[\"{field}\"]'",
    )


def of_clusters(
    clusters: Sequence[ClustersAt], threshold: float, recipe: Recipe, documents: int
) -> Iterator[Check]:
    """Check whether de-duplication at a threshold would remove too many documents, or form a very large cluster."""
    row = next((row for row in clusters if row.threshold == threshold), None)
    if row is None:
        return

    part = (
        ""
        if row.documents >= documents
        else f" of a sample of {row.documents:,}; of all documents it is more"
    )
    yield Check.of(
        "clusters",
        "warning" if row.is_excessive else "ok",
        f"de-duplication would remove {row.removed:.1%} of the documents ({row.remaining:,} of {row.documents:,} "
        f"would remain), and the largest cluster has "
        f"{row.largest_cluster:.2%}{part}",
        f"if they are no copies, set a stricter match.threshold (now {threshold:g}), cluster.linkage = average (now "
        f"{recipe.cluster.linkage}) or cluster.numbers_differ = keep-apart (now {recipe.cluster.numbers_differ})",
    )

"""Checks of a corpus and a proposal, with the statistics of shingle sets and hashes behind them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.corpus import Corpus, Forecast
from nearsim_db.analysis.tuning.distinct_sets import DistinctSets, distinct
from nearsim_db.analysis.tuning.labels import LabelScores
from nearsim_db.analysis.tuning.shingling import ALIKE_F1, Shingling, unit_of
from nearsim_db.similarity import recipe_warnings
from nearsim_db.similarity.arrays import Hashes
from nearsim_db.similarity.k_rule import KRule, Verdict
from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe_warnings import MANY_CANDIDATES, NOTABLE_SHARE
from nearsim_db.similarity.sketch import Family
from nearsim_db.similarity.text import ID_BITS

_FEWEST_EXPECTED = 5
_BUCKETS = (1009, 101, 13)
_UNLIKELY = 0.001
_FUNCTION_BUCKETS = 13
_MOST_IDS, _MOST_VALUES = 100_000, 16_000_000
_ALL_COUNTED = 4_000_000
_CROWDED = 1e-3
_LOST_BY_LIMIT = 0.005
_ENOUGH_LABELS = 50
_UNITS = {"char": "characters", "word": "words", "sentence": "sentences"}


@dataclass(frozen=True, slots=True)
class Check:
    """A finding with its verdict, and advice where it is not ok."""

    name: str
    verdict: Verdict
    finding: str
    advice: str = ""

    @classmethod
    def of(cls, name: str, verdict: Verdict, finding: str, advice: str) -> "Check":
        """Return a check, with the advice unless it is ok."""
        return cls(name, verdict, finding, "" if verdict == "ok" else advice)


@dataclass(frozen=True, slots=True)
class Uniformity:
    """Pearson's chi-squared test that ids are uniform over buckets."""

    ids: int
    buckets: int
    chi_squared: float
    p_value: float

    @property
    def degrees_of_freedom(self) -> int:
        """Number of buckets minus 1."""
        return self.buckets - 1


def uniformity(ids: Hashes) -> Uniformity | None:
    """Test distinct ids by their remainders; None if there are too few."""
    for buckets in _BUCKETS:
        if len(ids) >= _FEWEST_EXPECTED * buckets:
            return _pearson(ids, buckets)
    return None


def function_uniformity(family: Family, ids: Hashes) -> list[Uniformity]:
    """Test the values that each function of a minhash family gives up to 100,000 of distinct ids, over 13 buckets.

    Empty if there are too few ids. The remainders of negative values are those of the floor, 0..12.
    """
    most = min(_MOST_IDS, _MOST_VALUES // family.k)
    chosen = ids[:: -(-len(ids) // most) or 1]
    if len(chosen) < _FEWEST_EXPECTED * _FUNCTION_BUCKETS:
        return []
    values = family.sketch(chosen, np.arange(len(chosen) + 1))  # sets of one id: the least value is its own
    return [_pearson(one, _FUNCTION_BUCKETS) for one in values.T]


def _pearson(values: NDArray[Any], buckets: int) -> Uniformity:
    seen = np.bincount((values % values.dtype.type(buckets)).astype(np.int64), minlength=buckets)
    expected = len(values) / buckets
    squared = float(((seen - expected) ** 2).sum() / expected)
    return Uniformity(len(values), buckets, squared, chi_squared_tail(squared, buckets - 1))


def chi_squared_tail(value: float, degrees: int) -> float:
    """Return P(chi-squared >= value), by the approximation of Wilson and Hilferty (1931)."""
    spread = 2 / (9 * degrees)
    deviation = ((value / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 1 - NormalDist().cdf(deviation)


def different_ids(sets: DistinctSets, times: float) -> tuple[Hashes, float]:
    """Return the distinct ids, or those of a fraction of their range, and their number in a corpus `times` as large.

    The growth follows Heaps' law, with the exponent measured on the first half of the sets.
    """
    part = 1
    while len(sets.ids) // part > _ALL_COUNTED:
        part *= 2
    found = _different(sets.ids, sets.bits, part)
    before = _different(sets.ids[: sets.offsets[len(sets) // 2]], sets.bits, part)
    exponent = min(max(math.log2(max(len(found), 1) / max(len(before), 1)), 0.0), 1.0)
    return found, len(found) * part * float(times**exponent)


def _different(ids: Hashes, bits: int, part: int) -> Hashes:
    """Return the distinct ids in the first of `part` equal parts of their range, ascending."""
    return distinct(ids if part == 1 else ids[ids < np.uint64((1 << bits) // part)])


def check_k_rule(rule: KRule, unit: str) -> Check:
    """Check the k rule."""
    return Check.of(
        "k rule",
        rule.verdict,
        f"c^k / (l - k + 1) = {magnitude(rule.ratio)}: c = {rule.alphabet:,.1f} {unit} effectively in use, "
        f"k = {rule.k}, l = {rule.length:,} {unit} in a typical document",
        "unrelated documents will share shingles by chance: use a larger shingle.k",
    )


def check_uniformity(found: Uniformity | None, base: str) -> Check:
    """Check the chi-squared test of the hash."""
    if found is None:
        return Check("hash", "ok", "too few distinct shingles to test the uniformity of the hash")
    return Check.of(
        "hash",
        "ok" if found.p_value >= _UNLIKELY else "warning",
        f"{base} spreads {found.ids:,} shingles over {found.buckets:,} buckets with chi-squared "
        f"{found.chi_squared:,.1f}, {found.degrees_of_freedom:,} degrees of freedom, p = {found.p_value:.3f}",
        "the hash is not uniform on these shingles; use hash.base = poly64",
    )


def check_functions(found: list[Uniformity]) -> Check:
    """Check the functions a x + b, with the p-value of the least uniform multiplied by their number (Bonferroni)."""
    if not found:
        return Check(
            "functions", "ok", "too few distinct shingles to test the uniformity of the functions a x + b"
        )
    place, worst = min(enumerate(found), key=lambda one: one[1].p_value)
    uneven = sum(one.p_value * len(found) < _UNLIKELY for one in found)
    return Check.of(
        "functions",
        "warning" if uneven else "ok",
        f"{len(found):,} functions a x + b spread {worst.ids:,} shingles over {worst.buckets} buckets; "
        f"the least uniform is function {place}, with chi-squared {worst.chi_squared:,.1f}, "
        f"{worst.degrees_of_freedom} degrees of freedom, p = {min(1.0, worst.p_value * len(found)):.3f} among "
        f"{len(found):,}{f'; not uniform: {uneven:,}' if uneven else ''}",
        "estimates will be off: use another sketch.seed, other sketch.coefficients, or sketch.functions = prime32",
    )


def check_hash_width(base: str, different: float) -> Check:
    """Check whether the hash is wide enough for `different` distinct shingles."""
    bits = ID_BITS[base]
    collisions = magnitude(different**2 / 2 ** (bits + 1))
    return Check.of(
        "hash size",
        "ok" if different / 2**bits < _CROWDED else "warning",
        f"{bits} bits for about {different:,.0f} distinct shingles: {collisions} collisions expected",
        "use hash.base = poly64, which has 64 bits",
    )


def _check_share(
    name: str, share: float, finding: str, advice: str, notable: float = NOTABLE_SHARE, bad: float = 0.5
) -> Check:
    """Check a share that should be small: notable from one limit, bad from another."""
    return Check.of(
        name, "ok" if share < notable else "warning" if share < bad else "problem", finding, advice
    )


def magnitude(value: float) -> str:
    """Format a number of any size in a few characters."""
    if value == 0 or 0.1 <= value < 1e6:
        return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def of_shingles(corpus: Corpus, chosen: Shingling, recipe: Recipe) -> Sequence[Check]:
    """Check the k rule, the uniformity of the hash and of a minhash family's functions, and the width of the hash."""
    different, grown = different_ids(corpus.sets, corpus.documents / corpus.sampled)
    base, family = recipe.hash.base, make_family(recipe)
    return [
        check_k_rule(chosen.rule, _UNITS[unit_of(chosen.scheme)]),
        check_uniformity(uniformity(different), base),
        *([check_functions(function_uniformity(family, different))] if family.name == "minhash" else ()),
        check_hash_width(base, grown),
    ]


def of_texts(corpus: Corpus, chosen: Shingling, unspaced: float) -> Sequence[Check]:
    """Check whether the texts suit the shingling; `unspaced` is the share in scripts without spaces."""
    featureless, twins = corpus.sets.featureless, corpus.sets.twins
    empty = featureless / corpus.sampled
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
            empty,
            f"{empty:.1%} of the documents ({featureless:,} of the sample) have no features and match nothing",
            "check --body-field and the texts",
        ),
        Check(
            "identical",
            "ok",
            f"{twins / corpus.sampled:.1%} of the documents ({twins:,} of the sample) have the same shingles as "
            "another; they are found with any bands",
        ),
    ]


def of_labels(scores: LabelScores) -> Check:
    """Check whether there are enough labelled pairs of either kind for a reproducible threshold."""
    finding = f"{scores.duplicates:,} duplicate and {scores.distinct:,} distinct pairs were labelled"
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
    if min(scores.duplicates, scores.distinct) >= _ENOUGH_LABELS:
        return Check("labels", "ok", finding)
    return Check(
        "labels",
        "warning",
        f"{finding}; with fewer than {_ENOUGH_LABELS} of either kind the threshold is uncertain",
        "label more pairs near the intended threshold",
    )


def of_cost(forecast: Forecast, profile: Profile, kept: float) -> Sequence[Check]:
    """Check for too many candidates, pairs lost in large buckets, and recipe warnings."""
    limit = profile.recipe.match.bucket_limit
    keeps = f"match.bucket_limit = {limit} keeps {kept:.2%} of the pairs that share a bucket"
    return [
        _check_share(
            "candidates",
            forecast.candidates / MANY_CANDIDATES,
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
            _LOST_BY_LIMIT,
            0.9,
        ),
        *(Check("recipe", "warning", one) for one in recipe_warnings.of_profile(profile)),
    ]


def of_fields(best: tuple[float, str, str], fields: Sequence[str], together: float) -> Check:
    """Compare the best F1 of a field alone, with its name and shingles, with that of all fields together."""
    f1, field, shingles = best
    return Check.of(
        "fields",
        "warning" if f1 > together + ALIKE_F1 else "ok",
        f"F1 {f1:.3f} of the labelled pairs by {field} alone ({shingles}), {together:.3f} by {' and '.join(fields)}",
        f"to compare that field only: --set 'fields=[\"{field}\"]'",
    )

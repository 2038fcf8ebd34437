"""Statistics of shingle sets and hashes, and the single checks with their thresholds."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.distinct_sets import DistinctSets
from nearsim_db.similarity.k_rule import KRule, Verdict
from nearsim_db.similarity.sketch import Family
from nearsim_db.similarity.text import ID_BITS

_FEWEST_EXPECTED = 5
_BUCKETS = (1009, 101, 13)
_UNLIKELY = 0.001
_FUNCTION_BUCKETS = 13
_MOST_IDS, _MOST_VALUES = 100_000, 16_000_000
_ALL_COUNTED = 4_000_000
_CROWDED = 1e-3


@dataclass(frozen=True, slots=True)
class Check:
    """A finding with its verdict, and advice where it is not ok."""

    name: str
    verdict: Verdict
    finding: str
    advice: str = ""


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


def uniformity(ids: NDArray[np.uint64]) -> Uniformity | None:
    """Test distinct ids by their remainders; None if there are too few."""
    for buckets in _BUCKETS:
        if len(ids) >= _FEWEST_EXPECTED * buckets:
            return _pearson(ids, buckets)
    return None


def function_uniformity(family: Family, ids: NDArray[np.uint64]) -> list[Uniformity]:
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


def different_ids(sets: DistinctSets, times: float) -> tuple[NDArray[np.uint64], float]:
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


def _different(ids: NDArray[np.uint64], bits: int, part: int) -> NDArray[np.uint64]:
    """Return the distinct ids in the first of `part` equal parts of their range, ascending."""
    if part > 1:
        ids = ids[ids < np.uint64((1 << bits) // part)]
    ordered = np.sort(ids)
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def check_k_rule(rule: KRule, unit: str) -> Check:
    """Check the k rule."""
    finding = (
        f"c^k / (l - k + 1) = {magnitude(rule.ratio)}: c = {rule.alphabet:,.1f} {unit} effectively in use, "
        f"k = {rule.k}, l = {rule.length:,} {unit} in a typical document"
    )
    if rule.verdict == "ok":
        return Check("k rule", "ok", finding)
    return Check(
        "k rule",
        rule.verdict,
        finding,
        "unrelated documents will share shingles by chance: use a larger shingle.k",
    )


def check_uniformity(found: Uniformity | None, base: str) -> Check:
    """Check the chi-squared test of the hash."""
    if found is None:
        return Check("hash", "ok", "too few distinct shingles to test the uniformity of the hash")
    finding = (
        f"{base} spreads {found.ids:,} shingles over {found.buckets:,} buckets with chi-squared "
        f"{found.chi_squared:,.1f}, {found.degrees_of_freedom:,} degrees of freedom, p = {found.p_value:.3f}"
    )
    if found.p_value >= _UNLIKELY:
        return Check("hash", "ok", finding)
    return Check(
        "hash", "warning", finding, "the hash is not uniform on these shingles; use hash.base = poly64"
    )


def check_functions(found: list[Uniformity]) -> Check:
    """Check the functions a x + b, with the p-value of the least uniform multiplied by their number (Bonferroni)."""
    if not found:
        return Check(
            "functions", "ok", "too few distinct shingles to test the uniformity of the functions a x + b"
        )
    worst = min(range(len(found)), key=lambda at: found[at].p_value)
    p_value = min(1.0, found[worst].p_value * len(found))
    uneven = sum(one.p_value * len(found) < _UNLIKELY for one in found)
    finding = (
        f"{len(found):,} functions a x + b spread {found[worst].ids:,} shingles over {found[worst].buckets} buckets; "
        f"the least uniform is function {worst}, with chi-squared {found[worst].chi_squared:,.1f}, "
        f"{found[worst].degrees_of_freedom} degrees of freedom, p = {p_value:.3f} among {len(found):,}"
    )
    if not uneven:
        return Check("functions", "ok", finding)
    return Check(
        "functions",
        "warning",
        f"{finding}; not uniform: {uneven:,}",
        "estimates will be off: use another sketch.seed, other sketch.coefficients, or sketch.functions = prime32",
    )


def check_hash_width(base: str, different: float) -> Check:
    """Check whether the hash is wide enough for `different` distinct shingles."""
    bits = ID_BITS[base]
    collisions = different**2 / 2 ** (bits + 1)
    finding = f"{bits} bits for about {different:,.0f} distinct shingles: {magnitude(collisions)} collisions expected"
    if different / 2**bits < _CROWDED:
        return Check("hash size", "ok", finding)
    return Check("hash size", "warning", finding, "use hash.base = poly64, which has 64 bits")


def check_share(
    name: str, share: float, finding: str, advice: str, notable: float, troublesome: float = 0.5
) -> Check:
    """Check a share of the documents that should be small."""
    if share < notable:
        return Check(name, "ok", finding)
    return Check(name, "problem" if share >= troublesome else "warning", finding, advice)


def magnitude(value: float) -> str:
    """Format a number of any size in a few characters."""
    if value == 0 or 0.1 <= value < 1e6:
        return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")

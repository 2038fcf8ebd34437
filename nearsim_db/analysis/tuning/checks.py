"""What to check of a corpus and of the shingles and hashes that are made of it."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.distinct import DistinctSets
from nearsim_db.similarity.text import ID_BITS

Verdict = Literal["ok", "warning", "problem"]

MUCH_GREATER = 100.0  # what >> is taken for
_HARDLY_GREATER = 10.0
_FEWEST_EXPECTED = 5
_BUCKETS = (1009, 101, 13)
_UNLIKELY = 0.001
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
class Units:
    """The characters or words of a corpus: how many there effectively are, and how many a typical document has.

    `alphabet` is 2 to the power of their entropy in bits: so many equally frequent ones would be as hard to guess.
    `lengths` is int64, one for each document looked at.
    """

    alphabet: float
    different: int
    lengths: NDArray[np.int64]

    @property
    def typical_length(self) -> int:
        """The median length."""
        return int(np.median(self.lengths)) if len(self.lengths) else 0

    def short(self, k: int) -> float:
        """The share of documents that are one shingle of k units or shorter, those without any left out."""
        some = self.lengths[self.lengths > 0]
        return float((some <= k).mean()) if len(some) and k > 1 else 0.0


def units_of(ids: NDArray[np.uint64], offsets: NDArray[np.int64]) -> Units:
    """The units of a batch, given the id of each: document i has `ids[offsets[i]:offsets[i + 1]]`."""
    _, counts = np.unique(ids, return_counts=True)
    shares = counts / max(len(ids), 1)
    entropy = float(-(shares * np.log(shares)).sum())
    return Units(math.exp(entropy), len(counts), np.diff(offsets))


@dataclass(frozen=True, slots=True)
class KRule:
    """The rule c^k >> l - k + 1: a given shingle should hardly ever stand in a given document by chance."""

    alphabet: float
    k: int
    length: int

    @property
    def ratio(self) -> float:
        """c^k / (l - k + 1)."""
        return math.exp(min(self.k * math.log(max(self.alphabet, 1.0)), 600)) / max(
            self.length - self.k + 1, 1
        )

    @property
    def verdict(self) -> Verdict:
        """ok from 100 times on, a problem below 10 times."""
        if self.ratio >= MUCH_GREATER:
            return "ok"
        return "warning" if self.ratio >= _HARDLY_GREATER else "problem"


@dataclass(frozen=True, slots=True)
class Uniformity:
    """Pearson's chi-squared test that ids fall evenly into buckets; `p_value` is for one so large or larger."""

    ids: int
    buckets: int
    chi_squared: float
    p_value: float

    @property
    def degrees_of_freedom(self) -> int:
        """One less than buckets."""
        return self.buckets - 1


def uniformity(ids: NDArray[np.uint64]) -> Uniformity | None:
    """Test distinct ids by their remainders; None where there are too few to tell."""
    for buckets in _BUCKETS:
        if len(ids) >= _FEWEST_EXPECTED * buckets:
            seen = np.bincount((ids % np.uint64(buckets)).astype(np.int64), minlength=buckets)
            expected = len(ids) / buckets
            squared = float(((seen - expected) ** 2).sum() / expected)
            return Uniformity(len(ids), buckets, squared, chi_squared_tail(squared, buckets - 1))
    return None


def chi_squared_tail(value: float, degrees: int) -> float:
    """The probability of a chi-squared of at least `value`, after Wilson and Hilferty (1931)."""
    spread = 2 / (9 * degrees)
    deviation = ((value / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 1 - NormalDist().cdf(deviation)


def different_ids(sets: DistinctSets, times: float) -> tuple[NDArray[np.uint64], float]:
    """The different ids, or those of an even part of their range; and how many a corpus `times` as large has in all.

    Heaps' law, read off the first half of the sets, says how they grow.
    """
    part = 1
    while len(sets.ids) // part > _ALL_COUNTED:
        part *= 2
    found = _different(sets.ids, sets.bits, part)
    before = _different(sets.ids[: sets.offsets[len(sets) // 2]], sets.bits, part)
    exponent = min(max(math.log2(max(len(found), 1) / max(len(before), 1)), 0.0), 1.0)
    return found, len(found) * part * float(times**exponent)


def _different(ids: NDArray[np.uint64], bits: int, part: int) -> NDArray[np.uint64]:
    """The different ids in the first of so many parts of their range, ascending."""
    if part > 1:
        ids = ids[ids < np.uint64((1 << bits) // part)]
    ordered = np.sort(ids)
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def check_k_rule(rule: KRule, unit: str) -> Check:
    """The k rule in words."""
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
        "unrelated documents will share shingles by chance: take a larger shingle.k",
    )


def check_uniformity(found: Uniformity | None, base: str) -> Check:
    """The chi-squared test in words."""
    if found is None:
        return Check("hash", "ok", "too few different shingles to test how evenly the hash spreads them")
    told = (
        f"{base} spreads {found.ids:,} shingles over {found.buckets:,} buckets with chi-squared "
        f"{found.chi_squared:,.1f}, {found.degrees_of_freedom:,} degrees of freedom, p = {found.p_value:.3f}"
    )
    if found.p_value >= _UNLIKELY:
        return Check("hash", "ok", told)
    return Check("hash", "warning", told, "the hash is not even on these shingles; hash.base = poly64 is")


def check_hash_width(base: str, different: float) -> Check:
    """Whether the hash has room for so many different shingles."""
    bits = ID_BITS[base]
    collisions = different**2 / 2 ** (bits + 1)
    told = f"{bits} bits for about {different:,.0f} different shingles: {magnitude(collisions)} collisions expected"
    if different / 2**bits < _CROWDED:
        return Check("hash size", "ok", told)
    return Check("hash size", "warning", told, "hash.base = poly64 has 64 bits")


def check_share(
    name: str, share: float, finding: str, advice: str, notable: float, troublesome: float = 0.5
) -> Check:
    """A share of the documents that should be small."""
    if share < notable:
        return Check(name, "ok", finding)
    return Check(name, "problem" if share >= troublesome else "warning", finding, advice)


def magnitude(value: float) -> str:
    """A number of any size in a few characters."""
    if value == 0 or 0.1 <= value < 1e6:
        return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")

"""datasketch 2.0, used as its documentation recommends for speed: bulk, xxhash instead of SHA-1, an index in
memory.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from datasketch import MinHash, MinHashLSH

# What nearsim takes for a space, so that both cut the same shingles.
_SPACES = re.compile("[\x00-\x20\x7f-\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]+")

ShingleSets = Callable[[Iterable[str]], Iterable[set[bytes]]]
HashFunction = Callable[[bytes], int]


def normalise(text: str) -> str:
    """Lowercase, collapse runs of spaces and controls to one space, strip."""
    return _SPACES.sub(" ", text.lower()).strip(" ")


def character_shingles(text: str, k: int) -> set[bytes]:
    """Return the k-character shingles of a text; a shorter text is one."""
    canonical = normalise(text)
    if len(canonical) <= k:
        return {canonical.encode()} if canonical else set()
    if canonical.isascii():
        encoded = canonical.encode("ascii")
        return {encoded[at : at + k] for at in range(len(encoded) - k + 1)}
    return {canonical[at : at + k].encode() for at in range(len(canonical) - k + 1)}


def word_shingles(text: str, k: int) -> set[bytes]:
    """Return the k-word shingles of a text, words separated by spaces; a shorter text is one."""
    words = normalise(text).split(" ")
    if len(words) <= k:
        return {" ".join(words).encode()} - {b""}
    return {" ".join(words[at : at + k]).encode() for at in range(len(words) - k + 1)}


def sign(
    shingle_sets: Iterable[Iterable[bytes]], bands: int, rows: int, k: int, hash_function: HashFunction | None
) -> list[list[bytes]]:
    """Return the band keys that MinHashLSH would store, of MinHashes made in bulk; SHA-1 without a hash function."""
    index = MinHashLSH(num_perm=k, params=(bands, rows))
    hashes = MinHash.bulk(shingle_sets, num_perm=k, hashfunc=hash_function)
    return [[index._H(one.hashvalues[begin:end]) for begin, end in index.hashranges] for one in hashes]


@dataclass(frozen=True, slots=True)
class PeerPairs:
    """Rows (left, right), left < right, that the index reports, and the shingle sets of all texts."""

    pairs: set[tuple[int, int]]
    shingle_sets: Sequence[set[bytes]]

    def verified(self, reaches: Callable[[int, int], bool]) -> dict[tuple[int, int], tuple[int, int]]:
        """Return the pairs whose exact (intersection, union) reach the threshold, with both."""
        kept = {}
        for left, right in self.pairs:
            one, other = self.shingle_sets[left], self.shingle_sets[right]
            intersection = len(one & other)
            union = len(one) + len(other) - intersection
            if reaches(intersection, union):
                kept[left, right] = intersection, union
        return kept


def find_pairs(
    texts: Sequence[str],
    shingles: Callable[[str], set[bytes]],
    threshold: float,
    k: int,
    hash_function: HashFunction | None,
) -> PeerPairs:
    """Insert every text, then query with every text; datasketch chooses its bands for the threshold."""
    sets = [shingles(text) for text in texts]
    index: Any = MinHashLSH(threshold=threshold, num_perm=k)
    hashes = MinHash.bulk(sets, num_perm=k, hashfunc=hash_function)
    for row, one in enumerate(hashes):
        if sets[row]:
            index.insert(row, one, check_duplication=False)
    pairs = {
        (other, row)
        for row, one in enumerate(hashes)
        if sets[row]
        for other in index.query(one)
        if other < row
    }
    return PeerPairs(pairs, sets)

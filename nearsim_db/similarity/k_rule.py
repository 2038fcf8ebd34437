"""The rule for the length of shingles: c^k much above l - k + 1, so that few are shared by chance.

c is the number of distinct units in use, l the length of a typical document in units (Rajaraman, Ullman: Mining of
Massive Datasets, section 3.2.2).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Ints, are_fresh
from nearsim_db.similarity.batches import SignatureRows
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.text import Shingler

Verdict = Literal["ok", "warning", "problem"]

MUCH_GREATER = 100.0  # the meaning of >>
_HARDLY_GREATER = 10.0
SAMPLE_SIZE = 500  # documents
_NO_DIGEST = bytes(16)
_FEWEST_UNITS = 1_000  # in fewer, most words occur once
_FIRST_TEXTS = 24  # about so many
_CLEARLY_GREATER = (
    100 * MUCH_GREATER
)  # the median length varies between samples, and part of the texts has fewer words
_MOST_CHARACTERS = 1_000_000
_LONGEST_SHINGLE = 1_000
_NAMES = {"char": "characters", "word": "words"}


@dataclass(frozen=True, slots=True)
class Units:
    """Statistics of the characters or words of a corpus.

    `alphabet` is the effective number of distinct units, 2 to the power of their entropy in bits. `lengths` is int64,
    one per document sampled; `distinct` the mean share of a document's units that are distinct.
    """

    alphabet: float
    lengths: Ints
    distinct: float

    @property
    def typical_length(self) -> int:
        """The median length."""
        return int(np.median(self.lengths)) if len(self.lengths) else 0

    def short(self, k: int) -> float:
        """Return the share of non-empty documents that have at most k units, one shingle."""
        some = self.lengths[self.lengths > 0]
        return float((some <= k).mean()) if len(some) and k > 1 else 0.0


def units_of(ids: Hashes, offsets: Ints) -> Units:
    """Compute the statistics from unit ids; document i has `ids[offsets[i]:offsets[i + 1]]`."""
    _, counts = np.unique(ids, return_counts=True)
    shares = counts / max(len(ids), 1)
    entropy = float(-(shares * np.log(shares)).sum())
    lengths = np.diff(offsets)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((ids, documents))
    distinct = np.bincount(documents[order], are_fresh(documents[order], ids[order]), len(lengths))
    some = lengths > 0
    share = float((distinct[some] / lengths[some]).mean()) if some.any() else 1.0
    return Units(math.exp(entropy), lengths, share)


def count_units(recipe: Recipe, unit: str, texts: Sequence[str], backend: str | None = None) -> Units:
    """Count the units ("char", "word" or "sentence") of texts normalised by the recipe."""
    scheme = "bag" if unit == "word" else unit
    rules = [f"shingle.scheme={scheme}", "shingle.k=1", "shingle.order=kept"]
    if unit == "char":
        rules += ["shingle.stopwords=none", "shingle.stem=none", "shingle.min_token_length=1"]
    elif recipe.hash.base == "djb2a-cast":
        rules += ["hash.base=djb2a-signed"]
    encoder = Encoder(resolve(override(recipe, rules)), backend)
    shingles = Shingler(encoder.profile.recipe, encoder.backend).shingles(texts)
    return units_of(shingles.ids, shingles.offsets)


@dataclass(frozen=True, slots=True)
class KRule:
    """The rule c^k >> l - k + 1: a given shingle should rarely occur in a given document by chance."""

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
        """ok from a ratio of 100, problem below 10."""
        if self.ratio >= MUCH_GREATER:
            return "ok"
        return "warning" if self.ratio >= _HARDLY_GREATER else "problem"

    def smallest_k(self) -> int | None:
        """Return the smallest k that satisfies the rule, None if none is in reach."""
        sizes = range(self.k, min(self.length, _LONGEST_SHINGLE) + 1)
        return next((k for k in sizes if KRule(self.alphabet, k, self.length).verdict == "ok"), None)


def applies(profile: Profile) -> bool:
    """Whether documents are compared by runs of characters or words, all of which count the same."""
    sketch = profile.recipe.sketch
    return sketch.input != "vector" and sketch.family != "rare" and profile.recipe.shingle.scheme in _NAMES


def warning(profile: Profile, texts: Sequence[str], backend: str | None = None) -> str | None:
    """Return a warning if shingles are too short for a sample of the texts, else None; also if they are too few."""
    scheme, k = profile.recipe.shingle.scheme, profile.recipe.shingle.k
    if not applies(profile):
        return None
    texts = _bounded(texts)

    # Some texts have no more units in use than all: if they satisfy the rule by far, the others need not be counted.
    some = texts[:: max(1, len(texts) // _FIRST_TEXTS)]
    first = count_units(profile.recipe, scheme, some, backend)
    if KRule(first.alphabet, k, first.typical_length).ratio >= _CLEARLY_GREATER:
        return None

    found = count_units(profile.recipe, scheme, texts, backend)
    rule = KRule(found.alphabet, k, found.typical_length)
    if int(found.lengths.sum()) < _FEWEST_UNITS or rule.verdict == "ok":
        return None
    enough = rule.smallest_k()
    return (
        f"shingle.k = {k} is small for these texts: of about {rule.alphabet:,.0f} {_NAMES[scheme]} in use and "
        f"{rule.length:,} in a typical document, c^k / (l - k + 1) is {rule.ratio:.2g}, which should be "
        f"{MUCH_GREATER:g} or more; unrelated documents share shingles by chance and become candidates: raise shingle.k"
        + ("" if enough is None else f" to {enough} or more")
    )


def _bounded(texts: Sequence[str]) -> list[str]:
    sizes = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return list(texts[: max(1, int(np.searchsorted(sizes, _MOST_CHARACTERS, "right")))])


class HeadSample:
    """The texts with the smallest digests, each the first of its digest: those that `sample_heads` would select."""

    def __init__(self) -> None:
        self._texts: dict[bytes, tuple[int, str]] = {}  # with doc_ids, by digest
        self._highest = np.uint64(2**64 - 1)

    def add(self, rows: SignatureRows, text_of: Callable[[int], str]) -> None:
        """Add documents, with their texts by row."""
        beginnings = rows.digests.view(">u8").reshape(-1, 2)[:, 0]
        for place in np.flatnonzero(beginnings <= self._highest).tolist():
            digest, doc_id = rows.digests[place].tobytes(), int(rows.doc_ids[place])
            if digest != _NO_DIGEST and (digest not in self._texts or doc_id < self._texts[digest][0]):
                self._texts[digest] = doc_id, text_of(place)
        self._trim()

    def _trim(self) -> None:
        if len(self._texts) > SAMPLE_SIZE:
            kept = sorted(self._texts)[:SAMPLE_SIZE]
            self._texts = {digest: self._texts[digest] for digest in kept}
            self._highest = np.uint64(int.from_bytes(kept[-1][:8]))

    def warning(self, profile: Profile, backend: str | None) -> str | None:
        """Return a warning for a profile and these texts, None if there is none."""
        return warning(profile, self.texts(), backend) if applies(profile) else None

    def texts(self) -> list[str]:
        """Return the texts, in the order of their digests."""
        return [self._texts[digest][1] for digest in sorted(self._texts)[:SAMPLE_SIZE]]

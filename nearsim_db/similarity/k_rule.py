"""The rule for the length of shingles: c^k must be much larger than l - k + 1, so that few are shared by chance.

c is the number of distinct units (characters or words) in use, and l is the number of units in a typical document
(Rajaraman, Ullman: Mining of Massive Datasets, section 3.2.2).
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

# The ratio that counts as "much larger", and the ratio below which the rule is clearly violated.
MUCH_GREATER = 100.0
_HARDLY_GREATER = 10.0
SAMPLE_SIZE = 500
_NO_DIGEST = bytes(16)
# A sample with fewer units says little, because most of its words occur only once.
_MIN_UNITS = 1_000
_FIRST_TEXTS = 24
# The ratio at which a few texts are enough for a decision. It has a margin, because the median length varies between
# samples, and a few texts have fewer distinct words than all texts.
_CLEARLY_GREATER = 100 * MUCH_GREATER
_MAX_CHARACTERS = 1_000_000
_MAX_K = 1_000
_NAMES = {"char": "characters", "word": "words"}


@dataclass(frozen=True, slots=True)
class Units:
    """Statistics of the characters or words of a corpus."""

    alphabet: float  # effective number of distinct units: 2 to the power of their entropy in bits
    lengths: Ints  # number of units in each document of the sample
    distinct: float  # number of distinct units divided by the number of units, averaged over documents

    @property
    def typical_length(self) -> int:
        """The median number of units in a document."""
        return int(np.median(self.lengths)) if len(self.lengths) else 0

    def short(self, k: int) -> float:
        """Return the fraction of non-empty documents that have at most k units, and therefore a single shingle."""
        lengths = self.lengths[self.lengths > 0]
        return float((lengths <= k).mean()) if len(lengths) and k > 1 else 0.0


def units_of(ids: Hashes, offsets: Ints) -> Units:
    """Compute statistics from the ids of units. Document i has `ids[offsets[i]:offsets[i + 1]]`."""
    _, counts = np.unique(ids, return_counts=True)
    shares = counts / max(len(ids), 1)
    entropy = float(-(shares * np.log(shares)).sum())
    lengths = np.diff(offsets)
    documents = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((ids, documents))
    distinct = np.bincount(documents[order], are_fresh(documents[order], ids[order]), len(lengths))
    has_units = lengths > 0
    share = float((distinct[has_units] / lengths[has_units]).mean()) if has_units.any() else 1.0
    return Units(math.exp(entropy), lengths, share)


def count_units(recipe: Recipe, unit: str, texts: Sequence[str], backend: str | None = None) -> Units:
    """Compute statistics of the units of texts. `unit` is "char", "word" or "sentence"; the recipe normalises texts."""
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
    """The rule c^k >> l - k + 1: it should be improbable that a document contains a certain shingle by chance."""

    alphabet: float  # c
    k: int
    length: int  # l

    @property
    def ratio(self) -> float:
        """c^k / (l - k + 1)."""
        return math.exp(min(self.k * math.log(max(self.alphabet, 1.0)), 600)) / max(
            self.length - self.k + 1, 1
        )

    @property
    def verdict(self) -> Verdict:
        """ok for a ratio of at least 100, warning for at least 10, otherwise problem."""
        if self.ratio >= MUCH_GREATER:
            return "ok"
        return "warning" if self.ratio >= _HARDLY_GREATER else "problem"

    def smallest_k(self) -> int | None:
        """Return the smallest k that satisfies the rule, or None if no k up to the length of a document does."""
        sizes = range(self.k, min(self.length, _MAX_K) + 1)
        return next((k for k in sizes if KRule(self.alphabet, k, self.length).verdict == "ok"), None)


def applies(profile: Profile) -> bool:
    """Whether the rule applies: documents are compared by runs of characters or words, all of the same weight."""
    sketch = profile.recipe.sketch
    return sketch.input != "vector" and sketch.family != "rare" and profile.recipe.shingle.scheme in _NAMES


def warning(profile: Profile, texts: Sequence[str], backend: str | None = None) -> str | None:
    """Return a warning if shingles are too short for a sample of texts.

    Returns None if they are long enough, if the rule does not apply, or if the sample is too small.
    """
    scheme, k = profile.recipe.shingle.scheme, profile.recipe.shingle.k
    if not applies(profile):
        return None
    texts = _bounded(texts)

    # A few texts have at most as many distinct units as all texts. If they satisfy the rule by far, all texts do.
    first_texts = texts[:: max(1, len(texts) // _FIRST_TEXTS)]
    units = count_units(profile.recipe, scheme, first_texts, backend)
    if KRule(units.alphabet, k, units.typical_length).ratio >= _CLEARLY_GREATER:
        return None

    units = count_units(profile.recipe, scheme, texts, backend)
    rule = KRule(units.alphabet, k, units.typical_length)
    if int(units.lengths.sum()) < _MIN_UNITS or rule.verdict == "ok":
        return None
    sufficient_k = rule.smallest_k()
    return (
        f"shingle.k = {k} is small for these texts: of about {rule.alphabet:,.0f} {_NAMES[scheme]} in use and "
        f"{rule.length:,} in a typical document, c^k / (l - k + 1) is {rule.ratio:.2g}, which should be "
        f"{MUCH_GREATER:g} or more; unrelated documents share shingles by chance and become candidates: raise shingle.k"
        + ("" if sufficient_k is None else f" to {sufficient_k} or more")
    )


def _bounded(texts: Sequence[str]) -> list[str]:
    sizes = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return list(texts[: max(1, int(np.searchsorted(sizes, _MAX_CHARACTERS, "right")))])


class HeadSample:
    """Collects the texts with the smallest digests while documents are encoded.

    Of documents with the same digest, the text of the smallest doc_id is kept. These are the texts that the query
    `sample_heads` selects from an index.
    """

    def __init__(self) -> None:
        # The doc_id and the text of each digest.
        self._texts: dict[bytes, tuple[int, str]] = {}
        self._highest = np.uint64(2**64 - 1)

    def add(self, rows: SignatureRows, text_of: Callable[[int], str]) -> None:
        """Add documents. `text_of` returns the text of a row."""
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
        """Return a warning if shingles are too short for these texts, otherwise None; see the function `warning`."""
        return warning(profile, self.texts(), backend) if applies(profile) else None

    def texts(self) -> list[str]:
        """Return the texts, in the order of their digests."""
        return [self._texts[digest][1] for digest in sorted(self._texts)[:SAMPLE_SIZE]]

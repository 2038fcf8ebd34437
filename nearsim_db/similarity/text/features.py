"""Shingles: normalise texts, split them into shingles, and hash the shingles to ids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nearsim_db.similarity.arrays import Hashes, Ints, offsets_of, places_of
from nearsim_db.similarity.backend import Backend, text_kernels
from nearsim_db.similarity.mixing import GOLDEN, fmix64
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text import separators, words
from nearsim_db.similarity.text.code import Lexer
from nearsim_db.similarity.text.kernels import TextKernels
from nearsim_db.similarity.text.masks import Masks
from nearsim_db.similarity.text.normalise import Canonical, from_texts, low_bytes, make_fold, squeeze
from nearsim_db.similarity.text.words import WordFilter, word_filter

SCHEME_VERSION = 1
ID_BITS = {"poly64": 64, "crc32": 32, "djb2a": 32, "djb2a-signed": 32, "djb2a-cast": 32}

_SPACE, _NEWLINE = 32, 10
_TABLES: dict[str, Callable[[bool], separators.Table]] = {
    "whitespace": separators.spaces,
    "unicode": separators.unicode_words,
    "ascii": separators.ascii_words,
    "code": separators.spaces,
}


@dataclass(frozen=True, slots=True)
class Shingles:
    """The shingle ids of a batch: document i has `ids[offsets[i]:offsets[i + 1]]`, with repetitions.

    A document without shingles has no features.
    """

    ids: Hashes
    offsets: Ints  # n + 1
    canonical: Canonical  # the normalised texts, before words are dropped or stemmed
    unmasked: Canonical  # the same texts without masks
    kernels: TextKernels

    @property
    def numbers(self) -> Hashes:
        """A digest of the runs of digits in each text, 0 if it has none: uint64 of n, computed on every access."""
        return self.kernels.number_sums(self.unmasked.data, self.unmasked.offsets)

    def distinct(self) -> tuple[Hashes, Ints, Ints]:
        """Return the sorted distinct ids of each document, their offsets, and how often each id occurs."""
        return self.kernels.distinct(self.ids, self.offsets)


class Shingler:
    """Splits texts into shingles as a recipe specifies. It keeps no state between calls, so threads may share it."""

    def __init__(self, recipe: Recipe, backend: Backend) -> None:
        self._rules = recipe.shingle
        self._base = recipe.hash.base
        self._fold = make_fold(recipe.normalise)
        self._masks = Masks(recipe.normalise.mask) if recipe.normalise.mask else None
        self._keeps_ascii = not recipe.normalise.html and recipe.normalise.confusables == "keep"
        self._fold_ascii = recipe.normalise.case != "none"
        self._collapse = recipe.normalise.whitespace == "collapse"
        self._backend = backend
        self.lexer: Lexer | None = Lexer(self._rules.language) if self._rules.language else None
        self.word_filter: WordFilter | None = word_filter(self._rules, self._canonical_word)

    @property
    def _kernels(self) -> TextKernels:
        return text_kernels(self._backend)

    def canonical(self, texts: Sequence[str]) -> Canonical:
        """Normalise cleaned texts. The results are what is split into characters or words."""
        return self._squeeze(self._masked(self._folded(texts)))

    def _folded(self, texts: Sequence[str]) -> Sequence[str]:
        if self.lexer is not None:
            texts = [self.lexer.written(text) for text in texts]
        is_plain = self._keeps_ascii and all(map(str.isascii, texts))
        return texts if is_plain else [self._fold(text) for text in texts]

    def _masked(self, texts: Sequence[str]) -> Sequence[str]:
        return texts if self._masks is None else [self._masks(text) for text in texts]

    def shingles(self, texts: Sequence[str]) -> Shingles:
        """Return the shingle ids of cleaned texts (no NUL, no lone surrogates)."""
        folded = self._folded(texts)
        masked = self._masked(folded)
        if self._rules.scheme == "sentence":
            ids, offsets, canonical = self._sentence_shingles(masked)
        else:
            canonical = self._squeeze(masked)
            ids, offsets = self._shingles_of(canonical)
        unmasked = canonical if self._masks is None else self._squeeze(folded)
        return Shingles(ids, offsets, canonical, unmasked, self._kernels)

    def written(self, text: str) -> list[str]:
        """Return the shingles of a cleaned text as strings, in the order of `shingles`."""
        masked = self._masked(self._folded([text]))
        if self._rules.scheme == "sentence":
            lines = [self._squeeze([sentence]).text(0) for sentence in words.split(masked[0])]
            kept = lines if self.word_filter is None else map(self.word_filter, lines)
            return _runs([line for line in kept if line], self._rules.k, "\n")

        canonical = self._squeeze(masked).text(0)
        if self._base == "djb2a-cast":
            # Shingles are runs of UTF-16 units, which may begin or end within a character.
            data, k = canonical.encode("utf-16-le"), 2 * self._rules.k
            begins = range(0, max(len(data) - k, 0) + 1, 2) if data else ()
            return [data[at : at + k].decode("utf-16-le", "replace") for at in begins]
        if self._rules.scheme == "char":
            return _runs(list(canonical), self._rules.k, "")
        units = canonical if self.word_filter is None else self.word_filter(canonical)
        return _runs(units.split(), 1 if self._rules.scheme == "bag" else self._rules.k, " ")

    def _shingles_of(self, canonical: Canonical) -> tuple[Hashes, Ints]:
        """Return the ids and the offsets of the shingles, which are runs of characters or words."""
        if self._rules.scheme == "char":
            return self._char_shingles(canonical)
        units = canonical
        if self.word_filter is not None:
            units = from_texts(
                [self.word_filter(canonical.text(i)) for i in range(len(canonical.offsets) - 1)]
            )
        k = 1 if self._rules.scheme == "bag" else self._rules.k
        return self._unit_shingles(units, k, _SPACE)

    def _char_shingles(self, canonical: Canonical) -> tuple[Hashes, Ints]:
        if self._base == "djb2a-cast":
            data, begins = low_bytes(canonical)
            return self._kernels.char_ids(data, begins, self._rules.k, "djb2a-signed", True)
        return self._kernels.char_ids(
            canonical.data, canonical.offsets, self._rules.k, self._base, canonical.ascii
        )

    def _sentence_shingles(self, texts: Sequence[str]) -> tuple[Hashes, Ints, Canonical]:
        """Return the ids and offsets of shingles of sentences, and the normalised texts.

        Sentences are normalised one by one. Newlines then separate them, because no normalised word contains a newline.
        """
        parts = [words.split(text) for text in texts]
        canonical = self._squeeze([sentence for document in parts for sentence in document])
        lines = iter([canonical.text(i) for i in range(len(canonical.offsets) - 1)])
        per_document = [[next(lines) for _ in document] for document in parts]
        whole = from_texts([" ".join(document) for document in per_document])
        if self.word_filter is not None:
            per_document = [[self.word_filter(line) for line in document] for document in per_document]
        joined = from_texts(["\n".join(filter(None, document)) for document in per_document])
        return *self._unit_shingles(joined, self._rules.k, _NEWLINE), whole

    def _unit_shingles(self, units: Canonical, k: int, separator: int) -> tuple[Hashes, Ints]:
        is_free = self._rules.order == "free"
        ids, offsets = self._kernels.unit_ids(
            units.data, units.offsets, 1 if is_free else k, self._base, separator
        )
        return free_ids(ids, offsets, k) if is_free else (ids, offsets)

    @property
    def table(self) -> separators.Table:
        """The code points that separate words; if shingles are characters, those whose runs become one space."""
        by_characters = self._rules.scheme == "char"
        if by_characters and not self._collapse:
            return separators.nothing(self._fold_ascii)
        return _TABLES["whitespace" if by_characters else self._rules.tokens](self._fold_ascii)

    def _squeeze(self, texts: Sequence[str]) -> Canonical:
        return squeeze(texts, self.table, self._kernels)

    def _canonical_word(self, word: str) -> str:
        return self._squeeze([self._fold(word)]).text(0)


def _runs(units: Sequence[str], k: int, separator: str) -> list[str]:
    """Return each run of k units, joined by the separator; one to k - 1 units make a single run."""
    count = max(1, len(units) - k + 1) if units else 0
    return [separator.join(units[at : at + k]) for at in range(count)]


def free_ids(words: Hashes, offsets: Ints, k: int) -> tuple[Hashes, Ints]:
    """Return the ids of shingles whose words may have any order, and the offsets of the documents in them.

    Document i has the words `words[offsets[i]:offsets[i + 1]]`. Each run of `k` words is a shingle; one to k - 1 words
    make a single shingle. Two shingles are equal if each word occurs in both the same number of times.
    """
    counts = np.diff(offsets)
    shingles = np.where(counts > 0, np.maximum(counts - k + 1, 1), 0)
    ends = offsets_of(shingles)
    if not ends[-1]:
        return np.zeros(0, np.uint64), ends
    places = places_of(offsets[:-1], shingles)[:, np.newaxis] + np.arange(k)
    # A short document has fewer words than its shingle has columns.
    is_word = places < np.repeat(offsets[1:], shingles)[:, np.newaxis]
    units = np.where(is_word, words[np.minimum(places, len(words) - 1)], np.uint64(0))
    units.sort(axis=1)
    ids = np.zeros(len(units), np.uint64)
    for column in units.T:
        ids = fmix64(ids * np.uint64(GOLDEN) + column)
    return ids, ends

"""The tokens of a text with their places in it: the units that a recipe makes shingles of, each with its characters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from nearsim_db.similarity.arrays import Hashes, Ints, Mask
from nearsim_db.similarity.backend import Backend, text_kernels
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text import separators
from nearsim_db.similarity.text.features import Shingler
from nearsim_db.similarity.text.masks import Masks
from nearsim_db.similarity.text.normalise import from_texts, make_fold

_SPACE = 32
# A run without ASCII white space that has a character beyond ASCII; folding never looks beyond such white space.
_CHUNK = re.compile(r"(?<![^\t-\r ])[\0-\x08\x0e-\x1f!-\x7f]*+[^\0-\x7f][^\t-\r ]*+")
# Where words of ASCII may be folded too.
_DIVIDED_CHUNK = re.compile(r"[^\t-\r ]++")
# From the middle of a chunk: where it may be cut.
_SHIFTS = (0, 1, -1, 2)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The n tokens of a text, in order: `ids` are equal for equal tokens, uint64.

    Token i is made of the characters `begins[i]` to `ends[i]` of `text`, int64; `words[i]` is its number among the
    units of the text before any were dropped, int64. `ignored` are the shingles of them that are left out,
    a mask, None if there are none.
    """

    text: str
    ids: Hashes
    begins: Ints
    ends: Ints
    words: Ints
    ignored: Mask | None = None

    def __len__(self) -> int:
        return len(self.ids)


class Tokeniser:
    """Cuts texts into the units of which a recipe makes shingles: words, or characters. Threads may share it.

    Sentences are taken as words. Where a normal form spans characters that cannot be told apart, the tokens made of
    them have all of them as their place.
    """

    def __init__(self, recipe: Recipe, backend: Backend) -> None:
        self._shingler = Shingler(recipe, backend)
        self._kernels = text_kernels(backend)
        self._by_characters = recipe.shingle.scheme == "char"
        self._fold = make_fold(replace(recipe.normalise, html=False))
        self._fold_one = lru_cache(maxsize=1 << 16)(self._fold)
        self._keeps_ascii = recipe.normalise.confusables == "keep"
        self._masks = Masks(recipe.normalise.mask) if recipe.normalise.mask else None

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a cleaned text (no NUL, no lone surrogates) without the HTML that is not compared."""
        if self._shingler.lexer is None:
            return self._tokens(text)
        words, begins, ends = self._shingler.lexer.located(text)
        tokens = self._tokens(words)
        return Tokens(text, tokens.ids, begins[tokens.begins], ends[tokens.ends - 1], tokens.words)

    def _tokens(self, text: str) -> Tokens:
        folded, begins, ends = self._located(text)
        if self._masks is not None:
            folded, begins, ends = self._masks.located(folded, begins, ends)
        codes = np.frombuffer(folded.encode("utf-32-le"), "<u4").astype(np.int64)
        table = self._shingler.table
        separates = table[codes] == separators.SEPARATOR
        codes = np.where(codes < 128, table[codes], codes)
        if self._by_characters:
            return self._characters(text, codes, separates, begins, ends)
        return self._words(text, codes, separates, begins, ends)

    def _characters(self, text: str, codes: Ints, separates: Mask, begins: Ints, ends: Ints) -> Tokens:
        """Take each character, and one space for a run of separators between others."""
        kept = np.flatnonzero(_first_of_runs(separates))
        units = np.where(separates[kept], _SPACE, codes[kept]).astype(np.uint64)
        return Tokens(text, units, begins[kept], ends[kept], np.arange(len(kept)))

    def _words(self, text: str, codes: Ints, separates: Mask, begins: Ints, ends: Ints) -> Tokens:
        kept = _first_of_runs(separates)
        canonical = np.where(separates, _SPACE, codes)[kept].astype("<u4").tobytes().decode("utf-32-le")
        edges = np.diff(np.concatenate(([False], ~separates, [False])).astype(np.int8))
        firsts, lasts = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
        words = np.arange(len(firsts))
        if self._shingler.word_filter is not None and canonical:
            places, stems = self._shingler.word_filter.kept(canonical.split(" "))
            words, canonical = np.array(places, np.int64), " ".join(stems)
        units = from_texts([canonical])
        ids, _ = self._kernels.unit_ids(units.data, units.offsets, 1, "poly64", _SPACE)
        return Tokens(text, ids, begins[firsts[words]], ends[lasts[words]], words)

    def _located(self, text: str) -> tuple[str, Ints, Ints]:
        """Fold a text; also return the begin and the end in it of what each folded character is made of."""
        if text.isascii() and self._keeps_ascii:
            places = np.arange(len(text) + 1)
            return text, places[:-1], places[1:]

        folded: list[str] = []
        sizes: list[Ints] = []  # of pieces that fold by themselves: characters before, and after
        lengths: list[Ints] = []
        at = 0
        chunks = _CHUNK if self._keeps_ascii else _DIVIDED_CHUNK
        for chunk in [*chunks.finditer(text), None]:
            plain = text[at : chunk.start() if chunk else len(text)]
            folded.append(plain)
            sizes.append(np.ones(len(plain), np.int64))
            lengths.append(sizes[-1])
            if chunk:
                pieces = list(self._split(chunk[0]))
                folded += [piece for piece, _ in pieces]
                sizes.append(np.array([size for _, size in pieces], np.int64))
                lengths.append(np.array([len(piece) for piece, _ in pieces], np.int64))
                at = chunk.end()

        # A piece that folds to several characters has its place for each of them.
        own, counts = np.concatenate(sizes), np.concatenate(lengths)
        ends = np.cumsum(own)
        return "".join(folded), np.repeat(ends - own, counts), np.repeat(ends, counts)

    def _split(self, chunk: str) -> Iterator[tuple[str, int]]:
        """Yield the parts of a chunk, folded, and their sizes: the smallest that fold to the same as the whole."""
        whole = self._fold(chunk)
        single = [self._fold_one(character) for character in chunk]
        if "".join(single) == whole:
            yield from ((token, 1) for token in single)
            return
        for cut in (len(chunk) // 2 + shift for shift in _SHIFTS):
            if 0 < cut < len(chunk) and self._fold(chunk[:cut]) + self._fold(chunk[cut:]) == whole:
                yield from self._split(chunk[:cut])
                yield from self._split(chunk[cut:])
                return
        yield whole, len(chunk)


def _first_of_runs(separates: Mask) -> Mask:
    """Mark all that separates nothing, and the first of each run of separators between two others."""
    kept = ~separates
    between = np.flatnonzero(kept)
    if not len(between):
        return kept
    firsts = between[:-1][np.diff(between) > 1] + 1
    kept = kept.copy()
    kept[firsts] = True
    return kept

"""Tokens: the words or characters from which a recipe makes shingles, each with its place in the text."""

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
# A run without ASCII white space that has a non-ASCII character. Folding a chunk never depends on text outside it.
_CHUNK = re.compile(r"(?<![^\t-\r ])[\0-\x08\x0e-\x1f!-\x7f]*+[^\0-\x7f][^\t-\r ]*+")
# The chunks if folding also changes ASCII words, such as f.r.e.e.
_DIVIDED_CHUNK = re.compile(r"[^\t-\r ]++")
# Places at which a chunk may be cut, as distances from its middle.
_SHIFTS = (0, 1, -1, 2)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The n tokens of a text, in order."""

    text: str
    ids: Hashes  # equal tokens have equal ids
    begins: Ints  # where each token begins in `text`
    ends: Ints  # where each token ends in `text`, excluded
    words: Ints  # the number of each token among all words of the text, including dropped words
    ignored: Mask | None = None  # which of the tokens' shingles are left out; None if none is

    def __len__(self) -> int:
        return len(self.ids)


class Tokeniser:
    """Cuts texts into the units from which a recipe makes shingles: words or characters. Threads may share it.

    For a recipe of sentences the units are words. If normalisation merges several characters so that they cannot be
    separated, each token made from them has all of these characters as its place.
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
        """Return the tokens of a cleaned text: no NUL, no lone surrogates, and no markup that is not compared."""
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
        """Make a token of each character, and one token, a space, of each run of separators between characters."""
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
        """Return a folded text, and the begin and end in `text` of the part that each folded character comes from."""
        if text.isascii() and self._keeps_ascii:
            places = np.arange(len(text) + 1)
            return text, places[:-1], places[1:]

        folded: list[str] = []
        sizes: list[Ints] = []  # characters of each piece before folding
        lengths: list[Ints] = []  # characters of each piece after folding
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

        # If a piece folds to several characters, each of them has the place of the piece.
        piece_sizes, counts = np.concatenate(sizes), np.concatenate(lengths)
        ends = np.cumsum(piece_sizes)
        return "".join(folded), np.repeat(ends - piece_sizes, counts), np.repeat(ends, counts)

    def _split(self, chunk: str) -> Iterator[tuple[str, int]]:
        """Cut a chunk into the smallest parts that fold independently; yield each part, folded, and its size."""
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
    """Mark all characters that are not separators, and the first separator of each run between two of them."""
    kept = ~separates
    between = np.flatnonzero(kept)
    if not len(between):
        return kept
    firsts = between[:-1][np.diff(between) > 1] + 1
    kept = kept.copy()
    kept[firsts] = True
    return kept

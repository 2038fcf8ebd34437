"""Passages: the parts of two texts that are copies, with their places in both.

A seed is a run of k tokens that both texts have, at a place in each. Two seeds are chained if one follows the other in
both texts, at most `gap` tokens after its end in either, and a passage is what chains connect. A paragraph that was
moved is therefore a passage of its own. A passage is kept if it is long and dense enough; if it is not dense enough,
its runs of seeds that are long enough by themselves are kept instead. Passages that overlap in both texts are united.
If the order of words does not count, seeds are pairs of words, passages near each other in both texts are united too,
and a passage that half overlaps a longer one is left out.

A run that occurs a times in one text and b times in the other has a x b seeds, up to MAX_SEEDS_PER_RUN; beyond that the
n-th occurrence is paired with the n-th only. So the time is about linear in the lengths of the texts, whatever
they repeat.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from nearsim_db.errors import InputError
from nearsim_db.similarity.arrays import Floats, Hashes, Ints, Mask, are_fresh, places_of
from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.clustering import connected_components
from nearsim_db.similarity.common_shingles import are_in, ignored_ids
from nearsim_db.similarity.mixing import fmix64
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe.validation import DEFAULT_GAP_WORDS, DEFAULT_PASSAGE
from nearsim_db.similarity.text import Shingler
from nearsim_db.similarity.text.features import free_ids
from nearsim_db.similarity.text.tokens import Tokeniser, Tokens

MAX_SEEDS_PER_RUN = 100
MIN_SHARE = 0.5
# For words in any order: a reworded text has more words between equal runs, and more such runs are by chance. Chosen on
# the training part of the corpus of PAN 2013.
_FREE_SEED_TOKENS, _MIN_FREE_LENGTH, _MIN_FREE_SHARE = 2, 18, 0.28
# All passages of two texts are compared with each other, unless there are more.
_MAX_UNITED_PASSAGES = 1_000
# For bags of words and for sentences, whose shingles are no runs of words.
_DEFAULT_K = 5
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class PassageRules:
    """What a passage is made of."""

    k: int  # tokens of an equal run
    gap: int = DEFAULT_GAP_WORDS  # tokens between equal runs, at most
    length: int = DEFAULT_PASSAGE  # tokens of a passage, at least
    share: float = MIN_SHARE  # of its tokens that are in equal runs, at least, from 0 to 1
    is_free: bool = False  # whether runs are equal whatever the order of their tokens

    @property
    def seed(self) -> int:
        """The tokens of a seed."""
        return min(self.k, _FREE_SEED_TOKENS) if self.is_free else self.k

    @property
    def min_length(self) -> int:
        """The fewest tokens of a passage."""
        return max(self.length, _MIN_FREE_LENGTH) if self.is_free else self.length

    @classmethod
    def of(cls, recipe: Recipe) -> "PassageRules":
        """Return the rules of a recipe. Raises InputError if it compares vectors."""
        if recipe.sketch.input == "vector":
            raise InputError(
                "the profile compares vectors, which have no passages; name one of texts with --profile"
            )
        match, shingle = recipe.match, recipe.shingle
        k = shingle.k if shingle.scheme in ("word", "char") else _DEFAULT_K
        gap = DEFAULT_GAP_WORDS if match.passage_gap is None else match.passage_gap
        is_free = shingle.order == "free"
        share = _MIN_FREE_SHARE if is_free else MIN_SHARE
        return cls(k, gap, max(k, match.passage or DEFAULT_PASSAGE), share, is_free)


@dataclass(frozen=True, slots=True)
class Span:
    """Part of one text."""

    start: int  # in characters
    end: int  # in characters, excluded
    first_word: int
    end_word: int  # excluded
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of two texts."""

    left: Span
    right: Span
    equal: int  # tokens in runs that both texts have
    share: float  # `equal` as a share of the tokens of the longer side
    documents: int | None = (
        None  # half of its fingerprints are each in at most so many texts; None if not counted
    )


class PassageFinder:
    """Finds the passages of texts under a recipe; threads may share it."""

    def __init__(self, recipe: Recipe, backend: Backend, common: Hashes | None = None) -> None:
        """`common` are shingles that are left out. Raises InputError if the recipe compares vectors."""
        self.rules: PassageRules = PassageRules.of(recipe)
        self._tokeniser = Tokeniser(recipe, backend)
        without_tags = replace(recipe.normalise, html=False)
        self._shingler = Shingler(replace(recipe, normalise=without_tags), backend)
        self._ignored = ignored_ids(recipe, self._shingler)
        if common is not None:
            self._ignored = np.union1d(self._ignored, common)

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a cleaned text without markup."""
        tokens = self._tokeniser.tokens(text)
        if not len(self._ignored) or len(tokens) < self.rules.k:
            return tokens

        # A seed may be shorter than a shingle; it is ignored if any shingle that contains it is.
        ignored = are_in(self._ignored, self._shingler.shingles([text]).ids)
        shorter = self.rules.k - self.rules.seed
        seeds = np.zeros(len(ignored) + shorter, np.bool_)
        for shift in range(shorter + 1):
            seeds[shift : shift + len(ignored)] |= ignored
        return dataclasses.replace(tokens, ignored=seeds)

    def find(self, left: str, right: str) -> list[Passage]:
        """Return the passages of two cleaned texts without markup, as `find_passages` does."""
        return find_passages(self.tokens(left), self.tokens(right), self.rules)


def find_passages(left: Tokens, right: Tokens, rules: PassageRules) -> list[Passage]:
    """Return the passages of two texts, ordered as by `rare_first`; texts of fewer than k tokens have none."""
    return rare_first(
        Passage(_span(left, i, i_end), _span(right, j, j_end), equal, share)
        for i, i_end, j, j_end, equal, share in _boxes(left, right, rules)
    )


def rare_first(passages: Iterable[Passage]) -> list[Passage]:
    """Return passages in order: in the fewest documents first, then the longest, then by their places."""

    def rank(passage: Passage) -> tuple[int, int, int, int]:
        return passage.documents or 0, -passage.equal, passage.left.start, passage.right.start

    return sorted(passages, key=rank)


def _span(tokens: Tokens, begin: int, end: int) -> Span:
    start, stop = int(tokens.begins[begin]), int(tokens.ends[end - 1])
    words = int(tokens.words[begin]), int(tokens.words[end - 1]) + 1
    return Span(start, stop, *words, tokens.text[start:stop])


def _boxes(
    left: Tokens, right: Tokens, rules: PassageRules
) -> Iterator[tuple[int, int, int, int, int, float]]:
    """Yield the passages as begin and end in either text, equal tokens and their share."""
    runs = matching_runs(_grams(left, rules, 0), _grams(right, rules, 1))
    if not len(runs):
        return

    begins, ends = runs[:, :2], runs[:, :2] + runs[:, 2:] + rules.seed - 1
    groups = _chained(runs, rules.seed + rules.gap)
    low, high, equal, shares = _hulls(groups, begins, ends)

    # Each run of a passage that is not dense enough is a group of its own.
    if (is_thin := shares < rules.share).any():
        of_thin = is_thin[np.unique(groups, return_inverse=True)[1]]
        groups = np.where(of_thin, len(runs) + np.arange(len(runs)), groups)
        low, high, equal, shares = _hulls(groups, begins, ends)

    kept = ((high - low).min(axis=1) >= rules.min_length) & (shares >= rules.share)
    if not kept.any():
        return
    of_kept = kept[np.unique(groups, return_inverse=True)[1]]
    low, high, equal, shares = _united(groups[of_kept], begins[of_kept], ends[of_kept], rules)
    kept = _longest(low, high) if rules.is_free else np.ones(len(low), np.bool_)
    for (i, j), (i_end, j_end), count, share in zip(
        low[kept].tolist(), high[kept].tolist(), equal[kept].tolist(), shares[kept].tolist(), strict=True
    ):
        yield i, i_end, j, j_end, count, round(share, 6)


def _united(groups: Ints, begins: Ints, ends: Ints, rules: PassageRules) -> tuple[Ints, Ints, Ints, Floats]:
    """Unite groups that overlap in both texts, or are near each other if the order of words is free; see `_hulls`."""
    reach = 2 * rules.gap if rules.is_free else 0
    while True:
        low, high, equal, shares = _hulls(groups, begins, ends)
        if len(low) > _MAX_UNITED_PASSAGES:
            return low, high, equal, shares
        lengths = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
        # Each is connected with itself, too.
        edges = np.argwhere((lengths > -reach).all(axis=2))
        label = connected_components(edges + 1)[1]
        if len(np.unique(label)) == len(low):
            return low, high, equal, shares
        groups = label[np.unique(groups, return_inverse=True)[1]]


def _longest(low: Ints, high: Ints) -> Mask:
    """Return which passages are not half covered by a longer one in either text."""
    kept, lengths = np.zeros(len(low), np.bool_), high - low
    for at in np.argsort(-lengths.sum(axis=1), kind="stable")[:_MAX_UNITED_PASSAGES].tolist():
        shared = np.minimum(high[kept], high[at]) - np.maximum(low[kept], low[at])
        kept[at] = not (2 * shared >= lengths[at]).any()
    return kept


def _hulls(groups: Ints, begins: Ints, ends: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """Return begin and end of each group in both texts, its equal tokens and their share, by group."""
    order = np.argsort(groups, kind="stable")
    firsts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    low, high = np.minimum.reduceat(begins[order], firsts), np.maximum.reduceat(ends[order], firsts)
    equal = np.minimum(*(_covered(groups, begins[:, side], ends[:, side]) for side in (0, 1)))
    return low, high, equal, equal / (high - low).max(axis=1)


def _grams(tokens: Tokens, rules: PassageRules, side: int) -> Hashes:
    """Return the id of each run of k tokens; an ignored run has an id that the other side does not have."""
    ids = grams(tokens.ids, rules.seed, is_free=rules.is_free)
    if tokens.ignored is None:
        return ids
    unique_ids = fmix64(2 * np.arange(len(ids), dtype=np.uint64) + np.uint64(side))
    return np.where(tokens.ignored, unique_ids, ids)


def matching_runs(left: Hashes, right: Hashes) -> Ints:
    """Return the maximal runs of equal ids as (place in left, place in right, ids), int64 of (m, 3), by left place."""
    lefts, rights = _seeds(left, right)
    order = np.lexsort((lefts, rights - lefts))
    lefts, rights = lefts[order], rights[order]
    diagonals = rights - lefts
    is_first = (np.diff(lefts, prepend=-2) != 1) | (np.diff(diagonals, prepend=diagonals[:1] - 1) != 0)
    firsts = np.flatnonzero(is_first)
    sizes = np.diff(firsts, append=len(lefts))
    runs = np.stack((lefts[firsts], rights[firsts], sizes), axis=1)
    return runs[np.lexsort((runs[:, 1], runs[:, 0]))]


def grams(ids: Hashes, k: int, *, is_free: bool = False) -> Hashes:
    """Return the id of each run of k tokens: uint64 of n - k + 1, none if there are fewer than k."""
    count = max(len(ids) - k + 1, 0)
    if is_free and count:
        return free_ids(ids, np.array([0, len(ids)]), k)[0]
    run_ids = np.zeros(count, np.uint64)
    for shift in range(k if count else 0):
        run_ids = run_ids * _FACTOR + ids[shift : shift + count]
    return run_ids


def _seeds(left: Hashes, right: Hashes) -> tuple[Ints, Ints]:
    """Return the places of equal ids in both arrays, in no order."""
    lefts, left_begins, left_counts = _grouped(left)
    rights, right_begins, right_counts = _grouped(right)
    _, left_groups, right_groups = np.intersect1d(
        left[lefts[left_begins]], right[rights[right_begins]], assume_unique=True, return_indices=True
    )

    # Of a and b places of an id, all pairs are taken, or only the n-th with the n-th if there are too many.
    a, b = left_counts[left_groups], right_counts[right_groups]
    is_limited = a * b > MAX_SEEDS_PER_RUN
    pairs = np.where(is_limited, np.minimum(a, b), a * b)
    rank = places_of(np.zeros_like(pairs), pairs)
    width, limited = np.repeat(b, pairs), np.repeat(is_limited, pairs)
    left_rank, right_rank = np.where(limited, rank, rank // width), np.where(limited, rank, rank % width)
    return (
        lefts[np.repeat(left_begins[left_groups], pairs) + left_rank],
        rights[np.repeat(right_begins[right_groups], pairs) + right_rank],
    )


def _grouped(ids: Hashes) -> tuple[Ints, Ints, Ints]:
    """Return the places of ids by id, then ascending, and the begin and the size of the group of each distinct id."""
    order = np.argsort(ids, kind="stable")
    begins = np.flatnonzero(are_fresh(ids[order]))
    return order, begins, np.diff(begins, append=len(ids))


def _chained(runs: Ints, reach: int) -> Ints:
    """Return for each run of seeds the smallest run that chains connect it with.

    `reach` is k + gap. Chained runs lie on diagonals less than `reach` apart, so each is compared with those after it
    in its own strip of diagonals and in both beside it.
    """
    strips = (runs[:, 1] - runs[:, 0]) // reach
    edges = [np.zeros((0, 2), np.int64)]
    for beside in (0, 1):
        # Strips are joined in pairs, (0, 1), (2, 3) and (1, 2), (3, 4), so that neighbours meet once at least.
        order = np.lexsort((runs[:, 0], (strips + beside) // 2))
        ordered, group = runs[order], (strips[order] + beside) // 2

        # Compare each run with the next one, then with the one after it, until all later ones are too far away.
        open_rows = np.arange(len(ordered))
        for step in range(1, len(ordered)):
            open_rows = open_rows[open_rows + step < len(ordered)]
            after = open_rows + step
            is_near = (group[after] == group[open_rows]) & (
                ordered[after, 0] < ordered[open_rows, 0] + ordered[open_rows, 2] + reach
            )
            open_rows, after = open_rows[is_near], after[is_near]
            if not len(open_rows):
                break
            earlier, later = ordered[open_rows], ordered[after]
            are_chained = _follow(earlier, later, reach) | _follow(later, earlier, reach)
            edges.append(np.stack((order[open_rows[are_chained]], order[after[are_chained]]), axis=1))

    # An edge of each run with itself, so that runs without a chain are components too.
    loops = np.arange(len(runs))
    all_edges = np.concatenate([*edges, np.stack((loops, loops), axis=1)]) + 1
    return connected_components(all_edges)[1] - 1


def _follow(earlier: Ints, later: Ints, reach: int) -> Mask:
    """Return whether a seed of the later run follows a seed of the earlier one in both texts, by at most `reach`."""
    apart = later[:, :2] - earlier[:, :2]
    min_shift = np.maximum(1 - earlier[:, 2], 1 - apart.min(axis=1))
    max_shift = np.minimum(later[:, 2] - 1, reach - apart.max(axis=1))
    follows: Mask = min_shift <= max_shift
    return follows


def _covered(groups: Ints, begins: Ints, ends: Ints) -> Ints:
    """Return the number of places that the intervals of each group cover, by group."""
    order = np.lexsort((begins, groups))
    group, begin, end = groups[order], begins[order], ends[order]

    # Each group has a range of numbers of its own, so that the running maximum starts over.
    base = group * (int(ends.max()) + 1)
    reached = np.maximum.accumulate(base + end)
    before = np.concatenate(([0], reached[:-1]))
    new = np.maximum(reached - np.maximum(before, base + begin), 0)
    return np.add.reduceat(new, np.flatnonzero(np.diff(group, prepend=-1)))

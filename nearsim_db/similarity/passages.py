"""Passages: the parts of two texts that are copies of each other, with their places in both texts.

A seed is a place in each text at which both texts have the same run of k tokens. Two seeds are chained if, in both
texts, the second begins after the first, and at most `gap` tokens after the first one's end. The seeds that chains
connect form a passage. A paragraph that was moved is therefore a separate passage.

A passage is kept if it is long enough and dense enough. If it is not dense enough, it is replaced by those of its runs
of seeds that are long enough. Passages that overlap in both texts are united. If the order of words does not count,
seeds are pairs of words, passages that are near each other in both texts are united, too, and a passage that overlaps a
longer passage by half is left out.

A run of tokens that occurs a times in one text and b times in the other has a x b seeds. If these are more than
MAX_SEEDS_PER_RUN, the n-th occurrence is paired only with the n-th occurrence. The time is therefore about linear in
the lengths of the texts, even if they repeat themselves.
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
# Limits for words in any order. A reworded text has more words between equal runs, and more equal runs by chance. The
# values were chosen on the training part of the PAN 2013 corpus.
_FREE_SEED_TOKENS, _MIN_FREE_LENGTH, _MIN_FREE_SHARE = 2, 18, 0.28
# Passages of two texts are united only up to this number, because all of them are compared with each other.
_MAX_UNITED_PASSAGES = 1_000
# The length of a seed for bags of words and for sentences, whose shingles are not runs of words.
_DEFAULT_K = 5
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class PassageRules:
    """The conditions that make a passage."""

    k: int  # number of tokens in an equal run
    gap: int = DEFAULT_GAP_WORDS  # largest number of tokens between equal runs
    length: int = DEFAULT_PASSAGE  # least number of tokens in a passage
    share: float = MIN_SHARE  # least fraction of the tokens of a passage that are in equal runs
    is_free: bool = False  # whether the order of the tokens in a run does not count

    @property
    def seed(self) -> int:
        """The number of tokens in a seed."""
        return min(self.k, _FREE_SEED_TOKENS) if self.is_free else self.k

    @property
    def min_length(self) -> int:
        """The least number of tokens in a passage."""
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
    """A part of a text."""

    start: int  # the first character
    end: int  # the last character + 1
    first_word: int
    end_word: int  # the last word + 1
    text: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of two texts."""

    left: Span
    right: Span
    equal: int  # number of tokens in runs that both texts have
    share: float  # `equal` divided by the number of tokens of the longer side
    # The median number of texts that contain a fingerprint of the passage, or None if they were not counted.
    documents: int | None = None


class PassageFinder:
    """Finds the passages that two texts share under a recipe. Threads may share it."""

    def __init__(self, recipe: Recipe, backend: Backend, common: Hashes | None = None) -> None:
        """Leave out the shingles `common`, and the shingles of texts that the recipe ignores.

        Raises InputError if the recipe compares vectors.
        """
        self.rules: PassageRules = PassageRules.of(recipe)
        self._tokeniser = Tokeniser(recipe, backend)
        without_tags = replace(recipe.normalise, html=False)
        self._shingler = Shingler(replace(recipe, normalise=without_tags), backend)
        self._ignored = ignored_ids(recipe, self._shingler)
        if common is not None:
            self._ignored = np.union1d(self._ignored, common)

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a cleaned text without markup, with the ignored ones marked."""
        tokens = self._tokeniser.tokens(text)
        if not len(self._ignored) or len(tokens) < self.rules.k:
            return tokens

        # A seed may be shorter than a shingle. It is ignored if any shingle that contains it is ignored.
        ignored = are_in(self._ignored, self._shingler.shingles([text]).ids)
        shorter = self.rules.k - self.rules.seed
        seeds = np.zeros(len(ignored) + shorter, np.bool_)
        for shift in range(shorter + 1):
            seeds[shift : shift + len(ignored)] |= ignored
        return dataclasses.replace(tokens, ignored=seeds)

    def find(self, left: str, right: str) -> list[Passage]:
        """Return the passages of two cleaned texts without markup; see `find_passages`."""
        return find_passages(self.tokens(left), self.tokens(right), self.rules)


def find_passages(left: Tokens, right: Tokens, rules: PassageRules) -> list[Passage]:
    """Return the passages of two texts in the order of `rare_first`. Texts of fewer than k tokens have none."""
    return rare_first(
        Passage(_span(left, i, i_end), _span(right, j, j_end), equal, share)
        for i, i_end, j, j_end, equal, share in _boxes(left, right, rules)
    )


def rare_first(passages: Iterable[Passage]) -> list[Passage]:
    """Sort passages: those in the fewest documents first, then the longest first, then by their places."""

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
    """Yield each passage as (begin and end in the left text, begin and end in the right text, equal tokens, share)."""
    runs = matching_runs(_grams(left, rules, 0), _grams(right, rules, 1))
    if not len(runs):
        return

    begins, ends = runs[:, :2], runs[:, :2] + runs[:, 2:] + rules.seed - 1
    groups = _chained(runs, rules.seed + rules.gap)
    low, high, equal, shares = _hulls(groups, begins, ends)

    # If a passage is not dense enough, make a separate group of each of its runs.
    if (is_thin := shares < rules.share).any():
        are_in_thin = is_thin[np.unique(groups, return_inverse=True)[1]]
        groups = np.where(are_in_thin, len(runs) + np.arange(len(runs)), groups)
        low, high, equal, shares = _hulls(groups, begins, ends)

    kept = ((high - low).min(axis=1) >= rules.min_length) & (shares >= rules.share)
    if not kept.any():
        return
    are_in_kept = kept[np.unique(groups, return_inverse=True)[1]]
    low, high, equal, shares = _united(groups[are_in_kept], begins[are_in_kept], ends[are_in_kept], rules)
    kept = _longest(low, high) if rules.is_free else np.ones(len(low), np.bool_)
    for (i, j), (i_end, j_end), count, share in zip(
        low[kept].tolist(), high[kept].tolist(), equal[kept].tolist(), shares[kept].tolist(), strict=True
    ):
        yield i, i_end, j, j_end, count, round(share, 6)


def _united(groups: Ints, begins: Ints, ends: Ints, rules: PassageRules) -> tuple[Ints, Ints, Ints, Floats]:
    """Unite groups that overlap in both texts, and with free order also groups that are near each other.

    Returns the united groups as `_hulls` does.
    """
    reach = 2 * rules.gap if rules.is_free else 0
    while True:
        low, high, equal, shares = _hulls(groups, begins, ends)
        if len(low) > _MAX_UNITED_PASSAGES:
            return low, high, equal, shares
        lengths = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
        # Every group is also connected with itself, so all groups have a label.
        edges = np.argwhere((lengths > -reach).all(axis=2))
        label = connected_components(edges + 1)[1]
        if len(np.unique(label)) == len(low):
            return low, high, equal, shares
        groups = label[np.unique(groups, return_inverse=True)[1]]


def _longest(low: Ints, high: Ints) -> Mask:
    """Return which passages are not overlapped by half or more, in either text, by a longer passage."""
    kept, lengths = np.zeros(len(low), np.bool_), high - low
    for at in np.argsort(-lengths.sum(axis=1), kind="stable")[:_MAX_UNITED_PASSAGES].tolist():
        shared = np.minimum(high[kept], high[at]) - np.maximum(low[kept], low[at])
        kept[at] = not (2 * shared >= lengths[at]).any()
    return kept


def _hulls(groups: Ints, begins: Ints, ends: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """Return for each group its begin and its end in both texts, its number of equal tokens, and their share."""
    order = np.argsort(groups, kind="stable")
    firsts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    low, high = np.minimum.reduceat(begins[order], firsts), np.maximum.reduceat(ends[order], firsts)
    equal = np.minimum(*(_covered(groups, begins[:, side], ends[:, side]) for side in (0, 1)))
    return low, high, equal, equal / (high - low).max(axis=1)


def _grams(tokens: Tokens, rules: PassageRules, side: int) -> Hashes:
    """Return the id of each run of k tokens. The id of an ignored run is changed to one that the other text lacks."""
    ids = grams(tokens.ids, rules.seed, is_free=rules.is_free)
    if tokens.ignored is None:
        return ids
    unique_ids = fmix64(2 * np.arange(len(ids), dtype=np.uint64) + np.uint64(side))
    return np.where(tokens.ignored, unique_ids, ids)


def matching_runs(left: Hashes, right: Hashes) -> Ints:
    """Return the maximal runs of equal ids, (m, 3): place in `left`, place in `right`, number of ids.

    The runs are sorted by their place in `left`.
    """
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
    """Return the id of each run of k tokens: uint64 of n - k + 1, or empty if there are fewer than k tokens."""
    count = max(len(ids) - k + 1, 0)
    if is_free and count:
        return free_ids(ids, np.array([0, len(ids)]), k)[0]
    run_ids = np.zeros(count, np.uint64)
    for shift in range(k if count else 0):
        run_ids = run_ids * _FACTOR + ids[shift : shift + count]
    return run_ids


def _seeds(left: Hashes, right: Hashes) -> tuple[Ints, Ints]:
    """Return pairs of places at which the two arrays have equal ids, in no particular order."""
    lefts, left_begins, left_counts = _grouped(left)
    rights, right_begins, right_counts = _grouped(right)
    _, left_groups, right_groups = np.intersect1d(
        left[lefts[left_begins]], right[rights[right_begins]], assume_unique=True, return_indices=True
    )

    # For an id with a places in one array and b in the other, take all a x b pairs. If these are too many, pair only
    # the n-th place with the n-th place.
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
    """Return the places of ids, sorted by id and then by place, and the begin and the size of each id's group."""
    order = np.argsort(ids, kind="stable")
    begins = np.flatnonzero(are_fresh(ids[order]))
    return order, begins, np.diff(begins, append=len(ids))


def _chained(runs: Ints, reach: int) -> Ints:
    """Return for each run of seeds the smallest run with which chains connect it.

    `reach` is k + gap. A diagonal is the difference of the places in the two texts. The diagonals of two chained runs
    differ by less than `reach`, so a run is compared only with later runs in its own strip of diagonals, which is
    `reach` wide, and in the two strips beside it.
    """
    strips = (runs[:, 1] - runs[:, 0]) // reach
    edges = [np.zeros((0, 2), np.int64)]
    for beside in (0, 1):
        # Join strips in pairs: first (0, 1), (2, 3) and so on, then (1, 2), (3, 4). Every two neighbours are then
        # together at least once.
        order = np.lexsort((runs[:, 0], (strips + beside) // 2))
        ordered, group = runs[order], (strips[order] + beside) // 2

        # Compare each run with the next run, then with the second next, until all later runs are too far away.
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

    # Add an edge from each run to itself, so that a run without a chain is a component, too.
    loops = np.arange(len(runs))
    all_edges = np.concatenate([*edges, np.stack((loops, loops), axis=1)]) + 1
    return connected_components(all_edges)[1] - 1


def _follow(earlier: Ints, later: Ints, reach: int) -> Mask:
    """Return whether, in both texts, any seed of the later run follows a seed of the earlier run within `reach`."""
    apart = later[:, :2] - earlier[:, :2]
    min_shift = np.maximum(1 - earlier[:, 2], 1 - apart.min(axis=1))
    max_shift = np.minimum(later[:, 2] - 1, reach - apart.max(axis=1))
    follows: Mask = min_shift <= max_shift
    return follows


def _covered(groups: Ints, begins: Ints, ends: Ints) -> Ints:
    """Return for each group the number of places that its intervals cover."""
    order = np.lexsort((begins, groups))
    group, begin, end = groups[order], begins[order], ends[order]

    # Shift each group to a separate range of numbers, so that the running maximum begins again at each group.
    base = group * (int(ends.max()) + 1)
    reached = np.maximum.accumulate(base + end)
    before = np.concatenate(([0], reached[:-1]))
    new = np.maximum(reached - np.maximum(before, base + begin), 0)
    return np.add.reduceat(new, np.flatnonzero(np.diff(group, prepend=-1)))

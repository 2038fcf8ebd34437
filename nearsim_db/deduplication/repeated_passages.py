"""Repeated passages of a corpus: found as texts come in, and cut out of all but the first that has them.

A window is a run of `length` tokens. It is repeated if the kept text of an earlier document has it, or the same text at
an earlier place that is not cut itself. A sentence is cut if it lies in a repeated window or, if it is longer than one,
if all windows in it are repeated; so no sentence is cut in part. What is left is looked at again until nothing is cut:
a corpus that was cut stays as it is if it is cut again. What is cut is divided into spans that a document keeps whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from tempfile import TemporaryFile

import numpy as np
from msgspec.structs import replace

from nearsim_db.errors import InputError
from nearsim_db.readers.output import full_disk
from nearsim_db.similarity.arrays import Hashes, Ints
from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.passages import grams
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe.validation import DEFAULT_PASSAGE
from nearsim_db.similarity.text.tokens import Tokeniser, Tokens
from nearsim_db.similarity.text.words import sentence_ends

_MAX_WINDOWS_IN_MEMORY = 1 << 16
# Windows in memory while two runs are merged.
_WINDOWS_PER_MERGE = 1 << 20
_NUMBER_BITS = (
    32  # of a place: the number of a window in its document, from 1, below the number of the document
)


class WindowIndex:
    """The first and the last place of each window in the texts that are kept, by the ids of windows.

    A place is the document and the number of the window in it, so that places of adjacent windows are consecutive. The
    latest windows are in memory, all others in sorted runs in temporary files, of which each is more than twice as long
    as the next.
    """

    def __init__(self) -> None:
        self._recent = _RepeatedRun(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        self._runs: list[_RepeatedRun] = []

    def find(self, windows: Hashes) -> tuple[Ints, Ints]:
        """Return the first and the last place of each window, int64, -1 for none."""
        order = np.argsort(windows)
        ordered = windows[order]
        first, last = np.full((2, len(windows)), -1, np.int64)
        for run in (*self._runs, self._recent):  # the oldest places are first
            begins = np.searchsorted(run.windows, ordered)
            ends = np.searchsorted(run.windows, ordered, "right")
            has = ends > begins
            begins, ends, rows = begins[has], ends[has], order[has]
            first[rows] = np.where(first[rows] < 0, run.places[begins], first[rows])
            last[rows] = run.places[ends - 1]
        return first, last

    def add(self, windows: Hashes, document: int) -> None:
        """Add the windows of a document, the latest one. Raises NearsimError if the disk is full."""
        new, numbers = np.unique(windows, return_index=True)
        recent = self._recent
        at = np.searchsorted(recent.windows, new, "right")
        places = _places(document, numbers)
        self._recent = _RepeatedRun(np.insert(recent.windows, at, new), np.insert(recent.places, at, places))
        if len(self._recent.windows) < _MAX_WINDOWS_IN_MEMORY:
            return
        self._runs.append(self._recent)
        self._recent = _RepeatedRun(new[:0], recent.places[:0])
        while len(self._runs) > 1 and len(self._runs[-2].windows) <= 2 * len(self._runs[-1].windows):
            self._runs[-2:] = [_merged(*self._runs[-2:])]


def _places(document: int, numbers: Ints) -> Ints:
    return (document << _NUMBER_BITS) + numbers + 1


@dataclass(frozen=True, slots=True)
class _RepeatedRun:
    """Sorted windows, uint64, and a place of each, int64; places of one window are in the order of the documents."""

    windows: Hashes
    places: Ints


def _merged(left: _RepeatedRun, right: _RepeatedRun) -> _RepeatedRun:
    """Merge a run with a later one."""
    size = len(left.windows) + len(right.windows)

    # Ids are spread evenly, so that equal ranges of them have about as many windows.
    parts = size // _WINDOWS_PER_MERGE + 1
    edges = np.array([2**64 * part // parts for part in range(1, parts)], np.uint64)
    bounds = [[0, *np.searchsorted(run.windows, edges).tolist(), len(run.windows)] for run in (left, right)]
    with full_disk(), TemporaryFile(prefix="nearsim-") as ids, TemporaryFile(prefix="nearsim-") as numbers:
        for (begin, end), (first, last) in zip(*map(pairwise, bounds), strict=True):
            windows = np.concatenate((left.windows[begin:end], right.windows[first:last]))
            places = np.concatenate((left.places[begin:end], right.places[first:last]))
            # Stable: places of the earlier run stay first.
            order = np.argsort(windows, kind="stable")
            ids.write(windows[order].tobytes())
            numbers.write(places[order].tobytes())
        ids.flush()
        numbers.flush()
        # The maps outlive the files, which have no names.
        return _RepeatedRun(
            np.memmap(ids, np.uint64, "r", shape=size), np.memmap(numbers, np.int64, "r", shape=size)
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """Characters of a text that are cut, the end excluded, and the document that keeps all their words in a row."""

    start: int
    end: int
    document: int


class PassageCutter:
    """Cuts texts, one after another, under the normalisation of a recipe.

    Windows have `match.passage` words, or characters under shingle.scheme = char. Words are not stemmed or dropped.
    """

    def __init__(self, recipe: Recipe, backend: Backend, index: WindowIndex) -> None:
        """Raises InputError for a recipe that does not compare plain text."""
        if recipe.normalise.html or recipe.shingle.language or recipe.sketch.input == "vector":
            raise InputError(
                "--cut cuts plain text; choose a recipe without normalise.html, shingle.tokens = code and "
                "sketch.input = vector"
            )
        plain = replace(recipe.shingle, stopwords="none", stem="none", min_token_length=1)
        self.length: int = recipe.match.passage or DEFAULT_PASSAGE
        self._tokeniser = Tokeniser(replace(recipe, shingle=plain), backend)
        self._index = index

    def cut(self, text: str, document: int) -> tuple[list[Cut], str]:
        """Return what is cut of a cleaned text, in order, and what is left; the rest counts for later texts."""
        given, cuts = text, list[Cut]()
        places = np.zeros(0, np.int64)  # of each remaining character, in the text before any cut
        while True:
            tokens = self._tokeniser.tokens(text)
            windows = grams(tokens.ids, self.length)
            first, last = self._index.find(windows)
            kept = _kept_places(windows, first, self.length, document)
            found_cuts = list(_cuts(text, tokens, (kept, np.where(first < 0, kept, last)), self.length))
            if not found_cuts:
                self._index.add(windows, document)
                return _with_spaces_joined(given, cuts), text

            # Most texts have nothing to cut, and need no places.
            places = places if cuts else np.arange(len(text))
            cuts += [piece for found_cut in found_cuts for piece in _pieces(places, found_cut)]
            stays = np.ones(len(text), bool)
            for found_cut in found_cuts:
                stays[found_cut.start : found_cut.end] = False
            places, text = places[stays], without(text, found_cuts)


def without(text: str, cuts: list[Cut]) -> str:
    """Return a text without what is cut, in order."""
    begins, ends = [0, *(cut.end for cut in cuts)], [*(cut.start for cut in cuts), len(text)]
    return "".join([text[begin:end] for begin, end in zip(begins, ends, strict=True)])


def _pieces(places: Ints, cut: Cut) -> Iterator[Cut]:
    """Yield a cut of the remaining text as cuts of the text before any cut."""
    own = places[cut.start : cut.end]
    # A jump in the places begins a piece; -2 makes the first place one.
    firsts = np.flatnonzero(np.diff(own, prepend=-2) != 1)
    lasts = np.append(firsts[1:], len(own)) - 1
    for begin, end in zip(own[firsts].tolist(), own[lasts].tolist(), strict=True):
        yield Cut(begin, end + 1, cut.document)


def _with_spaces_joined(text: str, cuts: list[Cut]) -> list[Cut]:
    """Join cuts of spaces only with one that they touch."""
    joined: list[Cut] = []
    for cut in sorted(cuts, key=lambda cut: cut.start):
        last = joined[-1] if joined else None
        if last is None or last.end < cut.start:
            joined.append(cut)
        elif text[cut.start : cut.end].isspace():
            joined[-1] = Cut(last.start, cut.end, last.document)
        elif text[last.start : last.end].isspace():
            joined[-1] = Cut(last.start, cut.end, cut.document)
        else:
            joined.append(cut)
    return joined


def _kept_places(windows: Hashes, known: Ints, length: int, document: int) -> Ints:
    """Return where each window is kept: at a known place, at an earlier one of the same document, or -1 for nowhere.

    The earlier place keeps it if no window that is repeated touches that.
    """
    _, firsts, same = np.unique(windows, return_index=True, return_inverse=True)
    earlier, numbers = firsts[same], np.arange(len(windows))
    is_again = earlier + length <= numbers

    # Plus 1 where a repeated window begins, minus 1 at its end: the sum counts those over a token.
    edges = np.zeros(len(windows) + length + 1, np.int64)
    repeated = numbers[is_again | (known >= 0)]
    np.add.at(edges, repeated, 1)
    np.add.at(edges, repeated + length, -1)
    # How many tokens before each place are in a repeated window.
    touched = np.concatenate(([0], np.cumsum(np.cumsum(edges) > 0)))
    is_kept = touched[earlier + length] == touched[earlier]
    return np.where((known < 0) & is_again & is_kept, _places(document, earlier), known)


def _cuts(text: str, tokens: Tokens, kept: tuple[Ints, Ints], length: int) -> Iterator[Cut]:
    """Yield runs of sentences that other places keep, with the spaces on one side, divided by what keeps them.

    `kept` has the first and the last place that keeps each window.
    """
    repeated = np.flatnonzero(kept[0] >= 0)
    if not len(repeated):
        return

    # Sentences, as runs of tokens.
    bounds = np.unique([0, *sentence_ends(text), len(text)])
    firsts = np.searchsorted(tokens.begins, bounds)
    is_between = (firsts == 0) | (tokens.ends[firsts - 1] <= bounds)  # no token is on both sides
    bounds, firsts = bounds[is_between], firsts[is_between]
    begins, ends = firsts[:-1], firsts[1:]

    # A sentence is cut if all of its windows are repeated; a short one if a window that covers it is.
    is_long = ends - begins > length
    low = np.where(is_long, begins, np.maximum(ends - length, 0))
    high = np.where(is_long, ends - length, np.minimum(begins, len(kept[0]) - 1)) + 1
    first, last = np.searchsorted(repeated, low), np.searchsorted(repeated, high)
    is_cut = np.where(is_long, last - first == high - low, last > first) & (ends > begins)

    spans, sentence_of = _kept_spans(kept, length), dict(zip(firsts.tolist(), bounds.tolist(), strict=True))
    for begin, end in np.flatnonzero(np.diff(is_cut, prepend=False, append=False)).reshape(-1, 2).tolist():
        start, stop = _with_spaces(text, int(bounds[begin]), int(bounds[end]))
        for token, document in _covering(spans, int(firsts[begin]), int(firsts[end])):
            until = sentence_of.get(token, int(tokens.ends[token - 1])) if token < firsts[end] else stop
            yield Cut(start, until, document)
            start = until


def _kept_spans(kept: tuple[Ints, Ints], length: int) -> Ints:
    """Return the runs of tokens that a document keeps in a row: (m, 3) int64 of begin, end and document.

    They are in order; a run that lies in another one is left out.
    """
    spans = []
    for places in kept if (kept[0] != kept[1]).any() else kept[:1]:
        begins = np.flatnonzero((np.diff(places, prepend=-2) != 1) & (places >= 0))
        breaks = np.flatnonzero((np.diff(places, append=-2) != 1) & (places >= 0))
        spans.append(np.stack((begins, breaks + length, places[begins] >> _NUMBER_BITS), axis=1))
    rows = np.concatenate(spans)
    # By begin, the longest first: a span that reaches no further than those before lies in one.
    rows = rows[np.lexsort((-rows[:, 1], rows[:, 0]))]
    reached = np.concatenate(([0], np.maximum.accumulate(rows[:, 1])[:-1]))
    return rows[rows[:, 1] > reached]


def _covering(spans: Ints, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ends and documents of as few spans as cover the tokens from `begin` to `end`."""
    while begin < end:
        _, reached, document = spans[np.searchsorted(spans[:, 0], begin, "right") - 1].tolist()
        begin = min(reached, end)
        yield begin, document


def _with_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where to cut, so that of the spaces on both sides those stay that have more line ends."""
    before, last = start, end
    while before and text[before - 1].isspace():
        before -= 1
    while last > start and text[last - 1].isspace():
        last -= 1
    if before and (end == len(text) or text.count("\n", last, end) > text.count("\n", before, start)):
        return before, last
    return start, end

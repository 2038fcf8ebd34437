"""Find the repeated passages of a corpus text by text, and cut them out of all texts but the first that has them.

A window is a run of `length` tokens. It is repeated if the remaining text of an earlier document has it, or if the same
text has it at an earlier place that is not cut. A sentence of at most `length` tokens is cut if it lies in a repeated
window, and a longer sentence is cut if all of its windows are repeated. So only whole sentences are cut. The remaining
text is examined again until nothing more is cut; hence cutting a corpus a second time changes nothing. Each cut is
divided into spans, so that every span is contained in one remaining document.
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
from nearsim_db.similarity.text.pages import is_page, line_reader
from nearsim_db.similarity.text.tokens import Tokeniser, Tokens
from nearsim_db.similarity.text.words import sentence_ends

_MAX_WINDOWS_IN_MEMORY = 1 << 16
# Windows in memory while two runs are merged.
_WINDOWS_PER_MERGE = 1 << 20
# A place is an integer: its low bits are the number of a window in its document, from 1, and its high bits are the
# number of the document.
_NUMBER_BITS = 32


class WindowIndex:
    """Maps the id of each window to its first and its last place in the remaining texts.

    A place combines the document with the number of the window in it, so that adjacent windows have consecutive places.
    The latest windows are in memory. Older windows are in sorted runs in temporary files, and each run is more than
    twice as long as the next run.
    """

    def __init__(self) -> None:
        self._recent = _RepeatedRun(np.zeros(0, np.uint64), np.zeros(0, np.int64))
        self._runs: list[_RepeatedRun] = []

    def find(self, windows: Hashes) -> tuple[Ints, Ints]:
        """Return the first and the last place of each window, int64; -1 for a window that no text has."""
        order = np.argsort(windows)
        ordered = windows[order]
        first, last = np.full((2, len(windows)), -1, np.int64)
        for run in (*self._runs, self._recent):  # from the oldest places to the latest
            begins = np.searchsorted(run.windows, ordered)
            ends = np.searchsorted(run.windows, ordered, "right")
            has = ends > begins
            begins, ends, rows = begins[has], ends[has], order[has]
            first[rows] = np.where(first[rows] < 0, run.places[begins], first[rows])
            last[rows] = run.places[ends - 1]
        return first, last

    def add(self, windows: Hashes, document: int) -> None:
        """Add the windows of the next document. Raises NearsimError if the disk is full."""
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
    """Windows with their places, as parallel arrays."""

    windows: Hashes  # ids, ascending
    places: Ints  # int64; the places of equal windows are in the order of the documents


def _merged(left: _RepeatedRun, right: _RepeatedRun) -> _RepeatedRun:
    """Merge a run with a later run."""
    size = len(left.windows) + len(right.windows)

    # Ids are spread evenly, so ranges of the same width have about the same number of windows.
    parts = size // _WINDOWS_PER_MERGE + 1
    edges = np.array([2**64 * part // parts for part in range(1, parts)], np.uint64)
    bounds = [[0, *np.searchsorted(run.windows, edges).tolist(), len(run.windows)] for run in (left, right)]
    with full_disk(), TemporaryFile(prefix="nearsim-") as ids, TemporaryFile(prefix="nearsim-") as numbers:
        for (begin, end), (first, last) in zip(*map(pairwise, bounds), strict=True):
            windows = np.concatenate((left.windows[begin:end], right.windows[first:last]))
            places = np.concatenate((left.places[begin:end], right.places[first:last]))
            # A stable sort keeps the places of the earlier run first.
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
    """A stretch of a text to cut."""

    start: int  # first character
    end: int  # after the last character
    document: int  # keeps all words of the stretch, in the same order and without a gap


class PassageCutter:
    """Cuts texts, one after another, with the normalisation of a recipe.

    A window has `match.passage` words, or characters if shingle.scheme is char. Words are neither stemmed nor dropped.
    """

    def __init__(self, recipe: Recipe, backend: Backend, index: WindowIndex) -> None:
        """Raises InputError if the recipe does not compare prose."""
        if recipe.shingle.language or recipe.sketch.input == "vector":
            raise InputError(
                "--cut cuts plain text and pages; choose a recipe without shingle.tokens = code and "
                "sketch.input = vector"
            )
        plain = replace(recipe.shingle, stopwords="none", stem="none", min_token_length=1)
        self.length: int = recipe.match.passage or DEFAULT_PASSAGE
        text_rules = replace(recipe.normalise, html=False)
        self._tokeniser = Tokeniser(replace(recipe, shingle=plain, normalise=text_rules), backend)
        self._read_page = line_reader(recipe.normalise.html)
        self._index = index

    @property
    def reads_pages(self) -> bool:
        """Whether the texts of pages are cut, not the pages."""
        return self._read_page is not None

    def text_of(self, text: str) -> str:
        """Return the text that is cut: the text of a page, or the text itself.

        Blocks of a page are separated by empty lines, which end sentences.
        """
        if self._read_page is None:
            return text
        lines = self._read_page(text)
        return lines.replace("\n", "\n\n") if is_page(text) else lines

    def cut(self, text: str, document: int) -> tuple[list[Cut], str]:
        """Return the cuts of a text, in order, and the remaining text, whose passages are cut out of later texts."""
        whole_text, cuts = text, list[Cut]()
        places = np.zeros(0, np.int64)  # position in the whole text of each remaining character
        while True:
            tokens = self._tokeniser.tokens(text)
            windows = grams(tokens.ids, self.length)
            first, last = self._index.find(windows)
            kept = _kept_places(windows, first, self.length, document)
            new_cuts = list(_cuts(text, tokens, (kept, np.where(first < 0, kept, last)), self.length))
            if not new_cuts:
                self._index.add(windows, document)
                return _with_spaces_joined(whole_text, cuts), text

            # Most texts have no cuts, so the positions are created only now.
            places = places if cuts else np.arange(len(text))
            cuts += [piece for new_cut in new_cuts for piece in _pieces(places, new_cut)]
            stays = np.ones(len(text), bool)
            for new_cut in new_cuts:
                stays[new_cut.start : new_cut.end] = False
            places, text = places[stays], without(text, new_cuts)


def without(text: str, cuts: list[Cut]) -> str:
    """Return a text without its cuts, which are in order."""
    begins, ends = [0, *(cut.end for cut in cuts)], [*(cut.start for cut in cuts), len(text)]
    return "".join([text[begin:end] for begin, end in zip(begins, ends, strict=True)])


def _pieces(places: Ints, cut: Cut) -> Iterator[Cut]:
    """Yield a cut of the remaining text as one or more cuts of the whole text; `places` maps the positions."""
    cut_places = places[cut.start : cut.end]
    # A piece begins at each jump in the places; the prepended -2 makes the first place a jump.
    firsts = np.flatnonzero(np.diff(cut_places, prepend=-2) != 1)
    lasts = np.append(firsts[1:], len(cut_places)) - 1
    for begin, end in zip(cut_places[firsts].tolist(), cut_places[lasts].tolist(), strict=True):
        yield Cut(begin, end + 1, cut.document)


def _with_spaces_joined(text: str, cuts: list[Cut]) -> list[Cut]:
    """Join each cut that has nothing but spaces with an adjacent cut."""
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


def _kept_places(windows: Hashes, in_earlier_documents: Ints, length: int, document: int) -> Ints:
    """Return for each window a place where it remains, or -1 if it remains nowhere else.

    The place is in an earlier document if there is such a place; otherwise it is the window's first place in the same
    document, if that does not overlap the window or any repeated window.
    """
    _, firsts, same = np.unique(windows, return_index=True, return_inverse=True)
    earlier, numbers = firsts[same], np.arange(len(windows))
    is_again = earlier + length <= numbers

    # Add 1 at the begin of each repeated window, and subtract 1 at its end: the running sum counts the repeated windows
    # over each token.
    edges = np.zeros(len(windows) + length + 1, np.int64)
    repeated = numbers[is_again | (in_earlier_documents >= 0)]
    np.add.at(edges, repeated, 1)
    np.add.at(edges, repeated + length, -1)
    # For each position, the number of tokens before it that lie in a repeated window.
    touched = np.concatenate(([0], np.cumsum(np.cumsum(edges) > 0)))
    is_kept = touched[earlier + length] == touched[earlier]
    is_kept_here = (in_earlier_documents < 0) & is_again & is_kept
    return np.where(is_kept_here, _places(document, earlier), in_earlier_documents)


def _cuts(text: str, tokens: Tokens, kept: tuple[Ints, Ints], length: int) -> Iterator[Cut]:
    """Yield the cuts of a text: runs of sentences that remain at other places, with the spaces on one side.

    Such a run is divided into cuts, because different documents may keep its parts. `kept` has the first and the last
    place at which each window remains.
    """
    repeated = np.flatnonzero(kept[0] >= 0)
    if not len(repeated):
        return

    # Express the sentences as runs of tokens.
    bounds = np.unique([0, *sentence_ends(text), len(text)])
    firsts = np.searchsorted(tokens.begins, bounds)
    is_between = (firsts == 0) | (tokens.ends[firsts - 1] <= bounds)  # a boundary may not divide a token
    bounds, firsts = bounds[is_between], firsts[is_between]
    begins, ends = firsts[:-1], firsts[1:]

    # Cut a long sentence if all of its windows are repeated, and a short sentence if a window that covers it is.
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
    """Return the runs of tokens that occur as a whole in one document: begin, end and document, int64 (m, 3).

    The runs are in order. A run inside another run is left out.
    """
    spans = []
    for places in kept if (kept[0] != kept[1]).any() else kept[:1]:
        begins = np.flatnonzero((np.diff(places, prepend=-2) != 1) & (places >= 0))
        breaks = np.flatnonzero((np.diff(places, append=-2) != 1) & (places >= 0))
        spans.append(np.stack((begins, breaks + length, places[begins] >> _NUMBER_BITS), axis=1))
    rows = np.concatenate(spans)
    # Sort by begin, and the longest first. A span lies in an earlier span if its end is not beyond all previous ends.
    rows = rows[np.lexsort((-rows[:, 1], rows[:, 0]))]
    reached = np.concatenate(([0], np.maximum.accumulate(rows[:, 1])[:-1]))
    return rows[rows[:, 1] > reached]


def _covering(spans: Ints, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Cover the tokens from `begin` to `end` with as few spans as possible; yield the end and document of each."""
    while begin < end:
        _, reached, document = spans[np.searchsorted(spans[:, 0], begin, "right") - 1].tolist()
        begin = min(reached, end)
        yield begin, document


def _with_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where to cut: of the spaces on both sides, keep those with more line ends, and cut the others."""
    before, last = start, end
    while before and text[before - 1].isspace():
        before -= 1
    while last > start and text[last - 1].isspace():
        last -= 1
    if before and (end == len(text) or text.count("\n", last, end) > text.count("\n", before, start)):
        return before, last
    return start, end

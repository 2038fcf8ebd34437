"""Word-by-word differences of two texts, side by side (`compare`) or inline (`compare_inline`).

Changed words are marked, and numbers that the other text lacks are marked as numbers.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Literal

Kind = Literal["same", "changed", "number"]
# Whether both texts have the same words, then begin and end in the left text, then begin and end in the right text.
Block = tuple[bool, int, int, int, int]

CONTEXT_WORDS = 24
MAX_COMPARED_WORDS = 1_500
MAX_WORD_CHARACTERS = 100

# A word is a number with its separators, a character of a script without spaces, a run of letters, or any other
# character.
_NO_SPACES = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"(\d+(?:[.,:]\d+)*|[{_NO_SPACES}]|(?:(?![{_NO_SPACES}])[^\W\d])+|\S)(\s*)")
_FULL_STOPS = ".!?。！？"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of words of one text.

    Its words are the same in the other text, or changed, or they are numbers that the other text lacks.
    """

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """A changed region of both texts, with the words around it."""

    skipped: int  # equal words that are omitted before the hunk
    left: tuple[Piece, ...]
    right: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """The difference of two texts, side by side."""

    hunks: tuple[Hunk, ...]
    skipped: int  # equal words that are omitted after the last hunk
    left_numbers: tuple[str, ...]  # numbers that the right text lacks or has less often
    right_numbers: tuple[str, ...]  # numbers that the left text lacks or has less often
    uncompared: int  # words of long texts that were not compared

    @property
    def is_same(self) -> bool:
        """Whether all words are the same."""
        return all(piece.kind == "same" for hunk in self.hunks for piece in (*hunk.left, *hunk.right))


@dataclass(frozen=True, slots=True)
class Alignment:
    """The words of two texts, and the blocks of words in which the texts are the same or differ."""

    left: Sequence[tuple[str, str]]  # words, each with the white space after it
    right: Sequence[tuple[str, str]]  # words, each with the white space after it
    # The number of equal words omitted before a hunk, and its blocks
    hunks: Sequence[tuple[int, Sequence[Block]]]
    skipped: int  # equal words that are omitted after the last hunk
    left_only: Counter[str]  # numbers that the right text lacks or has less often
    right_only: Counter[str]  # numbers that the left text lacks or has less often
    uncompared: int  # words of long texts that were not compared


def compare(left: str, right: str, context: int = CONTEXT_WORDS, max_words: int = MAX_COMPARED_WORDS) -> Diff:
    """Compare two texts word by word, ignoring white space; keep the changes and `context` words around each change.

    Equal words at both ends of the texts are set aside first. At most `max_words` of the remaining words of each text
    are compared. Words of more than 100 characters are shown truncated.
    """
    aligned = align(left, right, context, max_words)

    return Diff(
        tuple(
            Hunk(
                before,
                pieces(aligned.left, ((same, i, j) for same, i, j, _, _ in hunk), aligned.left_only),
                pieces(aligned.right, ((same, i, j) for same, _, _, i, j in hunk), aligned.right_only),
            )
            for before, hunk in aligned.hunks
        ),
        aligned.skipped,
        tuple(aligned.left_only),
        tuple(aligned.right_only),
        aligned.uncompared,
    )


def align(
    left: str, right: str, context: int = CONTEXT_WORDS, max_words: int = MAX_COMPARED_WORDS
) -> Alignment:
    """Align the words of two texts, as `compare` does."""
    a, b = _WORD.findall(left), _WORD.findall(right)
    begin, tail = _ends([word for word, _ in a], [word for word, _ in b])
    a_end, b_end = len(a) - tail, len(b) - tail

    uncompared = max(0, a_end - begin - max_words) + max(0, b_end - begin - max_words)
    # If words before the common end are left out, the common end is left out too.
    if uncompared:
        a_end, b_end, tail = min(a_end, begin + max_words), min(b_end, begin + max_words), 0

    blocks = _align_stops(a, b, list(_blocks(a, b, begin, a_end, b_end, tail)))
    left_only = _surplus(a[: a_end + tail], b[: b_end + tail])
    right_only = _surplus(b[: b_end + tail], a[: a_end + tail])
    return Alignment(a, b, *_cut(blocks, context), left_only, right_only, uncompared)


def _ends(a: Sequence[str], b: Sequence[str]) -> tuple[int, int]:
    """Return the length of the common prefix, and of the common suffix of the words after the prefix."""
    shorter = min(len(a), len(b))
    prefix = next((at for at in range(shorter) if a[at] != b[at]), shorter)
    remaining = shorter - prefix
    return prefix, next((at for at in range(remaining) if a[-1 - at] != b[-1 - at]), remaining)


def _blocks(
    a: Sequence[tuple[str, str]], b: Sequence[tuple[str, str]], begin: int, a_end: int, b_end: int, tail: int
) -> Iterator[Block]:
    if begin:
        yield True, 0, begin, 0, begin
    words = [word for word, _ in a[begin:a_end]], [word for word, _ in b[begin:b_end]]
    # With autojunk, difflib would ignore the frequent words of long texts.
    for tag, i, j, k, m in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        yield tag == "equal", begin + i, begin + j, begin + k, begin + m
    if tail:
        yield True, a_end, a_end + tail, b_end, b_end + tail


def _align_stops(
    a: Sequence[tuple[str, str]], b: Sequence[tuple[str, str]], blocks: Sequence[Block]
) -> list[Block]:
    """Align an inserted sentence with the full stop before it, not with the full stop at its end."""
    aligned: list[Block] = []
    for block in blocks:
        same, i, j, k, m = block

        # An insertion that begins with a full stop, and is followed by the same mark, moves right by one word.
        if same and aligned and not aligned[-1][0]:
            _, before_i, before_j, before_k, before_m = aligned[-1]
            in_left, in_right = before_j > before_i, before_m > before_k
            words, at = (a, before_i) if in_left else (b, before_k)
            if in_left != in_right and words[at][0] == a[i][0] and a[i][0] in _FULL_STOPS:
                aligned[-1:] = [
                    (True, before_i, before_i + 1, before_k, before_k + 1),
                    (False, before_i + 1, i + 1, before_k + 1, k + 1),
                ]
                i, k = i + 1, k + 1

        if not same or i < j:
            aligned.append((same, i, j, k, m))
    return _merge_equal(aligned)


def _merge_equal(blocks: Sequence[Block]) -> list[Block]:
    """Merge adjacent blocks that are the same in both texts."""
    joined: list[Block] = []
    for block in blocks:
        if joined and joined[-1][0] and block[0]:
            _, i, _, k, _ = joined[-1]
            joined[-1] = (True, i, block[2], k, block[4])
        else:
            joined.append(block)
    return joined


def _cut(blocks: Sequence[Block], context: int) -> tuple[list[tuple[int, list[Block]]], int]:
    """Group blocks into hunks, each with the number of equal words omitted before it.

    Also returns the number of equal words omitted after the last hunk.
    """
    hunks: list[tuple[int, list[Block]]] = []
    hunk: list[Block] = []
    skipped = 0
    for number, block in enumerate(blocks):
        same, i, j, k, m = block

        # How many words to show at the beginning of an equal block, after a change, and at its end, before a change.
        begin_words = context if number else 0
        end_words = context if number < len(blocks) - 1 else 0
        if not number and not end_words:
            # The texts do not differ: show their beginning.
            begin_words = 2 * context
        omitted = j - i - begin_words - end_words
        if not same or omitted <= context:
            hunk.append(block)
            continue

        if begin_words:
            hunk.append((True, i, i + begin_words, k, k + begin_words))
        if hunk:
            hunks.append((skipped, hunk))
        skipped, hunk = omitted, [(True, j - end_words, j, m - end_words, m)] if end_words else []
    if hunk:
        hunks.append((skipped, hunk))
        skipped = 0
    return hunks, skipped


def pieces(
    words: Sequence[tuple[str, str]], blocks: Iterable[tuple[bool, int, int]], surplus: Counter[str]
) -> tuple[Piece, ...]:
    """Return the words of some blocks of one text, joined into runs of one kind. A block is (same, begin, end)."""
    kinds: list[tuple[Kind, str, str]] = [
        ("same" if same else "number" if _number(word) in surplus else "changed", word, space)
        for same, begin, end in blocks
        for word, space in words[begin:end]
    ]
    parts: list[tuple[Kind, str]] = []
    # Each word is looked at with the next one, so a final empty word is added as the successor of the last word.
    for (kind, word, space), (next_kind, _, _) in pairwise([*kinds, ("same", "", "")]):
        # White space is marked if the words on both sides of it are marked alike. Line breaks are never marked.
        shown = word if len(word) <= MAX_WORD_CHARACTERS else f"{word[: MAX_WORD_CHARACTERS - 1]}…"
        parts += [(kind, shown), (kind if kind == next_kind and "\n" not in space else "same", space)]
    runs = groupby((part for part in parts if part[1]), key=itemgetter(0))
    return tuple(Piece(kind, "".join(text for _, text in run)) for kind, run in runs)


def _number(word: str) -> str | None:
    """Return the NFKC form of a word that contains digits, None for any other word."""
    return unicodedata.normalize("NFKC", word) if any(character.isdigit() for character in word) else None


def _surplus(words: Sequence[tuple[str, str]], other_words: Sequence[tuple[str, str]]) -> Counter[str]:
    """Return the numbers that occur more often in `words` than in `other_words`."""
    counts, other_counts = (
        Counter(filter(None, (_number(word) for word, _ in text))) for text in (words, other_words)
    )
    return counts - other_counts


Side = Literal["both", "left", "right"]


@dataclass(frozen=True, slots=True)
class InlineRun:
    """A run of words that both texts have, or only one of them."""

    side: Side
    text: str
    is_number: bool = False  # whether the words are numbers that the other text lacks


@dataclass(frozen=True, slots=True)
class InlineHunk:
    """A changed region of both texts, with the words around it."""

    skipped: int  # equal words that are omitted before the hunk
    runs: tuple[InlineRun, ...]


@dataclass(frozen=True, slots=True)
class InlineDiff:
    """The difference of two texts, merged into one text."""

    hunks: tuple[InlineHunk, ...]
    skipped: int  # equal words that are omitted after the last hunk
    uncompared: int  # words of long texts that were not compared

    @property
    def is_same(self) -> bool:
        """Whether all words are the same."""
        return all(run.side == "both" for hunk in self.hunks for run in hunk.runs)


def compare_inline(left: str, right: str) -> InlineDiff:
    """Compare two texts as `compare` does, and return both in one text."""
    aligned = align(left, right)
    hunks = tuple(InlineHunk(skipped, tuple(_runs(aligned, blocks))) for skipped, blocks in aligned.hunks)
    return InlineDiff(hunks, aligned.skipped, aligned.uncompared)


def _runs(aligned: Alignment, blocks: Sequence[Block]) -> Iterator[InlineRun]:
    for same, i, j, k, m in blocks:
        if same:
            # The last word of the right text has no white space after it, so take the words of the left text,
            # which may continue.
            ends = m == len(aligned.right)
            words, begin, end = (aligned.left, i, j) if ends else (aligned.right, k, m)
            yield from _side_runs("both", words, (True, begin, end), Counter())
        else:
            left = list(_side_runs("left", aligned.left, (False, i, j), aligned.left_only))
            if m > k and left and left[-1].side == "both":
                # The white space after the replaced words may be a line end, which belongs after their replacement.
                left[-1] = InlineRun("both", " ")
            yield from left
            yield from _side_runs("right", aligned.right, (False, k, m), aligned.right_only)


def _side_runs(
    side: Side, words: Sequence[tuple[str, str]], block: tuple[bool, int, int], surplus: Counter[str]
) -> Iterator[InlineRun]:
    for piece in pieces(words, [block], surplus):
        # White space after the last changed word belongs to neither text alone.
        yield InlineRun(side if piece.kind != "same" else "both", piece.text, piece.kind == "number")

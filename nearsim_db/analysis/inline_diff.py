"""Word-by-word differences of two texts in one text: the words of both, those of one marked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nearsim_db.analysis.text_diff import Alignment, Block, align, pieces

Side = Literal["both", "left", "right"]


@dataclass(frozen=True, slots=True)
class Run:
    """Words of both texts, or of one; `is_number` for a number that the other text lacks."""

    side: Side
    text: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class InlineHunk:
    """A changed region; the `skipped` words before it are the same and omitted."""

    skipped: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class InlineDiff:
    """The difference of two texts; the last `skipped` words are the same and omitted.

    `uncompared` counts the words of long texts that were not compared.
    """

    hunks: tuple[InlineHunk, ...]
    skipped: int
    uncompared: int

    @property
    def is_same(self) -> bool:
        """Whether all words are the same."""
        return all(run.side == "both" for hunk in self.hunks for run in hunk.runs)


def compare_inline(left: str, right: str) -> InlineDiff:
    """Compare two texts except for white space; words of more than 100 characters are truncated."""
    aligned = align(left, right)
    hunks = tuple(InlineHunk(skipped, tuple(_runs(aligned, blocks))) for skipped, blocks in aligned.hunks)
    return InlineDiff(hunks, aligned.skipped, aligned.uncompared)


def _runs(aligned: Alignment, blocks: Sequence[Block]) -> Iterator[Run]:
    for same, i, j, k, m in blocks:
        if same:
            # The last word of a text has no white space after it, and the other text may continue.
            ends = m == len(aligned.right)
            words, begin, end = (aligned.left, i, j) if ends else (aligned.right, k, m)
            yield from _side("both", words, (True, begin, end), Counter())
        else:
            left = list(_side("left", aligned.left, (False, i, j), aligned.left_only))
            if m > k and left and left[-1].side == "both":
                left[-1] = Run("both", " ")  # a line end comes after the words that replace these
            yield from left
            yield from _side("right", aligned.right, (False, k, m), aligned.right_only)


def _side(
    side: Side, words: Sequence[tuple[str, str]], block: tuple[bool, int, int], surplus: Counter[str]
) -> Iterator[Run]:
    for piece in pieces(words, [block], surplus):
        # White space after the last changed word belongs to neither text alone.
        yield Run(side if piece.kind != "same" else "both", piece.text, piece.kind == "number")

"""Inline differences: the words of both texts in order, each marked once."""

import random

from nearsim_db.analysis.text_diff import InlineDiff, compare_inline


def words(diff: InlineDiff, side: str) -> list[str]:
    """The words of one text: those of both and its own."""
    runs = [run for hunk in diff.hunks for run in hunk.runs]
    return "".join(run.text for run in runs if run.side in ("both", side)).split()


def test_both_texts_can_be_read_from_the_runs() -> None:
    rng = random.Random(7)
    vocabulary = ["storm", "ferry", "12", "harbour", "4.5", "island", "crew"]
    for _ in range(200):
        left = rng.choices(vocabulary, k=rng.randint(0, 20))
        right = [
            rng.choice(vocabulary) if rng.random() < 0.2 else word for word in left if rng.random() < 0.9
        ]
        diff = compare_inline(" ".join(left), " ".join(right))
        assert (words(diff, "left"), words(diff, "right")) == (left, right)
        assert diff.is_same == (left == right)


def test_equal_words_far_from_a_change_are_omitted() -> None:
    same = " ".join("ferry" for _ in range(100))
    diff = compare_inline(f"{same} here {same}", f"{same} there {same}")
    (hunk,) = diff.hunks
    assert (hunk.skipped, diff.skipped) == (76, 76)
    assert len(words(diff, "left")) == 24 + 1 + 24

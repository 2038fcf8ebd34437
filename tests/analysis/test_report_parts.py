"""Parts of a report: the suspicion score of clusters, and two texts side by side."""

import random
import time
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.analysis.report.comparisons import WEIGHTS, signs, suspicion
from nearsim_db.analysis.text_diff import Diff, InlineDiff, compare, compare_inline
from nearsim_db.store.clusters.reports import ClusterFacts
from tests.builders.selection import examples

COPIES = ClusterFacts(1, 1, 9, 0, 1.0, 1.0, 0, 1, 0.0)
DAY = 86_400.0


def test_suspicion_is_between_0_and_100_and_grows_with_each_sign() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1) and suspicion(COPIES, 0.7) == 0
    worst = ClusterFacts(1, 1, 2**40, 2**40 - 1, None, None, 2**40 - 1, 10**6, 10**6 * DAY)
    assert 95 < suspicion(worst, 0.7) < 100
    assert 0 <= suspicion(replace(COPIES, span_seconds=None, sources=0), 1.0) <= 100
    for changed in (
        replace(COPIES, chained=4, least=0.75, mean=0.8),
        replace(COPIES, mean=0.8, least=0.72),
        replace(COPIES, renumbered=3),
        replace(COPIES, sources=5),
        replace(COPIES, span_seconds=60 * DAY),
    ):
        assert suspicion(changed, 0.7) > 0


def test_signs_of_a_cluster() -> None:
    facts = ClusterFacts(1, 1, 5, 2, 0.9, 0.85, 1, 4, 30 * DAY)
    found = signs(facts, 0.8)
    assert found == pytest.approx(
        {
            "chained": 2 / 4,
            # Two at 0.9 and two taken for 0.8 are 0.85 on average; the worst is at 0.8.
            "dissimilar": (1 - (0.85 + 0.8) / 2) / 0.2,
            "numbers_differ": 1 / 4,
            "sources": 3 / 4,
            "span": 1 / 2,
        }
    )


def test_a_larger_cluster_of_the_same_kind_is_more_suspicious() -> None:
    small = ClusterFacts(1, 1, 3, 1, 0.8, 0.8, 1, 2, DAY)
    large = ClusterFacts(1, 1, 33, 16, 0.8, 0.8, 16, 2, DAY)
    assert suspicion(large, 0.7) > suspicion(small, 0.7)


WORDS = st.lists(st.sampled_from(["a", "b", "c", "7", "8", "中", "한국", "x.", "\n"]), max_size=40)


def marked(diff: Diff, side: str, *kinds: str) -> list[str]:
    return [piece.text.strip() for hunk in diff.hunks for piece in getattr(hunk, side) if piece.kind in kinds]


def test_different_numbers_are_marked_separately() -> None:
    diff = compare("Profit rose to 5.93 million on 12 May", "Profit fell to 5.81 million on 12 May")
    assert marked(diff, "left", "changed") == ["rose"]
    assert marked(diff, "right", "changed") == ["fell"]
    assert marked(diff, "left", "number") == ["5.93"]
    assert marked(diff, "right", "number") == ["5.81"]
    assert (diff.left_numbers, diff.right_numbers) == (("5.93",), ("5.81",))


def test_moved_and_wide_numbers_are_no_difference() -> None:
    assert compare("built in １９８９", "rebuilt in 1989").left_numbers == ()
    diff = compare("On 12 May 40 people came", "40 people came on 12 May")
    assert not marked(diff, "left", "number") and not marked(diff, "right", "number")
    assert diff.left_numbers == diff.right_numbers == ()
    assert not diff.is_same


def test_characters_of_scripts_without_spaces_are_words() -> None:
    diff = compare("今天天气很好", "今天天气不好")
    assert marked(diff, "left", "changed") == ["很"]
    assert marked(diff, "right", "changed") == ["不"]


def test_long_text_is_reduced_to_its_changes() -> None:
    words = ["".join(letters) for letters in product("abcdefghij", repeat=3)]
    other = [*words[:500], "new", *words[500:]]
    diff = compare(" ".join(words), " ".join(other), context=10)
    (hunk,) = diff.hunks
    assert hunk.skipped == 490 and diff.skipped == 490
    assert [piece.text.strip() for piece in hunk.right if piece.kind != "same"] == ["new"]
    assert len("".join(piece.text for piece in hunk.left).split()) == 20
    assert not diff.uncompared


def test_appended_sentence_is_marked_from_its_first_word() -> None:
    diff = compare("Old title here. The end.", "New title here. The end. Sign up now.")
    assert marked(diff, "right", "changed") == ["New", "Sign up now."]


def test_words_beyond_the_limit_are_counted_as_uncompared() -> None:
    left, right = (" ".join([word] * 50) for word in ("one", "other"))
    diff = compare(f"same {left}", f"same {right}", max_words=20)
    assert diff.uncompared == 60


def test_long_unrelated_texts_are_compared_quickly() -> None:
    rng = random.Random(1)
    left, right = (" ".join(rng.choices(["the", "of", "and", "to", "in", "it"], k=20_000)) for _ in "ab")
    begun = time.monotonic()
    compare(left, right)
    assert time.monotonic() - begun < 10


@examples(60)
@given(WORDS, WORDS)
def test_uncut_diff_contains_both_texts(left: list[str], right: list[str]) -> None:
    diff = compare(" ".join(left), " ".join(right), context=1000)
    for side, words in (("left", left), ("right", right)):
        shown = "".join(piece.text for hunk in diff.hunks for piece in getattr(hunk, side))
        assert "".join(shown.split()) == "".join("".join(words).split())
    kept = [
        ["".join(p.text for h in diff.hunks for p in getattr(h, side) if p.kind == "same").split()]
        for side in ("left", "right")
    ]
    assert "".join(kept[0][0]) == "".join(kept[1][0])


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

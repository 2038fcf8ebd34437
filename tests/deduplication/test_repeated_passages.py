"""Repeated passages are cut as whole sentences, once each, and never again."""

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.deduplication import repeated_passages
from nearsim_db.deduplication.repeated_passages import Cut, PassageCutter, WindowIndex, without
from nearsim_db.errors import InputError
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.selection import examples

LENGTH = 6
RECIPE = override(Recipe(), ["sketch.family=winnow", "shingle.k=3", f"match.passage={LENGTH}"])
POOL = [" ".join(f"w{(7 * at + step) % 40}" for step in range(1 + at % 9)) + "." for at in range(14)]


def cut_all(texts: Sequence[str], recipe: Recipe = RECIPE) -> tuple[list[list[Cut]], list[str]]:
    cutter = PassageCutter(recipe, "numpy", WindowIndex())
    found = [cutter.cut(text, at) for at, text in enumerate(texts)]
    return [cuts for cuts, _ in found], [left for _, left in found]


def words(text: str) -> list[str]:
    return text.replace(".", " ").split()


def holds(text: str, part: list[str]) -> bool:
    return f" {' '.join(part)} " in f" {' '.join(words(text))} "


@examples(150)
@given(
    documents=st.lists(
        st.lists(st.tuples(st.sampled_from(POOL), st.sampled_from([" ", "\n\n", "  "])), max_size=12),
        max_size=6,
    )
)
def test_what_is_cut_is_kept_elsewhere_and_cutting_again_cuts_nothing(
    documents: list[list[tuple[str, str]]],
) -> None:
    texts = ["".join(map("".join, own)) for own in documents]
    cuts, left = cut_all(texts)
    assert left == [without(text, own) for text, own in zip(texts, cuts, strict=True)]
    assert cut_all(left) == ([[] for _ in texts], left)
    for at, (text, own) in enumerate(zip(texts, cuts, strict=True)):
        assert all(one.start < one.end <= other.start for one, other in pairwise(own))
        for one in own:
            assert one.document <= at and holds(left[one.document], words(text[one.start : one.end]))
    for at, text in enumerate(left):
        for sentence in filter(None, map(str.split, text.split("."))):
            is_whole = len(sentence) >= LENGTH
            assert not (is_whole and any(holds(earlier, sentence) for earlier in left[:at]))


def story(seed: int, sentences: int) -> list[str]:
    rng = random.Random(seed)
    return [
        " ".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=8)).capitalize() + "." for _ in range(sentences)
    ]


def test_sentences_that_are_repeated_in_part_stay_whole() -> None:
    one, other = story(1, 4), story(2, 3)
    half = " ".join(one[3].split()[:5])
    first = f"{' '.join(one[:2])}\n\n{' '.join(one[2:])}"
    second = f"{' '.join(other[:2])}\n\n{' '.join(one[1:3])} {half} and then. {other[2]}\n"
    _, (kept, left) = cut_all([first, second])
    assert kept == first
    assert left == f"{' '.join(other[:2])}\n\n{half} and then. {other[2]}\n"


def test_footers_headers_and_copies() -> None:
    footer = " ".join(story(3, 5))
    texts = [f"{' '.join(story(seed, 3))}\n\n{footer}\n" for seed in range(10, 14)]
    cuts, left = cut_all([*texts, texts[0], f"{footer}\n\n{' '.join(story(20, 2))}"])
    assert left[0] == texts[0] and left[4] == ""
    assert left[1:4] == [f"{' '.join(story(seed, 3))}\n" for seed in range(11, 14)]
    assert left[5] == " ".join(story(20, 2))
    assert [[one.document for one in own] for own in cuts] == [[], [0], [0], [0], [0], [0]]


def test_a_text_that_repeats_itself_keeps_one_copy() -> None:
    passage = " ".join(story(4, 3))
    cuts, left = cut_all([f"{passage} {passage} Other words here now. {passage}", "Again. " * 5_000])
    assert left[0] == f"{passage} Other words here now."
    assert [one.document for one in cuts[0]] == [0, 0]
    assert 0 < len(left[1]) < 7 * 3 * LENGTH
    assert cut_all(left)[1] == left


def test_a_cut_names_a_document_that_has_all_of_it() -> None:
    begin, end = (" ".join(story(seed, 1)).removesuffix(".").lower() for seed in (5, 6))
    texts = [f"First {begin}.", f"Second {begin} {end}.", f"Third. {begin} {end}.", f"{begin}."]
    cuts, left = cut_all(texts)
    assert left == [*texts[:2], "Third.", ""]
    assert [[(one.start, one.document) for one in own] for own in cuts[2:]] == [[(6, 1)], [(0, 0)]]


def test_sentences_of_two_documents_are_two_cuts() -> None:
    one, other = story(7, 1)[0], story(8, 1)[0]
    cuts, left = cut_all([one, other, f"Third. {one} {other}"])
    assert left[2] == "Third."
    assert [(cut.start, cut.end, cut.document) for cut in cuts[2]] == [
        (6, 7 + len(one) + 1, 0),
        (7 + len(one) + 1, 7 + len(one) + 1 + len(other), 1),
    ]


def test_a_quotation_is_cut_whole() -> None:
    sentences = story(9, 3)
    quoted = "\n".join(f"> {line}" for line in " ".join(sentences).replace(" ", "\n", 9).splitlines())
    mail = f"I agree.\n\nOn Monday Ada wrote:\n{quoted}\nand so do the others\n> > {sentences[0]}\nBert"
    _, left = cut_all([" ".join(sentences), mail])
    assert left[1] == "I agree.\n\nOn Monday Ada wrote:\nand so do the others\nBert"


def test_scripts_without_spaces_are_cut_by_characters() -> None:
    recipe = override(RECIPE, ["shingle.scheme=char", "match.passage=8"])
    shared = "敏捷的棕色狐狸跳过了懒狗。然后它回家睡觉了。"
    _, left = cut_all(
        [f"昨天下雨。{shared}", f"据说:今天晴天。{shared}明天再看吧。", "한국어 문장입니다."], recipe
    )
    assert left == [f"昨天下雨。{shared}", "据说:今天晴天。明天再看吧。", "한국어 문장입니다."]


def test_an_index_in_files_finds_what_one_in_memory_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_passages, "_MAX_WINDOWS_IN_MEMORY", 50)
    monkeypatch.setattr(repeated_passages, "_WINDOWS_PER_MERGE", 64)
    rng = np.random.default_rng(5)
    index, first, last = WindowIndex(), dict[int, int](), dict[int, int]()
    for document in range(120):
        again = np.array(list(first)[document % 7 :: 9], np.uint64)
        windows = np.concatenate((rng.integers(0, 2**64, rng.integers(0, 30), np.uint64), again))
        asked = np.concatenate((windows, np.array(list(first)[::3], np.uint64)))
        places = [(first.get(window, -1), last.get(window, -1)) for window in asked.tolist()]
        assert list(zip(*map(np.ndarray.tolist, index.find(asked)), strict=True)) == places
        index.add(windows, document)
        added = {window: (document << 32) + number for number, window in enumerate(windows.tolist(), 1)}
        first, last = added | first, last | added


@pytest.mark.parametrize(
    "settings",
    [["sketch.family=hyperplane", "sketch.input=vector"], ["shingle.tokens=code", "shingle.language=java"]],
)
def test_only_texts_of_words_are_cut(settings: list[str]) -> None:
    with pytest.raises(InputError, match="--cut cuts plain text and pages"):
        PassageCutter(override(RECIPE, settings), "numpy", WindowIndex())

"""Passages against brute force over all pairs of seeds, and the places of tokens in texts."""

import random
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import InputError, RecipeError
from nearsim_db.similarity import passages, presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.passages import PassageFinder, PassageRules, find_passages
from nearsim_db.similarity.profile import resolve, restore
from nearsim_db.similarity.recipe import Recipe, override, to_mapping
from nearsim_db.similarity.text.features import Shingler
from nearsim_db.similarity.text.tokens import Tokeniser, Tokens
from tests.builders.selection import every_backend, examples

FREE = ["shingle.order=free", "shingle.k=3"]
Box = tuple[int, int, int, int, int]
WINNOW = override(Recipe(), ["sketch.family=winnow"])


def seeds_of(left: list[int], right: list[int], k: int, *, is_free: bool) -> list[tuple[int, int]]:
    order = sorted if is_free else list
    return [
        (i, j)
        for i in range(len(left) - k + 1)
        for j in range(len(right) - k + 1)
        if order(left[i : i + k]) == order(right[j : j + k])
    ]


Seeds = list[tuple[int, int]]


def oracle(left: list[int], right: list[int], k: int, gap: int, *, is_free: bool) -> list[Box]:
    """Connected seeds, of which one follows the other in both texts by at most k + gap: their hull and equal tokens.

    Groups that overlap in both texts are one. In free order seeds have two tokens, groups 18 or more, those at most
    2 gap apart are one too, and those half covered by a longer one are left out.
    """
    k = min(k, 2) if is_free else k
    found: list[Seeds] = []
    open_seeds = set(seeds_of(left, right, k, is_free=is_free))
    while open_seeds:
        group = [open_seeds.pop()]
        for i, j in group:
            near = {
                (p, q)
                for p, q in open_seeds
                if (0 < p - i <= k + gap and 0 < q - j <= k + gap)
                or (0 < i - p <= k + gap and 0 < j - q <= k + gap)
            }
            open_seeds -= near
            group += near
        found.append(group)
    if is_free:
        found = [one for one in found if min(lengths(one, k)) >= 18]
    while mergeable := [
        (one, other)
        for one, other in combinations(found, 2)
        if min(common(one, other, k)) > (-2 * gap if is_free else 0)
    ]:
        one, other = mergeable[0]
        found = [each for each in found if each not in (one, other)] + [one + other]
    kept: list[Seeds] = []
    for each in sorted(found, key=lambda own: (-sum(lengths(own, k)), min(own))):
        halves = [
            2 * part >= own
            for one in kept
            for part, own in zip(common(each, one, k), lengths(each, k), strict=True)
        ]
        if not (is_free and any(halves)):
            kept.append(each)
    return sorted(
        (low, high, other_low, other_high, min(len(covered(each, k, side)) for side in (0, 1)))
        for each in kept
        for (low, high), (other_low, other_high) in [(hull(each, k, 0), hull(each, k, 1))]
    )


def covered(seeds: Seeds, k: int, side: int) -> set[int]:
    return {one[side] + step for one in seeds for step in range(k)}


def hull(seeds: Seeds, k: int, side: int) -> tuple[int, int]:
    places = covered(seeds, k, side)
    return min(places), max(places) + 1


def lengths(seeds: Seeds, k: int) -> list[int]:
    return [high - low for low, high in (hull(seeds, k, 0), hull(seeds, k, 1))]


def common(one: Seeds, other: Seeds, k: int) -> list[int]:
    """How far the hulls overlap in either text, negative if they are apart."""
    both = [(hull(one, k, side), hull(other, k, side)) for side in (0, 1)]
    return [min(a[1], b[1]) - max(a[0], b[0]) for a, b in both]


def tokens_of(ids: list[int]) -> Tokens:
    places = np.arange(len(ids))
    return Tokens("x" * len(ids), np.array(ids, np.uint64), places, places + 1, places)


def boxes(left: list[int], right: list[int], rules: PassageRules) -> list[Box]:
    found = find_passages(tokens_of(left), tokens_of(right), rules)
    return sorted((one.left.start, one.left.end, one.right.start, one.right.end, one.equal) for one in found)


@st.composite
def alike(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two sequences with parts of one copied into the other."""
    tokens = st.lists(st.integers(0, draw(st.integers(1, 20))), max_size=45)
    left, right = draw(tokens), draw(tokens)
    for _ in range(draw(st.integers(0, 3))):
        begin, size, at = (draw(st.integers(0, 30)) for _ in range(3))
        right[at:at] = left[begin : begin + size]
    return left, right


@examples(300)
@given(texts=alike(), k=st.integers(1, 4), gap=st.integers(0, 6), is_free=st.booleans())
def test_passages_are_the_connected_seeds(
    texts: tuple[list[int], list[int]], k: int, gap: int, is_free: bool
) -> None:
    most, passages.MAX_SEEDS_PER_RUN = passages.MAX_SEEDS_PER_RUN, 10**6
    try:
        rules = PassageRules(k, gap, 0, 0, is_free)
        assert boxes(*texts, rules) == oracle(*texts, k, gap, is_free=is_free)
    finally:
        passages.MAX_SEEDS_PER_RUN = most


def test_short_and_thin_passages_are_left_out() -> None:
    rng = random.Random(1)
    shared = [rng.getrandbits(40) for _ in range(40)]
    left, right = shared[:20] + [-1 % 2**40] * 7 + shared[20:], [1, 2, *shared[:20], 3, *shared[20:], 4]
    assert boxes(left, right, PassageRules(5, 7, 20)) == [(0, 47, 2, 43, 40)]
    assert boxes(left, right, PassageRules(5, 6, 20)) == [(0, 20, 2, 22, 20), (27, 47, 23, 43, 20)]
    assert boxes(left, right, PassageRules(5, 6, 21)) == []
    assert boxes(left, right, PassageRules(5, 7, 20, 0.86)) == [(0, 20, 2, 22, 20), (27, 47, 23, 43, 20)]
    assert boxes(left, right, PassageRules(5, 7, 21, 0.86)) == []


def test_what_repeats_too_often_is_paired_in_order() -> None:
    many = PassageRules(5, 30, 20)
    assert boxes([7] * 50_000, [7] * 50_000, many) == [(0, 50_000, 0, 50_000, 50_000)]
    assert boxes([7] * 50_000, [8, *[7] * 2_000], many) == [(0, 2_000, 1, 2_001, 2_000)]


def test_moved_paragraphs_are_passages_of_their_own() -> None:
    rng = random.Random(2)
    first, second, third = ([f"w{rng.randrange(9_999)}" for _ in range(size)] for size in (60, 40, 30))
    left = " ".join([*first, *second, *third])
    right = " ".join([*second, "Other,", "words!", *first[:30], "changed", *first[31:]])
    found = PassageFinder(WINNOW, "numpy").find(left, right)
    assert [(one.left.first_word, one.left.end_word, one.equal) for one in found] == [
        (0, 60, 59),
        (60, 100, 40),
    ]
    assert [(one.right.first_word, one.right.end_word) for one in found] == [(42, 102), (0, 40)]
    assert [one.share for one in found] == [round(59 / 60, 6), 1.0]
    for one in found:
        assert one.left.text == left[one.left.start : one.left.end]
        assert one.right.text == right[one.right.start : one.right.end]
    assert found[1].left.text == found[1].right.text == " ".join(second)


def test_texts_without_passages() -> None:
    finder = PassageFinder(WINNOW, "numpy")
    long = " ".join(map(str, range(100)))
    for left, right in (("", ""), ("", long), ("1 2 3", long), ("0 1 2 3 4 5", long), (".,!", long)):
        assert finder.find(left, right) == finder.find(right, left) == []
    with pytest.raises(InputError, match="compares vectors"):
        PassageFinder(override(Recipe(), ["sketch.family=hyperplane", "sketch.input=vector"]), "numpy")


SETTINGS: tuple[list[str], ...] = (
    [],
    ["shingle.tokens=ascii"],
    ["shingle.tokens=whitespace", "normalise.unicode=none", "normalise.case=lower"],
    ["shingle.scheme=char"],
    ["shingle.scheme=char", "normalise.whitespace=none", "normalise.case=none"],
    ["normalise.unicode=nfc", "normalise.invisible=keep"],
    ["shingle.stopwords=en", "shingle.stem=english", "shingle.min_token_length=2"],
    ["shingle.tokens=code", "shingle.language=text"],
    ['normalise.mask=["numbers", "dates", "paths", "urls"]'],
    ["normalise.confusables=fold", 'normalise.mask=["numbers", "emails", "hex"]'],
    ["normalise.confusables=fold", "shingle.scheme=char", "normalise.case=none"],
)
ODD = (
    "aZ é½℃´ﷺΣς ß\u0301\u0345\u00ad\u200b\t한국가ก็™ᄀ\u1161\u11a8漢字\u30cf\u309aﬁ①𝔘 .-\u00a0\x03\u0435В1:/@"
)


@examples(200)
@given(text=st.text(st.sampled_from(ODD), max_size=40), settings=st.sampled_from(SETTINGS))
def test_tokens_are_the_units_of_the_shingles(text: str, settings: list[str]) -> None:
    """As many, and equal where the canonical units are; each folds to what its place in the text is."""
    recipe = override(Recipe(), settings)
    found = Tokeniser(recipe, "numpy").tokens(text)
    shingler = Shingler(recipe, "numpy")
    canonical = shingler.canonical([text]).text(0)
    units = list(canonical)
    if recipe.shingle.scheme == "word":
        kept = canonical if shingler.word_filter is None else shingler.word_filter(canonical)
        units = kept.split()
    assert len(found) == len(units)
    numbers = dict(zip(units, found.ids.tolist(), strict=True))
    assert [numbers[unit] for unit in units] == found.ids.tolist() and len(set(numbers.values())) == len(
        numbers
    )
    assert all(begin <= after for begin, after in pairwise(found.begins.tolist()))
    assert np.all((found.begins < found.ends) & (found.ends <= len(text)))
    assert np.all(np.diff(found.words) > 0)


def test_places_are_those_of_single_words_and_characters() -> None:
    text = "Über 25℃ — “fiﬁne” Ωmega ...  und e\u0301te\u0301, 中文字"
    found = Tokeniser(WINNOW, "numpy").tokens(text)
    shown = [text[begin:end] for begin, end in zip(found.begins, found.ends, strict=True)]
    assert shown == ["Über", "25", "℃", "fiﬁne", "Ωmega", "und", "e\u0301te\u0301", "中文字"]
    characters = Tokeniser(override(Recipe(), ["shingle.scheme=char"]), "numpy").tokens(" ﬁ e\u0301\t\n中 ")
    places = list(zip(characters.begins.tolist(), characters.ends.tolist(), strict=True))
    assert places == [(1, 2), (1, 2), (2, 3), (3, 5), (5, 6), (7, 8)]


def test_passages_of_stems_and_of_scripts_without_spaces() -> None:
    stems = override(
        WINNOW, ["shingle.stopwords=en", "shingle.stem=english", "shingle.k=3", "match.passage=4"]
    )
    left = "The ministers were discussing old railways and the crossing of rivers yesterday."
    right = "Said: a minister has discussed the old railway, crossed by a river"
    found = PassageFinder(stems, "numpy").find(left, right)
    assert [(one.left.text, one.right.text, one.equal, one.left.first_word) for one in found] == [
        (
            "ministers were discussing old railways and the crossing of rivers",
            "minister has discussed the old railway, crossed by a river",
            6,
            1,
        )
    ]
    cjk = override(WINNOW, ["shingle.scheme=char", "match.passage=10"])
    shared = "敏捷的棕色狐狸跳过了懒狗然后回家"
    [one] = PassageFinder(cjk, "numpy").find(f"昨天{shared}。", f"据说:{shared}吧")
    assert (one.left.text, one.left.start, one.right.start, one.share) == (shared, 2, 3, 1.0)


def test_passages_are_found_in_the_runs_of_the_features() -> None:
    """Two texts share a feature if and only if they share a seed."""
    rng = random.Random(4)
    encoder = Encoder(resolve(WINNOW), "numpy")
    tokeniser = Tokeniser(WINNOW, "numpy")
    for _ in range(100):
        texts = [" ".join(rng.choices("abc", k=rng.randrange(5, 40))) for _ in range(2)]
        features = encoder.features(texts)
        shared = set(features.of(0).tolist()) & set(features.of(1).tolist())
        left, right = (passages.grams(tokeniser.tokens(text).ids, 5) for text in texts)
        assert bool(shared) == bool(len(passages.matching_runs(left, right)))


@every_backend
@examples(100)
@given(documents=st.lists(st.lists(st.sampled_from("abcde"), max_size=12), min_size=1, max_size=4))
def test_words_in_any_order_make_a_feature(backend: str, documents: list[list[str]]) -> None:
    """As many as there are runs of 3 that differ as multisets; a shorter text is one feature."""
    encoder = Encoder(resolve(override(Recipe(), FREE)), backend)
    expected = [
        {tuple(sorted(own[at : at + 3])) for at in range(max(1, len(own) - 2))} if own else set()
        for own in documents
    ]
    features = encoder.features([" ".join(own) for own in documents])
    found = [set(features.of(at).tolist()) for at in range(len(documents))]
    for one, other in product(range(len(documents)), repeat=2):
        assert len(found[one] & found[other]) == len(expected[one] & expected[other])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["shingle.scheme=char"], "but shingle.scheme is char and hash.base poly64"),
        (["shingle.scheme=bag"], "but shingle.scheme is bag"),
        (["hash.base=crc32"], "hash.base crc32; set them to word and poly64"),
        (["shingle.k=33"], "shingle.k is 33, but at most 32"),
    ],
)
def test_a_free_order_is_one_of_words(settings: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        override(Recipe(), ["shingle.order=free", *settings])


def test_reworded_texts_share_a_passage() -> None:
    reworded = presets.load("reworded")
    verbs = [
        "walk",
        "jump",
        "paint",
        "count",
        "print",
        "load",
        "sail",
        "heat",
        "melt",
        "lift",
        "fold",
        "rent",
    ]
    left = " ".join(
        f"{verb}ed {noun}s and {verb}ing" for verb, noun in zip(verbs, reversed(verbs), strict=True)
    )
    right = " ".join(
        f"{noun} was the {verb}, {verb}s" for verb, noun in zip(verbs, reversed(verbs), strict=True)
    )
    [found] = PassageFinder(reworded, "numpy").find(left, f"Other words first; {right}")
    assert (found.left.text, found.right.text) == (left, right.removesuffix(", rents"))
    assert found.equal == 24, "a pair of different stems in each three words"
    assert PassageFinder(WINNOW, "numpy").find(left, right) == []
    assert restore(to_mapping(WINNOW), resolve(WINNOW).fingerprint, 256, 1).recipe == WINNOW
    stored = to_mapping(WINNOW)
    del stored["shingle"]["order"]
    assert restore(stored, resolve(WINNOW).fingerprint, 256, 1).recipe == WINNOW

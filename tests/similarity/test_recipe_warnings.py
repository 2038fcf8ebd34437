"""Pitfalls of recipes produce a warning with its reason; the forecast of candidates against a full count."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db.similarity import presets, recipe_warnings
from nearsim_db.similarity.amplification import and_, banding, or_
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe_warnings import (
    MAX_CANDIDATES_PER_DOCUMENT,
    FeatureTotals,
    candidates_per_document,
    of_candidates,
)

RECIPES = [
    (["shingle.k=1"], "texts of the same words in another order are equal"),
    (["shingle.scheme=char", "shingle.k=1"], "a text with all letters equals the alphabet"),
    (["match.threshold=0.999"], "less than a step of 0.007812 from all"),
    (["match.threshold=0.999", "match.verify=estimate"], "raise sketch.k, or set match.verify to exact"),
    (
        ["sketch.family=hyperplane", "match.threshold=0.99999999", "match.verify=estimate"],
        "a step of 0.007812 from all",
    ),
    (["bands.count=25", "bands.rows=5"], "3 of the 128 values of a sketch are in no band"),
    (["bands.count=4", "bands.rows=32"], "only 0% share enough bands"),
    (["sketch.family=minhash", "bands.hash=xor"], "equal rows cancel"),
]


@pytest.mark.parametrize(("settings", "reason"), RECIPES)
def test_a_recipe_with_a_warning(settings: list[str], reason: str) -> None:
    found = recipe_warnings.of_profile(resolve(override(Recipe(), settings)))
    assert [one for one in found if reason in one], found


WELL = [
    *([], ["shingle.scheme=bag", "shingle.k=1"], ["shingle.scheme=sentence", "shingle.k=1"]),
    *(["match.threshold=1", "match.verify=estimate"], ["match.threshold=0.8"]),
    ["sketch.family=hyperplane", "sketch.k=1024", "match.threshold=0.9999", "match.verify=estimate"],
    ["sketch.family=projection", "match.threshold=1000", "match.verify=estimate"],
    ["sketch.family=minhash", "bands.hash=xor", "bands.count=128", "bands.rows=1"],
]


def test_recipes_without_warnings() -> None:
    for settings in WELL:
        assert recipe_warnings.of_profile(resolve(override(Recipe(), settings))) == [], settings


TEXTS = {
    "고양이가 창가에 앉아 있었다": True,
    "猫坐在窗边看雨": True,
    "ねこは窓のそばに座っていた": True,
    "The cat sat by the window": False,
    "The word 猫 means cat, as everybody here knows": False,
    "1,234.50 !!": False,
    "": False,
}


def test_word_shingles_on_scripts_without_spaces() -> None:
    for text, is_warned in TEXTS.items():
        for scheme in ("word", "bag", "char"):
            seen = recipe_warnings.TextSample()
            seen.add([text] + ["An English text."] * 18)
            found = recipe_warnings.of_texts(resolve(override(Recipe(), [f"shingle.scheme={scheme}"])), seen)
            assert bool(found) == (is_warned and scheme != "char"), (text, scheme)
            assert not found or found[0].startswith("5% of the texts")


def test_the_preset_is_not_named_as_an_option_since_workers_warn_too() -> None:
    seen = recipe_warnings.TextSample()
    seen.add(["今天天气很好，我们去公园散步。"])
    (warning,) = recipe_warnings.of_texts(resolve(Recipe()), seen)
    assert warning.endswith("as the preset cjk does") and "--" not in warning


PAGES = {
    "<!DOCTYPE html><title>x</title><p>y": True,
    "<HTML lang=en>\n<body>": True,
    "<p>short</p>": True,
    "one<br>two<br/>three": True,
    "a < b and c > d, <b": False,
    "write <p> for a paragraph": False,
    "<note><to>you</to></note>": False,
    "<" * 5_000: False,
    "": False,
}


def test_html_under_a_recipe_that_keeps_markup() -> None:
    for text, html in PAGES.items():
        seen = recipe_warnings.TextSample()
        seen.add([text] + ["An English text."] * 19)
        found = recipe_warnings.of_texts(resolve(Recipe()), seen)
        assert bool(found) is html and (not found or found[0].startswith("5% of the texts")), text
        for preset in ("web-pages", "embeddings"):
            assert recipe_warnings.of_texts(resolve(presets.load(preset)), seen) == []


def test_documents_with_more_rare_shingles_than_keys() -> None:
    profile = resolve(override(Recipe(), ["sketch.family=rare", "sketch.k=3"]))
    short, full = np.array([[1, 2, 2]], np.uint64), np.array([[1, 2, 3]], np.uint64)
    assert recipe_warnings.of_sketches(profile, np.repeat(short, 20, axis=0)) == []
    (found,) = recipe_warnings.of_sketches(profile, np.concatenate((np.repeat(short, 19, axis=0), full)))
    assert found.startswith("5% of the documents have 3 rare shingles")
    assert recipe_warnings.of_sketches(profile, short[:0]) == []


def test_documents_shorter_than_a_shingle() -> None:
    profile = resolve(Recipe())
    assert recipe_warnings.of_features(profile, FeatureTotals(100, 4, 0, 10_000)) == []
    (found,) = recipe_warnings.of_features(profile, FeatureTotals(100, 5, 0, 10_000))
    assert "5 of 100 documents with a single shingle" in found
    assert (
        recipe_warnings.of_features(resolve(presets.load("realtime")), FeatureTotals(100, 50, 0, 10_000))
        == []
    )
    assert recipe_warnings.of_features(profile, FeatureTotals(0, 0, 0, 0)) == []


def test_32_bit_hashes_warn_above_ten_million_shingles() -> None:
    crc32 = resolve(override(Recipe(), ["hash.base=crc32"]))
    assert recipe_warnings.of_features(crc32, FeatureTotals(10**6, 0, 0, 10**7)) == []
    (found,) = recipe_warnings.of_features(crc32, FeatureTotals(10**6, 0, 0, 2 * 10**7))
    # n^2 / 2 pairs, each equal with probability 2^-32
    assert "about 46,566 pairs" in found
    assert recipe_warnings.of_features(resolve(Recipe()), FeatureTotals(10**6, 0, 0, 10**9)) == []


def test_documents_without_features() -> None:
    for preset, missing in (("default", "text in title or body"), ("embeddings", "vectors")):
        profile = resolve(presets.load(preset))
        assert recipe_warnings.of_features(profile, FeatureTotals(96, 0, 4, 1_000)) == []
        (found,) = recipe_warnings.of_features(profile, FeatureTotals(0, 0, 100, 0))
        assert found.startswith("100 of 100 documents") and missing in found


def test_rows_that_cancel_are_counted() -> None:
    profile = resolve(presets.load("newshound"))
    sketches = np.arange(10 * 120, dtype=np.uint64).reshape(10, 120)
    assert recipe_warnings.of_sketches(profile, sketches) == []
    sketches[0, 2] = sketches[0, 0]
    (found,) = recipe_warnings.of_sketches(profile, sketches)
    assert "in 0.25% of the bands" in found
    assert recipe_warnings.of_sketches(resolve(Recipe()), sketches) == []
    assert recipe_warnings.of_sketches(profile, sketches[:0]) == []


def in_bands(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes (n, bands) with the band in the top byte."""
    return hashes | (np.arange(hashes.shape[1], dtype=np.uint64) << np.uint64(56))


def count_all(keys: list[list[int]], minimum: int) -> float:
    """Candidate pairs per document by comparing every pair."""
    linked = sum(
        sum(a == b for a, b in zip(left, right, strict=True)) >= minimum
        for left, right in combinations(keys, 2)
    )
    return linked / len(keys)


@pytest.mark.parametrize("minimum", [1, 2, 3])
@pytest.mark.parametrize("buckets", [20, 3_000])  # with the latter most documents share none
@pytest.mark.parametrize("size", [2, 99, 250])
def test_sample_of_the_whole_corpus_is_counted_exactly(size: int, buckets: int, minimum: int) -> None:
    keys = in_bands(np.random.default_rng(size).integers(0, buckets, (size, 6), np.uint64))
    expected = count_all(keys.tolist(), minimum)
    assert candidates_per_document(keys, banding(keys.shape[1], 1, minimum), size) == pytest.approx(expected)


def test_forecast_of_a_two_step_construction() -> None:
    keys = in_bands(np.random.default_rng(3).integers(0, 4, (120, 6), np.uint64))
    linked = 0
    for left, right in combinations(keys.tolist(), 2):
        same = [a == b for a, b in zip(left, right, strict=True)]
        linked += any(same[:2]) and any(same[2:4]) and any(same[4:])
    assert candidates_per_document(keys, and_(3, or_(2)), 120) == pytest.approx(linked / 120)


def test_forecast_from_a_sample_is_close_to_the_corpus() -> None:
    keys = in_bands(np.random.default_rng(7).integers(0, 500, (4_000, 8), np.uint64))
    reported = candidates_per_document(keys[:1_000], or_(8), len(keys))
    assert reported == pytest.approx(count_all(keys[:1_000].tolist(), 1) * 4, rel=0.01)
    assert reported == pytest.approx(len(keys) * 8 / 500 / 2, rel=0.1)


def test_keys_of_one_band_are_shared_at_any_position() -> None:
    keys = np.array([[1, 2, 3], [3, 1, 9], [7, 2, 8]], np.uint64)
    for minimum, expected in ((1, 2 / 3), (2, 1 / 3)):
        assert candidates_per_document(keys, banding(3, 1, minimum), 3) == pytest.approx(expected)


def test_few_candidates_give_no_of_candidates() -> None:
    for size in (0, 1):
        assert candidates_per_document(np.zeros((size, 4), np.uint64), or_(4), 1_000) == 0
    assert of_candidates(MAX_CANDIDATES_PER_DOCUMENT, Recipe()) is None
    assert "12,346" in (of_candidates(12_345.6, Recipe()) or "")

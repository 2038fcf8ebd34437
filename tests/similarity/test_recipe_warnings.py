"""Known pitfalls produce a warning with its reason; sound recipes produce none."""

import numpy as np
import pytest

from nearsim_db.similarity import presets, recipe_warnings
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe_warnings import FeatureTotals

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

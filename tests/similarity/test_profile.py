"""Profiles: chosen bands, fingerprints that depend on every setting with an effect, and descriptions."""

import json
import math
import os
import subprocess
import sys
import zlib
from typing import Any

import pytest

from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.similarity import amplification, presets, sketch, text
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve, restore
from nearsim_db.similarity.recipe import Recipe, from_mapping, override, parse, to_mapping
from nearsim_db.similarity.text import words


def recall(similarity: float, bands: int, rows: int, minimum: int = 1) -> float:
    """P(at least `minimum` of the bands are shared), from its complement."""
    band = similarity**rows
    return 1 - sum(
        math.comb(bands, count) * band**count * (1 - band) ** (bands - count) for count in range(minimum)
    )


def restored(profile: Profile) -> Profile:
    """The profile as read from where a generation stores it."""
    stored = json.loads(json.dumps(to_mapping(profile.recipe)))
    return restore(stored, profile.fingerprint, profile.bands, profile.rows)


@pytest.mark.parametrize(
    ("threshold", "bands", "rows", "unused"),
    [(0.5, 40, 3, 8), (0.7, 20, 4, 48), (0.8, 18, 6, 20), (0.9, 11, 9, 29)],
)
def test_bands_are_chosen_for_the_recall(threshold: float, bands: int, rows: int, unused: int) -> None:
    profile = resolve(override(Recipe(), [f"match.threshold={threshold}"]))
    assert (profile.bands, profile.rows, profile.unused_rows) == (bands, rows, unused)
    assert profile.expected_recall == pytest.approx(recall(threshold, bands, rows))
    assert profile.expected_recall >= 0.995
    assert recall(threshold, 128 // (rows + 1), rows + 1) < 0.995
    assert recall(threshold, bands - 1, rows) < 0.995


@pytest.mark.parametrize(("threshold", "minimum", "keys"), [(0.5, 1, 8), (0.7, 1, 5), (0.7, 3, 9)])
def test_bottom_k_gets_only_the_keys_that_the_recall_needs(threshold: float, minimum: int, keys: int) -> None:
    match = [f"match.threshold={threshold}", f"match.min_shared_bands={minimum}"]
    profile = resolve(override(Recipe(), ["sketch.family=bottom_k", *match]))
    assert (profile.bands, profile.rows, profile.unused_rows) == (keys, 1, 128 - keys)
    assert profile.expected_recall == pytest.approx(recall(threshold, keys, 1, minimum))
    assert recall(threshold, keys - 1, 1, minimum) < 0.995 <= profile.expected_recall


@pytest.mark.parametrize(
    "settings",
    [
        *(["sketch.k=2", "match.threshold=0.5"], ["sketch.k=3", "sketch.family=bottom_k"]),
        *(["shingle.stem=klingon"], ["shingle.stopwords=klingon"]),
        *(["match.amplification=or(4, and)"], ["match.amplification=or(43, and(3))"]),
        ["match.amplification=or(257)", "sketch.k=512"],
        *(
            [f"match.amplification={written}", "sketch.family=bottom_k"]
            for written in ("and(2, or(4))", "or(4, and(1))", "and(4)")
        ),
        *(
            ["bands.rule=pick_bands", *more]
            for more in (
                ["match.threshold=0.2", "sketch.k=4096"],
                ["match.threshold=0.01", "sketch.k=8"],
                ["match.threshold=0.8", "match.min_shared_bands=20"],
            )
        ),
    ],
    ids=str,
)
def test_what_no_sketch_can_do_is_refused(settings: list[str]) -> None:
    with pytest.raises(RecipeError):
        resolve(override(Recipe(), settings))


# From the article: pickBands(t, 100), and floor(100 / bands)
PICKED = {0.5: (23, 4), 0.6: (18, 5), 0.7: (14, 7), 0.8: (10, 10), 0.9: (6, 16), 0.95: (4, 25), 0.99: (2, 50)}


@pytest.mark.parametrize("threshold", PICKED)
def test_bands_follow_riskiqs_rule(threshold: float) -> None:
    profile = resolve(override(presets.load("riskiq"), [f"match.threshold={threshold}"]))
    bands, rows = PICKED[threshold]
    assert (profile.bands, profile.rows, profile.unused_rows) == (bands, rows, 100 - bands * rows)
    assert profile.expected_recall == pytest.approx(recall(threshold, bands, rows))
    assert profile.expected_recall > 0.6
    assert restored(profile) == profile


def test_riskiqs_rule_at_a_threshold_of_1() -> None:
    exact = resolve(override(Recipe(), ["bands.rule=pick_bands", "match.threshold=1"]))
    assert (exact.bands, exact.rows) == (1, 128)


DECIDING = [
    *("fields=['body']", "normalise.unicode=nfc", "normalise.case=lower", "normalise.whitespace=none"),
    *("normalise.html=true", "normalise.invisible=keep", "shingle.scheme=char", "shingle.k=4"),
    *("normalise.mask=['dates']", "normalise.mask=['numbers']", "normalise.confusables=fold"),
    *(
        "shingle.tokens=ascii",
        "shingle.stopwords=en",
        "shingle.stopwords=en-long",
        "shingle.stopwords=['en']",
    ),
    *("shingle.stem=english", "shingle.min_token_length=2", "hash.base=crc32", "sketch.family=minhash"),
    *("sketch.k=127", "sketch.seed=2", "bands.recall=0.991", "bands.rule=pick_bands", "bands.hash=xor"),
    *("match.across=source", "match.within=source", "match.within_days=1", "match.length_ratio=0.5"),
    *("match.threshold=0.71", "match.min_shared_bands=2", "match.verify=estimate", "match.bucket_limit=63"),
    "cluster.numbers_differ=keep-apart",
]


def test_fingerprints_depend_on_every_key_that_affects_results() -> None:
    recipes = [override(Recipe(), [setting]) for setting in DECIDING]
    recipes += [Recipe(), override(Recipe(), ["sketch.family=minhash", "sketch.functions=java32"])]
    recipes += [override(Recipe(), ["bands.count=32", f"bands.rows={rows}"]) for rows in (3, 4)]
    fingerprints = {resolve(recipe).fingerprint for recipe in recipes}
    assert len(fingerprints) == len(recipes)
    assert all(len(bytes.fromhex(fingerprint)) == 32 for fingerprint in fingerprints)


@pytest.mark.parametrize(
    ("module", "name", "changed"),
    [
        (text, "SCHEME_VERSION", 99),
        (sketch, "BAND_SCHEME_VERSION", 99),
        (sketch.FastSimilarity, "scheme_version", 99),
        (text, "library_versions", lambda recipe: {"a library": "99"}),
    ],
)
def test_fingerprints_depend_on_the_schemes(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, changed: object
) -> None:
    before = resolve(Recipe())
    monkeypatch.setattr(module, name, changed)
    assert resolve(Recipe()).fingerprint != before.fingerprint
    with pytest.raises(FingerprintError, match="produces different sketches than the index"):
        restore(to_mapping(Recipe()), before.fingerprint, before.bands, before.rows)


def test_fingerprint_does_not_depend_on_notation() -> None:
    written = parse('match.threshold = 0.7\nbands.recall = 0.995\nfields = ["title", "body"]')
    assert resolve(written) == resolve(Recipe())
    assert resolve(parse("match.threshold = 1")) == resolve(parse("match.threshold = 1.0"))


def test_processes_agree_on_a_fingerprint() -> None:
    code = """
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import parse
print(resolve(parse('shingle = {stopwords = ["b", "a"], stem = "english"}')).fingerprint)
"""
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONHASHSEED": "1"}
    reported = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    here = resolve(from_mapping({"shingle": {"stopwords": ["b", "a"], "stem": "english"}})).fingerprint
    assert reported.strip() == here


# Keys that recipes did not have at first.
LATER_KEYS = {
    "normalise": ["invisible", "mask", "confusables"],
    "match": ["certain_shared_bands", "review", "across", "within", "within_days", "length_ratio"],
}
# What presets were then.
THEN = {
    "newshound": ["match.certain_shared_bands=0", "match.min_shared_bands=3", "match.bucket_limit=128"],
    "riskiq": ["match.bucket_limit=128"],
    "web-pages": ["normalise.html=true"],
}
# Fingerprints of the presets before there were such keys, computed by the version of that time.
WITHOUT_LATER_KEYS = {
    "default": "2c14f3c004e8306d1bfcace266135719b2406091831ac852bf9d69fc535407e2",
    "newshound": "add331100ba6954652ac3b713eef8564307ada147c03345a48dd2dc267b62c52",
    "riskiq": "565b498975041555e75812b69d83a105264b5d980068e79216e51c07ca29846a",
    "web-pages": "aa6d0277cb90f48e99e664c81546e3952c2897ad8f47484de022248a0b5eb9c3",
    "cs246-euclidean": "7da471314e7a0b6dedfe00f62f54dd7f21d287a258176abf29d32d0d944b9956",
}


def as_stored_before(recipe: Recipe) -> dict[str, Any]:
    """The recipe as an earlier version stored it."""
    stored = to_mapping(recipe)
    for section, keys in LATER_KEYS.items():
        for key in keys:
            del stored[section][key]
    return stored


@pytest.mark.parametrize("preset", WITHOUT_LATER_KEYS)
def test_an_index_of_an_earlier_version_keeps_its_fingerprint_and_features(preset: str) -> None:
    recipe = override(presets.load(preset), THEN.get(preset, []))
    bands = resolve(recipe)
    kept = restore(as_stored_before(recipe), WITHOUT_LATER_KEYS[preset], bands.bands, bands.rows)
    assert kept.fingerprint == WITHOUT_LATER_KEYS[preset] == resolve(kept.recipe).fingerprint
    assert restored(kept) == kept
    assert kept.recipe.normalise.invisible == "keep"
    text = "one\u200btwo three\xadfour"
    split, joined = (
        Encoder(one).features([text, "one two three four", "onetwo threefour"]) for one in (kept, bands)
    )
    assert split.of(0).tolist() == split.of(1).tolist() or preset == "riskiq"
    assert joined.of(0).tolist() == joined.of(2).tolist() or preset == "riskiq"


# The fingerprint of the default recipe when its recall was 0.99 and all 128 values of a sketch were in bands.
OF_32_BANDS = "9986010d7822a317d9df4aad594771be164049eb37bfe23e0aa58de7280c1bdb"


def test_generation_keeps_the_bands_that_it_was_built_with() -> None:
    recipe = override(Recipe(), ["bands.recall=0.99", "match.bucket_limit=64"])
    assert resolve(recipe).bands == 17
    stored = as_stored_before(recipe)
    kept = restore(stored, OF_32_BANDS, 32, 4)
    assert (kept.bands, kept.rows, kept.unused_rows, kept.fingerprint) == (32, 4, 0, OF_32_BANDS)
    assert kept.expected_recall == pytest.approx(recall(0.7, 32, 4))
    encoder = Encoder(kept)
    assert encoder.matrix_keys(encoder.encode(["one two three four"]).sketches).shape == (1, 32)
    for bands, rows in ((17, 4), (31, 4), (32, 3)):
        with pytest.raises(FingerprintError, match="produces different sketches"):
            restore(stored, OF_32_BANDS, bands, rows)


@pytest.mark.parametrize("code", ["en", "english"])
def test_recipe_made_with_the_long_english_list_keeps_it(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    recipe = override(presets.load("newshound"), [f"shingle.stopwords={code}"])
    with monkeypatch.context() as earlier:
        earlier.setattr(words, "CLASSIC_ENGLISH", ())
        before = resolve(recipe)
        bags = Encoder(before).features(["ONE BILLION new shares, says Microsoft", "TWO BILLION shares"])
    assert before.fingerprint != resolve(recipe).fingerprint
    kept = restore(to_mapping(recipe), before.fingerprint, before.bands, before.rows)
    assert kept.fingerprint == before.fingerprint
    assert kept.recipe == override(recipe, ["shingle.stopwords=en-long"])
    again = Encoder(kept).features(["ONE BILLION new shares, says Microsoft", "TWO BILLION shares"])
    assert again.ids.tolist() == bags.ids.tolist()
    assert again.ids.tolist() == [zlib.crc32(b"shares")] * 2
    with monkeypatch.context() as other:
        other.setattr(text, "library_versions", lambda recipe: {"stop-words": "1"})
        elsewhere = resolve(recipe).fingerprint
    with pytest.raises(FingerprintError, match="reindex start"):
        restore(to_mapping(recipe), elsewhere, before.bands, before.rows)


def test_bytes_grow_with_bands_and_positions() -> None:
    default = resolve(Recipe()).bytes_per_document()
    assert 1_600 < default < 2_500  # 20 bands take 1.6 KB, and there is the sketch
    fewer_bands = resolve(override(Recipe(), ["match.threshold=0.9"])).bytes_per_document()
    wider = resolve(override(Recipe(), ["sketch.family=minhash"])).bytes_per_document()
    assert fewer_bands < default
    assert wider == default + 128 * 4


AMPLIFICATIONS = {
    "or(40,and(3))": (40, 3, 8),
    " at_least( 3, 40, and(3) )": (40, 3, 8),
    "and(4, or(4))": (16, 1, 112),
    "or(4, and(4, or(2, and(4))))": (32, 4, 0),
    "and(5)": (1, 5, 123),
}


@pytest.mark.parametrize("written", AMPLIFICATIONS)
def test_amplification_determines_bands_and_rows(written: str) -> None:
    profile = resolve(override(Recipe(), [f"match.amplification={written}"]))
    assert (profile.bands, profile.rows, profile.unused_rows) == AMPLIFICATIONS[written]
    construction = amplification.parse(written)
    assert profile.amplification == construction
    assert profile.expected_recall == profile.match_probability(0.7) == construction.probability(0.7)
    # However it is written, it is the same profile; and it comes back from where it was stored.
    assert profile.recipe.match.amplification == str(construction)
    assert resolve(profile.recipe) == profile
    assert restored(profile) == profile


@pytest.mark.parametrize(
    ("rules", "written"),
    [
        (["bands.count=20", "bands.rows=5"], "or(20, and(5))"),
        (["bands.count=20", "bands.rows=5", "match.min_shared_bands=2"], "at_least(2, 20, and(5))"),
        (["sketch.family=bottom_k", "bands.count=9", "bands.rows=1"], "or(9)"),
        ([], "or(20, and(4))"),
    ],
)
def test_bands_and_a_minimum_are_an_amplification(rules: list[str], written: str) -> None:
    profile = resolve(override(Recipe(), rules))
    assert str(profile.amplification) == written
    assert profile.recipe.match.amplification is None
    said = resolve(override(profile.recipe, [f"match.amplification={written}"]))
    assert said.expected_recall == pytest.approx(profile.expected_recall, rel=1e-12)
    assert (said.bands, said.rows, said.amplification) == (profile.bands, profile.rows, profile.amplification)

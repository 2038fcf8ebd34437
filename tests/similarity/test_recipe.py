"""Recipes: defaults, refusals with their reason, overrides, differences, and round trips."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import nearsim_db
from nearsim_db.errors import RecipeError
from nearsim_db.similarity import presets
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import (
    KeepRule,
    Recipe,
    from_mapping,
    keep_policy,
    load,
    override,
    parse,
    to_mapping,
    to_toml,
)
from nearsim_db.similarity.recipe.conversion import differing_keys
from tests.builders.cpu_time import cpu_seconds
from tests.builders.selection import examples

SECTIONS = {"Normalise", "Shingle", "Hash", "Sketch", "Bands", "MatchRules", "ClusterRules", "Retain"}


def as_json(recipe: Recipe) -> dict[str, Any]:
    """The mapping as jsonb gives it back."""
    mapping: dict[str, Any] = json.loads(json.dumps(to_mapping(recipe)))
    return mapping


def test_families_expose_their_options() -> None:
    said = to_mapping(parse('sketch.family = "hyperplane"'))["sketch"]
    assert said == {
        "family": "hyperplane",
        "k": 128,
        "seed": 1,
        "input": "terms",
        "weights": "count",
        "vectors": "gaussian",
    }
    owned = to_mapping(parse('sketch = {family = "hyperplane", input = "vector"}'))["sketch"]
    assert "weights" not in owned


def test_an_amplification_replaces_bands() -> None:
    recipe = parse('match.amplification = "or(40, and(3))"')
    assert to_mapping(recipe)["bands"] == {"hash": "mix64"}
    assert override(recipe, ["bands.recall=0.9"]) == parse("bands.recall = 0.9")
    assert override(recipe, ["match.min_shared_bands=3"]) == parse("match.min_shared_bands = 3")
    assert override(parse("match.min_shared_bands = 3"), ["match.amplification=or(40, and(3))"]) == recipe


# Beside what `recipes` below draws.
ACCEPTED = [
    'normalise = {unicode = "none", case = "none", whitespace = "none", html = true}',
    'hash.base = "djb2a"',
    'sketch.family = "bottom_k"\nbands = {count = 7, rows = 1}',
    'sketch = {family = "hyperplane", vectors = "sign", input = "terms", weights = "log"}',
    'sketch = {family = "hyperplane", input = "vector"}',
    'sketch = {family = "minhash", k = 2, coefficients = [[3, 5], [7, 11]]}\nbands = {count = 1, rows = 2}',
    'sketch = {family = "projection", width = 2.5, input = "vector"}\nmatch.threshold = 12.5',
    'sketch = {family = "dart_minhash", weights = "count"}',
    'match.amplification = "or(40, and(3))"',
    'match = {threshold = 1, min_shared_bands = 256, certain_shared_bands = 256, verify = "estimate"}',
    'match.verify = "bands"\ncluster.numbers_differ = "keep-apart"',
    'retain.age = "100000 days"',
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_valid_recipes_are_accepted(text: str) -> None:
    recipe = parse(text)
    assert from_mapping(as_json(recipe)) == recipe
    for section, given_values in tomllib.loads(text).items():
        kept = as_json(recipe)[section]
        assert (
            kept == given_values if isinstance(given_values, list) else kept.items() >= given_values.items()
        )


UNKNOWN = [
    ("treshold = 0.5", "treshold"),
    ("[match]\ntreshold = 0.5", "did you mean match.threshold?"),
    ("[shingles]\nk = 3", "did you mean shingle?"),
    ("[match]\nzzz = 1", "choose one of threshold, min_shared_bands, amplification, verify, "),
    ("shingle = 3", "[shingle]"),
]


@pytest.mark.parametrize(("text", "hint"), UNKNOWN)
def test_unknown_keys_are_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(hint)):
        parse(text)


# Values that no recipe may have, by key.
IMPOSSIBLE = {
    "fields": ["[]", '["title", "title"]', '["titel"]', '"title"'],
    "normalise.unicode": ['"nfd"'],
    "normalise.html": ["1"],
    "shingle.scheme": ['"words"'],
    "shingle.k": ["0", "1001", "3.0"],
    "shingle.stopwords": ["5", '["a", 5]'],
    "shingle.min_token_length": ["0"],
    "hash.base": ['"md5"', '"djb2a-cast"'],
    "sketch.k": ["0", "4097", "true"],
    "sketch.seed": ["-1", "9223372036854775808"],
    "sketch.functions": ['"prime32"'],
    "sketch.vectors": ['"sign"'],
    "sketch.width": ["2.0"],
    "sketch.input": ['"vector"'],
    "bands.recall": ["0", "1.0", "nan"],
    "bands.rule": ['"guess"'],
    "match.threshold": ["0", "1.01", "nan"],
    "match.min_shared_bands": ["0"],
    "match.bucket_limit": ["-1"],
    "cluster.linkage": ['"complete"'],
    "cluster.keep": [
        *('"newest"', '"source:"', '"source: , "', '"has:"', '"has: "', "[]", "3", '["latest", "newest"]'),
        *('["none", "latest"]', '["latest", "latest"]', '["source:A,B", "source: A, B"]'),
    ],
    "retain.age": [
        *("30", '"30"', '"30days"', '"1.5 days"', '"-1 days"', '"2 months"', '"0 days"', '"100001 days"'),
        '"1 day\\n"',
    ],
}


@pytest.mark.parametrize("key", IMPOSSIBLE)
def test_impossible_values_are_refused_by_the_name_of_the_key(key: str) -> None:
    for value in IMPOSSIBLE[key]:
        with pytest.raises(RecipeError, match=f"the recipe: .*{re.escape(key)}"):
            parse(f"{key} = {value}")


# Values that contradict each other or the database, with what the message names.
CONTRADICTIONS = [
    ('shingle.stopwords = ["a\\u0000"]', "PostgreSQL cannot store"),
    ('cluster.keep = "source:\\u0000"', "PostgreSQL cannot store"),
    ('cluster.keep = ["latest", "has:\\u0000"]', "PostgreSQL cannot store"),
    ("sketch = {family = 'minhash', functions = 'prime64'}", "sketch.functions"),
    ("sketch = {family = 'hyperplane', input = 'vector', weights = 'log'}", "sketch.weights"),
    ("sketch.family = 'hyperplane'\nmatch.threshold = 1.5", "match.threshold"),
    ("sketch.family = 'projection'\nmatch.threshold = inf", "match.threshold"),
    ("sketch.family = 'projection'\nmatch = {threshold = 2e13, verify = 'estimate'}", "match.threshold"),
    ("sketch.family = 'projection'\nmatch = {threshold = 1e-9, verify = 'estimate'}", "match.threshold"),
    ("sketch.family = 'hyperplane'\nbands.hash = 'xor'", "bands.hash"),
    ("match.amplification = 'or(40, and(3))'\nbands.recall = 0.99", "match.amplification"),
    ("match = {amplification = 'or(40, and(3))', min_shared_bands = 3}", "match.amplification"),
    ("shingle.k = 129\nhash.base = 'crc32'", "shingle.k"),
    ("bands.count = 10", "count and rows together"),
    ("bands.rows = 10", "count and rows together"),
    ("bands = {recall = 0.9, rows = 5}", "count and rows together"),
    ("bands = {recall = 0.9, count = 5, rows = 5}", "not both"),
    ("bands = {rule = 'pick_bands', recall = 0.9}", "bands.rule"),
    ("bands = {rule = 'pick_bands', count = 5, rows = 5}", "bands.rule"),
    ("bands.rule = 'pick_bands'\nsketch.family = 'bottom_k'", "bottom_k"),
    ("bands.rule = 'pick_bands'\nmatch.amplification = 'or(4)'", "match.amplification"),
    ("bands = {count = 26, rows = 5}", "130"),
    ("bands = {count = 257, rows = 1}", "bands.count"),
    ("bands = {count = 5, rows = 0}", "bands.rows"),
    ("bands = {count = 5, rows = 2}\nsketch.family = 'bottom_k'", "bottom_k"),
    ("bands.hash = 'xor'\nsketch.family = 'bottom_k'", "bottom_k"),
    ("bands = {count = 5, rows = 2}\nmatch.min_shared_bands = 6", "match.min_shared_bands"),
    ("shingle = {scheme = 'char', stopwords = 'en'}", "shingle.stopwords"),
    ("shingle = {scheme = 'char', stem = 'english'}", "stem"),
    ("shingle = {scheme = 'char', min_token_length = 2}", "min_token_length"),
]


@pytest.mark.parametrize(("text", "named"), CONTRADICTIONS)
def test_contradictions_are_refused(text: str, named: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(named)):
        parse(text)


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for content in (b"k = ", b"[sketch]\nk = 0", b"typo = 1", b"\xff"):
        path.write_bytes(content)
        with pytest.raises(RecipeError, match=re.escape(str(path))):
            load(path)
    with pytest.raises(RecipeError, match=r"missing\.toml"):
        load(tmp_path / "missing.toml")
    path.write_text('shingle.stopwords = ["그리고"]', encoding="utf-8")
    assert load(path).shingle.stopwords == ("그리고",)


def test_ages_in_seconds() -> None:
    for age, seconds in {
        "none": None,
        "90 minutes": 5_400,
        "1 hour": 3_600,
        "1 days": 86_400,
        "2 weeks": 1_209_600,
    }.items():
        assert override(Recipe(), [f"retain.age={age}"]).retain.seconds == seconds


def test_keep_policies() -> None:
    assert keep_policy("longest").rules == (KeepRule("longest"),)
    assert keep_policy("source: A , B,,C:D ").rules == (KeepRule("source", ("A", "B", "C:D")),)
    assert list(map(str, keep_policy(("has: doi", "source:A, B", "latest")).rules)) == [
        *("has:doi", "source:A,B", "latest")
    ]
    assert not keep_policy("earliest").deciding and not keep_policy("none").deciding
    assert (
        keep_policy(("latest", "longest")).prefers_last
        and not keep_policy(("latest", "earliest")).prefers_last
    )


def test_several_keep_rules_survive_files_and_databases_and_change_the_fingerprint() -> None:
    recipe = parse('cluster.keep = ["has:doi", "source:A,B", "latest"]')
    assert parse(to_toml(recipe)) == from_mapping(to_mapping(recipe)) == recipe
    fingerprints = {
        resolve(parse(f"cluster.keep = {keep}")).fingerprint
        for keep in ('"latest"', '["latest"]', '["latest", "longest"]', '["longest", "latest"]')
    }
    assert len(fingerprints) == 3
    assert resolve(Recipe()).fingerprint == resolve(parse('cluster.keep = ["earliest"]')).fingerprint


def one_of(*values: str) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
word_shingles = {
    "scheme": one_of("word", "bag", "sentence"),
    "stopwords": st.one_of(one_of("none", "en"), st.lists(words, max_size=3)),
    "stem": one_of("none", "english"),
    "min_token_length": st.integers(1, 100),
}
any_shingles = {"k": st.integers(1, 1000), "tokens": one_of("whitespace", "unicode", "ascii")}
recipes = st.fixed_dictionaries(
    {},
    optional={
        "fields": st.sampled_from([["title"], ["body"], ["title", "body"], ["body", "title"]]),
        "normalise": st.fixed_dictionaries(
            {}, optional={"unicode": one_of("none", "nfc", "nfkc"), "html": st.booleans()}
        ),
        "shingle": st.one_of(
            st.fixed_dictionaries({}, optional={**word_shingles, **any_shingles}),
            st.fixed_dictionaries({"scheme": one_of("char")}, optional=any_shingles),
        ),
        "sketch": st.one_of(
            st.fixed_dictionaries(
                {"family": one_of("minhash")},
                optional={"functions": one_of("prime32", "java32"), "seed": st.integers(0, 2**63 - 1)},
            ),
            st.fixed_dictionaries({}, optional={"k": st.integers(100, 4096)}),
        ),
        "bands": st.one_of(
            st.fixed_dictionaries({}, optional={"recall": st.floats(0.0001, 0.9999)}),
            st.fixed_dictionaries({"count": st.integers(1, 20), "rows": st.integers(1, 5)}),
            st.fixed_dictionaries({"hash": one_of("mix64", "xor", "djb2a-joined")}),
            st.just({"rule": "pick_bands"}),
        ),
        "match": st.fixed_dictionaries(
            {},
            optional={"threshold": st.floats(0, 1, exclude_min=True), "bucket_limit": st.integers(0, 10**9)},
        ),
        "cluster": st.fixed_dictionaries({}, optional={"keep": one_of("latest", "source:A,b,안녕")}),
    },
)


@examples(200)
@given(mapping=recipes)
def test_round_trips_are_exact(mapping: dict[str, Any]) -> None:
    recipe = from_mapping(mapping)
    assert from_mapping(to_mapping(recipe)) == recipe
    assert from_mapping(as_json(recipe)) == recipe
    assert to_mapping(from_mapping(to_mapping(recipe))) == to_mapping(recipe)
    assert override(recipe, []) == recipe
    complete = as_json(recipe)
    for section, values in mapping.items():
        assert complete[section] == values or complete[section].items() >= values.items()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = " + "[" * 10_000, "nested too deeply"),
        ("a = " + "{a = " * 10_000, "nested too deeply"),
        ("shingle.k = " + "9" * 5_000, "4300 digits"),
        ("normalise." + "a." * 50_000 + "b = 1", "more than 32 parts: normalise.a.a."),
        ("[" + '"a" . ' * 30_000 + "b]", "more than 32 parts"),
        ("a = " + "' .' ." * 30_000, "more than 32 parts"),
        ("# " + "a" * 1_000_000, "1,000,002 characters, more than 200,000"),
        ("a = '\udc80'", "surrogates not allowed"),
    ],
    ids=["arrays", "tables", "number", "key", "header", "quotes", "long", "surrogate"],
)
def test_hostile_toml_is_refused_at_once(text: str, reason: str) -> None:
    def refuse() -> None:
        with pytest.raises(RecipeError, match=f"the recipe is not valid TOML.*{reason}"):
            parse(text)

    assert cpu_seconds(refuse) < 1


OVERRIDES: list[tuple[list[str], str]] = [
    (["match.threshold = 1"], "match.threshold = 1"),
    (["shingle.scheme=char", "shingle.k=5"], 'shingle = {scheme = "char", k = 5}'),
    (['shingle.scheme="char"', "normalise.html=true"], 'shingle.scheme = "char"\nnormalise.html = true'),
    (['fields=["body"]'], 'fields = ["body"]'),
    (['shingle.stopwords=["a", "b"]'], 'shingle.stopwords = ["a", "b"]'),
    (["cluster.keep=source:A,B C"], 'cluster.keep = "source:A,B C"'),
    (["cluster.keep=source:x=y"], 'cluster.keep = "source:x=y"'),
    (['cluster.keep=["has:doi", "latest"]'], 'cluster.keep = ["has:doi", "latest"]'),
    (['cluster.keep=["latest"]'], 'cluster.keep = "latest"'),
    (["cluster.keep=source:A\nretain = 1"], 'cluster.keep = "source:A\\nretain = 1"'),
    (["match.threshold=0.8", "match.threshold=0.9"], "match.threshold = 0.9"),
]


@pytest.mark.parametrize(("settings_given", "same_as"), OVERRIDES)
def test_override_equals_the_written_setting(settings_given: list[str], same_as: str) -> None:
    assert override(Recipe(), settings_given) == parse(same_as)


def test_override_keeps_other_keys() -> None:
    recipe = parse(
        '[shingle]\nk = 7\n[bands]\ncount = 10\nrows = 4\nhash = "xor"\n[cluster]\nkeep = "latest"'
    )
    changed = override(recipe, ["match.threshold=0.9", "bands.rows=5"])
    assert changed.shingle == recipe.shingle
    assert changed.cluster == recipe.cluster
    assert to_mapping(changed)["bands"] == {"count": 10, "rows": 5, "hash": "xor"}
    assert changed.match.threshold == 0.9
    assert recipe.match.threshold == 0.7


@pytest.mark.parametrize("banding", ["recall = 0.9", "count = 10, rows = 4", 'rule = "pick_bands"'])
def test_bandings_replace_each_other(banding: str) -> None:
    recipe = parse(f"bands = {{{banding}}}")
    assert override(recipe, ["bands.recall=0.95"]) == parse("bands.recall = 0.95")
    assert override(recipe, ["bands.rule=pick_bands"]) == parse('bands.rule = "pick_bands"')
    assert override(recipe, ["bands.count=9", "bands.rows=3"]) == parse("bands = {count = 9, rows = 3}")
    amplified = override(recipe, ["match.amplification=or(4)"])
    assert amplified == parse('match.amplification = "or(4)"')
    assert override(amplified, ["bands.rule=pick_bands"]) == parse('bands.rule = "pick_bands"')


def test_override_of_the_family_drops_its_options() -> None:
    recipe = parse('sketch = {family = "minhash", functions = "java32", k = 64}')
    assert override(recipe, ["sketch.family=fast_similarity"]) == parse("sketch.k = 64")
    with pytest.raises(RecipeError, match="belongs to the family minhash"):
        override(recipe, ["sketch.family=fast_similarity", "sketch.functions=java32"])


@pytest.mark.parametrize(
    "setting",
    [
        *("match.threshold", "=5", "", "match.treshold=0.5", "matches.threshold=0.5", "fields.title=1"),
        *("shingle.k.x=1", "shingle.k=five", "shingle.k=", "bands.count=10", "shingle=word"),
        *("retain.age=2024-01-01", "cluster.keep=source:\udcff", "shingle.stem=\udc80", "\udc80=1"),
        *("match.threshold=" + "[" * 10_000, "shingle.k=" + "9" * 5_000, "a" * 10_000),
    ],
    ids=range(18),
)
def test_invalid_overrides_are_refused(setting: str) -> None:
    with pytest.raises(RecipeError):
        override(Recipe(), [setting])


STORED = json.loads(json.dumps(to_mapping(Recipe())))


def test_equal_arrays_do_not_differ() -> None:
    given = override(Recipe(), ["match.threshold=0.9"])
    assert differing_keys(STORED, to_mapping(given)) == {"match.threshold": (0.7, 0.9)}


def test_arrays_are_compared_and_shown_as_lists() -> None:
    given = override(Recipe(), ['fields=["title"]'])
    assert differing_keys(STORED, to_mapping(given)) == {"fields": (["title", "body"], ["title"])}


def test_recipes_of_earlier_versions_differ_in_what_later_keys_do() -> None:
    stored = {
        **STORED,
        "normalise": {key: value for key, value in STORED["normalise"].items() if key != "invisible"},
    }
    assert differing_keys(stored, STORED) == {"normalise.invisible": ("keep", "drop")}
    assert differing_keys(stored, to_mapping(override(Recipe(), ["normalise.invisible=keep"]))) == {}


def test_applications_import_recipes_from_the_package() -> None:
    assert {"Recipe", "presets", "dedupe", "Index", *SECTIONS} <= set(dir(nearsim_db))
    made = nearsim_db.Recipe(match=nearsim_db.MatchRules(threshold=0.5), shingle=nearsim_db.Shingle(k=4))
    assert made == from_mapping({"match": {"threshold": 0.5}, "shingle": {"k": 4}})
    assert {type(getattr(made, name)).__name__ for name in made.__struct_fields__} - {"tuple"} == SECTIONS
    assert nearsim_db.presets.load("default") == nearsim_db.Recipe()


def test_a_former_name_of_a_preset_still_names_it() -> None:
    assert presets.load("source-code-and-licences") == presets.load("licences")
    assert "source-code-and-licences" not in presets.names()

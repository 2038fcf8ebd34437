"""Recipes: defaults, refusals with their reason, overrides, and round trips."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, from_mapping, keep_policy, load, override, parse, to_mapping
from tests.builders.cpu_time import cpu_seconds
from tests.builders.selection import examples


def as_json(recipe: Recipe) -> dict[str, Any]:
    """The mapping as jsonb gives it back."""
    mapping: dict[str, Any] = json.loads(json.dumps(to_mapping(recipe)))
    return mapping


def test_minhash_exposes_its_functions() -> None:
    recipe = parse('sketch.family = "minhash"')
    assert to_mapping(recipe)["sketch"]["functions"] == "prime32"
    assert recipe == parse('sketch = {family = "minhash", functions = "prime32"}')
    assert "functions" not in to_mapping(Recipe())["sketch"]


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


def test_given_bands_replace_the_recall() -> None:
    bands = to_mapping(parse("[bands]\ncount = 20\nrows = 5"))["bands"]
    assert bands == {"count": 20, "rows": 5, "hash": "mix64"}


ACCEPTED = [
    'normalise = {unicode = "none", case = "none", whitespace = "none", html = true}',
    'normalise = {unicode = "nfc", case = "lower"}',
    'shingle = {scheme = "char", k = 1000, tokens = "ascii"}',
    'shingle = {scheme = "bag", stopwords = "en", stem = "english", min_token_length = 100}',
    'shingle = {scheme = "sentence", k = 1, stopwords = ["a", "b"]}',
    'hash.base = "djb2a"',
    'sketch = {family = "minhash", functions = "java32", k = 1, seed = 0}\nbands = {count = 1, rows = 1}',
    "sketch = {k = 4096, seed = 9223372036854775807}",
    'bands = {count = 128, rows = 1, hash = "xor"}',
    'sketch.family = "bottom_k"\nbands = {count = 7, rows = 1}',
    'bands.hash = "djb2a-joined"',
    'sketch = {family = "hyperplane", vectors = "sign", input = "terms", weights = "log"}',
    'sketch = {family = "hyperplane", input = "vector"}',
    'sketch = {family = "minhash", k = 2, coefficients = [[3, 5], [7, 11]]}\nbands = {count = 1, rows = 2}',
    'match = {verify = "bands", certain_shared_bands = 256}',
    'sketch = {family = "projection", width = 2.5, input = "vector"}\nmatch.threshold = 12.5',
    'sketch = {family = "dart_minhash", weights = "count"}',
    'match.amplification = "or(40, and(3))"',
    'match = {threshold = 1, min_shared_bands = 256, verify = "estimate", bucket_limit = 0}',
    'cluster = {keep = "source:Reuters, AP", numbers_differ = "keep-apart"}',
    'fields = ["body"]',
    'retain.age = "1 day"',
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
    ("treshold = 0.5", "unknown key treshold"),
    ("[match]\ntreshold = 0.5", "did you mean match.threshold?"),
    ("[sketch]\nfamilly = 'minhash'", "did you mean sketch.family?"),
    ("[shingles]\nk = 3", "did you mean shingle?"),
    (
        "[match]\nzzz = 1",
        "choose one of threshold, min_shared_bands, amplification, verify, ",
    ),
    ("shingle = 3", "write [shingle] and its keys below it"),
]


@pytest.mark.parametrize(("text", "reason"), UNKNOWN)
def test_unknown_keys_are_refused_with_a_hint(text: str, reason: str) -> None:
    with pytest.raises(RecipeError) as refused:
        parse(text)
    assert reason in str(refused.value)


IMPOSSIBLE = [
    (
        "cluster.linkage = 'average'",
        "which is unknown to this version; choose connected or representative",
    ),
    ("sketch.vectors = 'sign'", "sketch.vectors belongs to the family hyperplane, not to fast_similarity"),
    ("sketch.width = 2.0", "sketch.width belongs to the family projection, not to fast_similarity"),
    (
        "sketch.input = 'vector'",
        "families hyperplane and projection and dart_minhash, not to fast_similarity",
    ),
    (
        "sketch = {family = 'hyperplane', input = 'vector', weights = 'log'}",
        "sketch.weights requires sketch.input = terms",
    ),
    ("sketch.family = 'hyperplane'\nmatch.threshold = 1.5", "match.threshold is 1.5; it must be at most 1"),
    ("sketch.family = 'projection'\nmatch.threshold = inf", "match.threshold is inf; it must be a number"),
    ("sketch.family = 'projection'\nmatch = {threshold = 2e13, verify = 'estimate'}", "scale the vectors"),
    ("sketch.family = 'projection'\nmatch = {threshold = 1e-9, verify = 'estimate'}", "scale the vectors"),
    ("sketch.family = 'hyperplane'\nbands.hash = 'xor'", "leave it out for hyperplane"),
    ("match.amplification = 'or(40, and(3))'\nbands.recall = 0.99", "give either it or them"),
    ("match = {amplification = 'or(40, and(3))', min_shared_bands = 3}", "give either it or them"),
    ("fields = []", "fields is []"),
    ('fields = ["title", "title"]', "each once"),
    ('fields = ["titel"]', "title or body"),
    ('fields = "title"', "fields is 'title'; it must be a list"),
    ('normalise.unicode = "nfd"', "none or nfc or nfkc"),
    ("normalise.html = 1", "normalise.html is 1; it must be true or false"),
    ('shingle.scheme = "words"', "char or word or bag or sentence"),
    ("shingle.k = 0", "shingle.k is 0; it must be at least 1"),
    ("shingle.k = 1001", "it must be at most 1000"),
    ("shingle.k = 3.0", "shingle.k is 3.0; it must be an integer"),
    ("shingle.stopwords = 5", "shingle.stopwords is 5"),
    ('shingle.stopwords = ["a", 5]', "shingle.stopwords[1]"),
    ('shingle.stopwords = ["a\\u0000"]', "PostgreSQL cannot store"),
    ("shingle.min_token_length = 0", "shingle.min_token_length is 0"),
    ('hash.base = "md5"', "poly64 or crc32 or djb2a"),
    ('shingle.k = 129\nhash.base = "crc32"', "shingle.k is 129, but at most 128 with hash.base = crc32"),
    ('hash.base = "djb2a-cast"', "set shingle.scheme to char, or hash.base to djb2a-signed"),
    ("sketch.k = 0", "sketch.k is 0"),
    ("sketch.k = 4097", "it must be at most 4096"),
    ("sketch.k = true", "sketch.k is True; it must be an integer"),
    ("sketch.seed = -1", "sketch.seed is -1; it must be at least 0"),
    ("sketch.seed = 9223372036854775808", "sketch.seed is 9223372036854775808"),
    ('sketch.functions = "prime32"', "sketch.functions belongs to the family minhash"),
    ('sketch = {family = "minhash", functions = "prime64"}', "prime32 or java32"),
    ("bands.recall = 0", "bands.recall is 0"),
    ("bands.recall = 1.0", "bands.recall is 1.0"),
    ("bands.recall = nan", "bands.recall is nan"),
    ("bands.count = 10", "count and rows together"),
    ("bands.rows = 10", "count and rows together"),
    ("bands = {recall = 0.9, rows = 5}", "count and rows together"),
    ("bands = {recall = 0.9, count = 5, rows = 5}", "not both"),
    ('bands = {rule = "pick_bands", recall = 0.9}', "chooses count and rows"),
    ('bands = {rule = "pick_bands", count = 5, rows = 5}', "chooses count and rows"),
    ('bands.rule = "guess"', "bands.rule is 'guess'"),
    ('bands.rule = "pick_bands"\nsketch.family = "bottom_k"', "a band of bottom_k is one id"),
    ('bands.rule = "pick_bands"\nmatch.amplification = "or(4)"', "replaces bands.recall"),
    ("bands = {count = 26, rows = 5}", "need 130 values, the sketch has k = 128"),
    (
        "sketch.family = 'bottom_k'\nbands = {count = 5, rows = 2}",
        "a band of bottom_k is one of the smallest ids",
    ),
    ("sketch.family = 'bottom_k'\nbands.hash = 'xor'", "a band of bottom_k is one id"),
    ("bands = {count = 257, rows = 1}", "it must be at most 256"),
    ("bands = {count = 5, rows = 0}", "bands.rows is 0"),
    ("bands = {count = 5, rows = 2}\nmatch.min_shared_bands = 6", "more than the 5 bands"),
    ("match.threshold = 0", "match.threshold is 0"),
    ("match.threshold = 1.01", "match.threshold is 1.01; it must be at most 1"),
    ("match.threshold = nan", "match.threshold is nan"),
    ("match.min_shared_bands = 0", "it must be at least 1"),
    ("match.bucket_limit = -1", "it must be at least 0"),
    ('cluster.keep = "newest"', "earliest, latest, longest or source:A,B,C"),
    ('cluster.keep = "source:"', "source:A,B,C"),
    ('cluster.keep = "source: , "', "source:A,B,C"),
    ('cluster.keep = "source:\\u0000"', "PostgreSQL cannot store"),
    ('shingle = {scheme = "char", stopwords = "en"}', "work on words"),
    ('shingle = {scheme = "char", stem = "english"}', "work on words"),
    ('shingle = {scheme = "char", min_token_length = 2}', "work on words"),
    ("retain.age = 30", "retain.age is 30; it must be a string"),
    ('retain.age = "30"', "whole number of minutes, hours, days or weeks"),
    ('retain.age = "30days"', "retain.age is '30days'; give none, or a whole number"),
    ('retain.age = "1.5 days"', "whole number"),
    ('retain.age = "-1 days"', "whole number"),
    ('retain.age = "2 months"', "minutes, hours, days or weeks"),
    ('retain.age = "0 days"', "at least 1 minute"),
    ('retain.age = "100001 days"', "at most 100,000 days"),
    ('retain.age = "1 day\\n"', "whole number"),
]


@pytest.mark.parametrize(("text", "reason"), IMPOSSIBLE)
def test_values_out_of_range_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(RecipeError) as refused:
        parse(text)
    assert reason in str(refused.value)
    assert str(refused.value).startswith("the recipe: ")


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for content, reason in (
        (b"k = ", "is not valid TOML"),
        (b"[sketch]\nk = 0", "sketch.k is 0"),
        (b"typo = 1", "unknown key typo"),
        (b"\xff", "cannot read the recipe"),
    ):
        path.write_bytes(content)
        with pytest.raises(RecipeError) as refused:
            load(path)
        assert str(path) in str(refused.value)
        assert reason in str(refused.value)
    with pytest.raises(RecipeError, match=r"cannot read the recipe .*missing\.toml"):
        load(tmp_path / "missing.toml")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('shingle.stopwords = ["그리고"]', encoding="utf-8")
    assert load(path).shingle.stopwords == ("그리고",)


@pytest.mark.parametrize(
    ("age", "seconds"),
    [
        ("none", None),
        ("1 minute", 60),
        ("90 minutes", 5_400),
        ("1 hour", 3_600),
        ("1 days", 86_400),
        ("30 days", 2_592_000),
        ("2 weeks", 1_209_600),
    ],
)
def test_ages_in_seconds(age: str, seconds: int | None) -> None:
    assert override(Recipe(), [f"retain.age={age}"]).retain.seconds == seconds


@pytest.mark.parametrize(
    ("keep", "policy"),
    [
        ("earliest", ("earliest", ())),
        ("latest", ("latest", ())),
        ("longest", ("longest", ())),
        ("source:A", ("source", ("A",))),
        ("source: A , B,,C:D ", ("source", ("A", "B", "C:D"))),
    ],
)
def test_keep_policies(keep: str, policy: tuple[str, tuple[str, ...]]) -> None:
    assert keep_policy(keep) == policy


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

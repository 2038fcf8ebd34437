"""Overrides of single keys of a recipe, as --set makes them."""

import pytest

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.recipe import Recipe, override, parse, to_mapping

OVERRIDES: list[tuple[list[str], str]] = [
    ([], ""),
    (["match.threshold=0.8"], "match.threshold = 0.8"),
    (["match.threshold = 1"], "match.threshold = 1"),
    (["shingle.scheme=char", "shingle.k=5"], 'shingle = {scheme = "char", k = 5}'),
    (['shingle.scheme="char"'], 'shingle.scheme = "char"'),
    (["normalise.html=true"], "normalise.html = true"),
    (['fields=["body"]'], 'fields = ["body"]'),
    (["shingle.stopwords=en"], 'shingle.stopwords = "en"'),
    (['shingle.stopwords=["a", "b"]'], 'shingle.stopwords = ["a", "b"]'),
    (["cluster.keep=source:A,B C"], 'cluster.keep = "source:A,B C"'),
    (["cluster.keep=source:x=y"], 'cluster.keep = "source:x=y"'),
    (["cluster.keep=source:A\nretain = 1"], 'cluster.keep = "source:A\\nretain = 1"'),
    (["match.threshold=0.8", "match.threshold=0.9"], "match.threshold = 0.9"),
    (["bands.count=20", "bands.rows=5"], "bands = {count = 20, rows = 5}"),
    (["sketch.family=minhash"], 'sketch.family = "minhash"'),
    (
        ["sketch.family=minhash", "sketch.functions=java32"],
        'sketch = {family = "minhash", functions = "java32"}',
    ),
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

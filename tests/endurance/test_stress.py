"""The stress run: each check reports its fault alone, and writers end in the expected state."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.options import RECIPE
from benchmarks.speed import percentiles
from nearsim_db.errors import RecipeError
from nearsim_db.records import Document
from nearsim_db.similarity.recipe import Recipe, load, override
from tests.endurance.stress import script, shingles
from tests.endurance.stress.checks import violations
from tests.endurance.stress.contents import Contents
from tests.endurance.stress.stress import StressPlan, draw_kills

RECIPES = RECIPE.parent
STORY = "one two three four five six seven eight nine ten eleven twelve"
TEXTS: dict[str, script.Text] = {
    "a": (None, STORY),
    "b": (None, f"{STORY} more"),
    "c": (None, f"{STORY.upper()}  more"),
    "d": ("Other", "words that nobody else has"),
    "e": (None, ""),
}


@pytest.fixture
def recipe() -> Recipe:
    return load(RECIPES / "w3.toml")


def index() -> Contents:
    """The expected index of the texts: a and b are similar, c is b's twin, d is single, e has no features."""
    return Contents(
        texts=dict(TEXTS),
        heads={"a": "a", "b": "b", "c": "b", "d": "d", "e": ""},
        pairs={("a", "b"): (10, 11)},
        clusters={"a": 1, "b": 1, "c": 1},
        survivors=frozenset("a"),
        bands={"a": 32, "b": 32, "d": 32},
    )


def test_correct_index_has_no_violations(recipe: Recipe) -> None:
    assert violations(index(), index(), TEXTS, {}, recipe) == {}
    assert index().expanded() == {("a", "b"), ("a", "c"), ("b", "c")}


def test_a_lost_pair_is_reported(recipe: Recipe) -> None:
    living = replace(index(), pairs={})
    found = violations(living, index(), TEXTS, {}, recipe)
    assert found["pairs of the fresh build missing"] == {"count": 2, "examples": [("a", "b"), ("a", "c")]}


def test_additional_pairs_are_accepted_only_in_large_buckets(recipe: Recipe) -> None:
    fresh = replace(index(), pairs={}, clusters={"b": 1, "c": 1}, survivors=frozenset("b"))
    name = "pairs not in the fresh build, without a large bucket"
    assert violations(index(), fresh, TEXTS, {}, recipe)[name]["count"] == 2
    assert violations(index(), fresh, TEXTS, {"a": {7}, "b": {8}}, recipe)[name]["count"] == 2
    assert violations(index(), fresh, TEXTS, {"a": {7}, "b": {7}}, recipe) == {}


def spoil(**parts: object) -> Callable[[], Contents]:
    return lambda: replace(index(), **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spoilt", "name", "count"),
    [
        (spoil(texts=TEXTS | {"d": ("Other", "an older text")}), "documents not as written", 1),
        (spoil(texts={name: TEXTS[name] for name in "abce"}), "documents not as written", 1),
        (spoil(heads={"a": "a", "b": "b", "c": "b", "e": ""}), "signatures wrong", 1),
        (spoil(heads={"a": "a", "b": "b", "c": "b", "d": "", "e": ""}), "signatures wrong", 1),
        (spoil(bands={"a": 32, "b": 31, "d": 32}), "band rows wrong", 1),
        (spoil(bands={"a": 32, "b": 32, "c": 32, "d": 32}), "band rows wrong", 1),
        (spoil(bands={"a": 32, "b": 32, "d": 32, "doc_id 9": 32}), "band rows wrong", 1),
        (spoil(pairs={("a", "b"): (9, 11)}), "stored pairs not true", 1),
        (spoil(pairs={("a", "b"): (10, 11), ("a", "d"): (0, 14)}), "stored pairs not true", 1),
        (spoil(pairs={("a", "b"): (10, 11), ("a", "doc_id 9"): (1, 1)}), "stored pairs not true", 1),
        (spoil(heads={"a": "a", "b": "b", "c": "b", "d": "b", "e": ""}), "twins not alike", 1),
        (spoil(clusters={"a": 1, "b": 1}), "clusters not the components of the pairs", 2),
        (spoil(clusters={"a": 1, "b": 1, "c": 1, "d": 1}), "clusters not the components of the pairs", 2),
        (spoil(survivors=frozenset()), "survivors wrong", 1),
        (spoil(survivors=frozenset("ab")), "survivors wrong", 1),
        (spoil(survivors=frozenset("b")), "survivors not those of the fresh build", 2),
    ],
)
def test_each_violation_is_reported(
    spoilt: Callable[[], Contents], name: str, count: int, recipe: Recipe
) -> None:
    found = violations(spoilt(), index(), TEXTS, {}, recipe)
    assert found[name]["count"] == count


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("w3", "A b\u200bC d", {"a b c ", "b c d "}),
        ("w3", "A b", {"a b "}),
        ("c3", "Ab  c", {"ab ", "b c"}),
        ("c3", " \n", set()),
    ],
)
def test_shingles_follow_the_recipe(name: str, text: str, expected: set[str]) -> None:
    recipe = load(RECIPES / f"{name}.toml")
    shingles.require_plain(recipe)
    assert shingles.shingle_set(None, text, recipe) == expected


def test_recipes_that_cannot_be_checked_are_refused(recipe: Recipe) -> None:
    for setting in ("normalise.unicode=nfkc", "cluster.linkage=representative", "match.verify=estimate"):
        with pytest.raises(RecipeError, match="can be checked only"):
            shingles.require_plain(override(recipe, [setting]))


def test_writers_end_in_the_expected_state() -> None:
    rng = np.random.Generator(np.random.PCG64(4))
    documents = [Document(str(number), None, f"text {number}") for number in range(500)]
    drawn = script.draw_script(documents, rng)
    played: dict[str, script.Text] = {}
    for write in drawn:
        assert (write.external_id in played) == (write.kind != "insert")
        if write.kind == "delete":
            del played[write.external_id]
        else:
            played[write.external_id] = write.text
    assert {write.kind for write in drawn} == {"insert", "update", "delete"}
    assert script.final_texts([drawn]) == played
    cut = list(script.transactions(drawn, rng))
    assert [write for part in cut for write in part] == drawn
    assert 1 < max(map(len, cut)) <= 20


def test_kills_are_spread_over_the_run() -> None:
    drawn = draw_kills(StressPlan(workers=2, writers=2, kills=30, server_kills=3, seed=1), writes=1_000)
    assert [whom for _, whom in drawn].count("server") == 3
    assert len(drawn) == 33
    assert drawn == sorted(drawn, reverse=True)
    assert 0 <= drawn[-1][0] < drawn[0][0] < 1_000
    assert draw_kills(StressPlan(workers=0, writers=2, kills=30, server_kills=0, seed=1), writes=1_000) == []


def test_percentiles_are_in_order() -> None:
    assert percentiles([float(value) for value in range(101)]) == {
        "p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0,
    }  # fmt: skip

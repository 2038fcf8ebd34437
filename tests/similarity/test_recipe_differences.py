"""The keys in which a stored recipe differs from one that is given."""

import json

from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.recipe.writing import differing_keys, to_mapping

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

"""Differences between two recipes."""

from collections.abc import Mapping
from typing import Any

from nearsim_db.similarity.recipe.earlier import with_earlier_values


def differing_keys(live: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys that differ, as section.key, each with its (live, new) value; None where a recipe has none.

    Of a recipe that an earlier version stored, the keys that it lacks have the values that act as their absence did.
    """
    before, after = (flatten(with_earlier_values(one)) for one in (live, new))
    names = [*before, *(name for name in after if name not in before)]
    return {
        name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    }


def flatten(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a recipe by section.key, arrays as lists, as they are stored."""
    flat: dict[str, Any] = {}
    for name, value in recipe.items():
        if isinstance(value, Mapping):
            flat |= flatten({f"{name}.{key}": one for key, one in value.items()})
        else:
            flat[name] = list(value) if isinstance(value, tuple) else value
    return flat

"""Recipes as plain data and as TOML, and the differences between two."""

from collections.abc import Mapping
from typing import Any

import msgspec

from nearsim_db.similarity.recipe.sections import Recipe


def to_mapping(recipe: Recipe) -> dict[str, Any]:
    """Return the whole recipe as nested dictionaries, including defaults."""
    mapping = msgspec.to_builtins(recipe)
    assert isinstance(mapping, dict)
    return {
        section: {key: value for key, value in values.items() if value is not None}
        if isinstance(values, dict)
        else values
        for section, values in mapping.items()
    }


def to_toml(recipe: Recipe) -> str:
    """Return the whole recipe as a TOML document that `parse` reads."""
    mapping = to_mapping(recipe)
    lines = [f"{key} = {toml_value(value)}" for key, value in mapping.items() if not isinstance(value, dict)]
    for section, values in mapping.items():
        if isinstance(values, dict):
            lines += ["", f"[{section}]", *(f"{key} = {toml_value(value)}" for key, value in values.items())]
    return "\n".join([*lines, ""])


def toml_value(value: object) -> str:
    """Encode as JSON, whose numbers, booleans, arrays and strings are valid TOML except for DEL, which TOML
    escapes.
    """
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


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


# Keys that recipes of earlier versions lack, each with the value that acts as its absence did: such a recipe keeps
# its fingerprint, so existing indexes can be written to.
_EARLIER: Mapping[str, Mapping[str, Any]] = {
    "normalise": {"invisible": "keep"},
    "shingle": {"order": "kept"},
    "retain": {"delete": False},
    "match": {"certain_shared_bands": 0, "review": 0.0, "across": "none"},
    "cluster": {"allow_chains": False},
}


def with_earlier_values(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored recipe of a generation with the keys that it lacks."""
    return {**stored, **{name: {**keys, **stored.get(name, {})} for name, keys in _EARLIER.items()}}


def without_later_keys(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole recipe without the keys that earlier versions lack, where they act as if absent."""
    return {
        name: {
            key: value for key, value in values.items() if _EARLIER.get(name, {}).get(key, _ABSENT) != value
        }
        if isinstance(values, Mapping)
        else values
        for name, values in mapping.items()
    }


_ABSENT = object()

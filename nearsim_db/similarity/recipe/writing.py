"""Recipes as plain data and as TOML."""

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
    lines = [f"{key} = {_toml_value(value)}" for key, value in mapping.items() if not isinstance(value, dict)]
    for section, values in mapping.items():
        if isinstance(values, dict):
            lines += ["", f"[{section}]", *(f"{key} = {_toml_value(value)}" for key, value in values.items())]
    return "\n".join([*lines, ""])


def _toml_value(value: object) -> str:
    """Encode as JSON, whose numbers, booleans, arrays and strings are valid TOML except for DEL, which TOML
    escapes.
    """
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")

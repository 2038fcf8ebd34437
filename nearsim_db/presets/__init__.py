"""Recipes that ship with nearsim, as TOML files beside this one."""

from importlib.resources import files

from nearsim_db import recipe
from nearsim_db.errors import RecipeError
from nearsim_db.recipe import Recipe

DEFAULT = "default"


def names() -> list[str]:
    """The presets there are, in alphabetical order."""
    found = (entry.name for entry in files(__name__).iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def load(name: str) -> Recipe:
    """The recipe of a preset. Raises RecipeError, saying which there are."""
    if name not in names():
        raise RecipeError(f"there is no preset {name!r}; there are: {', '.join(names())}")
    text = (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
    return recipe.parse(text, origin=f"the preset {name}")

"""Recipes that ship with nearsim, as TOML files beside this one."""

import difflib
from importlib.resources import files
from itertools import takewhile

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import recipe
from nearsim_db.similarity.recipe import Recipe

DEFAULT = "default"


def names() -> list[str]:
    """The presets there are, in alphabetical order."""
    found = (entry.name for entry in files(__name__).iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def load(name: str) -> Recipe:
    """The recipe of a preset. Raises RecipeError, saying which there are."""
    return recipe.parse(read(name), origin=f"the preset {name}")


def read(name: str) -> str:
    """A preset as it is written, comments included. Raises RecipeError, saying which there are."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise RecipeError(f"there is no preset {name!r}; {hint}there are: {', '.join(names())}")
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def purpose(name: str) -> str:
    """What a preset is for: the first sentence of the comment that it begins with."""
    opening = takewhile(lambda line: line.startswith("#"), read(name).splitlines())
    return " ".join(line.removeprefix("#").strip() for line in opening).partition(". ")[0].rstrip(".")

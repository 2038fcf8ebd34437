"""Recipes that ship with nearsim, as TOML files in this folder."""

import difflib
from importlib.resources import files
from itertools import takewhile

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import recipe
from nearsim_db.similarity.recipe import Recipe

DEFAULT = "default"
# Names that still mean a preset.
FORMER_NAMES = {"source-code-and-licences": "licences"}

# Presets that compute what a published system or lecture does: for comparisons, seldom for documents of one's own.
PUBLISHED_SYSTEMS = {
    *("background", "background-words", "cs246-cosine", "cs246-euclidean"),
    *("newshound", "newshound-60x4", "newshound-80x3", "riskiq"),
}


def names() -> list[str]:
    """Return the names of the presets, sorted; those of published systems come last."""
    entries = (entry.name for entry in files(__name__).iterdir())
    preset_names = (name.removesuffix(".toml") for name in entries if name.endswith(".toml"))
    return sorted(preset_names, key=lambda name: (name in PUBLISHED_SYSTEMS, name))


def load(name: str) -> Recipe:
    """Return the recipe of a preset. Raises RecipeError, listing the presets."""
    return recipe.parse(read(name), origin=f"the preset {name}")


def read(name: str) -> str:
    """Return the source of a preset, including comments. Raises RecipeError, listing the presets."""
    name = FORMER_NAMES.get(name, name)
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise RecipeError(f"no preset {name!r}; {hint}choose one of {', '.join(names())}")
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def purpose(name: str) -> str:
    """Return what a preset is for: the first sentence of its leading comment."""
    opening = takewhile(lambda line: line.startswith("#"), read(name).splitlines())
    return " ".join(line.removeprefix("#").strip() for line in opening).partition(". ")[0].rstrip(".")

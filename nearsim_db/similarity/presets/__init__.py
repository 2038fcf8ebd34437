"""Presets: recipes that come with nearsim, as TOML files in this folder."""

import difflib
from importlib.resources import files
from itertools import takewhile

from nearsim_db.errors import RecipeError
from nearsim_db.similarity import recipe
from nearsim_db.similarity.recipe import Recipe

DEFAULT = "default"
# Other names of presets, by which users may still call them.
FORMER_NAMES = {"source-code-and-licences": "licences"}

# Presets that compute what a published system or lecture describes. They are meant for comparisons, and rarely suit
# other documents.
PUBLISHED_SYSTEMS = {
    *("background", "background-words", "cs246-cosine", "cs246-euclidean"),
    *("newshound", "newshound-60x4", "newshound-80x3", "riskiq"),
}


def names() -> list[str]:
    """Return the names of the presets in alphabetical order, with those of published systems last."""
    entries = (entry.name for entry in files(__name__).iterdir())
    preset_names = (name.removesuffix(".toml") for name in entries if name.endswith(".toml"))
    return sorted(preset_names, key=lambda name: (name in PUBLISHED_SYSTEMS, name))


def load(name: str) -> Recipe:
    """Return the recipe of a preset. Raises RecipeError, which lists all presets, for an unknown name."""
    return recipe.parse(read(name), origin=f"the preset {name}")


def read(name: str) -> str:
    """Return the TOML source of a preset, with its comments. Raises RecipeError for an unknown name, as `load` does."""
    name = FORMER_NAMES.get(name, name)
    if name not in names():
        close = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise RecipeError(f"no preset {name!r}; {hint}choose one of {', '.join(names())}")
    return (files(__name__) / f"{name}.toml").read_text(encoding="utf-8")


def purpose(name: str) -> str:
    """Return the purpose of a preset, which is the first sentence of its leading comment."""
    opening = takewhile(lambda line: line.startswith("#"), read(name).splitlines())
    return " ".join(line.removeprefix("#").strip() for line in opening).partition(". ")[0].rstrip(".")

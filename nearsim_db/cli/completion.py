"""Values that a shell completes: collections, profiles, presets and recipe keys."""

import typer

from nearsim_db.errors import DEFAULT


def collections(incomplete: str) -> list[str]:
    """Return the collections whose name begins so."""
    from nearsim_db.search.names import collection_names

    return _beginning(collection_names(), incomplete)


def profiles(context: typer.Context, incomplete: str) -> list[str]:
    """Return the profiles, of the collection on the command line, whose name begins so."""
    from nearsim_db.search.names import profile_names

    return _beginning(profile_names(context.params.get("collection") or DEFAULT), incomplete)


def presets(incomplete: str) -> list[tuple[str, str]]:
    """Return the presets whose name begins so, each with its purpose."""
    from nearsim_db.similarity import presets as available

    return [(name, available.purpose(name)) for name in _beginning(available.names(), incomplete)]


def recipe_keys(incomplete: str) -> list[tuple[str, str]]:
    """Return the recipe keys that begin so, as KEY=, each with its default."""
    from nearsim_db.similarity.recipe import Recipe, to_mapping
    from nearsim_db.similarity.recipe.writing import flatten

    defaults = {f"{key}=": str(value) for key, value in flatten(to_mapping(Recipe())).items()}
    return [(key, f"default {defaults[key]}") for key in _beginning(list(defaults), incomplete)]


def _beginning(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]

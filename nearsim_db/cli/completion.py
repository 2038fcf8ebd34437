"""Values that a shell completes: collections, profiles, presets and recipe keys."""

import typer

from nearsim_db.errors import DEFAULT, NearsimError

_PATIENCE_SECONDS = 2  # the shortest that the driver waits for a server


def collections(incomplete: str) -> list[str]:
    """Return the collections whose name begins so."""
    return _beginning(_names(None), incomplete)


def profiles(context: typer.Context, incomplete: str) -> list[str]:
    """Return the profiles, of the collection on the command line, whose name begins so."""
    return _beginning(_names(context.params.get("collection") or DEFAULT), incomplete)


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


def _names(collection: str | None) -> list[str]:
    """Return the collections, or the profiles of one; none if they cannot be read at once. Starts no server."""
    from nearsim_db.store import collection_rows, embedded, generation_rows
    from nearsim_db.store.driver.engine import open_engine, translate_errors
    from nearsim_db.store.settings import from_environment

    try:
        settings = from_environment()
        url = settings.database_url
        if url is None:
            found = embedded.status(settings.home)
            if not found.running:
                return []
            url = found.dsn
        with translate_errors(), open_engine(url, timeout_seconds=_PATIENCE_SECONDS).connect() as connection:
            if collection is None:
                return [one.name for one in collection_rows.list_collections(connection)]
            stored = collection_rows.get_collection(connection, collection)
            return sorted(generation_rows.profile_names(connection, stored.collection_id))
    except NearsimError:
        # A completion has no place for messages; the command that is then run reports the error.
        return []

"""Names of collections and profiles for completion at a prompt: read quickly, or not at all."""

from contextlib import closing

from nearsim_db.errors import NearsimError
from nearsim_db.records import CollectionId
from nearsim_db.store import collection_rows, embedded, generation_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine, translate_errors
from nearsim_db.store.settings import from_environment

_PATIENCE_SECONDS = 2  # the shortest that the driver waits for a server


def collection_names() -> list[str]:
    """Return the names of the collections; none if the database cannot be read at once. Starts no server."""
    return _read(None)


def profile_names(collection: str) -> list[str]:
    """Return the names of a collection's profiles, as `collection_names` does."""
    return _read(collection)


def _read(collection: str | None) -> list[str]:
    try:
        url = _running_url()
        if url is None:
            return []
        with (
            translate_errors(),
            closing(open_engine(url, timeout_seconds=_PATIENCE_SECONDS).connect()) as connection,
        ):
            return _list(connection, collection)
    except NearsimError:
        # A completion has no place for messages; the command that is then run reports the error.
        return []


def _running_url() -> str | None:
    settings = from_environment()
    if settings.database_url is not None:
        return settings.database_url
    found = embedded.status(settings.home)
    return found.dsn if found.running else None


def _list(connection: Connection, collection: str | None) -> list[str]:
    if collection is None:
        return [one.name for one in collection_rows.list_collections(connection)]
    found = collection_rows.find_collection(connection, collection)
    return (
        []
        if found is None
        else sorted(generation_rows.profile_names(connection, CollectionId(found.collection_id)))
    )

"""Rows of profiles."""

from nearsim_db.errors import ConflictError
from nearsim_db.records import CollectionId, ProfileId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.rows import fetch_value, fetch_values
from nearsim_db.store.driver.statements import statement
from nearsim_db.store.generation_rows import Build, Generation, create_generation


def create_profile(
    connection: Connection,
    collection_id: CollectionId,
    name: str,
    built: Build,
) -> Generation:
    """Create a profile and its first generation, in state `building`. Raises ConflictError if the name is taken."""
    parameters = {"collection_id": collection_id, "name": name}
    profile_id = fetch_value(connection, statement("create_profile"), parameters)
    if profile_id is None:
        raise ConflictError(f"profile {name!r} already exists in the collection")
    return create_generation(connection, ProfileId(profile_id), built)


def profile_names(connection: Connection, collection_id: CollectionId) -> set[str]:
    """Return the names of a collection's profiles, including those without a generation."""
    return set(fetch_values(connection, statement("list_profile_names"), {"collection_id": collection_id}))


def default_profile(connection: Connection, collection_id: CollectionId) -> str | None:
    """Return the profile that is used when none is named; None if there is none, or one must be named."""
    name: str | None = fetch_value(
        connection, statement("find_default_profile"), {"collection_id": collection_id}
    )
    return name


def delete_profile(connection: Connection, collection_id: CollectionId, name: str) -> None:
    """Delete a profile; its generations must have been dropped."""
    parameters = {"collection_id": collection_id, "name": name}
    connection.execute(statement("delete_profile"), parameters)

"""Rows of profiles."""

from sqlalchemy import Connection, delete, func, insert, select

from nearsim_db.errors import ConflictError
from nearsim_db.records import CollectionId, ProfileId
from nearsim_db.store.generation_rows import Build, Generation, create_generation
from nearsim_db.store.schema import tables


def create_profile(
    connection: Connection,
    collection_id: CollectionId,
    name: str,
    built: Build,
) -> Generation:
    """Create a profile and its first generation, in state `building`. Raises ConflictError if the name is taken."""
    profile = tables.profile
    taken = select(profile.c.profile_id).where(
        profile.c.collection_id == collection_id, profile.c.name == name
    )
    if connection.execute(taken).first() is not None:
        raise ConflictError(f"profile {name!r} already exists in the collection")
    profile_id = connection.execute(
        insert(profile).values(collection_id=collection_id, name=name).returning(profile.c.profile_id)
    ).scalar_one()
    return create_generation(connection, ProfileId(profile_id), built)


def profile_names(connection: Connection, collection_id: CollectionId) -> set[str]:
    """Return the names of a collection's profiles, including those without a generation."""
    table = tables.profile
    return set(
        connection.execute(select(table.c.name).where(table.c.collection_id == collection_id)).scalars()
    )


def default_profile(connection: Connection, collection_id: CollectionId) -> str | None:
    """Return the profile that is used when none is named; None if there is none, or one must be named."""
    name: str | None = connection.execute(select(func.nearsim.default_profile(collection_id))).scalar_one()
    return name


def delete_profile(connection: Connection, collection_id: CollectionId, name: str) -> None:
    """Delete a profile; its generations must have been dropped."""
    table = tables.profile
    connection.execute(delete(table).where(table.c.collection_id == collection_id, table.c.name == name))

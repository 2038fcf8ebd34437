"""Rows of collections, profiles and generations."""

import unicodedata
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb
from sqlalchemy import Connection, delete, func, insert, literal, select, true, update
from sqlalchemy.dialects.postgresql import insert as upsert

from nearsim_db.errors import ConflictError, NotFoundError, suggested_command
from nearsim_db.records import CollectionId, GenerationId, ProfileId
from nearsim_db.store import partitions
from nearsim_db.store.driver.engine import driver
from nearsim_db.store.driver.statements import Leaves, statement
from nearsim_db.store.schema import tables

State = Literal["building", "catching_up", "ready", "live", "retired", "paused", "abandoned"]
Stage = Literal["sign", "bands", "pairs", "clusters", "done"]

_FORBIDDEN_CATEGORIES = {
    "Cc",
    "Cs",
    "Zl",
    "Zp",
}  # control characters, lone surrogates, line and paragraph separators


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents that are compared with each other."""

    collection_id: CollectionId
    name: str
    temporary: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Build:
    """Parameters of a build: a recipe with all defaults filled in, and the values resolved from it."""

    recipe: dict[str, Any]
    fingerprint: str
    bands: int
    rows: int
    expected_recall: float


@dataclass(frozen=True, slots=True)
class Generation:
    """One build of a profile's index; `figures` are the counts that its build recorded.

    `replaces` is the generation beside which it was started, None for the first of a profile. Workers build a
    `detached` one; a `dropping` one waits until its tables have no readers.
    """

    generation_id: GenerationId
    profile_id: ProfileId
    profile: str
    collection_id: CollectionId
    collection: str
    state: State
    stage: Stage
    verified_through: int
    recipe: dict[str, Any]
    fingerprint: str
    figures: dict[str, Any]
    created_at: datetime
    live_at: datetime | None
    bands: int
    rows: int
    replaces: GenerationId | None
    detached: bool
    dropping: bool
    ready_at: datetime | None
    retired_at: datetime | None

    @property
    def leaves(self) -> Leaves:
        """Return the names of its own tables."""
        return Leaves(self.generation_id)

    @property
    def is_first_build(self) -> bool:
        """Whether it is the first build of its profile, which any process may continue."""
        return self.state == "building" and self.replaces is None

    def advice(self, command: str, *more: str) -> str:
        """Return a command for its profile, to be copied."""
        return suggested_command(command, self.collection, self.profile, *more)


def find_collection(connection: Connection, name: str) -> Collection | None:
    """Return the collection of that name, or None."""
    table = tables.collection
    row = connection.execute(
        select(table.c.collection_id, table.c.name, table.c.temporary, table.c.created_at).where(
            table.c.name == name
        )
    ).first()
    return None if row is None else Collection(*row)


def get_collection(connection: Connection, name: str) -> Collection:
    """Return the collection of that name. Raises NotFoundError, listing the collections."""
    found = find_collection(connection, name)
    if found is None:
        known = ", ".join(one.name for one in list_collections(connection)) or "none yet"
        raise NotFoundError(f"collection {name!r} does not exist; existing collections: {known}")
    return found


def list_collections(connection: Connection, *, temporary: bool = False) -> list[Collection]:
    """Return all collections by name, either the permanent or the temporary ones."""
    table = tables.collection
    rows = connection.execute(
        select(table.c.collection_id, table.c.name, table.c.temporary, table.c.created_at)
        .where(table.c.temporary.is_(temporary))
        .order_by(table.c.name)
    )
    return [Collection(*row) for row in rows]


def list_unindexed(connection: Connection) -> list[Collection]:
    """Return the permanent collections with documents and without a profile."""
    profile, document = tables.profile, tables.document
    profiled = set(connection.execute(select(profile.c.collection_id).distinct()).scalars())
    bare = [one for one in list_collections(connection) if one.collection_id not in profiled]
    has_documents = select(document.c.doc_id).limit(1)
    return [
        one
        for one in bare
        if connection.execute(has_documents.where(document.c.collection_id == one.collection_id)).first()
    ]


def create_collection(connection: Connection, name: str, *, temporary: bool = False) -> Collection:
    """Create a collection. Raises ConflictError if the name is taken or not allowed."""
    if not _insert_collection(connection, name, temporary=temporary):
        raise ConflictError(f"collection {name!r} already exists")
    return get_collection(connection, name)


def ensure_collection(connection: Connection, name: str) -> Collection:
    """Return the collection of that name, creating it if missing; safe under concurrent calls.

    Raises ConflictError if it is missing and the name is not allowed.
    """
    found = find_collection(connection, name)
    if found is not None:
        return found
    _insert_collection(connection, name, temporary=False)
    return get_collection(connection, name)


def _refuse_name(name: str) -> None:
    if not name.strip():
        raise ConflictError("the collection name must not be empty")
    if name != name.strip() or any(unicodedata.category(one) in _FORBIDDEN_CATEGORIES for one in name):
        raise ConflictError(
            f"a collection cannot be named {name!r}: leave out control characters, and spaces around the name"
        )


def _insert_collection(connection: Connection, name: str, *, temporary: bool) -> bool:
    _refuse_name(name)
    table = tables.collection
    made = upsert(table).values(name=name, temporary=temporary).on_conflict_do_nothing()
    return connection.execute(made.returning(table.c.collection_id)).first() is not None


def delete_collection(connection: Connection, collection: Collection) -> None:
    """Delete a collection with its documents and profiles; its generations must have been dropped."""
    connection.execute(
        delete(tables.collection).where(tables.collection.c.collection_id == collection.collection_id)
    )


def count_documents(connection: Connection, collection_id: CollectionId) -> int:
    """Return the number of documents in a collection."""
    table = tables.document
    counted = select(func.count()).select_from(table).where(table.c.collection_id == collection_id)
    return connection.execute(counted).scalar_one()


def read_purges(connection: Connection) -> dict[CollectionId, datetime]:
    """Return the time of the last purge per collection that had any."""
    table = tables.collection
    rows = connection.execute(
        select(table.c.collection_id, table.c.purged_at).where(table.c.purged_at.is_not(None))
    )
    return {CollectionId(row[0]): row[1] for row in rows}


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


def create_generation(
    connection: Connection,
    profile_id: ProfileId,
    built: Build,
    replaces: GenerationId | None = None,
    *,
    detached: bool = False,
) -> Generation:
    """Create a generation of a profile, in state `building`, beside the one it is to replace."""
    made = insert(tables.generation).values(
        profile_id=profile_id, **asdict(built), replaces=replaces, detached=detached
    )
    generation_id = connection.execute(made.returning(tables.generation.c.generation_id)).scalar_one()
    return get_generation(connection, GenerationId(generation_id))


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


def list_generations(connection: Connection, collection_id: CollectionId | None = None) -> list[Generation]:
    """The generations of a collection's profiles, or of all, in the order of profile names and age."""
    generation, profile, collection = tables.generation, tables.profile, tables.collection
    chosen = true() if collection_id is None else profile.c.collection_id == collection_id
    rows = connection.execute(
        select(
            generation.c.generation_id,
            generation.c.profile_id,
            profile.c.name,
            profile.c.collection_id,
            collection.c.name,
            generation.c.state,
            generation.c.stage,
            generation.c.verified_through,
            generation.c.recipe,
            generation.c.fingerprint,
            generation.c.figures,
            generation.c.created_at,
            generation.c.live_at,
            generation.c.bands,
            generation.c.rows,
            generation.c.replaces,
            generation.c.detached,
            generation.c.dropping,
            generation.c.ready_at,
            generation.c.retired_at,
        )
        .join_from(generation, profile, generation.c.profile_id == profile.c.profile_id)
        .join(collection, collection.c.collection_id == profile.c.collection_id)
        .where(chosen)
        .order_by(profile.c.name, generation.c.generation_id)
    )
    return [Generation(*tuple(row)) for row in rows]


def list_live(connection: Connection) -> set[GenerationId]:
    """Return the live generations."""
    table = tables.generation
    live = select(table.c.generation_id).where(table.c.state == "live")
    return {GenerationId(one) for one in connection.execute(live).scalars()}


def reread(connection: Connection, generation: Generation) -> Generation:
    """The generation as it is now. Raises NotFoundError when it was dropped meanwhile."""
    return get_generation(connection, generation.generation_id)


def get_generation(connection: Connection, generation_id: GenerationId) -> Generation:
    """The generation of that number. Raises NotFoundError."""
    for one in list_generations(connection):
        if one.generation_id == generation_id:
            return one
    raise NotFoundError(f"there is no generation {generation_id}")


def set_stage(
    connection: Connection, generation: Generation, stage: Stage, verified_through: int = 0
) -> None:
    """Record the progress of a build."""
    connection.execute(
        update(tables.generation)
        .where(tables.generation.c.generation_id == generation.generation_id)
        .values(stage=stage, verified_through=verified_through)
    )


def add_figures(connection: Connection, generation: Generation, figures: dict[str, Any]) -> None:
    """Add figures of a build to those recorded."""
    table = tables.generation
    connection.execute(
        update(table)
        .where(table.c.generation_id == generation.generation_id)
        .values(figures=table.c.figures.op("||")(literal(figures, table.c.figures.type)))
    )


def count_up(connection: Connection, generation: Generation, counted: dict[str, int]) -> None:
    """Increment figures of a generation that several processes update."""
    if counted:
        parameters = {"generation_id": generation.generation_id, "counted": Jsonb(counted)}
        driver(connection).execute(statement("increment_figures"), parameters)


def drop_generation(connection: Connection, generation: Generation) -> None:
    """Drop a generation, its tables and its queue."""
    partitions.drop(connection, generation.leaves)
    connection.execute(
        delete(tables.generation).where(tables.generation.c.generation_id == generation.generation_id)
    )

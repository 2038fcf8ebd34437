"""The rows of profiles and generations. Their states are changed in `generation_states`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from psycopg import sql
from psycopg.types.json import Jsonb

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.messages import suggested_command
from nearsim_db.records import CollectionId, GenerationId, ProfileId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import SCHEMA, Leaves, run, statement
from nearsim_db.store.generations import partitions
from nearsim_db.store.generations.tables import GenerationTables

if TYPE_CHECKING:
    from nearsim_db.similarity.arrays import Hashes
    from nearsim_db.similarity.profile import Profile

State = Literal["building", "catching_up", "ready", "live", "retired", "paused", "abandoned"]
Stage = Literal["sign", "bands", "pairs", "clusters", "done"]


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation: one build of the index of a profile."""

    generation_id: GenerationId
    profile_id: ProfileId
    profile: str
    collection_id: CollectionId
    collection: str
    state: State
    stage: Stage
    recipe: dict[str, Any]
    fingerprint: str
    figures: dict[str, Any]  # numbers that its build recorded
    created_at: datetime
    live_at: datetime | None
    bands: int
    rows: int
    # The generation that was in use when this one was started; None for the first generation of a profile.
    replaces: GenerationId | None
    detached: bool  # whether workers build it
    distributed: bool  # whether its band rows are on the nodes of a Citus cluster
    dropping: bool  # whether it is to be dropped as soon as nobody reads its tables
    ready_at: datetime | None
    retired_at: datetime | None
    common_shingles: bytes | None  # packed ids of the shingles that its build left out, in ascending order
    # Packed document frequencies by which it weights features (see `similarity.common_shingles`).
    frequencies: bytes | None

    @property
    def common(self) -> "Hashes":
        """The ids of `common_shingles`, as an array of uint64."""
        import numpy as np

        return np.frombuffer(self.common_shingles or b"", "<u8")

    @property
    def leaves(self) -> Leaves:
        """The names of its tables."""
        return Leaves(self.generation_id, self.distributed)

    def tables(self, connection: Connection) -> GenerationTables:
        """Return its tables, bound to the current transaction of the connection."""
        return GenerationTables(connection, self.leaves)

    @property
    def is_first_build(self) -> bool:
        """Whether it is the first build of its profile, which any process may continue."""
        return self.state == "building" and self.replaces is None

    def advice(self, command: str, *more: str) -> str:
        """Return the command line of a command for its profile, for the user to copy; the words of `more` come last."""
        return suggested_command(command, self.collection, self.profile, *more)


def create_generation(
    connection: Connection,
    profile_id: ProfileId,
    profile: "Profile",
    replaces: GenerationId | None = None,
    *,
    detached: bool = False,
    tables: partitions.Tables = "own",
) -> Generation:
    """Create a generation of a profile, in state `building`; `replaces` is the generation that it will replace.

    Raises RecipeError for a recipe that an index cannot have.
    """
    from nearsim_db.similarity.recipe import refuse_repeated_lines, to_mapping

    refuse_repeated_lines(profile.recipe.normalise)
    parameters = {
        "profile_id": profile_id,
        "recipe": Jsonb(to_mapping(profile.recipe)),
        "fingerprint": profile.fingerprint,
        "bands": profile.bands,
        "rows": profile.rows,
        "expected_recall": profile.expected_recall,
        "replaces": replaces,
        "detached": detached,
        "sequence": partitions.SEQUENCES[tables],
    }
    read = statement("list_generations", chosen=sql.SQL("true"), generations=sql.SQL("created"))
    return run(connection, statement("create_generation", read=read), **parameters).one(Generation)


def give_own_tables(connection: Connection, generation: Generation) -> Generation:
    """Begin the build of a generation again, with tables of its own; return the new generation.

    Returns the same generation, in its current state, if its build has passed the stage `sign` meanwhile. The caller
    must hold the build lock.
    """
    generation.tables(connection).drop()
    new_id = run(connection, "give_own_tables", generation_id=generation.generation_id).value()
    return get_generation(connection, new_id or generation.generation_id)


# An index has outgrown shared tables if it has this many times the documents up to which a new index would share them.
_GROWTH_FACTOR = 2

# These are conditions in SQL because workers ask these questions again and again, however many generations there are.
Selection = Literal["building", "buildable", "dropping", "moving", "expiring", "recipes"]
_CONDITIONS: dict[Selection, sql.SQL] = {
    "building": sql.SQL("state = 'building'"),
    # The ORDER BY keeps the planner from reading all documents only to find that a collection has none.
    "buildable": sql.SQL(
        "state = 'building' AND (replaces IS NOT NULL OR (SELECT true FROM nearsim.document "
        "WHERE document.collection_id = collection.collection_id ORDER BY document.collection_id, doc_id LIMIT 1))"
    ),
    "dropping": sql.SQL("dropping"),
    "moving": sql.SQL("state = 'ready' AND figures ? 'moves'"),
    "expiring": sql.SQL("recipe #>> '{retain,age}' <> 'none'"),
    "recipes": sql.SQL(
        "generation_id IN (SELECT min(generation_id) FROM nearsim.generation WHERE state <> 'abandoned' "
        "GROUP BY recipe, fingerprint, bands, rows)"
    ),
}


def list_generations(
    connection: Connection, collection_id: CollectionId | None = None, only: Selection | None = None
) -> list[Generation]:
    """Return the generations of the profiles of a collection, or of all collections, by profile name and age.

    `only` selects some of the generations:
    - building: those that are being built
    - buildable: those that are being built, and replace another generation or have documents in their collection
    - dropping: those whose drop was requested
    - moving: those that are ready to replace a generation in shared tables
    - expiring: those whose documents expire
    - recipes: the first generation of each recipe
    """
    conditions: list[sql.Composable] = [sql.SQL("true") if only is None else _CONDITIONS[only]]
    if collection_id is not None:
        conditions.append(sql.SQL("collection_id = %(collection_id)s"))
    return _select(connection, sql.SQL(" AND ").join(conditions), collection_id=collection_id)


def list_of_collections(connection: Connection, collection_ids: Sequence[CollectionId]) -> list[Generation]:
    """Return the generations of the given collections, by profile name and age."""
    chosen = sql.SQL("collection_id = ANY(CAST(%(collection_ids)s AS integer[]))")
    return _select(connection, chosen, collection_ids=list(collection_ids))


def list_grown(connection: Connection) -> list[GenerationId]:
    """Return the live generations that have outgrown the tables that they share with others."""
    max_documents = max(0, _GROWTH_FACTOR * partitions.MAX_SHARED_DOCUMENTS)
    return run(connection, "list_grown", max_documents=max_documents).values()


def find_newest_live(connection: Connection, limit: int) -> list[GenerationId]:
    """Return up to `limit` live generations, the newest first."""
    return run(connection, "find_newest_live", limit=limit).values()


def is_fresh(connection: Connection) -> bool:
    """Whether there are no documents and nothing was indexed, so that a change of the schema affects no data."""
    return bool(run(connection, "is_fresh").value())


def find_existing(connection: Connection, generation_ids: Collection[GenerationId]) -> set[GenerationId]:
    """Return those of the given generations that exist."""
    return set(run(connection, "find_generations", generation_ids=list(generation_ids)).values())


def reread(connection: Connection, generation: Generation) -> Generation:
    """Return the generation in its current state. Raises NotFoundError if it was dropped meanwhile."""
    return get_generation(connection, generation.generation_id)


def get_generation(connection: Connection, generation_id: GenerationId) -> Generation:
    """Return the generation with this number. Raises NotFoundError if there is none."""
    condition = sql.SQL("generation_id = %(generation_id)s")
    for generation in _select(connection, condition, generation_id=generation_id):
        return generation
    raise NotFoundError(f"generation {generation_id} does not exist")


def _select(connection: Connection, condition: sql.Composable, **parameters: object) -> list[Generation]:
    query = statement("list_generations", chosen=condition, generations=sql.Identifier(SCHEMA, "generation"))
    return run(connection, query, **parameters).all(Generation)


def set_stage(connection: Connection, generation: Generation, stage: Stage) -> None:
    """Record the stage that a build has reached."""
    run(connection, "set_stage", generation_id=generation.generation_id, stage=stage)


def set_common_shingles(connection: Connection, generation: Generation, ids: "Hashes") -> None:
    """Store the ids of the shingles that a generation leaves out, which must be in ascending order."""
    common = ids.astype("<u8").tobytes()
    run(connection, "set_common_shingles", generation_id=generation.generation_id, common=common)


def set_frequencies(connection: Connection, generation: Generation, frequencies: bytes) -> None:
    """Store the document frequencies by which a generation weights features."""
    run(connection, "set_frequencies", generation_id=generation.generation_id, frequencies=frequencies)


def add_figures(connection: Connection, generation: Generation, figures: dict[str, Any]) -> None:
    """Record figures of a build in addition to those already recorded; a figure of the same name is replaced."""
    run(connection, "add_figures", generation_id=generation.generation_id, figures=Jsonb(figures))


def count_up(connection: Connection, generation: Generation, counts: dict[str, int]) -> None:
    """Increment figures of a generation; several processes may do so at the same time."""
    if counts:
        run(connection, "increment_figures", generation_id=generation.generation_id, counts=Jsonb(counts))


def drop_generation(connection: Connection, generation: Generation) -> None:
    """Drop a generation with its tables and its queue."""
    generation.tables(connection).drop()
    run(connection, "delete_generation", generation_id=generation.generation_id)


def create_profile(
    connection: Connection, collection_id: CollectionId, name: str, profile: "Profile"
) -> Generation:
    """Create a profile and its first generation, in state `building`. Raises ConflictError if the name is in use."""
    profile_id = run(connection, "create_profile", collection_id=collection_id, name=name).value()
    if profile_id is None:
        raise ConflictError(f"profile {name!r} already exists in the collection")
    tables = partitions.choose_tables(connection, collection_id)
    return create_generation(connection, ProfileId(profile_id), profile, tables=tables)


def profile_names(connection: Connection, collection_id: CollectionId) -> set[str]:
    """Return the names of a collection's profiles, including those without a generation."""
    return set(run(connection, "list_profile_names", collection_id=collection_id).values())


def default_profile(connection: Connection, collection_id: CollectionId) -> str | None:
    """Return the profile that is used when the user names none.

    Returns None if there is no profile, or if there are several and none is the default.
    """
    name: str | None = run(connection, "find_default_profile", collection_id=collection_id).value()
    return name


def delete_profile(connection: Connection, collection_id: CollectionId, name: str) -> None:
    """Delete a profile, whose generations must have been dropped before."""
    run(connection, "delete_profile", collection_id=collection_id, name=name)

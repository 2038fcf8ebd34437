"""Which generation of a profile a command means, and why there is none."""

from collections.abc import Sequence

from sqlalchemy import Connection

from nearsim_db.errors import ConflictError, NotFoundError
from nearsim_db.records import GenerationId
from nearsim_db.serving import choose_newest
from nearsim_db.store import catalog
from nearsim_db.store.catalog import Generation
from nearsim_db.store.generations import COMING

_STANDING = {
    "building": "being built or was left behind",
    "catching_up": "catching up with the documents",
    "ready": "ready",
    "paused": "paused",
}
_REMEDIES = {
    "building": "wait, or nearsim reindex resume where it was left behind",
    "catching_up": "wait",
    "ready": "nearsim reindex promote",
    "paused": "nearsim reindex resume",
}


def of_profile(connection: Connection, collection: str, profile: str | None) -> list[Generation]:
    """The generations of a profile, the oldest first.

    `profile` may be left out where there is one, or a default. Raises NotFoundError, saying what there is.
    """
    collection_id = catalog.get_collection(connection, collection).collection_id
    there = catalog.list_generations(connection, collection_id)
    name = choose_newest(collection, there, profile).profile
    return [one for one in there if one.profile == name]


def live(generations: Sequence[Generation]) -> Generation:
    """The one that answers. Raises ConflictError where none does yet."""
    for one in generations:
        if one.state == "live":
            return one
    raise ConflictError(
        f"profile {generations[0].profile!r} has no live index to replace yet; ingest documents, or run: nearsim build"
    )


def coming(generations: Sequence[Generation]) -> Generation:
    """The one that is built beside the live one, or waits to be promoted. Raises NotFoundError."""
    for one in generations:
        if one.state in COMING and one.replaces is not None:
            return one
    raise NotFoundError(
        f"nothing is being built beside the live index of profile {generations[0].profile!r}; "
        "begin with: nearsim reindex start"
    )


def refuse_another(generations: Sequence[Generation]) -> None:
    """Raises ConflictError where a generation is coming already, saying what can be done with it."""
    for one in generations:
        if one.state in COMING:
            raise ConflictError(
                f"generation {one.generation_id} of profile {one.profile!r} is {_STANDING[one.state]}: "
                f"see nearsim reindex status; then {_REMEDIES[one.state]}, or nearsim reindex abandon"
            )


def numbered(generations: Sequence[Generation], generation_id: int) -> Generation:
    """The one of that number. Raises NotFoundError."""
    for one in generations:
        if one.generation_id == generation_id:
            return one
    known = ", ".join(f"{one.generation_id} ({one.state})" for one in generations)
    raise NotFoundError(
        f"profile {generations[0].profile!r} has no generation {generation_id}; there are: {known}"
    )


def last_retired(generations: Sequence[Generation]) -> Generation:
    """The one that answered before the live one. Raises ConflictError where it is not kept."""
    kept = [one for one in generations if one.state == "retired" and one.retired_at is not None]
    if not kept:
        raise ConflictError(
            f"no generation of profile {generations[0].profile!r} is kept to go back to; "
            "a new one is built by: nearsim reindex start"
        )
    return max(kept, key=lambda one: (one.retired_at, one.generation_id))


def to_drop(generations: Sequence[Generation], generation_id: GenerationId | None) -> list[Generation]:
    """What is retired or abandoned, or the one that was asked for. Raises ConflictError for the live one."""
    if generation_id is None:
        return [one for one in generations if one.state in ("retired", "abandoned")]
    chosen = numbered(generations, generation_id)
    if chosen.state == "live" or chosen.is_first_build:
        raise ConflictError(
            f"generation {generation_id} is the one that answers for profile {chosen.profile!r}, or is to be; "
            "with the profile it goes by: nearsim profile delete"
        )
    return [chosen]

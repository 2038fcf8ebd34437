"""Changes of the state of a generation: finishing its build, promoting, retiring and abandoning it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from psycopg.types.json import Jsonb

from nearsim_db.errors import ConflictError
from nearsim_db.records import CollectionId, GenerationId, ProfileId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, is_lock_taken
from nearsim_db.store.driver.statements import run
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.generations.generation_rows import Generation, State

# At most one generation of a profile is in one of these states.
PENDING: tuple[State, ...] = ("building", "catching_up", "ready", "paused")
# Workers do the queued work of generations in these states.
MAINTAINED: tuple[State, ...] = ("catching_up", "ready", "live", "retired")

_PROMOTION_LOCK_WAIT_MILLISECONDS = 25
_STATE_WORDS: dict[State | None, str] = {
    "building": "being built",
    "catching_up": "catching up",
    "ready": "ready",
    "live": "live",
    "retired": "retired",
    "paused": "paused",
    "abandoned": "abandoned",
    None: "dropped",
}


def change_state(
    connection: Connection,
    generation: Generation,
    state: State,
    before: Sequence[State],
    *,
    caught_up: bool = False,
    drop: bool | None = None,
) -> None:
    """Move a generation from one of the states `before` to `state`. Raises ConflictError if it is in another state."""
    parameters = {
        "generation_id": generation.generation_id,
        "state": state,
        "before": list(before),
        "caught_up": caught_up,
        "drop": drop,
    }
    if run(connection, "change_state", **parameters).value() is None:
        _refuse(connection, generation, read_state(connection, generation), before)


def _refuse(
    connection: Connection, generation: Generation, state: State | None, before: Sequence[State]
) -> None:
    wanted = " or ".join(_STATE_WORDS[name] for name in before)
    subject = f"generation {generation.generation_id} of profile {generation.profile!r} is"
    if state is None:
        raise ConflictError(f"{subject} dropped, not {wanted}; see: {generation.advice('reindex status')}")
    now = replace(generation, state=state)
    attended = is_attended(connection, now)
    raise ConflictError(
        f"{subject} {state_label(now, attended=attended)}, not {wanted}; {remedy(now, attended=attended)}"
    )


def state_label(generation: Generation, *, attended: bool) -> str:
    """Return the state of a generation in words; `attended` says whether a process is building it now."""
    if generation.dropping:
        return "being dropped"
    return "left behind" if is_unattended(generation, attended=attended) else _STATE_WORDS[generation.state]


def remedy(generation: Generation, *, attended: bool) -> str:
    """Return advice for the user on what to do when a generation is not in the required state."""
    if generation.state == "paused" or is_unattended(generation, attended=attended):
        resume, abandon = generation.advice("reindex resume"), generation.advice("reindex abandon")
        return f"to go on: {resume}; to give it up: {abandon}"
    return f"see: {generation.advice('reindex status')}"


def finish_build(connection: Connection, generation: Generation, figures: dict[str, Any]) -> bool:
    """End a build, and record its figures.

    The first generation of a profile becomes live; any other begins to catch up with changes of documents. Returns
    False if the build was paused or abandoned; both are impossible once it has ended.
    """
    parameters = {"generation_id": generation.generation_id, "figures": Jsonb(figures)}
    return run(connection, "finish_build", **parameters).value() is not None


def lock_profile(connection: Connection, profile_id: ProfileId) -> None:
    """Lock the generations of a profile until the transaction ends, so that no state changes and no build starts."""
    run(connection, "lock_generations", profile_id=profile_id)


def make_ready(connection: Connection, generation: Generation) -> None:
    """Mark a generation as ready to be promoted. Raises ConflictError if it is not catching up."""
    change_state(connection, generation, "ready", ["catching_up"], caught_up=True)


def read_state(connection: Connection, generation: Generation) -> State | None:
    """Return the present state of a generation, or None if it was dropped."""
    parameters = {"generation_id": generation.generation_id}
    state: State | None = run(connection, "read_generation_state", **parameters).value()
    return state


def lock_signing(connection: Connection, generation: Generation) -> bool:
    """Lock a generation until the transaction ends; return whether its build is in the stage `sign` and not paused."""
    return bool(run(connection, "lock_signing", generation.leaves).value())


def is_attended(connection: Connection, generation: Generation) -> bool:
    """Whether a process is building the generation now."""
    if generation.replaces is None:
        return is_lock_taken(connection, Lock.BUILD, generation.collection_id)
    return is_lock_taken(connection, Lock.REINDEX, generation.generation_id)


def is_unattended(generation: Generation, *, attended: bool) -> bool:
    """Whether the process that built the generation has died, so that a user must resume or abandon it."""
    is_replacement = generation.state == "building" and generation.replaces is not None
    return is_replacement and not generation.detached and not attended


def find_unattended(connection: Connection, collection_id: CollectionId | None = None) -> list[Generation]:
    """Return the generations of a collection, or of all collections, whose builder process has died."""
    return [
        generation
        for generation in generation_rows.list_generations(connection, collection_id, "building")
        if is_unattended(generation, attended=False) and not is_attended(connection, generation)
    ]


def set_detached(connection: Connection, generation: Generation, detached: bool) -> None:
    """Leave a build to the workers (`detached`), or take it back from them."""
    run(connection, "set_detached", generation_id=generation.generation_id, detached=detached)


def mark_ready(connection: Connection) -> list[GenerationId]:
    """Mark as ready the generations that have caught up, and return them.

    A generation has caught up if none of its work, and no change of its documents, has waited for two seconds.
    """
    return run(connection, "mark_ready").values()


def promote(connection: Connection, generation: Generation, before: Sequence[State]) -> GenerationId | None:
    """Promote a generation; return the generation that it retires, if any.

    It limits lock waits to a short time until the end of the transaction. So it must be the last statement of the
    transaction, or the connection must be in autocommit mode. Raises ConflictError if the generation is in none of the
    states `before`.
    """
    parameters = {
        "generation_id": generation.generation_id,
        "before": list(before),
        "wait": _PROMOTION_LOCK_WAIT_MILLISECONDS,
    }
    state, retired = run(connection, "promote_generation", **parameters).row()
    if state not in before:
        _refuse(connection, generation, state, before)
    return None if retired is None else GenerationId(retired)


def mark_abandoned(connection: Connection, generations: Sequence[Generation]) -> None:
    """Mark generations as abandoned, whatever their state, so that builders and workers stop using their tables.

    Call it before the tables are dropped.
    """
    generation_ids = [generation.generation_id for generation in generations]
    run(connection, "mark_abandoned", generation_ids=generation_ids)


def abandon(connection: Connection, generation: Generation, before: Sequence[State], *, drop: bool) -> None:
    """Abandon a generation and delete its queue; with `drop`, its tables are dropped once nobody reads them."""
    change_state(connection, generation, "abandoned", before, drop=drop)
    run(connection, "clear_queue", generation.leaves)

"""The states of generations: how one that is built beside another comes, answers, and goes."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, select, update

from nearsim_db.errors import ConflictError
from nearsim_db.records import GenerationId, ProfileId
from nearsim_db.store import tables
from nearsim_db.store.catalog import Generation, State
from nearsim_db.store.engine import driver
from nearsim_db.store.statements import statement

COMING: tuple[State, ...] = ("building", "catching_up", "ready", "paused")  # at most one of a profile
WORKABLE: tuple[State, ...] = ("catching_up", "ready", "live", "retired")  # their work is taken

_PROMOTION_WAIT_MILLISECONDS = 40


def move(
    connection: Connection, generation: Generation, state: State, before: Sequence[State], **values: object
) -> None:
    """Bring a generation from one of some states to another. Raises ConflictError where it is in none of these."""
    table = tables.generation
    moved = (
        update(table)
        .where(table.c.generation_id == generation.generation_id, table.c.state.in_(before))
        .values(state=state, **values)
    )
    if connection.execute(moved).rowcount != 1:
        raise ConflictError(
            f"generation {generation.generation_id} of profile {generation.profile!r} is no longer "
            f"{' or '.join(before)}; see: nearsim reindex status"
        )


def finish_build(connection: Connection, generation: Generation) -> None:
    """What was built answers from now on if it is the first of its profile, and else catches up with the documents."""
    if generation.replaces is None:
        move(connection, generation, "live", ["building"], live_at=func.now())
    else:
        move(connection, generation, "catching_up", ["building"])


def read_state(connection: Connection, generation: Generation) -> State | None:
    """The state it is in now; None when it is gone."""
    table = tables.generation
    chosen = select(table.c.state).where(table.c.generation_id == generation.generation_id)
    found: State | None = connection.execute(chosen).scalar_one_or_none()
    return found


def set_detached(connection: Connection, generation: Generation, detached: bool) -> None:
    """Leave a build to the workers, or take it from them."""
    table = tables.generation
    chosen = table.c.generation_id == generation.generation_id
    connection.execute(update(table).where(chosen).values(detached=detached))


def mark_ready(connection: Connection) -> list[GenerationId]:
    """Generations that have caught up are ready: nothing of them has waited for more than a moment."""
    rows = driver(connection).execute(statement("mark_ready")).fetchall()
    return [GenerationId(int(str(row[0]))) for row in rows]


def promote(connection: Connection, generation: Generation, before: Sequence[State]) -> GenerationId | None:
    """Let a generation answer in place of the one that does, which is retired; returns that one.

    Locks are waited for only shortly. Raises ConflictError where it is in none of the states `before`.
    """
    inner, profile_id = driver(connection), generation.profile_id
    inner.execute(statement("limit_lock_wait"), {"milliseconds": str(_PROMOTION_WAIT_MILLISECONDS)})
    inner.execute(statement("hold_generations"), {"profile_id": profile_id})
    retired = _retire(connection, profile_id)
    move(connection, generation, "live", before, live_at=func.clock_timestamp(), retired_at=None)
    return retired


def _retire(connection: Connection, profile_id: ProfileId) -> GenerationId | None:
    table = tables.generation
    live = update(table).where(table.c.profile_id == profile_id, table.c.state == "live")
    made = live.values(state="retired", retired_at=func.clock_timestamp()).returning(table.c.generation_id)
    found = connection.execute(made).scalar_one_or_none()
    return None if found is None else GenerationId(found)


def give_up(connection: Connection, generation: Generation, before: Sequence[State], *, drop: bool) -> None:
    """No more work is done for a generation; with `drop` its tables go as soon as nobody reads them."""
    move(connection, generation, "abandoned", before, dropping=drop)
    work = tables.work
    connection.execute(delete(work).where(work.c.generation_id == generation.generation_id))

"""How generations are told of: their states, what was promoted, what was dropped."""

from collections.abc import Sequence
from typing import Any

from nearsim_db.cli import render
from nearsim_db.dropping import Dropped
from nearsim_db.records import GenerationId
from nearsim_db.reindex import Reindex, Status
from nearsim_db.store.catalog import Generation

_NEXT = {
    "ready": "ready; compare it with the live one: nearsim reindex diff; then: nearsim reindex promote",
    "building": "left to the workers; see how far it is: nearsim reindex status",
    "catching_up": "built, and catching up; see how far it is: nearsim reindex status",
    "paused": "paused; to go on: nearsim reindex resume",
    "abandoned": "abandoned; its tables go with: nearsim reindex drop",
}


def print_state(reindex: Reindex, generation: Generation, *, as_json: bool, quiet: bool) -> None:
    """What became of a generation, and what can be done next."""
    if as_json:
        (found,) = [
            one for one in reindex.status() if one.generation.generation_id == generation.generation_id
        ]
        render.document(outline(found))
    elif not quiet:
        told = _NEXT.get(generation.state, generation.state)
        render.note(f"generation {generation.generation_id} of profile {generation.profile} is {told}")


def print_turn(
    reindex: Reindex, generation: Generation, before: GenerationId | None, *, as_json: bool, quiet: bool
) -> None:
    """Which generation answers now, and which did before."""
    if as_json:
        render.document(
            {
                "collection": reindex.collection,
                "profile": generation.profile,
                "live": generation.generation_id,
                "retired": before,
            }
        )
    elif not quiet:
        kept = f"; generation {before} is kept: nearsim reindex rollback" if before is not None else ""
        render.note(
            f"generation {generation.generation_id} of profile {generation.profile} answers now{kept}"
        )


def print_dropped(dropped: Sequence[Dropped], *, as_json: bool, quiet: bool) -> None:
    """What is gone, and what goes when nobody reads it any more."""
    if as_json:
        render.document(
            [
                {
                    "generation": one.generation.generation_id,
                    "profile": one.generation.profile,
                    "dropped": one.finished,
                    "held_by": one.held_by,
                }
                for one in dropped
            ]
        )
        return
    for one in dropped:
        held = f"read by {', '.join(one.held_by)}" if one.held_by else "in use"
        waits = f"is still {held}; a worker drops it after, or: nearsim reindex drop"
        state = "is dropped" if one.finished else waits
        if not quiet or not one.finished:
            render.note(
                f"generation {one.generation.generation_id} of profile {one.generation.profile} {state}"
            )
    if not dropped and not quiet:
        render.note("nothing to drop: no generation is retired or abandoned")


def print_status(found: Sequence[Status], *, as_json: bool) -> None:
    """All generations, one a row."""
    if as_json:
        render.document([outline(one) for one in found])
        return
    columns = ("generation", "profile", "state", "stage", "done", "waiting", "set_aside", "created_at")
    render.table(list(columns), [[outline(one)[column] for column in columns] for one in found])


def outline(one: Status) -> dict[str, Any]:
    """A status as it is printed."""
    generation = one.generation
    return {
        "generation": generation.generation_id,
        "profile": generation.profile,
        "state": generation.state,
        "stage": generation.stage,
        "done": one.done,
        "total": one.total,
        "seconds_left": one.seconds_left,
        "waiting": one.waiting,
        "set_aside": one.set_aside,
        "attended": one.is_attended,
        "left_behind": one.is_left_behind,
        "detached": generation.detached,
        "dropping": generation.dropping,
        "replaces": generation.replaces,
        "created_at": generation.created_at,
        "ready_at": generation.ready_at,
        "live_at": generation.live_at,
        "retired_at": generation.retired_at,
        "fingerprint": generation.fingerprint,
    }

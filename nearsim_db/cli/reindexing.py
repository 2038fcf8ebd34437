"""How generations are told of: their states, what was promoted, what was dropped."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nearsim_db.cli import render
from nearsim_db.dropping import Dropped
from nearsim_db.errors import LimitsExceededError
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

_STATES = {"building": "being built", "catching_up": "catching up"}
_STAGES = {"sign": "signing", "bands": "filing band keys", "pairs": "verifying", "clusters": "clustering"}
_LEFT = (
    "left behind where it stopped; to go on: nearsim reindex resume; to give it up: nearsim reindex abandon"
)


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
                "promoted": True,
            }
        )
    elif not quiet:
        kept = f"; generation {before} is kept: nearsim reindex rollback" if before is not None else ""
        render.note(
            f"generation {generation.generation_id} of profile {generation.profile} answers now{kept}"
        )


def print_refused(reindex: Reindex, refused: LimitsExceededError) -> None:
    """What differs by more than is allowed, as one JSON document."""
    render.document(
        {
            "promoted": False,
            "collection": reindex.collection,
            "profile": refused.profile,
            "limits": refused.limits,
        }
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
    """All generations, one a row, and what there is to say about those that somebody has to decide on."""
    if as_json:
        render.document([outline(one) for one in found])
        return
    if not found:
        render.note("nothing found: the collection has no profile yet; nearsim build makes one")
        return
    columns = (
        "generation",
        "profile",
        "state",
        "progress",
        "waiting",
        "set aside",
        "size",
        "differs in",
        "since",
    )
    render.table(columns, [_row(one) for one in found], wrap=["differs in"])
    for one in found:
        if advice := _advice(one):
            render.note(
                f"generation {one.generation.generation_id} of profile {one.generation.profile} {advice}"
            )


def _row(one: Status) -> list[object]:
    generation = one.generation
    state = "left behind" if one.is_left_behind else _STATES.get(generation.state, generation.state)
    return [
        generation.generation_id,
        generation.profile,
        "being dropped" if generation.dropping else state,
        _progress(one),
        one.waiting,
        one.set_aside,
        _size(one.bytes),
        ", ".join(f"{key}={render.visible(value)}" for key, value in one.differs.items()),
        _since(generation),
    ]


def _progress(one: Status) -> str:
    """As `signing, 12 % · about 3 min left`."""
    if one.percent is None:
        return "-"
    stage = _STAGES.get(one.generation.stage)
    percent = f"{one.percent:.0f} %" if stage is None else f"{stage}, {one.percent:.0f} %"
    return percent if one.seconds_left is None else f"{percent} · about {_duration(one.seconds_left)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count < 2**30 else f"{count / 2**30:,.1f} GiB"


def _since(generation: Generation) -> datetime:
    since = {"live": generation.live_at, "ready": generation.ready_at, "retired": generation.retired_at}
    return since.get(generation.state) or generation.created_at


def _advice(one: Status) -> str | None:
    if one.generation.dropping:
        return "waits for who still reads it; a worker drops it after, or: nearsim reindex drop"
    if one.is_left_behind:
        return f"was {_LEFT}"
    return None


def print_left(generation: Generation) -> None:
    """What was being built when this process was told to end."""
    render.warn(f"generation {generation.generation_id} of profile {generation.profile} is {_LEFT}")


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
        "percent": None if one.percent is None else round(one.percent, 1),
        "seconds_left": None if one.seconds_left is None else round(one.seconds_left, 1),
        "waiting": one.waiting,
        "set_aside": one.set_aside,
        "bytes": one.bytes,
        "attended": one.is_attended,
        "left_behind": one.is_left_behind,
        "detached": generation.detached,
        "dropping": generation.dropping,
        "replaces": generation.replaces,
        "differs": dict(one.differs),
        "created_at": generation.created_at,
        "ready_at": generation.ready_at,
        "live_at": generation.live_at,
        "retired_at": generation.retired_at,
        "fingerprint": generation.fingerprint,
    }

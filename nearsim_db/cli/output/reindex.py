"""How generations are told of: their states, what was promoted, what was dropped."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from nearsim_db.admin.reindex import Reindex, Status
from nearsim_db.cli.output import render
from nearsim_db.errors import LimitsExceededError, suggested_command
from nearsim_db.indexing.drop_generation import Dropped
from nearsim_db.records import GenerationId
from nearsim_db.store.catalog import Generation

_STAGES = {"sign": "signing", "bands": "filing band keys", "pairs": "verifying", "clusters": "clustering"}
_COLUMNS = (
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
_WRAPPED = ["progress", "differs in"]
_SPARE = ("since", "profile", "size")  # what a narrow terminal does without, in this order


def print_state(reindex: Reindex, generation: Generation, *, as_json: bool, quiet: bool) -> None:
    """What became of a generation, and what can be done next."""
    (found,) = [one for one in reindex.status() if one.generation.generation_id == generation.generation_id]
    if as_json:
        render.document(outline(found))
    elif not quiet:
        render.note(
            f"generation {generation.generation_id} of profile {generation.profile} is {_next(found)}"
        )


def _next(found: Status) -> str:
    advised, worker = found.generation.advice, suggested_command("worker", found.generation.collection)
    match found.generation.state:
        case "building" if found.waits_for_worker:
            return f"left to the workers, and none is at work; start one: {worker}"
        case "building":
            return f"left to the workers; see how far it is: {advised('reindex status')}"
        case "catching_up":
            return f"built, and catching up; see how far it is: {advised('reindex status')}"
        case "ready":
            return (
                f"ready; compare it with the live one: {advised('reindex diff')}; "
                f"then: {advised('reindex promote')}"
            )
        case "paused":
            return f"paused; to go on: {advised('reindex resume')}"
        case "abandoned":
            return f"abandoned; its tables go with: {advised('reindex drop')}"
        case state:
            return state


def named(reindex: Reindex, chosen: Sequence[Generation]) -> str:
    """Generations as a question names them, as "generation 13 (abandoned, 0.6 MiB) of profile default in ..."."""
    ids = {one.generation_id for one in chosen}
    profiles = None if len({one.profile for one in chosen}) > 1 else chosen[0].profile
    found = Reindex(reindex.database, reindex.collection, profiles).status()
    told = [
        f"generation {one.generation.generation_id} ({one.word}, {_size(one.bytes)}) "
        f"of profile {one.generation.profile}"
        for one in found
        if one.generation.generation_id in ids
    ]
    return f"{', '.join(told)} in collection {reindex.collection}"


def print_turn(
    reindex: Reindex,
    generation: Generation,
    before: GenerationId | None,
    *,
    forward: bool = False,
    as_json: bool,
    quiet: bool,
) -> None:
    """Which generation answers now, and how to go back to the one that did; after a rollback that is `forward`."""
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
        back = (
            generation.advice("reindex promote", "--generation", str(before))
            if forward
            else generation.advice("reindex rollback")
        )
        kept = f"; generation {before} is kept, to go back to it: {back}" if before is not None else ""
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
        waits = f"is still {held}; a worker drops it after, or: {one.generation.advice('reindex drop')}"
        state = "is dropped" if one.finished else waits
        if not quiet or not one.finished:
            render.note(
                f"generation {one.generation.generation_id} of profile {one.generation.profile} {state}"
            )
    if not dropped and not quiet:
        render.note("nothing to drop: no generation is retired or abandoned")


def print_status(reindex: Reindex, *, as_json: bool) -> None:
    """All generations, one a row, and what there is to say about those that somebody has to decide on."""
    found = reindex.status()
    if as_json:
        render.document([outline(one) for one in found])
        return
    if not found:
        build = suggested_command("build", reindex.collection)
        render.note(f"nothing found: the collection has no profile yet; {build} makes one")
        return
    print_table([dict(zip(_COLUMNS, _row(one), strict=True)) for one in found])
    for one in found:
        if told := _advice(one):
            render.note(
                f"generation {one.generation.generation_id} of profile {one.generation.profile} {told}"
            )


def print_table(rows: Sequence[Mapping[str, object]], stream: TextIO | None = None) -> None:
    """With all columns, less those that a narrow terminal can do without: first the empty ones."""
    shown = list(_COLUMNS)
    empty = [name for name in _COLUMNS if all(row[name] in (0, "", "-") for row in rows)]
    several = len({row["profile"] for row in rows}) > 1
    for name in (*empty, *(one for one in _SPARE if not (one == "profile" and several))):
        if name in shown and not render.fits(shown, _cut(rows, shown), wrap=_WRAPPED, stream=stream):
            shown.remove(name)
    render.table(shown, _cut(rows, shown), wrap=_WRAPPED, stream=stream)


def _cut(rows: Sequence[Mapping[str, object]], shown: Sequence[str]) -> list[list[object]]:
    return [[row[name] for name in shown] for row in rows]


def _row(one: Status) -> list[object]:
    generation = one.generation
    return [
        generation.generation_id,
        generation.profile,
        one.word,
        _progress(one),
        one.waiting,
        one.set_aside,
        _size(one.bytes),
        ", ".join(f"{key}={render.visible(value)}" for key, value in one.differs.items()),
        _since(generation),
    ]


def _progress(one: Status) -> str:
    """As `12 %, signing · about 3 min left`, where the share is of the whole build."""
    if one.percent is None:
        return "-"
    stage = _STAGES.get(one.generation.stage)
    told = f"{one.percent:.0f} %" if stage is None else f"{one.percent:.0f} %, {stage}"
    if one.waits_for_worker:
        return f"{told} · waits for a worker"
    return told if one.seconds_left is None else f"{told} · about {_duration(one.seconds_left)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count < 2**30 else f"{count / 2**30:,.1f} GiB"


def _since(generation: Generation) -> datetime | None:
    """When its state began, where that was written down."""
    if generation.dropping:
        return generation.retired_at
    since = {
        "building": generation.created_at,
        "ready": generation.ready_at,
        "live": generation.live_at,
        "retired": generation.retired_at,
    }
    return since.get(generation.state)


def _advice(one: Status) -> str | None:
    generation = one.generation
    if generation.dropping:
        again = generation.advice("reindex drop")
        return f"waits for who still reads it; a worker drops it after, or: {again}"
    if one.is_left_behind:
        return f"was {_left(generation)}"
    if (remedy := one.remedy_where_refused) is not None:
        return f"cannot be written to by this version: {remedy}"
    if one.waits_for_worker:
        worker = suggested_command("worker", generation.collection)
        return f"waits for a worker, and none is at work: {worker}"
    return None


def _left(generation: Generation) -> str:
    resume, abandon = generation.advice("reindex resume"), generation.advice("reindex abandon")
    return f"left behind where it stopped; to go on: {resume}; to give it up: {abandon}"


def print_left(generation: Generation) -> None:
    """What was being built when this process was told to end."""
    told = f"generation {generation.generation_id} of profile {generation.profile}"
    render.warn(f"{told} is {_left(generation)}")


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
        "waits_for_worker": one.waits_for_worker,
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

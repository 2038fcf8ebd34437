"""Output of `nearsim reindex status`: the generations, one a row."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from nearsim_db.admin.reindex import Reindex, Status
from nearsim_db.cli.output import tables, terminal
from nearsim_db.errors import suggested_command
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


def print_status(reindex: Reindex, *, as_json: bool) -> None:
    """All generations, one a row, and what there is to say about those that somebody has to decide on."""
    found = reindex.status()
    if as_json:
        terminal.print_json([outline(one) for one in found])
        return
    if not found:
        build = suggested_command("build", reindex.collection)
        terminal.print_info(f"nothing found: the collection has no profile yet; {build} makes one")
        return
    print_table([dict(zip(_COLUMNS, _row(one), strict=True)) for one in found])
    for one in found:
        if told := _advice(one):
            terminal.print_info(
                f"generation {one.generation.generation_id} of profile {one.generation.profile} {told}"
            )


def print_table(rows: Sequence[Mapping[str, object]], stream: TextIO | None = None) -> None:
    """With all columns, less those that a narrow terminal can do without: first the empty ones."""
    shown = list(_COLUMNS)
    empty = [name for name in _COLUMNS if all(row[name] in (0, "", "-") for row in rows)]
    several = len({row["profile"] for row in rows}) > 1
    for name in (*empty, *(one for one in _SPARE if not (one == "profile" and several))):
        if name in shown and not tables.fits(shown, _cut(rows, shown), wrap=_WRAPPED, stream=stream):
            shown.remove(name)
    tables.print_table(shown, _cut(rows, shown), wrap=_WRAPPED, stream=stream)


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
        size(one.bytes),
        ", ".join(f"{key}={terminal.visible(value)}" for key, value in one.differs.items()),
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


def size(count: int) -> str:
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
        return f"was {how_to_continue(generation)}"
    if (remedy := one.remedy_where_refused) is not None:
        return f"cannot be written to by this version: {remedy}"
    if one.waits_for_worker:
        worker = suggested_command("worker", generation.collection)
        return f"waits for a worker, and none is at work: {worker}"
    return None


def how_to_continue(generation: Generation) -> str:
    resume, abandon = generation.advice("reindex resume"), generation.advice("reindex abandon")
    return f"left behind where it stopped; to go on: {resume}; to give it up: {abandon}"


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

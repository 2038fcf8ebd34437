"""Output of `nearsim reindex status`: the generations, one a row."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TextIO

from nearsim_db.admin.reindex.status import Status
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.documents import print_document
from nearsim_db.errors import suggested_command
from nearsim_db.store.generation_rows import Generation

_STAGES = {"sign": "signing", "bands": "storing band keys", "pairs": "verifying", "clusters": "clustering"}
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
_OPTIONAL = ("since", "profile", "size")  # omitted on a narrow terminal, in this order


def print_status(found: Sequence[Status], collection: str, *, format: Format) -> None:
    """Print all generations, one per row, and advice on those that need a decision."""
    if format.is_machine:
        print_document(format, [outline(one) for one in found])
        return
    if not found:
        build = suggested_command("build", collection)
        terminal.print_info(f"no generations: the collection has no profile yet; create one with: {build}")
        return
    print_table([dict(zip(_COLUMNS, _row(one), strict=True)) for one in found])
    for one in found:
        if text := _advice(one):
            terminal.print_info(
                f"generation {one.generation.generation_id} of profile {one.generation.profile} {text}"
            )


def print_table(rows: Sequence[Mapping[str, object]], stream: TextIO | None = None) -> None:
    """Print the rows; on a narrow terminal empty columns are omitted first, then optional ones."""
    shown = list(_COLUMNS)
    empty = [name for name in _COLUMNS if all(row[name] in (0, "", "-") for row in rows)]
    several = len({row["profile"] for row in rows}) > 1
    for name in (*empty, *(one for one in _OPTIONAL if not (one == "profile" and several))):
        if name in shown and not tables.fits(shown, _select(rows, shown), wrap=_WRAPPED, stream=stream):
            shown.remove(name)
    tables.print_table(shown, _select(rows, shown), wrap=_WRAPPED, stream=stream)


def _select(rows: Sequence[Mapping[str, object]], shown: Sequence[str]) -> list[list[object]]:
    return [[row[name] for name in shown] for row in rows]


def _row(one: Status) -> list[object]:
    generation = one.generation
    return [
        generation.generation_id,
        generation.profile,
        one.state_label,
        _progress(one),
        one.waiting,
        one.set_aside,
        size(one.bytes),
        ", ".join(f"{key}={terminal.visible(value)}" for key, value in one.differs.items()),
        _since(generation),
    ]


def _progress(one: Status) -> str:
    """Return e.g. `12 %, signing · about 3 min left`; the share is of the whole build."""
    if one.percent is None:
        return "-"
    stage = _STAGES.get(one.generation.stage)
    text = f"{one.percent:.0f} %" if stage is None else f"{one.percent:.0f} %, {stage}"
    if one.waits_for_worker:
        return f"{text} · waits for a worker"
    return text if one.seconds_left is None else f"{text} · about {_duration(one.seconds_left)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count < 2**30 else f"{count / 2**30:,.1f} GiB"


def _since(generation: Generation) -> datetime | None:
    """Return when its current state began, if recorded."""
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
        return f"is being dropped but still in use; a worker drops it later, or run: {again}"
    if one.is_left_behind:
        return f"was {how_to_continue(generation)}"
    if (remedy := one.remedy_where_refused) is not None:
        return f"cannot be written to by this version: {remedy}"
    if one.waits_for_worker:
        worker = suggested_command("worker", generation.collection)
        return f"waits for a worker, and none is running: {worker}"
    return None


def how_to_continue(generation: Generation) -> str:
    resume, abandon = generation.advice("reindex resume"), generation.advice("reindex abandon")
    return f"left unfinished; to resume it: {resume}; to abandon it: {abandon}"


def outline(one: Status) -> dict[str, Any]:
    """Return a status as it is printed in JSON."""
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

"""Output of `nearsim reindex`: a table of generations, and the state of a generation after a command."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

from nearsim_db.cli.options import Outcome, Result
from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.terminal import values_of
from nearsim_db.messages import suggested_command
from nearsim_db.records import GenerationId

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Reindex, Status
    from nearsim_db.indexing.drop_generation import Dropped
    from nearsim_db.store.generations.generation_rows import Generation

_STAGES = {"sign": "signing", "bands": "storing band keys", "pairs": "verifying", "clusters": "clustering"}
_COLUMNS = (
    *("generation", "profile", "state", "progress", "waiting", "set aside", "size", "differs in", "since"),
)
_WRAPPED = ["progress", "differs in"]
# Columns that a narrow terminal omits, in this order.
_OPTIONAL = ("since", "profile", "size")


def print_status(statuses: "Sequence[Status]", collection: str) -> None:
    """Print a row for each generation, and advice on generations that need a decision."""
    if not statuses:
        build = suggested_command("build", collection)
        terminal.print_info(f"no generations: the collection has no profile yet; create one with: {build}")
        return

    print_table([dict(zip(_COLUMNS, _row(status), strict=True)) for status in statuses])

    for status in statuses:
        if text := _advice(status):
            terminal.print_info(f"{_name(status.generation)} {text}")


def print_table(rows: Sequence[Mapping[str, object]], stream: TextIO | None = None) -> None:
    """Print the rows. A narrow terminal omits empty columns first, then optional columns."""
    empty = [name for name in _COLUMNS if all(row[name] in (0, "", "-") for row in rows)]
    # Keep the column of the profile if there are several profiles, because it distinguishes the rows.
    several = len({row["profile"] for row in rows}) > 1
    optional = [name for name in _OPTIONAL if name not in empty and not (name == "profile" and several)]

    values = [[row[name] for name in _COLUMNS] for row in rows]
    every = [*empty, *optional]
    tables.print_fitting(_COLUMNS, values, optional=every, wrap=_WRAPPED, gap=tables.GAP, stream=stream)


def _row(status: "Status") -> list[object]:
    generation = status.generation
    return [
        generation.generation_id,
        generation.profile,
        status.state_label,
        _progress(status),
        status.waiting,
        status.set_aside,
        _size(status.bytes),
        ", ".join(f"{key}={terminal.visible(value)}" for key, value in status.differs.items()),
        _since(generation),
    ]


def _progress(status: "Status") -> str:
    """Return the progress of the whole build, such as `12 %, signing · about 3 min left`."""
    if status.percent is None:
        return "-"
    stage = _STAGES.get(status.generation.stage)
    text = f"{status.percent:.0f} %" if stage is None else f"{status.percent:.0f} %, {stage}"
    if status.waits_for_worker:
        return f"{text} · waits for a worker"
    return text if status.seconds_left is None else f"{text} · about {_duration(status.seconds_left)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count < 2**30 else f"{count / 2**30:,.1f} GiB"


def _since(generation: "Generation") -> datetime | None:
    """Return when the generation's present state began, None if that is not recorded."""
    if generation.dropping:
        return generation.retired_at

    names = {"building": "created_at", "ready": "ready_at", "live": "live_at", "retired": "retired_at"}
    return getattr(generation, names[generation.state]) if generation.state in names else None


def _advice(status: "Status") -> str | None:
    generation = status.generation
    if generation.dropping:
        again = generation.advice("reindex drop")
        return f"is being dropped but still in use; a worker drops it later, or run: {again}"
    if status.is_left_behind:
        return f"was {_how_to_continue(generation)}"
    if (remedy := status.remedy_where_refused) is not None:
        return f"cannot be written to by this version: {remedy}"
    if status.waits_for_worker:
        worker = suggested_command("worker", generation.collection)
        return f"waits for a worker, and none is running: {worker}"
    return None


def _how_to_continue(generation: "Generation") -> str:
    resume, abandon = generation.advice("reindex resume"), generation.advice("reindex abandon")
    return f"left unfinished; to resume it: {resume}; to abandon it: {abandon}"


def outline(status: "Status") -> dict[str, Any]:
    """Return the values of a status that JSON shows."""
    generation = status.generation

    return {
        "generation": generation.generation_id,
        **values_of(generation, "profile", "state", "stage"),
        **values_of(status, "done", "total"),
        "percent": None if status.percent is None else round(status.percent, 1),
        "seconds_left": None if status.seconds_left is None else round(status.seconds_left, 1),
        **values_of(status, "waiting", "set_aside", "bytes"),
        "attended": status.is_attended,
        "waits_for_worker": status.waits_for_worker,
        "left_behind": status.is_left_behind,
        **values_of(generation, "detached", "dropping", "replaces"),
        "differs": dict(status.differs),
        **values_of(generation, "created_at", "ready_at", "live_at", "retired_at", "fingerprint"),
    }


def show_state(outcome: Outcome, reindex: "Reindex", generation: "Generation") -> None:
    """Print the state of a generation, and the command to run next."""
    (status,) = [
        status for status in reindex.status() if status.generation.generation_id == generation.generation_id
    ]
    outcome.show(outline(status), f"{_name(generation)} is {_next(status)}")


def _name(generation: "Generation") -> str:
    return f"generation {generation.generation_id} of profile {generation.profile}"


def _next(status: "Status") -> str:
    advised, worker = status.generation.advice, suggested_command("worker", status.generation.collection)

    match status.generation.state:
        case "building" if status.waits_for_worker:
            return f"waiting for a worker, and none is running; start one: {worker}"
        case "building":
            return f"being built by the workers; see its progress: {advised('reindex status')}"
        case "catching_up":
            return f"catching up; see its progress: {advised('reindex status')}"
        case "ready":
            compare = f"compare it with the live one: {advised('reindex diff')}"
            return f"ready; {compare}; then: {advised('reindex promote')}"
        case "paused":
            return f"paused; to resume it: {advised('reindex resume')}"
        case "abandoned":
            return f"abandoned; to drop its tables: {advised('reindex drop')}"
        case state:
            return state


def describe(reindex: "Reindex", chosen: "Sequence[Generation]") -> str:
    """Return generations as text, such as "generation 13 (abandoned, 0.6 MiB) of profile default in ..."."""
    from nearsim_db.admin.reindex import Reindex

    ids = {generation.generation_id for generation in chosen}
    profiles = None if len({generation.profile for generation in chosen}) > 1 else chosen[0].profile
    statuses = Reindex(reindex.database, reindex.collection, profiles).status()
    descriptions = [
        f"generation {generation.generation.generation_id} ({generation.state_label}, {_size(generation.bytes)}) "
        f"of profile {generation.generation.profile}"
        for generation in statuses
        if generation.generation.generation_id in ids
    ]
    return f"{', '.join(descriptions)} in collection {reindex.collection}"


def show_promoted(
    outcome: Outcome,
    reindex: "Reindex",
    generation: "Generation",
    before: GenerationId | None,
    *,
    is_rollback: bool = False,
) -> None:
    """Print which generation is live now, and the command that returns to the previous generation."""
    again = ("reindex promote", "--generation", str(before)) if is_rollback else ("reindex rollback",)
    back = generation.advice(*again)
    kept = f"; generation {before} is kept; to go back to it: {back}" if before is not None else ""
    live = {"live": generation.generation_id, "retired": before, "promoted": True}
    promoted = {"collection": reindex.collection, "profile": generation.profile, **live}
    outcome.show(promoted, f"{_name(generation)} is live now{kept}")


def show_dropped(outcome: Outcome, dropped: "Sequence[Dropped]") -> None:
    """Print which generations were dropped, and which are still in use."""
    rows = [
        {"generation": result.generation.generation_id, "profile": result.generation.profile}
        | {"dropped": result.finished, "held_by": result.held_by}
        for result in dropped
    ]
    Result(outcome.format).show(rows, lambda: _print_dropped(dropped, quiet=outcome.quiet))


def _print_dropped(dropped: "Sequence[Dropped]", *, quiet: bool) -> None:
    for result in dropped:
        held = f"read by {', '.join(result.held_by)}" if result.held_by else "in use"
        waits = (
            f"is still {held}; a worker drops it later, or run: {result.generation.advice('reindex drop')}"
        )
        if not quiet or not result.finished:
            terminal.print_info(f"{_name(result.generation)} {'is dropped' if result.finished else waits}")
    if not dropped and not quiet:
        terminal.print_info("nothing to drop: no generation is retired or abandoned")


def print_left(generation: "Generation") -> None:
    """Warn that a build is unfinished, and name the commands that resume or abandon it."""
    terminal.print_warning(f"{_name(generation)} is {_how_to_continue(generation)}")

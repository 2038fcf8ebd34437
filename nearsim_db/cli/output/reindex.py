"""Output of `nearsim reindex`: a generation after a command, promoted or dropped."""

from collections.abc import Sequence

from nearsim_db.admin.reindex import Reindex, Status
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output import terminal
from nearsim_db.cli.output.documents import print_document
from nearsim_db.cli.output.reindex_status import how_to_continue, outline, size
from nearsim_db.errors import LimitsExceededError, suggested_command
from nearsim_db.indexing.drop_generation import Dropped
from nearsim_db.records import GenerationId
from nearsim_db.store.generation_rows import Generation


def print_state(reindex: Reindex, generation: Generation, *, format: Format, quiet: bool) -> None:
    """Print the state of a generation and the next command."""
    (found,) = [one for one in reindex.status() if one.generation.generation_id == generation.generation_id]
    if format.is_machine:
        print_document(format, outline(found))
    elif not quiet:
        terminal.print_info(
            f"generation {generation.generation_id} of profile {generation.profile} is {_next(found)}"
        )


def _next(found: Status) -> str:
    advised, worker = found.generation.advice, suggested_command("worker", found.generation.collection)
    match found.generation.state:
        case "building" if found.waits_for_worker:
            return f"waiting for a worker, and none is running; start one: {worker}"
        case "building":
            return f"being built by the workers; see its progress: {advised('reindex status')}"
        case "catching_up":
            return f"catching up; see its progress: {advised('reindex status')}"
        case "ready":
            return (
                f"ready; compare it with the live one: {advised('reindex diff')}; "
                f"then: {advised('reindex promote')}"
            )
        case "paused":
            return f"paused; to resume it: {advised('reindex resume')}"
        case "abandoned":
            return f"abandoned; to drop its tables: {advised('reindex drop')}"
        case state:
            return state


def describe(reindex: Reindex, chosen: Sequence[Generation]) -> str:
    """Return generations as text, e.g. "generation 13 (abandoned, 0.6 MiB) of profile default in ..."."""
    ids = {one.generation_id for one in chosen}
    profiles = None if len({one.profile for one in chosen}) > 1 else chosen[0].profile
    found = Reindex(reindex.database, reindex.collection, profiles).status()
    descriptions = [
        f"generation {one.generation.generation_id} ({one.state_label}, {size(one.bytes)}) "
        f"of profile {one.generation.profile}"
        for one in found
        if one.generation.generation_id in ids
    ]
    return f"{', '.join(descriptions)} in collection {reindex.collection}"


def print_promoted(
    reindex: Reindex,
    generation: Generation,
    before: GenerationId | None,
    *,
    is_rollback: bool = False,
    format: Format,
    quiet: bool,
) -> None:
    """Print which generation is live now, and how to return to the previous one."""
    if format.is_machine:
        print_document(
            format,
            {
                "collection": reindex.collection,
                "profile": generation.profile,
                "live": generation.generation_id,
                "retired": before,
                "promoted": True,
            },
        )
    elif not quiet:
        back = (
            generation.advice("reindex promote", "--generation", str(before))
            if is_rollback
            else generation.advice("reindex rollback")
        )
        kept = f"; generation {before} is kept; to go back to it: {back}" if before is not None else ""
        terminal.print_info(
            f"generation {generation.generation_id} of profile {generation.profile} is live now{kept}"
        )


def print_refused(format: Format, reindex: Reindex, refused: LimitsExceededError) -> None:
    """Print the exceeded limits for programs."""
    print_document(
        format,
        {
            "promoted": False,
            "collection": reindex.collection,
            "profile": refused.profile,
            "limits": refused.limits,
        },
    )


def print_dropped(dropped: Sequence[Dropped], *, format: Format, quiet: bool) -> None:
    """Print the generations dropped, and those still in use."""
    if format.is_machine:
        print_document(
            format,
            [
                {
                    "generation": one.generation.generation_id,
                    "profile": one.generation.profile,
                    "dropped": one.finished,
                    "held_by": one.held_by,
                }
                for one in dropped
            ],
        )
        return
    for one in dropped:
        held = f"read by {', '.join(one.held_by)}" if one.held_by else "in use"
        waits = f"is still {held}; a worker drops it later, or run: {one.generation.advice('reindex drop')}"
        state = "is dropped" if one.finished else waits
        if not quiet or not one.finished:
            terminal.print_info(
                f"generation {one.generation.generation_id} of profile {one.generation.profile} {state}"
            )
    if not dropped and not quiet:
        terminal.print_info("nothing to drop: no generation is retired or abandoned")


def print_left(generation: Generation) -> None:
    """Warn that this process leaves a build unfinished."""
    name = f"generation {generation.generation_id} of profile {generation.profile}"
    terminal.print_warning(f"{name} is {how_to_continue(generation)}")

"""Commands that replace the index of a profile while it stays in use."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import formats, options, recipes
from nearsim_db.cli.commands.documents import confirm, is_interactive
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import DEFAULT, suggested_command

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Reindex

reindex = typer.Typer(
    no_args_is_help=True,
    help="Replace the index of a profile while it stays in use: build a new one, compare, promote, roll back.",
)


def _generation_option(help: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        "--generation", "-g", metavar="N", help=help, show_default=False
    )
    return option


Detach = Annotated[bool, typer.Option("--detach", help="Leave the build to the workers.")]


def start(
    *,
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    detach: Detach = False,
    promote: Annotated[bool, typer.Option("--promote", help="Promote it when it is ready.")] = False,
    jobs: options.Jobs = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Build a new generation beside the live one, which stays in use, until it is ready to be promoted.

    Its recipe is the live one's, or that of --recipe or --preset, changed by --set and --threshold. After Ctrl-C, the
    build continues with nearsim reindex resume.
    """
    from nearsim_db.cli.output import reindex as output

    if promote and detach:
        raise UsageError(
            "--promote cannot be combined with --detach; to promote what workers built: "
            f"{suggested_command('reindex promote', collection, profile or DEFAULT)}"
        )
    is_named = recipe_options.recipe is not None or recipe_options.preset is not None
    chosen = recipe_options.chosen(threshold) if is_named else None
    changes = None if is_named else recipe_options.changes(threshold)
    with _reindex(collection, profile, quiet or format.is_machine) as reindex:
        reindex.database.use_jobs(jobs)
        generation = reindex.start(chosen, changes, detached=detach)
        if promote:
            promoted = reindex.promote(generation.generation_id)
            output.print_promoted(reindex, *promoted, format=format, quiet=quiet)
        else:
            output.print_state(reindex, generation, format=format, quiet=quiet)


def resume(
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    detach: Detach = False,
    jobs: options.Jobs = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Continue a build that was paused or left behind, until it is ready to be promoted."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, profile, quiet or format.is_machine) as reindex:
        reindex.database.use_jobs(jobs)
        generation = reindex.resume(detached=detach)
        output.print_state(reindex, generation, format=format, quiet=quiet)


def pause(
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Pause a build, or its catching up, at the next step; later changes are queued for it."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, profile, quiet or format.is_machine) as reindex:
        generation = reindex.pause()
        output.print_state(reindex, generation, format=format, quiet=quiet)


def abandon(
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    yes: options.Yes = False,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Abandon a build, or a ready generation; its tables exist until it is dropped. Asks first on a terminal."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, profile, quiet=True) as reindex:
        if is_interactive(yes=yes):
            what = output.describe(reindex, [reindex.pending()])
            confirm(f"Abandon {what}? It cannot be resumed.")
        generation = reindex.abandon()
        output.print_state(reindex, generation, format=format, quiet=quiet)


def promote(
    *,
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    generation: Annotated[int | None, _generation_option("Promote this one; it may be retired.")] = None,
    limit_options: options.LimitOptions,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Make the ready generation live, in one short transaction; the previous one is kept for a rollback.

    With a --max option it is compared with the live one first; if it differs by more, it is not promoted and the exit
    code is 3. A LIMIT is a share of the live pairs or clusters, 0.1% or 0.001, or a count, 25.
    """
    from nearsim_db.cli.output import reindex as output
    from nearsim_db.errors import LimitsExceededError

    allowed = limit_options.parsed()
    with _reindex(collection, profile, quiet or format.is_machine) as reindex:
        try:
            promoted = reindex.promote(generation, allowed)
        except LimitsExceededError as error:
            if format.is_machine:
                output.print_refused(format, reindex, error)
            raise
        output.print_promoted(reindex, *promoted, format=format, quiet=quiet)


def rollback(
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Make the previous generation live again; it has been kept up to date with the documents."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, profile, quiet or format.is_machine) as reindex:
        generation, previous = reindex.rollback()
        output.print_promoted(reindex, generation, previous, is_rollback=True, format=format, quiet=quiet)


def drop(
    context: typer.Context,
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    generation: Annotated[int | None, _generation_option("Drop only this one.")] = None,
    every: Annotated[bool, typer.Option("--all", help="For all profiles of the collection.")] = False,
    yes: options.Yes = False,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Drop retired and abandoned generations, or one; no other session is blocked. Asks first on a terminal.

    A generation that is still read after ten seconds is dropped later, by a worker or the next call.
    """
    from nearsim_db.cli.output import reindex as output

    if every and (name is not None or formats.is_typed(context, "profile") or generation is not None):
        raise UsageError("--all cannot be combined with a profile or --generation")
    with _reindex(collection, None if every else profile, quiet=True) as reindex:
        chosen = reindex.find_droppable(generation, every=every)
        if chosen and is_interactive(yes=yes):
            confirm(f"Drop {output.describe(reindex, chosen)}? This cannot be undone.")
        output.print_dropped(reindex.drop(chosen), format=format, quiet=quiet)


def status(
    name: options.ProfileArgument = None,
    profile: options.ProfileOrArgument = None,
    collection: options.Collection = options.DEFAULT,
    format: formats.ResultFormat = Format.TABLE,
) -> None:
    """Show the generations of a profile, or of all, and the progress of each."""
    from nearsim_db.admin.reindex.status import read_status
    from nearsim_db.cli.output.reindex_status import print_status
    from nearsim_db.store.database import Database

    with Database.connect() as database, database.transaction() as connection:
        found = read_status(connection, collection, profile)
    print_status(found, collection, format=format)


@contextmanager
def _reindex(collection: str, profile: str | None, quiet: bool) -> "Iterator[Reindex]":
    from nearsim_db.admin.reindex import Reindex
    from nearsim_db.cli.output import reindex as output
    from nearsim_db.cli.output import terminal
    from nearsim_db.errors import BuildStoppedError, NearsimError
    from nearsim_db.store.database import Database

    warnings: list[str] = []
    reindex: Reindex | None = None
    try:
        with progress_bars(quiet) as progress, Database.connect() as database:
            reindex = Reindex(database, collection, profile, progress, warnings.append)
            yield reindex
    except (KeyboardInterrupt, NearsimError) as error:
        if (
            reindex is not None
            and reindex.left_behind is not None
            and not isinstance(error, BuildStoppedError)
        ):
            output.print_left(reindex.left_behind)
        raise
    finally:
        terminal.print_warnings(warnings)

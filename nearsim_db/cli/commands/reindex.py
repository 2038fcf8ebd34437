"""Commands that replace the index of a profile while it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.documents import confirm, is_interactive
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import DEFAULT, suggested_command

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Reindex
    from nearsim_db.similarity.recipe import Recipe

reindex = typer.Typer(
    no_args_is_help=True,
    help="Replace the index of a profile while it answers: build another beside it, compare, promote, go back.",
)

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROFILE]", help="The profile; needed where there are several and none is called default."
    ),
]


def _numbered(help: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        "--generation", "-g", metavar="N", help=help, show_default=False
    )
    return option


Detach = Annotated[bool, typer.Option("--detach", help="Leave it to the workers.")]


def start(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    recipe: options.RecipeFile = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    detach: Detach = False,
    promote: Annotated[bool, typer.Option("--promote", help="Promote it as soon as it is ready.")] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Build a new generation beside the live one, which answers all the while, until it is ready to be promoted.

    Its recipe is that of the live one, or of --recipe or --preset, changed by --set. Ctrl-C leaves it behind, and
    nearsim reindex resume goes on.
    """
    from nearsim_db.cli.output import reindex as output

    if promote and detach:
        raise UsageError(
            "--promote goes without --detach: what workers build is promoted by "
            f"{suggested_command('reindex promote', collection, name or DEFAULT)}"
        )
    chosen = _chosen(recipe, preset, settings)
    with _reindex(collection, name, quiet or as_json) as begun:
        generation = begun.start(chosen, settings if chosen is None else None, detached=detach)
        if promote:
            turned = begun.promote(generation.generation_id)
            output.print_promoted(begun, *turned, as_json=as_json, quiet=quiet)
        else:
            output.print_state(begun, generation, as_json=as_json, quiet=quiet)


def resume(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    detach: Detach = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Go on with what was paused or left behind, from where it stopped, until it is ready to be promoted."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, name, quiet or as_json) as paused:
        generation = paused.resume(detached=detach)
        output.print_state(paused, generation, as_json=as_json, quiet=quiet)


def pause(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Stop a build, or the catching up, at its next step; what is written meanwhile is kept for it."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, name, quiet or as_json) as running:
        generation = running.pause()
        output.print_state(running, generation, as_json=as_json, quiet=quiet)


def abandon(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Give up what is being built, or is ready; its tables stay until it is dropped. On a terminal it asks first."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, name, quiet=True) as running:
        if is_interactive(yes=yes):
            what = output.describe(running, [running.coming()])
            confirm(f"Give up {what}? It cannot be resumed.")
        generation = running.abandon()
        output.print_state(running, generation, as_json=as_json, quiet=quiet)


def promote(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    generation: Annotated[int | None, _numbered("Promote this one, also a retired one.")] = None,
    max_lost: options.MaxLost = None,
    max_gained: options.MaxGained = None,
    max_rescored: options.MaxRescored = None,
    max_merged: options.MaxMerged = None,
    max_split: options.MaxSplit = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Let the ready generation answer, in one short transaction; the one before is kept for a rollback.

    With a --max option it is compared with the live one first, and not promoted where it differs by more: then the
    exit code is 3. A LIMIT is a share of the live pairs or clusters, 0.1% or 0.001, or a count, 25.
    """
    from nearsim_db.cli.output import reindex as output
    from nearsim_db.errors import LimitsExceededError

    allowed = options.limits_of(max_lost, max_gained, max_rescored, max_merged, max_split)
    with _reindex(collection, name, quiet or as_json) as ready:
        try:
            turned = ready.promote(generation, allowed)
        except LimitsExceededError as refused:
            if as_json:
                output.print_refused(ready, refused)
            raise
        output.print_promoted(ready, *turned, as_json=as_json, quiet=quiet)


def rollback(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Let the generation that answered before do so again; it has followed the documents all the while."""
    from nearsim_db.cli.output import reindex as output

    with _reindex(collection, name, quiet or as_json) as promoted:
        generation, before = promoted.rollback()
        output.print_promoted(promoted, generation, before, forward=True, as_json=as_json, quiet=quiet)


def drop(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    generation: Annotated[int | None, _numbered("Drop only this one.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Of all profiles of the collection.")] = False,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Drop what was retired or abandoned, or one generation; nobody else waits for it. On a terminal it asks first.

    What others still read after ten seconds is left to the workers, or to the next call.
    """
    from nearsim_db.cli.output import reindex as output

    if every and (name is not None or generation is not None):
        raise UsageError("--all goes without a profile and without --generation")
    with _reindex(collection, name, quiet=True) as kept:
        chosen = kept.to_drop(generation, every=every)
        if chosen and is_interactive(yes=yes):
            confirm(f"Drop {output.describe(kept, chosen)}? There is no way back.")
        output.print_dropped(kept.drop_these(chosen), as_json=as_json, quiet=quiet)


def status(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[PROFILE]", help="Only this profile (default: all).", show_default=False),
    ] = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    as_json: options.AsJson = False,
) -> None:
    """Show every generation of a profile, or of all, and how far each has come."""
    from nearsim_db.cli.output.reindex_status import print_status

    with _reindex(collection, name, quiet=True) as shown:
        print_status(shown, as_json=as_json)


@contextmanager
def _reindex(collection: str, profile: str | None, quiet: bool) -> "Iterator[Reindex]":
    from nearsim_db.admin.reindex import Reindex
    from nearsim_db.cli.output import reindex as output
    from nearsim_db.cli.output import terminal
    from nearsim_db.errors import BuildStoppedError, NearsimError
    from nearsim_db.indexing.collections import open_database

    warnings: list[str] = []
    begun: Reindex | None = None
    try:
        with progress_bars(quiet) as progress, open_database() as database:
            begun = Reindex(database, collection, profile, progress, warnings.append)
            yield begun
    except (KeyboardInterrupt, NearsimError) as end:
        if begun is not None and begun.left_behind is not None and not isinstance(end, BuildStoppedError):
            output.print_left(begun.left_behind)
        raise
    finally:
        terminal.print_warnings(warnings)


def _chosen(recipe: "options.RecipeFile", preset: str | None, settings: list[str] | None) -> "Recipe | None":
    """The recipe that is named, None for that of the live generation."""
    return None if recipe is None and preset is None else options.chosen_recipe(recipe, preset, settings)

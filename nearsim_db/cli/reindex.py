"""Commands that replace the index of a profile while it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.documents import confirm
from nearsim_db.cli.progress import progress_bars

if TYPE_CHECKING:
    from nearsim_db.recipe import Recipe
    from nearsim_db.reindex import Reindex

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
Generation = Annotated[
    int | None,
    typer.Option("--generation", "-g", metavar="N", help="That generation.", show_default=False),
]
Detach = Annotated[bool, typer.Option("--detach", help="Leave it to the workers.")]


@reindex.command(epilog="Example: nearsim reindex start default --set shingle.k=5 --set match.threshold=0.7")
def start(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    recipe: options.RecipeFile = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    detach: Detach = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Build a new generation beside the live one, which answers all the while, until it is ready to be promoted.

    Its recipe is that of the live one, or of --recipe or --preset, changed by --set. Ctrl-C leaves it behind;
    nearsim reindex resume goes on.
    """
    from nearsim_db.cli import reindexing

    chosen = _chosen(recipe, preset, settings)
    with _reindex(collection, name, quiet or as_json) as begun:
        generation = begun.start(chosen, settings if chosen is None else None, detached=detach)
        reindexing.print_state(begun, generation, as_json=as_json, quiet=quiet)


@reindex.command(epilog="Example: nearsim reindex resume default")
def resume(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    detach: Detach = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Go on with what was paused or left behind, from where it stopped, until it is ready to be promoted."""
    from nearsim_db.cli import reindexing

    with _reindex(collection, name, quiet or as_json) as paused:
        generation = paused.resume(detached=detach)
        reindexing.print_state(paused, generation, as_json=as_json, quiet=quiet)


@reindex.command(epilog="Example: nearsim reindex pause default")
def pause(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Stop a build, or the catching up, at its next step; what is written meanwhile is kept for it."""
    from nearsim_db.cli import reindexing

    with _reindex(collection, name, quiet or as_json) as running:
        generation = running.pause()
        reindexing.print_state(running, generation, as_json=as_json, quiet=quiet)


@reindex.command(epilog="Example: nearsim reindex abandon default --yes")
def abandon(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Give up what is being built, or is ready; its tables stay until: nearsim reindex drop. Asks on a terminal."""
    from nearsim_db.cli import reindexing

    confirm("Give up what is built beside the live index? It cannot be resumed.", yes=yes)
    with _reindex(collection, name, quiet or as_json) as running:
        generation = running.abandon()
        reindexing.print_state(running, generation, as_json=as_json, quiet=quiet)


@reindex.command(epilog="Example: nearsim reindex promote default")
def promote(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    generation: Generation = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Let the ready generation answer, in one short transaction; the one before is kept for a rollback."""
    from nearsim_db.cli import reindexing

    with _reindex(collection, name, quiet or as_json) as ready:
        reindexing.print_turn(ready, *ready.promote(generation), as_json=as_json, quiet=quiet)


@reindex.command(epilog="Example: nearsim reindex rollback default")
def rollback(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Let the generation that answered before do so again; it has followed the documents all the while."""
    from nearsim_db.cli import reindexing

    with _reindex(collection, name, quiet or as_json) as promoted:
        reindexing.print_turn(promoted, *promoted.rollback(), as_json=as_json, quiet=quiet)


@reindex.command(epilog="Example: nearsim reindex drop default --yes")
def drop(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    generation: Generation = None,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Drop what was retired or abandoned, or one generation; nobody else waits for it. On a terminal it asks first."""
    from nearsim_db.cli import reindexing

    what = "what was retired or abandoned" if generation is None else f"generation {generation}"
    confirm(f"Drop {what}? There is no way back to it.", yes=yes)
    with _reindex(collection, name, quiet or as_json) as kept:
        reindexing.print_dropped(kept.drop(generation), as_json=as_json, quiet=quiet)


@reindex.command(epilog="Example: nearsim reindex status")
def status(
    name: Name = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    as_json: options.AsJson = False,
) -> None:
    """Show every generation of a profile, or of all, and how far each has come."""
    from nearsim_db.cli import reindexing

    with _reindex(collection, name, quiet=True) as shown:
        reindexing.print_status(shown.status(), as_json=as_json)


@contextmanager
def _reindex(collection: str, profile: str | None, quiet: bool) -> "Iterator[Reindex]":
    from nearsim_db.cli import summaries
    from nearsim_db.database import Database
    from nearsim_db.reindex import Reindex

    warnings: list[str] = []
    with progress_bars(quiet) as progress, Database.connect() as database:
        yield Reindex(database, collection, profile, progress, warnings.append)
    summaries.print_warnings(warnings)


def _chosen(recipe: "options.RecipeFile", preset: str | None, settings: list[str] | None) -> "Recipe | None":
    """The recipe that is named, None for that of the live generation."""
    return None if recipe is None and preset is None else options.chosen_recipe(recipe, preset, settings)

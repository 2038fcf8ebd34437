"""The commands `nearsim reindex`: replace the index of a profile while it stays in use."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearsim_db.cli import options, recipes
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import reindex as shown
from nearsim_db.cli.output import terminal
from nearsim_db.messages import suggested_command
from nearsim_db.records import DEFAULT, STANDARD_OUTPUT

if TYPE_CHECKING:
    from nearsim_db.admin.reindex import Limits, Reindex

_EXCEEDED = 3

reindex: typer.Typer = typer.Typer(
    no_args_is_help=True,
    help="Replace the index of a profile while it stays in use.\n\n"
    "Build a new generation of the index, compare it with the live generation, promote it, and roll back if necessary.",
)


def _generation_option(help: str) -> Any:
    return typer.Option("--generation", "-g", metavar="N", help=help)


def _limit(change: str) -> Any:
    return typer.Option(
        metavar="LIMIT", help=f"Fail if more than LIMIT {change}.", rich_help_panel=options.LIMITS
    )


@dataclass(eq=False, repr=False)
class _LimitOptions:
    """By how much two generations may differ, for each kind of difference."""

    max_lost: Annotated[str | None, _limit("pairs are lost")] = None
    max_gained: Annotated[str | None, _limit("pairs are gained")] = None
    max_rescored: Annotated[str | None, _limit("pairs change their similarity")] = None
    max_merged: Annotated[str | None, _limit("clusters are merged")] = None
    max_split: Annotated[str | None, _limit("clusters are split")] = None

    def parsed(self) -> "Limits":
        """Return the limits. Raises RecipeError for a value that is neither a share nor a count."""
        from nearsim_db.admin.reindex import Limits

        return Limits.parse(**{name.removeprefix("max_"): value for name, value in vars(self).items()})


@dataclass(eq=False, repr=False)
class _GenerationOptions:
    """The profile whose index is replaced."""

    name: options.ProfileArgument = None
    profile: options.ProfileOrArgument = None
    collection: options.Collection = None

    @contextmanager
    def open(
        self, reporting: options.Reporting, *, every: bool = False, threads: int | None = None
    ) -> "Iterator[Reindex]":
        """Open the profile, or with `every` all profiles of the collection.

        If the block ends with an error or Ctrl-C and leaves a build unfinished, prints how to continue it.
        """
        from nearsim_db.admin.reindex import Reindex
        from nearsim_db.errors import BuildStoppedError, NearsimError

        warnings: list[str] = []
        reindex: Reindex | None = None
        try:
            database, collection = options.connect_to(self.collection, threads)
            with reporting.progress() as progress, database:
                reindex = Reindex(
                    database, collection, None if every else self.profile, progress, warnings.append
                )
                yield reindex
        except (KeyboardInterrupt, NearsimError) as error:
            # A build that was paused or abandoned was stopped on purpose.
            is_stopped = isinstance(error, BuildStoppedError)
            unfinished = None if reindex is None or is_stopped else reindex.left_behind
            if unfinished is not None:
                shown.print_left(unfinished)
            raise
        finally:
            terminal.print_warnings(warnings)


Detach = Annotated[bool, typer.Option("--detach", help="Leave the build to the workers.")]


@reindex.command(
    epilog="Example: nearsim reindex start --collection news --set shingle.k=5 --set match.threshold=0.7"
)
def start(
    *,
    target: _GenerationOptions,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    detach: Detach = False,
    promote: Annotated[
        bool, typer.Option("--promote", help="Promote the new generation when it is ready.")
    ] = False,
    jobs: options.Jobs = None,
    outcome: options.Outcome,
) -> None:
    """Build a new generation beside the live generation, which stays in use, until it is ready to be promoted.

    The recipe is the recipe of the live generation, or of --recipe or --preset, changed by --set and --threshold. After
    Ctrl-C, continue the build with nearsim reindex resume.
    """
    if promote and detach:
        raise UsageError(
            "--promote cannot be combined with --detach; to promote what workers built: "
            f"{suggested_command('reindex promote', target.collection or DEFAULT, target.profile or DEFAULT)}"
        )

    is_named = recipe_options.recipe is not None or recipe_options.preset is not None
    chosen = recipe_options.chosen(threshold) if is_named else None
    changes = None if is_named else recipe_options.changes(threshold)

    with target.open(outcome, threads=jobs) as reindex:
        generation = reindex.start(chosen, changes, detached=detach)
        if promote:
            shown.show_promoted(outcome, reindex, *reindex.promote(generation.generation_id))
        else:
            shown.show_state(outcome, reindex, generation)


@reindex.command(epilog="Example: nearsim reindex status --collection news")
def status(*, target: _GenerationOptions, result: options.Result) -> None:
    """Show the generations of a profile, or of all profiles, and the progress of each."""
    from nearsim_db.admin.reindex.status import read_status

    database, collection = options.connect_to(target.collection)
    with database, database.transaction() as connection:
        statuses = read_status(connection, collection, target.profile)
    result.show(list(map(shown.outline, statuses)), lambda: shown.print_status(statuses, collection))


@reindex.command(epilog="Example: nearsim reindex diff --collection news --max-lost 0.1% --output diff.html")
def diff(
    *,
    target: _GenerationOptions,
    generation: Annotated[
        int | None, _generation_option("Compare this generation instead of the pending one.")
    ] = None,
    samples: Annotated[
        int, typer.Option(metavar="N", min=0, max=1000, help="Maximum number of samples of each kind.")
    ] = 20,
    limit_options: _LimitOptions,
    output: Annotated[
        Path | None, options.output_option("Write an HTML page to this file, with texts side by side.")
    ] = None,
    outcome: options.Outcome,
) -> None:
    """Compare the pending generation, or another generation, with the live generation.

    Shows lost, gained and re-scored pairs, and changes of clusters; changes nothing. Pairs are counted as nearsim pairs
    lists them. The exit code is 3 if the differences exceed a --max option. A LIMIT is a share of the live pairs or
    clusters, such as 0.1% or 0.001, or a count, such as 25.
    """
    from nearsim_db.admin.reindex import Reindex
    from nearsim_db.cli.output import diff as diff_output
    from nearsim_db.readers.output import open_output

    allowed = limit_options.parsed()
    _refuse_output(output, is_machine=outcome.format.is_machine)

    database, collection = options.connect_to(target.collection)
    with outcome.progress() as progress, database:
        difference = Reindex(database, collection, target.profile, progress).diff(
            generation, samples=samples, limits=allowed
        )
    if output is not None:
        from nearsim_db.analysis.report import render_difference

        page = render_difference(difference)
        with open_output(output) as stream:
            stream.write(page)
    outcome.show(difference, lambda: diff_output.print_difference(difference, output))
    if difference.exceeded:
        raise typer.Exit(_EXCEEDED)


@reindex.command(epilog="Example: nearsim reindex promote --collection news --max-lost 0.1%")
def promote(
    *,
    target: _GenerationOptions,
    generation: Annotated[
        int | None, _generation_option("Promote this generation, which may be retired.")
    ] = None,
    limit_options: _LimitOptions,
    outcome: options.Outcome,
) -> None:
    """Make the ready generation live in one short transaction; the previous generation is kept for a rollback.

    With a --max option, the two are compared first. If they differ by more, the generation is not promoted, and the
    exit code is 3. A LIMIT is a share of the live pairs or clusters, such as 0.1% or 0.001, or a count, such as 25.
    """
    from nearsim_db.errors import LimitsExceededError

    allowed = limit_options.parsed()
    with target.open(outcome) as reindex:
        try:
            promoted = reindex.promote(generation, allowed)
        except LimitsExceededError as error:
            done = {"promoted": False, "collection": reindex.collection}
            outcome.show(done | terminal.values_of(error, "profile", "limits"), lambda: None)
            raise
        shown.show_promoted(outcome, reindex, *promoted)


@reindex.command(epilog="Example: nearsim reindex rollback --collection news")
def rollback(*, target: _GenerationOptions, outcome: options.Outcome) -> None:
    """Make the previous generation live again; it was kept up to date with the documents."""
    with target.open(outcome) as reindex:
        shown.show_promoted(outcome, reindex, *reindex.rollback(), is_rollback=True)


@reindex.command(epilog="Example: nearsim reindex drop --collection news --yes")
def drop(
    *,
    context: typer.Context,
    target: _GenerationOptions,
    generation: Annotated[int | None, _generation_option("Drop only this generation.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Drop generations of all profiles of the collection.")
    ] = False,
    yes: options.Yes = False,
    outcome: options.Outcome,
) -> None:
    """Drop retired and abandoned generations, or only one; asks for confirmation on a terminal.

    Blocks no other session: a generation that is still read after ten seconds is dropped later, by a worker or the next
    call.
    """
    if every and (target.name is not None or options.is_typed(context, "profile") or generation is not None):
        raise UsageError("--all cannot be combined with a profile or --generation")
    with target.open(options.Reporting(quiet=True), every=every) as reindex:
        chosen = reindex.find_droppable(generation, every=every)
        if chosen:
            confirm(lambda: f"Drop {shown.describe(reindex, chosen)}? This cannot be undone.", yes=yes)
        shown.show_dropped(outcome, reindex.drop(chosen))


@reindex.command(epilog="Example: nearsim reindex pause --collection news")
def pause(*, target: _GenerationOptions, outcome: options.Outcome) -> None:
    """Pause a build, or its catching up, at the next step; changes of documents are queued until it is resumed."""
    with target.open(outcome) as reindex:
        shown.show_state(outcome, reindex, reindex.pause())


@reindex.command(epilog="Example: nearsim reindex resume --collection news")
def resume(
    *, target: _GenerationOptions, detach: Detach = False, jobs: options.Jobs = None, outcome: options.Outcome
) -> None:
    """Continue a build that was paused or interrupted, until the generation is ready to be promoted."""
    with target.open(outcome, threads=jobs) as reindex:
        shown.show_state(outcome, reindex, reindex.resume(detached=detach))


@reindex.command(epilog="Example: nearsim reindex abandon strict --collection news --yes")
def abandon(*, target: _GenerationOptions, yes: options.Yes = False, outcome: options.Outcome) -> None:
    """Abandon a build or a ready generation; asks for confirmation on a terminal.

    The generation's tables exist until it is dropped.
    """
    with target.open(options.Reporting(quiet=True)) as reindex:
        confirm(
            lambda: f"Abandon {shown.describe(reindex, [reindex.pending()])}? It cannot be resumed.", yes=yes
        )
        shown.show_state(outcome, reindex, reindex.abandon())


def _refuse_output(output: Path | None, *, is_machine: bool) -> None:
    if output is None:
        return
    if is_machine and output == STANDARD_OUTPUT:
        raise UsageError("--json and --output - would both write to standard output; give --output a path")
    if output.suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(f"--output {output} is an HTML page; choose a name that ends in .html")

"""The commands `nearsim profile`: create, list, show and delete profiles, and list presets."""

from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options, recipes
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.options import Format
from nearsim_db.cli.output import layouts, summaries, terminal
from nearsim_db.errors import NotFoundError

if TYPE_CHECKING:
    from nearsim_db.store.generations.generation_rows import Generation

profile: typer.Typer = typer.Typer(
    no_args_is_help=True,
    help="Create, list, show and delete profiles, and list presets.\n\nA profile is a recipe with its own index.",
)

NewName = Annotated[str, options.argument("NAME", "Name of the profile.")]
Name = Annotated[
    str, options.argument("NAME", "Name of the profile.", autocompletion=options.complete_profile)
]


@profile.command(epilog="Example: nearsim profile create strict --set match.threshold=0.9")
def create(
    *,
    name: NewName,
    collection: options.NewCollection = options.DEFAULT,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    outcome: options.Outcome,
) -> None:
    """Create a profile, by default with the preset default, and index the documents of the collection."""
    from nearsim_db.search.statistics import describe

    chosen = recipe_options.chosen(threshold)
    with outcome.index(collection) as index:
        # List the collections first, because `create_profile` creates a missing collection.
        existing = {collection.name for collection in index.database.collections()}
        profile = index.create_profile(name, chosen)
        built = [stats for stats in summaries.live_profile_stats(index) if stats["profile"] == name]
        if collection not in existing and not outcome.quiet:
            terminal.print_info(f"created collection {collection}, which did not exist")

        def print_text() -> None:
            state = "live" if built else "empty; documents are indexed on ingest"
            summaries.print_profile(describe(profile), name, state)
            if built:
                terminal.print_line()
                summaries.print_profiles(built)

        figures = built[0] if built else describe(profile)
        outcome.show({"profile": name, "collection": collection, **figures}, print_text)


@profile.command("list", epilog="Example: nearsim profile list --collection news")
def list_profiles(*, collection: options.Collection = None, rows: options.Rows) -> None:
    """List the profiles of a collection."""
    from nearsim_db.search.answers import list_newest
    from nearsim_db.similarity.recipe import from_mapping, with_earlier_values

    def shown(generation: "Generation") -> layouts.Row:
        recipe = from_mapping(with_earlier_values(generation.recipe))
        banding = summaries.banding_cell(recipe, generation.bands, generation.rows)
        return generation.profile, generation.state, recipe.match.threshold, banding, generation.created_at

    database, used = options.connect_to(collection)
    with database:
        layout: layouts.Layout[Generation] = layouts.Layout(
            "profiles",
            ("profile", "state", "threshold", "bands", "rows", "created_at"),
            lambda generation: (
                generation.profile,
                generation.state,
                generation.recipe["match"]["threshold"],
                generation.bands,
                generation.rows,
                generation.created_at,
            ),
            shown=("profile", "state", "threshold", summaries.BANDING, "created_at"),
            shown_row=shown,
            if_empty=f"collection {used} has no profiles; ingest creates one, or run: nearsim profile create NAME",
        )
        rows.write(layout, (generation for generation in list_newest(database, used)))


@profile.command("presets", epilog="Example: nearsim profile presets headlines > recipe.toml")
def list_presets(
    *,
    name: Annotated[
        str | None,
        options.argument("NAME", "Preset to print as TOML.", autocompletion=recipes.complete_preset),
    ] = None,
    rows: options.Rows,
) -> None:
    """List the recipes that ship with nearsim, or print one as TOML."""
    if name is not None and (rows.format, rows.output, rows.limit) != (None, None, None):
        raise UsageError(f"preset {name} is printed as TOML; omit --format, --json, --output and --limit")
    from nearsim_db.similarity import presets

    if name is not None:
        typer.echo(presets.read(name), nl=False)
        return
    layout: layouts.Layout[str] = layouts.Layout(
        "presets", ("preset", "purpose"), lambda name: (name, presets.purpose(name)), wrap=("purpose",)
    )
    rows.write(layout, (name for name in presets.names()))


@profile.command(epilog="Example: nearsim profile show default --toml > recipe.toml")
def show(
    name: Name,
    collection: options.Collection = None,
    format: options.ResultFormat = Format.TABLE,
    as_toml: Annotated[
        bool,
        typer.Option(
            "--toml",
            callback=options.is_toml,
            help="Print the recipe as TOML, for --recipe.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
) -> None:
    """Show the recipe of a profile, the bands that were chosen for it, and its expected recall and size."""
    if format.is_machine and as_toml:
        raise UsageError(f"give either --format {format} or --toml, not both")
    from nearsim_db.search.answers import list_newest, profile_of
    from nearsim_db.search.statistics import describe
    from nearsim_db.similarity import recipe_warnings
    from nearsim_db.similarity.recipe import to_toml

    with options.Scope(collection).answers() as answers:
        newest = {
            generation.profile: generation for generation in list_newest(answers.database, answers.collection)
        }
    if name not in newest:
        raise NotFoundError(f"collection {answers.collection!r} has no profile {name!r}")

    generation, profile = newest[name], profile_of(newest[name])

    def print_text() -> None:
        summaries.print_profile(describe(profile), name, generation.state)
        terminal.print_toml("\n" + to_toml(profile.recipe))
        terminal.print_warnings(recipe_warnings.of_profile(profile))

    if as_toml:
        terminal.print_toml(to_toml(profile.recipe))
    else:
        shown = {"profile": name, "state": generation.state, **describe(profile)}
        options.Result(format).show(shown, print_text)


@profile.command(epilog="Example: nearsim profile delete strict --yes")
def delete(
    *,
    name: Name,
    collection: options.Collection = None,
    yes: options.Yes = False,
    outcome: options.ShortOutcome,
) -> None:
    """Delete a profile and its index, but no documents; asks for confirmation on a terminal."""
    from nearsim_db.index import Index

    database, used = options.connect_to(collection)
    with Index(database, used) as index:
        if name not in {row.profile for row in index.profiles()}:
            raise NotFoundError(f"collection {used!r} has no profile {name!r}")
        confirm(f"Delete profile {name!r} of collection {used!r} and its index?", yes=yes)
        index.delete_profile(name)
    outcome.show({"deleted": name, "collection": used}, f"deleted profile {name}")

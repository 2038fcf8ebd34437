"""Commands for profiles: create, list, presets, show, delete."""

from typing import Annotated

import typer

from nearsim_db.cli import completion, formats, options, recipes
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import NotFoundError

profiles = typer.Typer(
    no_args_is_help=True, help="Create, show and delete profiles: recipes, each with its own index."
)

NewName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.", show_default=False)]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=completion.profiles,
        help="Name of the profile.",
        show_default=False,
    ),
]


@profiles.command(epilog="Example: nearsim profile create strict --set match.threshold=0.9")
def create(
    *,
    name: NewName,
    collection: options.Collection = options.DEFAULT,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Create a profile from a recipe, by default the preset default, and index the documents of the collection."""
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.index import Index
    from nearsim_db.search.statistics import describe

    chosen = recipe_options.chosen(threshold)
    with (
        progress_bars(quiet or format.is_machine) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        known = {one.name for one in index.database.collections()}
        profile = index.create_profile(name, chosen)
        built = [one for one in profiles_output.live_profile_stats(index) if one["profile"] == name]
    if collection not in known and not quiet:
        terminal.print_info(f"created collection {collection}, which did not exist")
    if format.is_machine:
        print_document(
            format, {"profile": name, "collection": collection, **(built[0] if built else describe(profile))}
        )
    elif not quiet:
        state = "live" if built else "empty; documents are indexed on ingest"
        profiles_output.print_profile(describe(profile), name, state)
        if built:
            terminal.print_line()
            profiles_output.print_profiles(built)
    terminal.print_warnings(index.warnings)


@profiles.command("list", epilog="Example: nearsim profile list --collection news")
def list_profiles(
    collection: options.Collection = options.DEFAULT,
    format: formats.AnswerFormat = None,
    output: formats.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """List the profiles of a collection."""
    from nearsim_db.cli.output import layouts, streams
    from nearsim_db.search.answers import list_newest
    from nearsim_db.store.database import Database

    chosen = formats.chosen_format(format, output)
    none = f"collection {collection} has no profiles; ingest creates one, or run: nearsim profile create NAME"
    columns = ("profile", "state", "threshold", "bands", "rows", "created_at")
    with Database.connect() as database:
        found = (
            {
                "profile": one.profile,
                "state": one.state,
                "threshold": one.recipe["match"]["threshold"],
                "bands": one.bands,
                "rows": one.rows,
                "created_at": one.created_at,
            }
            for one in list_newest(database, collection)
        )
        layout = layouts.of_facts("profiles", columns, if_empty=none)
        streams.write(layout, found, chosen, output, limit, quiet=quiet)


@profiles.command("presets", epilog="Example: nearsim profile presets headlines > recipe.toml")
def list_presets(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=completion.presets,
            help="Preset to print as TOML.",
            show_default=False,
        ),
    ] = None,
    format: formats.AnswerFormat = None,
    output: formats.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """List the recipes that ship with nearsim, or print one as TOML."""
    if name is not None and (format is not None or output is not None or limit is not None):
        raise UsageError(f"preset {name} is printed as TOML; omit --format, --json, --output and --limit")
    from nearsim_db.cli.output import layouts, streams
    from nearsim_db.similarity import presets

    if name is not None:
        typer.echo(presets.read(name), nl=False)
        return
    found = ({"preset": one, "purpose": presets.purpose(one)} for one in presets.names())
    layout = layouts.of_facts("presets", ("preset", "purpose"), wrap=("purpose",))
    streams.write(layout, found, formats.chosen_format(format, output), output, limit, quiet=quiet)


@profiles.command(epilog="Example: nearsim profile show default --toml > recipe.toml")
def show(
    name: Name,
    collection: options.Collection = options.DEFAULT,
    format: formats.ResultFormat = Format.TABLE,
    as_toml: Annotated[
        bool,
        typer.Option("--toml", callback=formats.is_toml, help="Print the recipe as TOML, for --recipe."),
    ] = False,
) -> None:
    """Show the recipe of a profile, the bands chosen for it, and its expected recall and size."""
    if format.is_machine and as_toml:
        raise UsageError(f"give either --format {format} or --toml, not both")
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.search.answers import Answers
    from nearsim_db.search.statistics import describe
    from nearsim_db.similarity import recipe_warnings
    from nearsim_db.similarity.recipe import to_toml

    with Answers.connect(collection=collection) as answers:
        found = [one for one in answers.profiles() if one[0].profile == name]
    if not found:
        raise NotFoundError(f"collection {collection!r} has no profile {name!r}")
    ((generation, profile),) = found
    if format.is_machine:
        print_document(format, {"profile": name, "state": generation.state, **describe(profile)})
    elif as_toml:
        terminal.print_toml(to_toml(profile.recipe))
    else:
        profiles_output.print_profile(describe(profile), name, generation.state)
        terminal.print_toml("\n" + to_toml(profile.recipe))
        terminal.print_warnings(recipe_warnings.of_profile(profile))


@profiles.command(epilog="Example: nearsim profile delete strict --yes")
def delete(
    name: Name,
    collection: options.Collection = options.DEFAULT,
    yes: options.Yes = False,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Delete a profile and its index, but no documents; asks for confirmation on a terminal."""
    from nearsim_db.cli.output.documents import print_outcome
    from nearsim_db.index import Index

    confirm(f"Delete profile {name!r} of collection {collection!r} and its index?", yes=yes)
    with Index.connect(collection=collection) as index:
        index.delete_profile(name)
    done = {"deleted": name, "collection": collection}
    print_outcome(format, done, f"deleted profile {name}", quiet=quiet)

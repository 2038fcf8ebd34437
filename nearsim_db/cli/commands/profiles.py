"""Commands for profiles: create, list, presets, show, delete."""

from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import NotFoundError

profiles = typer.Typer(
    no_args_is_help=True, help="Create, show and delete profiles: recipes, each with its own index."
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.", show_default=False)]


@profiles.command(epilog="Example: nearsim profile create strict --set match.threshold=0.9")
def create(
    name: Name,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    recipe: options.RecipeFile = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Create a profile from a recipe, by default the preset default, and index the documents of the collection."""
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index
    from nearsim_db.search.statistics import describe

    chosen = options.chosen_recipe(recipe, preset, settings)
    with (
        progress_bars(quiet or as_json) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        known = {one.name for one in index.database.collections()}
        profile = index.create_profile(name, chosen)
        built = [one for one in profiles_output.live_profile_stats(index) if one["profile"] == name]
    if collection not in known and not quiet:
        terminal.print_info(f"created collection {collection}, which did not exist")
    if as_json:
        terminal.print_json(
            {"profile": name, "collection": collection, **(built[0] if built else describe(profile))}
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
    collection: options.Collection = options.DEFAULT_COLLECTION, as_json: options.AsJson = False
) -> None:
    """List the profiles of a collection."""
    from nearsim_db.cli.output import tables, terminal
    from nearsim_db.search.answers import open_answers

    with open_answers(collection) as answers:
        found = [
            {
                "profile": one.profile,
                "state": one.state,
                "threshold": one.recipe["match"]["threshold"],
                "bands": one.bands,
                "rows": one.rows,
                "created_at": one.created_at,
            }
            for one in answers.generations()
        ]
    if as_json:
        terminal.print_json(found)
    elif found:
        tables.print_table(list(found[0]), [list(one.values()) for one in found])
    else:
        terminal.print_line(
            f"collection {collection} has no profiles; ingest creates one, or run: nearsim profile create NAME"
        )


@profiles.command("presets", epilog="Example: nearsim profile presets headlines > recipe.toml")
def list_presets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Preset to print as TOML.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List the recipes that ship with nearsim, or print one as TOML."""
    if as_json and name is not None:
        raise UsageError("a preset is printed as TOML; omit --json")
    from nearsim_db.cli.output import tables, terminal
    from nearsim_db.similarity import presets

    if name is not None:
        typer.echo(presets.read(name), nl=False)
        return
    found = {one: presets.purpose(one) for one in presets.names()}
    if as_json:
        terminal.print_json([{"preset": one, "purpose": purpose} for one, purpose in found.items()])
    else:
        tables.print_table(["preset", "for"], [list(one) for one in found.items()])


@profiles.command(epilog="Example: nearsim profile show default --toml > recipe.toml")
def show(
    name: Name,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    as_json: options.AsJson = False,
    as_toml: Annotated[bool, typer.Option("--toml", help="Print the recipe as TOML, for --recipe.")] = False,
) -> None:
    """Show the recipe of a profile, the bands chosen for it, and its expected recall and size."""
    if as_json and as_toml:
        raise UsageError("give either --json or --toml, not both")
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index
    from nearsim_db.search.statistics import describe
    from nearsim_db.similarity import recipe_warnings
    from nearsim_db.similarity.recipe import to_toml

    with Index.connect(collection=collection) as index:
        found = [one for one in index.profiles() if one[0].profile == name]
    if not found:
        raise NotFoundError(f"collection {collection!r} has no profile {name!r}")
    ((generation, profile),) = found
    if as_json:
        terminal.print_json({"profile": name, "state": generation.state, **describe(profile)})
    elif as_toml:
        terminal.print_toml(to_toml(profile.recipe))
    else:
        profiles_output.print_profile(describe(profile), name, generation.state)
        terminal.print_toml("\n" + to_toml(profile.recipe))
        terminal.print_warnings(recipe_warnings.of_profile(profile))


@profiles.command(epilog="Example: nearsim profile delete strict --yes")
def delete(
    name: Name,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Delete a profile and its index, but no documents; asks for confirmation on a terminal."""
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index

    confirm(f"Delete profile {name!r} of collection {collection!r} and its index?", yes=yes)
    with Index.connect(collection=collection) as index:
        index.delete_profile(name)
    if not quiet:
        terminal.print_info(f"deleted profile {name}")

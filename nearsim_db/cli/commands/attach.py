"""Commands on tables of applications that collections follow: attach, sweep, detach."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output.progress import progress_bars

if TYPE_CHECKING:
    from nearsim_db.admin.attach import Following
    from nearsim_db.indexing.attached_table import SweepResult
    from nearsim_db.store.attached.attachments import Attachment

Table = Annotated[
    str | None,
    typer.Argument(metavar="TABLE", help="The table, as TABLE or SCHEMA.TABLE.", show_default=False),
]
IdColumn = Annotated[
    str | None, typer.Option("--id", metavar="COL", help="Its key: a number, a uuid or text.")
]
TextColumn = Annotated[str | None, typer.Option("--text", metavar="COL", help="Its texts.")]
TitleColumn = Annotated[str | None, typer.Option("--title", metavar="COL", help="Its titles.")]
SourceColumn = Annotated[str | None, typer.Option("--source", metavar="COL", help="Where texts come from.")]
UrlColumn = Annotated[str | None, typer.Option("--url", metavar="COL", help="Their addresses.")]
PublishedColumn = Annotated[
    str | None, typer.Option("--published-at", metavar="COL", help="When they were published.")
]
Collection = Annotated[
    str | None,
    typer.Option(
        "--collection", "-c", metavar="NAME", help="The collection to make. (default: the table's name)"
    ),
]
Profile = Annotated[str, typer.Option("--profile", "-p", metavar="NAME", help="The profile to make.")]
Attached = Annotated[str, typer.Argument(metavar="COLLECTION", help="The collection.", show_default=False)]


def attach(
    table: Table = None,
    id: IdColumn = None,
    text: TextColumn = None,
    title: TitleColumn = None,
    source: SourceColumn = None,
    url: UrlColumn = None,
    published_at: PublishedColumn = None,
    collection: Collection = None,
    profile: Profile = "default",
    recipe: options.RecipeFile = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    list_all: Annotated[bool, typer.Option("--list", help="Show which tables are followed.")] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Follow a table of an application: its texts stay there, and are compared as they are written.

    Triggers on the table note the ids of rows that are inserted, changed and deleted, and do nothing else. What is
    there already is taken in at once. Run again after an interruption, it goes on.
    """
    if list_all:
        _list(as_json)
        return
    if table is None or id is None or text is None:
        raise UsageError("give the table, --id and --text; or --list")
    from nearsim_db.admin import attach as service
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index
    from nearsim_db.indexing.collections import open_database
    from nearsim_db.store.attached.tables import Columns

    is_given = any(given is not None for given in (recipe, preset, settings))
    chosen = options.chosen_recipe(recipe, preset, settings) if is_given else None
    if chosen is not None:
        service.refuse_vectors(chosen)
    columns = Columns(id, text, title, source, url, published_at)
    with open_database() as database, progress_bars(quiet or as_json) as progress:
        following = service.follow_table(database, table, columns, collection)
        with Index(database, following.collection, progress=progress) as index:
            swept = service.take_in(index, profile, chosen)
            profiles = profiles_output.live_profile_stats(index)
    if as_json:
        outlines = [profiles_output.outline(one) for one in profiles]
        terminal.print_json({**_started(following), **_found(swept), "profiles": outlines})
    elif not quiet:
        terminal.print_line(
            f"collection {following.collection} follows {following.table}: {_in_words(swept)}"
        )
        profiles_output.print_profiles(profiles)
    terminal.print_warnings([*following.warnings, *_left_out(swept), *index.warnings])


def sweep(collection: Attached, as_json: options.AsJson = False, quiet: options.Quiet = False) -> None:
    """Compare a followed table with the index and take in what its triggers missed; a worker does so every hour."""
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index

    with (
        progress_bars(quiet or as_json) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        swept = index.sweep()
    if as_json:
        terminal.print_json({"collection": collection, **_found(swept)})
    elif not quiet:
        terminal.print_line(f"swept collection {collection}: {_in_words(swept)}")
    terminal.print_warnings([*_left_out(swept), *index.warnings])


def detach(
    collection: Attached,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Copy the texts and keep the collection with its index."),
    ] = False,
    as_json: options.AsJson = False,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Follow a table no more: nothing stays on it, and the collection goes with its index.

    On a terminal it asks first.
    """
    from nearsim_db.admin import attach as service
    from nearsim_db.cli.output import terminal
    from nearsim_db.index import Index
    from nearsim_db.indexing.collections import open_database

    if not keep:
        confirm(f"Delete collection {collection!r} with its index? The table stays as it is.", yes=yes)
    with open_database() as database, progress_bars(quiet or as_json) as progress:
        documents = service.detach(database, collection, keep=keep, progress=progress)
        if keep:
            with Index(database, collection, progress=progress) as index:
                index.build()
    if as_json:
        terminal.print_json({"collection": collection, "kept": keep, "documents": documents})
    elif not quiet:
        became = "is an ordinary collection now" if keep else "is deleted"
        terminal.print_info(f"detached: collection {collection} of {documents:,} documents {became}")


def _list(as_json: bool) -> None:
    from nearsim_db.admin import attach as service
    from nearsim_db.cli.output import tables, terminal
    from nearsim_db.indexing.collections import open_database

    with open_database() as database:
        found = [_shown(one) for one in service.list_attachments(database)]
    if as_json:
        terminal.print_json(found)
    elif found:
        tables.print_table(list(found[0]), [list(one.values()) for one in found], wrap=["columns", "trouble"])
    else:
        terminal.print_line("no collection follows a table; see: nearsim attach --help")


def _shown(one: "Attachment") -> dict[str, Any]:
    return {
        "collection": one.collection,
        "table": one.table,
        "columns": one.columns.named(),
        "attached_at": one.attached_at,
        "swept_at": one.swept_at,
        "unusable": one.unusable,
        "trouble": "is being detached" if one.detaching else one.problem,
    }


def _started(following: "Following") -> dict[str, Any]:
    return {
        "collection": following.collection,
        "table": following.table,
        "columns": following.columns.named(),
    }


def _found(swept: "SweepResult") -> dict[str, int]:
    return {"new": swept.new, "changed": swept.changed, "gone": swept.gone, "unusable": swept.unusable}


def _in_words(swept: "SweepResult") -> str:
    return f"{swept.new:,} rows were new, {swept.changed:,} had changed, {swept.gone:,} were gone"


def _left_out(swept: "SweepResult") -> list[str]:
    if not swept.unusable:
        return []
    return [f"{swept.unusable:,} rows are left out: their id is NULL, empty or longer than 1,024 bytes"]

"""Commands on tables of applications that collections are attached to: attach, sweep, detach."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearsim_db.cli import completion, formats, options, recipes
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.progress import progress_bars
from nearsim_db.errors import count_of

if TYPE_CHECKING:
    from nearsim_db.admin.attach import Attached
    from nearsim_db.indexing.attached_sweep import SweepResult
    from nearsim_db.store.attached.attachments import Attachment

Table = Annotated[
    str | None,
    typer.Argument(metavar="TABLE", help="The table, as TABLE or SCHEMA.TABLE.", show_default=False),
]
IdColumn = Annotated[
    str | None, typer.Option("--id", metavar="COL", help="Column of the key: a number, uuid or text.")
]
TextColumn = Annotated[str | None, typer.Option("--text", metavar="COL", help="Column of the text.")]
TitleColumn = Annotated[str | None, typer.Option("--title", metavar="COL", help="Column of the title.")]
SourceColumn = Annotated[str | None, typer.Option("--source", metavar="COL", help="Column of the source.")]
UrlColumn = Annotated[str | None, typer.Option("--url", metavar="COL", help="Column of the URL.")]
PublishedColumn = Annotated[
    str | None, typer.Option("--published-at", metavar="COL", help="Column of the publication time.")
]
Collection = Annotated[
    str | None,
    typer.Option(
        "--collection", "-c", metavar="NAME", help="The collection to create. (default: the table's name)"
    ),
]
DetachedCollection = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-c",
        metavar="NAME",
        autocompletion=completion.collections,
        callback=options.argument_or_option,
        help="The same as the argument.",
        show_default=False,
    ),
]


def attach(
    *,
    table: Table = None,
    id: IdColumn = None,
    text: TextColumn = None,
    title: TitleColumn = None,
    source: SourceColumn = None,
    url: UrlColumn = None,
    published_at: PublishedColumn = None,
    collection: Collection = None,
    profile: options.NewProfile = options.DEFAULT,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    list_all: Annotated[bool, typer.Option("--list", help="List attached tables.")] = False,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Index a table of an application: its texts stay there, and changes are indexed as they are written.

    Triggers on the table only capture the ids of inserted, changed and deleted rows. Existing rows are ingested
    at once; after an interruption, run the command again.
    """
    if list_all:
        _list(format)
        return
    if table is None or id is None or text is None:
        raise UsageError("name the table, --id and --text; or give --list")
    from nearsim_db.admin import attach as service
    from nearsim_db.admin.attach import undo_if_failed
    from nearsim_db.cli.output import profiles as profiles_output
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.index import Index
    from nearsim_db.store.attached.tables import Columns
    from nearsim_db.store.database import Database

    chosen = recipe_options.chosen_if_any(threshold)
    if chosen is not None:
        service.refuse_vectors(chosen)
    columns = Columns(id, text, title, source, url, published_at)
    with Database.connect() as database, progress_bars(quiet or format.is_machine) as progress:
        attached = service.attach_table(database, table, columns, collection)
        with (
            recipe_options.advising_reindex(attached.collection, profile, threshold),
            undo_if_failed(database, attached),
            Index(database, attached.collection, progress=progress) as index,
        ):
            swept = service.ingest_table(index, profile, chosen)
            profiles = profiles_output.live_profile_stats(index)
    if format.is_machine:
        outlines = [profiles_output.outline(one) for one in profiles]
        print_document(format, {**_describe(attached), **_counts(swept), "profiles": outlines})
    elif not quiet:
        terminal.print_line(
            f"collection {attached.collection} is attached to {attached.table}: {_summary(swept)}"
        )
        profiles_output.print_profiles(profiles)
    terminal.print_warnings([*attached.warnings, *_warnings(swept), *index.warnings])


def sweep(
    name: options.CollectionArgument = None,
    collection: options.CollectionOrArgument = None,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Compare an attached table with its documents and ingest changes that triggers missed; workers do so hourly."""
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.index import Index

    collection = _required(collection)
    with (
        progress_bars(quiet or format.is_machine) as progress,
        Index.connect(collection=collection, progress=progress) as index,
    ):
        swept = index.sweep()
    if format.is_machine:
        print_document(format, {"collection": collection, **_counts(swept)})
    elif not quiet:
        terminal.print_line(f"swept collection {collection}: {_summary(swept)}")
    terminal.print_warnings([*_warnings(swept), *index.warnings])


def detach(
    name: options.CollectionArgument = None,
    collection: DetachedCollection = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep the collection and its index, with copies of the texts."),
    ] = False,
    format: formats.ResultFormat = Format.TABLE,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Detach a collection from its table: its triggers are dropped, and the collection is deleted with its index.

    Asks first on a terminal.
    """
    from nearsim_db.admin import attach as service
    from nearsim_db.cli.output import terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.index import Index
    from nearsim_db.store.database import Database

    collection = _required(collection)
    if not keep:
        confirm(f"Delete collection {collection!r} with its index? The table itself is not changed.", yes=yes)
    with Database.connect() as database, progress_bars(quiet or format.is_machine) as progress:
        documents = service.detach(database, collection, keep=keep, progress=progress)
        if keep:
            with Index(database, collection, progress=progress) as index:
                index.build()
    if format.is_machine:
        print_document(format, {"collection": collection, "kept": keep, "documents": documents})
    elif not quiet:
        became = "was kept" if keep else "was deleted"
        terminal.print_info(
            f"detached: collection {collection} with {count_of(documents, 'document')} {became}"
        )


def _required(collection: str | None) -> str:
    if collection is None:
        raise UsageError("name the attached collection, as an argument or with --collection")
    return collection


def _list(format: Format) -> None:
    from nearsim_db.admin import attach as service
    from nearsim_db.cli.output import tables, terminal
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.store.database import Database

    with Database.connect() as database:
        rows = [_row(one) for one in service.list_attachments(database)]
    if format.is_machine:
        print_document(format, rows)
    elif rows:
        tables.print_table(list(rows[0]), [list(one.values()) for one in rows], wrap=["columns", "trouble"])
    else:
        terminal.print_line("no collection is attached to a table; see: nearsim attach --help")


def _row(one: "Attachment") -> dict[str, Any]:
    return {
        "collection": one.collection,
        "table": one.table,
        "columns": one.columns.named(),
        "attached_at": one.attached_at,
        "swept_at": one.swept_at,
        "unusable": one.unusable,
        "trouble": "is being detached" if one.detaching else one.problem,
    }


def _describe(attached: "Attached") -> dict[str, Any]:
    return {
        "collection": attached.collection,
        "table": attached.table,
        "columns": attached.columns.named(),
    }


def _counts(swept: "SweepResult") -> dict[str, int]:
    return {"new": swept.new, "changed": swept.changed, "gone": swept.gone, "unusable": swept.unusable}


def _summary(swept: "SweepResult") -> str:
    return f"{count_of(swept.new, 'new row')}, {swept.changed:,} changed, {swept.gone:,} deleted"


def _warnings(swept: "SweepResult") -> list[str]:
    warnings = [] if swept.trouble is None else [swept.trouble]
    if swept.unusable:
        rows = count_of(swept.unusable, "row")
        warnings.append(f"skipped: {rows} whose id is NULL, empty or longer than 1,024 bytes")
    return warnings

"""The commands `nearsim table`: attach tables of applications to collections, sweep, detach and list them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearsim_db.cli import options, recipes
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.options import Format
from nearsim_db.cli.output import summaries, tables, terminal
from nearsim_db.messages import count_of

if TYPE_CHECKING:
    from nearsim_db.indexing.attached_sweep import SweepResult
    from nearsim_db.store.attached.attachments import Attachment

table: typer.Typer = typer.Typer(
    no_args_is_help=True,
    help="Index tables of applications, whose texts stay in the tables.",
)

Table = Annotated[str | None, options.argument("TABLE", "The table, as TABLE or SCHEMA.TABLE.")]
_CREATED = "The collection to create. (default: the table's name)"
Collection = Annotated[str | None, options.collection_option(_CREATED, autocompletion=None, envvar=None)]
_SAME = "The same as the argument."
DetachedCollection = Annotated[
    str | None, options.collection_option(_SAME, callback=options.argument_or_option, envvar=None)
]


def _column(content: str, **settings: Any) -> Any:
    return typer.Option(metavar="COL", help=f"Column with the {content}.", **settings)


def _expression(content: str, **settings: Any) -> Any:
    return typer.Option(
        metavar="COL|SQL", help=f"Column with the {content}, or an SQL expression.", **settings
    )


_COUNTS = ("new", "changed", "gone", "unusable", "collections")


@table.command(
    "attach",
    epilog="Example: nearsim table attach news.story --id story_id --text body --title headline",
)
def attach_table(
    *,
    table: Table = None,
    id: Annotated[str | None, _column("key: a number, uuid or text")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL|SQL",
            help="Column with the text, or an SQL expression; repeat the option to join several by line ends.",
        ),
    ] = None,
    title: Annotated[str | None, _expression("title")] = None,
    source: Annotated[str | None, _expression("source", rich_help_panel=options.INPUT)] = None,
    url: Annotated[str | None, _expression("URL", rich_help_panel=options.INPUT)] = None,
    published_at: Annotated[str | None, _column("publication time", rich_help_panel=options.INPUT)] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="Only index rows that meet this condition, such as 'deleted_at IS NULL'.",
            rich_help_panel=options.INPUT,
        ),
    ] = None,
    collection_field: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Create a collection for each value of this column, named NAME:VALUE, as the values appear.",
            rich_help_panel=options.INPUT,
        ),
    ] = None,
    mark_column: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of the table into which workers write, for each duplicate, the id of the row to keep.",
            rich_help_panel=options.MARKS,
        ),
    ] = None,
    collection: Collection = None,
    profile: options.NewProfile = options.DEFAULT,
    recipe_options: recipes.RecipeOptions,
    threshold: recipes.Threshold = None,
    list_all: Annotated[
        bool, typer.Option("--list", hidden=True, help="The same as nearsim table list.")
    ] = False,
    outcome: options.Outcome,
) -> None:
    """Index a table of an application, and all later changes of it.

    The texts stay in the table. Triggers on the table only capture the ids of inserted, changed and deleted rows.
    Existing rows are ingested at once; after an interruption, run the command again.
    """
    if list_all:
        list_tables(options.Result(outcome.format))
        return
    if table is None or id is None or not text:
        raise UsageError("name the table, --id and --text; see also: nearsim table list")

    from nearsim_db.admin import attach as service
    from nearsim_db.admin.attach import undo_if_failed
    from nearsim_db.index import Index
    from nearsim_db.store.attached.tables import Columns, join_texts

    chosen = recipe_options.chosen_if_any(threshold)
    if chosen is not None:
        service.refuse_vectors(chosen)
    columns = Columns(
        *(id, join_texts(text), title, source, url, published_at, where),
        collection_field=collection_field,
        mark_column=mark_column,
    )
    with options.connect() as database, outcome.progress() as progress:
        attached = service.attach_table(database, table, columns, collection)
        with (
            recipe_options.advising_reindex(attached.collection, profile, threshold),
            undo_if_failed(database, attached),
            Index(database, attached.collection, progress=progress) as index,
        ):
            swept = service.ingest_table(index, profile, chosen)
            if mark_column is not None:
                service.write_marks(database, attached.collection)
            profiles = summaries.live_profile_stats(index)

    def print_text() -> None:
        terminal.print_line(
            f"collection {attached.collection} is attached to {attached.table}: {_summary(swept)}"
        )
        summaries.print_profiles(profiles)

    done = {"collection": attached.collection, "table": attached.table, "columns": attached.columns.given()}
    outcome.show(
        {**done, **terminal.values_of(swept, *_COUNTS), "profiles": summaries.outlines(profiles)}, print_text
    )
    terminal.print_warnings([*attached.warnings, *_warnings(swept), *index.warnings])


@table.command(epilog="Example: nearsim table sweep story")
def sweep(
    *,
    name: options.CollectionArgument = None,
    collection: options.CollectionOrArgument = None,
    outcome: options.Outcome,
) -> None:
    """Index changes of an attached table that its triggers missed.

    Compares the whole table with the documents of the collection, as workers do every hour.
    """
    chosen = _required(collection)
    with outcome.index(chosen) as index:
        swept = index.sweep()
        text = f"swept collection {chosen}: {_summary(swept)}"
        outcome.show(
            {"collection": chosen, **terminal.values_of(swept, *_COUNTS)}, lambda: terminal.print_line(text)
        )
        terminal.print_warnings(_warnings(swept))


@table.command(epilog="Example: nearsim table detach story --keep")
def detach(
    name: options.CollectionArgument = None,
    collection: DetachedCollection = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the collection and its index, with copies of the texts.")
    ] = False,
    format: options.MessageFormat = Format.TABLE,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> None:
    """Detach a collection from its table, and delete it unless --keep is given.

    The triggers on the table are dropped. Asks for confirmation on a terminal.
    """
    from nearsim_db.admin import attach as service
    from nearsim_db.index import Index
    from nearsim_db.store.access.collection_rows import get_collection
    from nearsim_db.store.attached.attachments import get_attachment

    outcome, collection = options.Outcome(format, quiet), _required(collection)
    with options.connect() as database:
        if not keep:
            # Check that the collection exists and is attached before asking for confirmation.
            with database.transaction() as connection:
                collection_id = get_collection(connection, collection).collection_id
                get_attachment(connection, collection_id, collection)
            confirm(
                f"Delete collection {collection!r} with its index? The table itself is not changed.", yes=yes
            )

    with options.connect() as database, outcome.progress() as progress:
        detached = service.detach(database, collection, keep=keep, progress=progress)
        for name in detached.collections if keep else ():
            with Index(database, name, progress=progress) as index:
                index.build()

    value_collections = len(detached.collections) - 1
    done = {
        "collection": collection,
        "kept": keep,
        **terminal.values_of(detached, "documents", "collections"),
    }
    became = "kept" if keep else "deleted"
    beside = f" and {count_of(value_collections, 'collection')} of its values" if value_collections else ""
    outcome.show(
        done,
        f"detached: collection {collection}{beside}, {count_of(detached.documents, 'document')} {became}",
    )


@table.command("list", epilog="Example: nearsim table list --json")
def list_tables(result: options.Result) -> None:
    """List the attached tables, with the problems of each."""
    from nearsim_db.admin import attach as service

    with options.connect() as database:
        rows = list(map(_row, service.list_attachments(database)))

    def print_text() -> None:
        if rows:
            _print_attachments(rows)
        else:
            terminal.print_line("no collection is attached to a table; see: nearsim table attach --help")

    result.show(rows, print_text)


def _required(collection: str | None) -> str:
    if collection is None:
        raise UsageError("name the attached collection, as an argument or with --collection")
    return collection


def _print_attachments(rows: Sequence[dict[str, Any]]) -> None:
    """Print attached tables. On a narrow terminal, empty columns are left out first, then the times."""
    empty = [name for name in ("unusable", "trouble") if not any(row[name] for row in rows)]
    values = [
        [
            ", ".join(f"{field}={column}" for field, column in row["columns"].items())
            if name == "columns"
            else value
            for name, value in row.items()
        ]
        for row in rows
    ]

    left_out = tables.print_fitting(
        list(rows[0]), values, optional=[*empty, "attached_at", "swept_at"], wrap=["columns", "trouble"]
    )

    if without := [name for name in left_out if name not in empty]:
        terminal.print_line(f"left out for the width: {', '.join(without)}; --format csv has all columns")


def _row(attachment: "Attachment") -> dict[str, Any]:
    return {
        **terminal.values_of(attachment, "collection", "table"),
        "columns": attachment.columns.given(),
        **terminal.values_of(attachment, "attached_at", "swept_at", "unusable"),
        "trouble": "is being detached"
        if attachment.detaching
        else attachment.problem or attachment.mark_trouble,
    }


def _summary(swept: "SweepResult") -> str:
    among = f" in {swept.collections:,} collections" if swept.collections > 1 else ""
    return f"{count_of(swept.new, 'new row')}, {swept.changed:,} changed, {swept.gone:,} deleted{among}"


def _warnings(swept: "SweepResult") -> list[str]:
    warnings = [] if swept.trouble is None else [swept.trouble]
    if swept.unusable:
        rows = count_of(swept.unusable, "row")
        warnings.append(f"skipped: {rows} whose id is NULL, empty or longer than 1,024 bytes")
    return warnings

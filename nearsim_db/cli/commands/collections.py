"""The commands `nearsim collection`: create, list, show, rename and delete collections."""

from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.output import layouts, tables
from nearsim_db.messages import count_of

if TYPE_CHECKING:
    from nearsim_db.store.access.collection_rows import Collection

collection: typer.Typer = typer.Typer(
    no_args_is_help=True,
    help="Create, list, show, rename and delete collections.\n\nThe documents of a collection are compared.",
)

_NONE = "no collections yet; ingest creates one, or run: nearsim collection create NAME"

NewName = Annotated[str, options.argument("NAME", "Name of the collection.")]
Name = Annotated[
    str, options.argument("NAME", "Name of the collection.", autocompletion=options.complete_collection)
]


@collection.command(epilog="Example: nearsim collection create news")
def create(name: NewName, outcome: options.ShortOutcome) -> None:
    """Create an empty collection; ingest also creates a missing collection."""
    with options.connect() as database:
        database.create_collection(name)
    outcome.show({"created": name}, f"created collection {name}")


@collection.command("list", epilog="Example: nearsim collection list --json")
def list_collections(rows: options.Rows) -> None:
    """List the collections."""
    from nearsim_db.store.attached.attachments import list_attachments

    with options.connect() as database:
        with database.transaction() as connection:
            attached = list_attachments(connection, of_values=True)
        follows = {collection.collection: collection.table or "a dropped table" for collection in attached}
        layout: layouts.Layout[Collection] = layouts.Layout(
            "collections",
            ("collection", "documents", "follows", "created_at"),
            lambda collection: (
                collection.name,
                database.count_documents(collection),
                follows.get(collection.name),
                collection.created_at,
            ),
            if_empty=_NONE,
        )
        rows.write(layout, (collection for collection in database.collections()))


@collection.command(epilog="Example: nearsim collection show news")
def show(name: Name, result: options.Result) -> None:
    """Show a collection: its documents, the table it follows, its profiles, and what is queued."""
    from nearsim_db.search.answers import describe_collection

    with options.connect() as database:
        description = describe_collection(database, name)
    profiles = [
        f"{profile['profile']} ({profile['state']}, threshold {profile['threshold']:g})"
        for profile in description["profiles"]
    ]
    shown = description | {"profiles": "\n".join(profiles) or "none yet; ingest creates one"}
    result.show(description, lambda: tables.print_named(shown))


@collection.command(epilog="Example: nearsim collection rename news wire")
def rename(
    name: Name,
    new_name: Annotated[str, options.argument("NEW", "Its new name.")],
    outcome: options.ShortOutcome,
) -> None:
    """Rename a collection; its documents, indexes and queued work are kept."""
    with options.connect() as database:
        database.rename_collection(name, new_name)
    outcome.show({"renamed": name, "collection": new_name}, f"renamed collection {name} to {new_name}")


@collection.command(epilog="Example: nearsim collection delete news --yes")
def delete(
    *,
    name: Name,
    with_values: Annotated[
        bool,
        typer.Option(
            "--with-values",
            help="Also delete the collections that an attached table has for the values of its collection field.",
        ),
    ] = False,
    yes: options.Yes = False,
    outcome: options.ShortOutcome,
) -> None:
    """Delete a collection with its documents, profiles and indexes; asks for confirmation on a terminal."""
    from nearsim_db.indexing.drop_generation import delete_collection, describe_deletion, refuse_values

    with options.connect() as database:
        deleted = describe_deletion(database, name)
        if not with_values:
            refuse_values(name, deleted)
        of_values = (
            f" and {count_of(len(deleted.of_values), 'collection')} of its values"
            if deleted.of_values
            else ""
        )
        confirm(
            f"Delete collection {name!r}{of_values} with {count_of(deleted.total, 'document')} and all indexes?",
            yes=yes,
        )
        documents = delete_collection(database, name)
    done = f"deleted collection {name} with {count_of(documents, 'document')}"
    outcome.show({"deleted": name, "documents": documents}, done)

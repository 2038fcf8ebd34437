"""Commands for collections: create, list, show, rename, delete."""

from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import completion, formats, options
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.cli.formats import Format
from nearsim_db.errors import count_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from nearsim_db.store.database import Database

collections = typer.Typer(
    no_args_is_help=True,
    help="Create, list, show, rename and delete collections: sets of documents to compare.",
)

_NONE = "no collections yet; ingest creates one, or run: nearsim collection create NAME"

NewName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the collection.", show_default=False)]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=completion.collections,
        help="Name of the collection.",
        show_default=False,
    ),
]


@collections.command(epilog="Example: nearsim collection create news")
def create(name: NewName, format: formats.ResultFormat = Format.TABLE, quiet: options.Quiet = False) -> None:
    """Create an empty collection; ingest also creates a missing one."""
    from nearsim_db.cli.output.documents import print_outcome
    from nearsim_db.store.database import Database

    with Database.connect() as database:
        database.create_collection(name)
    print_outcome(format, {"created": name}, f"created collection {name}", quiet=quiet)


@collections.command("list", epilog="Example: nearsim collection list --json")
def list_collections(
    format: formats.AnswerFormat = None,
    output: formats.Output = None,
    limit: options.Limit = None,
    quiet: options.Quiet = False,
) -> None:
    """List the collections."""
    from nearsim_db.cli.output import layouts, streams
    from nearsim_db.store.database import Database

    chosen = formats.chosen_format(format, output)
    layout = layouts.of_facts(
        "collections", ("collection", "documents", "follows", "created_at"), if_empty=_NONE
    )
    with Database.connect() as database:
        streams.write(layout, _described(database), chosen, output, limit, quiet=quiet)


def _described(database: "Database") -> "Generator[dict[str, object], None, None]":
    from nearsim_db.store.attached.attachments import list_attachments

    with database.transaction() as connection:
        attached = list_attachments(connection)
    follows = {one.collection: one.table or "a dropped table" for one in attached}
    for one in database.collections():
        yield {
            "collection": one.name,
            "documents": database.count_documents(one),
            "follows": follows.get(one.name),
            "created_at": one.created_at,
        }


@collections.command(epilog="Example: nearsim collection show news")
def show(name: Name, format: formats.ResultFormat = Format.TABLE) -> None:
    """Show a collection: its documents, the table it follows, its profiles, and what is queued."""
    from nearsim_db.cli.output import tables
    from nearsim_db.cli.output.documents import print_document
    from nearsim_db.search.answers import describe_collection
    from nearsim_db.store.database import Database

    with Database.connect() as database:
        found = describe_collection(database, name)
    if format.is_machine:
        print_document(format, found)
        return
    profiles = [
        f"{one['profile']} ({one['state']}, threshold {one['threshold']:g})" for one in found["profiles"]
    ]
    tables.print_facts(
        {key.replace("_", " "): value for key, value in found.items()}
        | {"profiles": "\n".join(profiles) or "none yet; ingest creates one"}
    )


@collections.command(epilog="Example: nearsim collection rename news wire")
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.", show_default=False)],
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Rename a collection; its documents, indexes and queued work are kept."""
    from nearsim_db.cli.output.documents import print_outcome
    from nearsim_db.store.database import Database

    with Database.connect() as database:
        database.rename_collection(name, new_name)
    done = {"renamed": name, "collection": new_name}
    print_outcome(format, done, f"renamed collection {name} to {new_name}", quiet=quiet)


@collections.command(epilog="Example: nearsim collection delete news --yes")
def delete(
    name: Name,
    yes: options.Yes = False,
    format: formats.ResultFormat = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Delete a collection with its documents, profiles and indexes; asks for confirmation on a terminal."""
    from nearsim_db.cli.output.documents import print_outcome
    from nearsim_db.indexing.drop_generation import delete_collection
    from nearsim_db.store.database import Database

    confirm(f"Delete collection {name!r} with all its documents and indexes?", yes=yes)
    with Database.connect() as database:
        documents = delete_collection(database, name)
    done = f"deleted collection {name} with {count_of(documents, 'document')}"
    print_outcome(format, {"deleted": name, "documents": documents}, done, quiet=quiet)

"""Commands for collections: create, list, delete."""

from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.documents import confirm
from nearsim_db.errors import count_of

collections = typer.Typer(
    no_args_is_help=True,
    help="Create, list and delete collections: sets of documents to compare.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the collection.", show_default=False)]


@collections.command(epilog="Example: nearsim collection create news")
def create(name: Name, quiet: options.Quiet = False) -> None:
    """Create an empty collection; ingest also creates a missing one."""
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database

    with open_database() as database:
        database.create_collection(name)
    if not quiet:
        terminal.print_info(f"created collection {name}")


@collections.command("list", epilog="Example: nearsim collection list --json")
def list_collections(as_json: options.AsJson = False) -> None:
    """List the collections."""
    from nearsim_db.cli.output import tables, terminal
    from nearsim_db.indexing.collections import open_database
    from nearsim_db.store.attached.attachments import list_attachments

    with open_database() as database:
        with database.transaction() as connection:
            attached = list_attachments(connection)
        follows = {one.collection: one.table or "a dropped table" for one in attached}
        found = [
            {
                "collection": one.name,
                "documents": database.count_documents(one),
                "follows": follows.get(one.name),
                "created_at": one.created_at,
            }
            for one in database.collections()
        ]
    if as_json:
        terminal.print_json(found)
    elif found:
        tables.print_table(list(found[0]), [list(one.values()) for one in found])
    else:
        terminal.print_line("no collections yet; ingest creates one, or run: nearsim collection create NAME")


@collections.command(epilog="Example: nearsim collection delete news --yes")
def delete(name: Name, yes: options.Yes = False, quiet: options.Quiet = False) -> None:
    """Delete a collection with its documents, profiles and indexes; asks for confirmation on a terminal."""
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import delete_collection, open_database

    confirm(f"Delete collection {name!r} with all its documents and indexes?", yes=yes)
    with open_database() as database:
        documents = delete_collection(database, name)
    if not quiet:
        terminal.print_info(f"deleted collection {name} with {count_of(documents, 'document')}")

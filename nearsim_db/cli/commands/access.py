"""Commands on who may do what: db grant, db revoke, db isolation."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import count_of

if TYPE_CHECKING:
    from nearsim_db.admin.access import Isolation
    from nearsim_db.store.access import Role

_ROLES: "dict[str, Role]" = {"reader": "reader", "writer": "writer", "admin": "admin"}
_PREFIX = "nearsim_"

User = Annotated[
    str, typer.Argument(metavar="USER", help="A user or group of the server.", show_default=False)
]
RoleName = Annotated[
    str,
    typer.Argument(
        metavar="ROLE", help="reader, writer or admin; also with nearsim_ before it.", show_default=False
    ),
]
Collections = Annotated[
    list[str] | None,
    typer.Option(
        "--collection", "-c", metavar="NAME", help="A collection, for where they are kept apart (repeat)."
    ),
]


class Wish(StrEnum):
    """What to do about keeping collections apart."""

    ON = "on"
    OFF = "off"
    STATUS = "status"


def grant(
    user: User,
    role: RoleName,
    collection: Collections = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Let a user of the server read, write documents, or do everything.

    A reader asks; a writer writes documents and verdicts too; an admin builds indexes, runs workers, purges and grants.
    The roles nearsim_reader, nearsim_writer and nearsim_admin are made on the server if they are not there yet; they
    hold for all its databases. With --collection the user sees these collections where they are kept apart.
    """
    from nearsim_db.admin import access
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database

    chosen = _role(role)
    if collection and chosen == "admin":
        raise UsageError("an admin sees all collections; grant reader or writer with --collection")
    with open_database() as database:
        is_new = access.grant(database, user, chosen, collection or ())
    if as_json:
        terminal.print_json(
            {"user": user, "role": f"{_PREFIX}{chosen}", "new": is_new, "collections": collection or []}
        )
    elif not quiet:
        sees = f", of {', '.join(collection)}" if collection else ""
        terminal.print_info(f"{user} is {'now' if is_new else 'already'} a {_PREFIX}{chosen}{sees}")


def revoke(
    user: User,
    role: RoleName,
    collection: Collections = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Take a role away from a user of the server, or with --collection only what it sees and writes there.

    With its last role a user also loses all collections it was granted in this database.
    """
    from nearsim_db.admin import access
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database

    chosen = _role(role)
    with open_database() as database:
        was_granted = access.revoke(database, user, chosen, collection or ())
    if as_json:
        terminal.print_json(
            {
                "user": user,
                "role": f"{_PREFIX}{chosen}",
                "revoked": was_granted,
                "collections": collection or [],
            }
        )
    elif not quiet:
        what = f"collection {', '.join(collection)}" if collection else f"{_PREFIX}{chosen}"
        terminal.print_info(
            f"revoked {what} from {user}" if was_granted else f"{user} was not granted {what}"
        )


def isolation(
    wish: Annotated[Wish, typer.Argument(metavar="on|off|status", help="What to do.", show_default=False)],
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Keep collections apart: readers and writers then see only those that they were granted.

    Grant them before: nearsim db grant USER reader --collection NAME. Admins see everything all the same.
    """
    from dataclasses import asdict

    from nearsim_db.admin import access
    from nearsim_db.cli.output import terminal
    from nearsim_db.indexing.collections import open_database

    with open_database() as database:
        if wish is not Wish.STATUS:
            access.set_isolation(database, wanted=wish is Wish.ON)
        found = access.read_isolation(database)
    if as_json:
        terminal.print_json(asdict(found))
    elif not quiet:
        _print_isolation(found)


def _role(given: str) -> "Role":
    try:
        return _ROLES[given.removeprefix(_PREFIX)]
    except KeyError:
        raise UsageError(f"there is no role {given!r}; there are: {', '.join(_ROLES)}") from None


def _print_isolation(found: "Isolation") -> None:
    from nearsim_db.cli.output import tables, terminal

    if found.access:
        rows = [[one.collection, one.role, one.may_write] for one in found.access]
        tables.print_table(["collection", "role", "may_write"], rows)
        terminal.print_line()
    if not found.isolated:
        terminal.print_line("collections are not kept apart: every reader sees all of them")
        return
    terminal.print_line("collections are kept apart: readers and writers see those that they were granted")
    if found.openings:
        readable = ", ".join(sorted({f"{one.table} ({one.role})" for one in found.openings}))
        terminal.print_warning(
            f"{count_of(len(found.openings), 'right')} granted by hand on what is to be hidden: {readable}"
        )
    if found.ungranted:
        terminal.print_warning(
            f"these were granted no collection and see nothing: {', '.join(found.ungranted)}; "
            "nearsim db grant USER ROLE --collection NAME"
        )

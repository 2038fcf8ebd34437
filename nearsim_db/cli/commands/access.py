"""The commands `nearsim access`: which users may read and write, and in which collections."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import tables, terminal

if TYPE_CHECKING:
    from nearsim_db.admin.access import Isolation
    from nearsim_db.store.access.access import Role

access: typer.Typer = typer.Typer(
    no_args_is_help=True, help="Grant, revoke and list access of users; isolate collections."
)


_ROLES: "dict[str, Role]" = {"reader": "reader", "writer": "writer", "admin": "admin"}
_PREFIX = "nearsim_"


@dataclass(eq=False, repr=False)
class _Membership:
    """A user, a role, and collections."""

    user: Annotated[str, options.argument("USER", "User or group of the server.")]
    role: Annotated[
        str, options.argument("ROLE", "reader, writer or admin, with or without the prefix nearsim_.")
    ]
    collection: Annotated[
        list[str] | None,
        options.collection_option(
            "Collection to which the user gets access when collections are isolated (repeatable).",
            autocompletion=None,
            envvar=None,
        ),
    ] = None

    def parsed(self) -> "tuple[str, Role, list[str]]":
        """Return the user, the role without its prefix, and the collections. Raises UsageError for an unknown role."""
        try:
            return self.user, _ROLES[self.role.removeprefix(_PREFIX)], self.collection or []
        except KeyError:
            raise UsageError(
                f"role {self.role!r} does not exist; available roles: {', '.join(_ROLES)}"
            ) from None


@access.command(
    epilog="Example: nearsim access grant anna reader, or: nearsim access grant tenant_a writer --collection news"
)
def grant(member: _Membership, outcome: options.ShortOutcome) -> None:
    """Grant a user of the server the role reader, writer or admin.

    Readers query. Writers also write documents and verdicts. Admins also build indexes, run workers, purge documents
    and grant roles. The roles nearsim_reader, nearsim_writer and nearsim_admin are created on the server if they are
    missing; they apply to all of its databases. With --collection, the user also sees these collections when
    collections are isolated. Granting the role reader on a collection ends an earlier right to write to it.
    """
    from nearsim_db.admin import access as service

    user, chosen, collections = member.parsed()
    if collections and chosen == "admin":
        raise UsageError("an admin sees all collections; use --collection with reader or writer")

    with options.connect() as database:
        is_new = service.grant(database, user, chosen, collections)
        further_rights = service.rights_beyond(database, user, chosen, collections)

    name = f"{_PREFIX}{chosen}"
    sees = f", of {', '.join(collections)}" if collections else ""
    done = {"user": user, "role": name, "new": is_new, "collections": collections}
    outcome.show(done, f"{user} is {'now' if is_new else 'already'} a {name}{sees}")
    _warn_of_further_rights(user, chosen, further_rights)


@access.command(epilog="Example: nearsim access revoke anna reader")
def revoke(member: _Membership, outcome: options.ShortOutcome) -> None:
    """Revoke a role from a user of the server, or with --collection only access to these collections.

    When a user loses its last role, it also loses its access to all collections of this database.
    """
    from nearsim_db.admin import access as service

    user, chosen, collections = member.parsed()

    with options.connect() as database:
        was_granted = service.revoke(database, user, chosen, collections)
        further_rights = (
            [] if chosen == "reader" or collections else service.rights_beyond(database, user, "reader")
        )

    name = f"{_PREFIX}{chosen}"
    revoked = f"collection {', '.join(collections)}" if collections else name
    done = {"user": user, "role": name, "revoked": was_granted, "collections": collections}
    outcome.show(
        done, f"revoked {revoked} from {user}" if was_granted else f"{user} was not granted {revoked}"
    )
    _warn_of_further_rights(user, "reader", further_rights)


def _warn_of_further_rights(user: str, role: "Role", further_rights: list[str]) -> None:
    """Warn if a user may do more than a role that was granted, or that remains, allows."""
    if further_rights:
        terminal.print_warning(
            f"{user} {'; '.join(further_rights)}, and so may do more than a {_PREFIX}{role}; to end that, revoke the "
            "membership (of a role of nearsim: nearsim access revoke USER ROLE)"
        )


@access.command("list", epilog="Example: nearsim access list --json")
def list_access(outcome: options.ShortOutcome) -> None:
    """List users with their roles and collections, and whether collections are isolated.

    Superusers and the owner of the schema are not listed; they need no role.
    """
    from nearsim_db.admin import access as service

    with options.connect() as database:
        members, state = service.list_members(database), service.read_isolation(database)

    def print_text() -> None:
        if members:
            tables.print_table(["user", "role"], [[member.user, member.role] for member in members])
            terminal.print_line()
        else:
            terminal.print_line("no user has a role yet; run: nearsim access grant USER ROLE")
        _print_isolation(state)

    outcome.show({"members": members, **asdict(state)}, print_text)


@access.command(epilog="Example: nearsim access isolation on")
def isolation(
    *,
    action: Annotated[
        Literal["on", "off", "status"],
        options.argument("on|off|status", "Turn isolation on or off, or show it."),
    ],
    outcome: options.ShortOutcome,
) -> None:
    """Isolate collections: readers and writers then see only the collections granted to them.

    Grant collections first: nearsim access grant USER reader --collection NAME. Admins always see all collections.
    """
    from nearsim_db.admin import access as service

    with options.connect() as database:
        if action != "status":
            service.set_isolation(database, wanted=action == "on")
        state = service.read_isolation(database)
    outcome.show(state, lambda: _print_isolation(state))


def _print_isolation(state: "Isolation") -> None:
    if state.access:
        rows = [[grant.collection, grant.role, grant.may_write] for grant in state.access]
        tables.print_table(["collection", "role", "may_write"], rows)
        terminal.print_line()
    if not state.isolated:
        terminal.print_line("collections are not isolated: every reader sees all of them")
        return
    terminal.print_line("collections are isolated: readers and writers see only those granted to them")
    if state.ungranted:
        terminal.print_warning(
            f"without a granted collection, these see nothing: {', '.join(state.ungranted)}; "
            "nearsim access grant USER ROLE --collection NAME"
        )

"""Commands for the database: its schema, the embedded server, and who may use it."""

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import tables, terminal
from nearsim_db.records import CitusUse

if TYPE_CHECKING:
    from nearsim_db.admin.access import Isolation
    from nearsim_db.store.access.access import Role
    from nearsim_db.store.settings import Settings

db: typer.Typer = typer.Typer(
    no_args_is_help=True,
    help="Manage the database: NEARSIM_DATABASE_URL, otherwise an embedded PostgreSQL started on demand.",
)


Patience = Annotated[
    float,
    typer.Option(min=0, metavar="SECONDS", help="Longest time that a step waits for other transactions."),
]


@db.command(epilog="Example: NEARSIM_DATABASE_URL=postgresql://me@host/mine nearsim db init")
def init(
    *,
    patience: Patience = 300.0,
    citus: Annotated[
        CitusUse,
        typer.Option(
            help="Keep band rows on the nodes of a Citus cluster; auto does so on a coordinator with nodes."
        ),
    ] = "auto",
    outcome: options.Outcome,
) -> None:
    """Create the schema nearsim in the database, or upgrade it while it is in use.

    Views, functions, triggers and privileges that are missing or changed are restored; other objects are named.
    """
    _upgrade(patience, citus, outcome)


@db.command(epilog="Example: nearsim db upgrade --patience 60")
def upgrade(*, patience: Patience = 300.0, outcome: options.Outcome) -> None:
    """Upgrade the schema nearsim while it is in use; fails if the database has none."""
    from nearsim_db.errors import SchemaError
    from nearsim_db.store.database import Database
    from nearsim_db.store.settings import database_url

    if Database.inspect(database_url()).revision is None:
        raise SchemaError("the database has no schema nearsim to upgrade; create it with: nearsim db init")
    _upgrade(patience, "auto", outcome)


def _upgrade(patience: float, citus: CitusUse, outcome: options.Outcome) -> None:
    from nearsim_db.admin import access
    from nearsim_db.store.database import Database
    from nearsim_db.store.schema import objects

    revision = Database.initialise(
        patience_seconds=patience,
        report=(lambda message: None) if outcome.is_silent else terminal.print_info,
        citus=citus,
    )
    with options.connect() as database:
        is_distributed = database.is_distributed
        missing = access.missing_roles(database)
        with database.transaction() as connection:
            restored, differing = objects.restore(connection)
    found = {"schema_revision": revision, "distributed": is_distributed, "missing_roles": missing}
    found |= {
        "restored": [f"{each.kind} {each.name}" for each in restored],
        "differing": list(map(str, differing)),
    }
    outcome.show(found, f"the schema nearsim is at revision {revision}")
    if outcome.is_silent:
        return
    if is_distributed:
        terminal.print_info("band rows are on the nodes of the Citus cluster")
    for each in restored:
        terminal.print_info(f"restored {each.kind} {each.name}")
    if any(each.kind == "trigger" for each in restored):
        terminal.print_warning(
            "changes made without these triggers are not indexed; for each collection run: "
            "nearsim verify-index --all --repair"
        )
    for each in differing:
        terminal.print_warning(f"{each} and cannot be replaced in use; it should be: {each.definition}")
    if missing:
        terminal.print_warning(
            f"this user may not create the roles {', '.join(missing)}; to grant "
            "access, run as a user who may: nearsim db grant USER ROLE"
        )


@db.command(epilog="Example: nearsim db start")
def start(outcome: options.Outcome) -> None:
    """Start the embedded server and keep it running until nearsim db stop."""
    settings = _embedded_settings()
    from nearsim_db.store import embedded

    embedded.start(settings.home)
    outcome.show({"running": True}, "the embedded server is running; stop it with: nearsim db stop")


@db.command(epilog="Example: nearsim db status --json")
def status(result: options.Result) -> None:
    """Show which database is used and whether it responds, without starting a server."""
    from nearsim_db.store.settings import from_environment

    settings = from_environment()
    found = _own_server(settings.database_url) if settings.database_url else _embedded_server(settings)
    plain = found | ({"pid": str(found["pid"])} if found.get("pid") else {})
    plain |= {"nodes": "\n".join(map(_describe_node, found["nodes"]))} if "nodes" in found else {}
    result.show(found, lambda: tables.print_named(plain))


@db.command(epilog="Example: nearsim db stop")
def stop(outcome: options.Outcome) -> None:
    """Stop the embedded server; its data is kept."""
    settings = _embedded_settings()
    from nearsim_db.store import embedded

    stopped = embedded.stop(settings.home)
    done = "stopped the embedded server" if stopped else "the embedded server was not running"
    outcome.show({"running": False, "stopped": stopped}, done)


@db.command(epilog='Example: psql "$(nearsim db url)"')
def url() -> None:
    """Print the URL of the database for psql; starts the embedded server if it is used."""
    from nearsim_db.store.settings import database_url

    # psql knows no Python driver in the scheme.
    typer.echo(re.sub(r"^(postgres(?:ql)?)\+\w+:", r"\1:", database_url()))


def _embedded_settings() -> "Settings":
    from nearsim_db.store.settings import from_environment

    settings = from_environment()
    if settings.database_url is not None:
        raise UsageError(
            "NEARSIM_DATABASE_URL is set, and nearsim does not start or stop that server; "
            "unset it to use the embedded server"
        )
    return settings


def _describe_node(node: dict[str, Any]) -> str:
    name = f"{node['host']}:{node['port']}"
    if node["obstacle"]:
        return f"{name} does not answer: {node['obstacle']}"
    return f"{name}: {node['shards']} shards, {node['bytes']:,} bytes, about {node['rows']:,} band rows"


def _own_server(url: str) -> dict[str, Any]:
    from nearsim_db.store.database import Database

    state = Database.inspect(url)
    found = {"server": "own", "running": True, "version": state.version, "schema_revision": state.revision}
    return found | {"nodes": [asdict(one) for one in state.nodes]} if state.nodes else found


def _embedded_server(settings: "Settings") -> dict[str, Any]:
    from nearsim_db.store import embedded
    from nearsim_db.store.database import Database

    found = embedded.status(settings.home)
    revision = Database.inspect(found.dsn).revision if found.running else None
    return {
        "server": "embedded",
        **terminal.values_of(found, "running", "version"),
        "schema_revision": revision,
        **terminal.values_of(found, "kept", "pid"),
        "data_directory": str(found.data_directory),
        "log": str(found.log),
        "url": found.dsn,
    }


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
            "Also grant access to this collection, if collections are isolated (repeat).",
            autocompletion=None,
            envvar=None,
        ),
    ] = None

    def given(self) -> "tuple[str, Role, list[str]]":
        """Return the user, the role without its prefix, and the collections. Raises UsageError for another role."""
        try:
            return self.user, _ROLES[self.role.removeprefix(_PREFIX)], self.collection or []
        except KeyError:
            raise UsageError(
                f"role {self.role!r} does not exist; available roles: {', '.join(_ROLES)}"
            ) from None


@db.command(
    epilog="Example: nearsim db grant anna reader, or: nearsim db grant tenant_a writer --collection news"
)
def grant(member: _Membership, outcome: options.Outcome) -> None:
    """Grant a user of the server the role reader, writer or admin.

    Readers query; writers also write documents and verdicts; admins also build indexes, run workers, purge and grant.
    The roles nearsim_reader, nearsim_writer and nearsim_admin are created on the server if missing; they apply to all
    its databases. With --collection, the user also sees these collections when collections are isolated, and a reader
    of a collection that it could write before no longer can.
    """
    from nearsim_db.admin import access

    user, chosen, collections = member.given()
    if collections and chosen == "admin":
        raise UsageError("an admin sees all collections; use --collection with reader or writer")
    with options.connect() as database:
        is_new = access.grant(database, user, chosen, collections)
        more = access.rights_beyond(database, user, chosen, collections)
    name = f"{_PREFIX}{chosen}"
    sees = f", of {', '.join(collections)}" if collections else ""
    done = {"user": user, "role": name, "new": is_new, "collections": collections}
    outcome.show(done, f"{user} is {'now' if is_new else 'already'} a {name}{sees}")
    _warn_of_more(user, chosen, more)


@db.command(epilog="Example: nearsim db revoke anna reader")
def revoke(member: _Membership, outcome: options.Outcome) -> None:
    """Revoke a role from a user of the server, or with --collection only access to these collections.

    With its last role, a user also loses all collections granted to it in this database.
    """
    from nearsim_db.admin import access

    user, chosen, collections = member.given()
    with options.connect() as database:
        was_granted = access.revoke(database, user, chosen, collections)
        more = [] if chosen == "reader" or collections else access.rights_beyond(database, user, "reader")
    name = f"{_PREFIX}{chosen}"
    what = f"collection {', '.join(collections)}" if collections else name
    done = {"user": user, "role": name, "revoked": was_granted, "collections": collections}
    outcome.show(done, f"revoked {what} from {user}" if was_granted else f"{user} was not granted {what}")
    _warn_of_more(user, "reader", more)


def _warn_of_more(user: str, role: "Role", more: list[str]) -> None:
    """Warn of what a user may do beyond a role that was granted, or that is left."""
    if more:
        terminal.print_warning(
            f"{user} {'; '.join(more)}, and so may do more than a {_PREFIX}{role}; to end that, revoke the membership "
            "(of a role of nearsim: nearsim db revoke USER ROLE)"
        )


@db.command(epilog="Example: nearsim db isolation status")
def isolation(
    *,
    action: Annotated[
        Literal["on", "off", "status"],
        options.argument("on|off|status", "Turn isolation on or off, or show it."),
    ],
    outcome: options.Outcome,
) -> None:
    """Isolate collections: readers and writers then see only those granted to them.

    Grant collections first: nearsim db grant USER reader --collection NAME. Admins always see all collections.
    """
    from nearsim_db.admin import access

    with options.connect() as database:
        if action != "status":
            access.set_isolation(database, wanted=action == "on")
        state = access.read_isolation(database)
    outcome.show(state, lambda: _print_isolation(state))


def _print_isolation(state: "Isolation") -> None:
    if state.access:
        rows = [[one.collection, one.role, one.may_write] for one in state.access]
        tables.print_table(["collection", "role", "may_write"], rows)
        terminal.print_line()
    if not state.isolated:
        terminal.print_line("collections are not isolated: every reader sees all of them")
        return
    terminal.print_line("collections are isolated: readers and writers see only those granted to them")
    if state.ungranted:
        terminal.print_warning(
            f"without a granted collection, these see nothing: {', '.join(state.ungranted)}; "
            "nearsim db grant USER ROLE --collection NAME"
        )

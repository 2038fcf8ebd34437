"""The commands `nearsim server`: show which server is used, and start and stop the embedded server."""

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.output import tables, terminal

if TYPE_CHECKING:
    from nearsim_db.store.settings import Settings

server: typer.Typer = typer.Typer(
    no_args_is_help=True,
    help="Show the database server; start and stop the embedded one.\n\n"
    "NEARSIM_DATABASE_URL names the server. Without it, an embedded PostgreSQL is started on demand.",
)


@server.command(epilog="Example: nearsim server start")
def start(outcome: options.ShortOutcome) -> None:
    """Start the embedded server and keep it running."""
    settings = _embedded_settings()
    from nearsim_db.store import embedded

    embedded.start(settings.home)
    outcome.show({"running": True}, "the embedded server is running; stop it with: nearsim server stop")


@server.command(epilog="Example: nearsim server status --json")
def status(result: options.Result) -> None:
    """Show which database is used and whether it responds, without starting a server."""
    from nearsim_db.store.settings import from_environment

    settings = from_environment()
    server = _own_server(settings.database_url) if settings.database_url else _embedded_server(settings)
    # As a string, the process id is printed without separators.
    plain = server | ({"pid": str(server["pid"])} if server.get("pid") else {})
    plain |= {"nodes": "\n".join(map(_describe_node, server["nodes"]))} if "nodes" in server else {}
    result.show(server, lambda: tables.print_named(plain))


@server.command(epilog="Example: nearsim server stop")
def stop(outcome: options.ShortOutcome) -> None:
    """Stop the embedded server; its data is kept."""
    settings = _embedded_settings()
    from nearsim_db.store import embedded

    stopped = embedded.stop(settings.home)
    done = "stopped the embedded server" if stopped else "the embedded server was not running"
    outcome.show({"running": False, "stopped": stopped}, done)


@server.command(epilog='Example: psql "$(nearsim server url)"')
def url() -> None:
    """Print the URL of the database for psql; starts the embedded server if that is used."""
    from nearsim_db.store.settings import database_url

    # psql does not accept a Python driver in the scheme.
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
    server = {"server": "own", "running": True, "version": state.version, "schema_revision": state.revision}
    return server | {"nodes": [asdict(node) for node in state.nodes]} if state.nodes else server


def _embedded_server(settings: "Settings") -> dict[str, Any]:
    from nearsim_db.store import embedded
    from nearsim_db.store.database import Database

    server = embedded.status(settings.home)
    revision = Database.inspect(server.dsn).revision if server.running else None
    return {
        "server": "embedded",
        **terminal.values_of(server, "running", "version"),
        "schema_revision": revision,
        **terminal.values_of(server, "kept", "pid"),
        "data_directory": str(server.data_directory),
        "log": str(server.log),
        "url": server.dsn,
    }

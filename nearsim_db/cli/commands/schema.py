"""The commands `nearsim schema`: install, upgrade and check the schema in the database."""

from typing import Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.commands.doctor import show_findings
from nearsim_db.cli.output import terminal
from nearsim_db.records import CitusUse

schema: typer.Typer = typer.Typer(
    no_args_is_help=True, help="Create, upgrade and check the schema in the database."
)


Patience = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="Maximum time for which a step waits for other transactions."
    ),
]


@schema.command(epilog="Example: NEARSIM_DATABASE_URL=postgresql://me@host/mine nearsim schema init")
def init(
    *,
    patience: Patience = 300.0,
    citus: Annotated[
        CitusUse,
        typer.Option(
            help="Store band rows on the nodes of a Citus cluster; auto does so on a coordinator with nodes."
        ),
    ] = "auto",
    outcome: options.ShortOutcome,
) -> None:
    """Create the schema nearsim in the database, or upgrade it while it is in use.

    Restores views, functions, triggers and privileges that are missing or changed, and names other changed objects.
    """
    _upgrade(patience, citus, outcome)


@schema.command(epilog="Example: nearsim schema upgrade --patience 60")
def upgrade(*, patience: Patience = 300.0, outcome: options.ShortOutcome) -> None:
    """Upgrade the schema nearsim while it is in use; fails if the database has none."""
    from nearsim_db.errors import SchemaError
    from nearsim_db.store.database import Database
    from nearsim_db.store.settings import database_url

    if Database.inspect(database_url()).revision is None:
        raise SchemaError(
            "the database has no schema nearsim to upgrade; create it with: nearsim schema init"
        )
    _upgrade(patience, "auto", outcome)


def _upgrade(patience: float, citus: CitusUse, outcome: options.ShortOutcome) -> None:
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

    state = {"schema_revision": revision, "distributed": is_distributed, "missing_roles": missing}
    state |= {
        "restored": [f"{each.kind} {each.name}" for each in restored],
        "differing": list(map(str, differing)),
    }
    outcome.show(state, f"the schema nearsim is at revision {revision}")
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
            "access, run as a user who may: nearsim access grant USER ROLE"
        )


@schema.command(epilog="Example: nearsim schema check --json")
def check(outcome: options.ShortOutcome) -> None:
    """Check that the schema is up to date, and that its objects are as this version defines them.

    The exit code is 1 if there is a problem. nearsim doctor also checks the server and the indexes.
    """
    from nearsim_db.admin.doctor import examine_schema

    show_findings(examine_schema(), outcome)

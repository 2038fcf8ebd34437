"""Alembic's way in: online migrations of the schema `nearsim`, whose version table lives there too."""

from alembic import context
from sqlalchemy import Connection

from nearsim_db.store import tables
from nearsim_db.store.engine import open_engine
from nearsim_db.store.schema import ensure_namespace


def run(connection: Connection) -> None:
    """Run the migrations asked for in one transaction on this connection."""
    ensure_namespace(connection)
    context.configure(
        connection=connection,
        target_metadata=tables.metadata,
        version_table_schema=tables.SCHEMA,
        include_schemas=True,
        include_name=tables.is_ours,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    from nearsim_db.address import database_url

    with open_engine(database_url()).begin() as connection:
        run(connection)

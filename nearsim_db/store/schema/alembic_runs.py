"""Running Alembic's revisions through SQLAlchemy, on a session of nearsim; imported only to apply revisions."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection as AlchemyConnection
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from nearsim_db.store.driver import Engine
from nearsim_db.store.schema import baseline
from nearsim_db.store.schema.migration_locks import backend_of, set_upgrade_limits


@contextmanager
def separate_session(engine: Engine) -> Iterator[AlchemyConnection]:
    """Yield a session that is closed after the block, so that its settings are gone; raises errors of psycopg."""
    alchemy_engine = create_engine("postgresql+psycopg://", creator=engine.open_session, poolclass=NullPool)
    try:
        with alchemy_engine.connect() as connection:
            yield connection
    except DBAPIError as error:
        raise (error.orig if isinstance(error.orig, psycopg.Error) else error) from error


def upgrade(engine: Engine, revision: str, wait_milliseconds: int, patience_seconds: float) -> None:
    """Upgrade to a revision; each revision on the way runs in its own transaction with short lock waits."""
    with separate_session(engine) as connection:
        limit_waits(connection, wait_milliseconds)
        config = _config(connection)
        config.attributes |= {"transaction_per_migration": True, "patience_seconds": patience_seconds}
        command.upgrade(config, revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Downgrade to a revision in one transaction."""
    with separate_session(engine) as connection, connection.begin():
        command.downgrade(_config(connection), revision)


def limit_waits(connection: AlchemyConnection, milliseconds: int) -> None:
    """Limit how long the session waits for a lock."""
    backend = backend_of(connection)
    set_upgrade_limits(backend, milliseconds)
    backend.commit()


def _config(connection: AlchemyConnection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(baseline.migrations_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config

"""The schema's versions: bring it up to date, or say why it cannot be used."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from nearsim_db.errors import SchemaError
from nearsim_db.store.tables import SCHEMA

_LOCK = 0x6E656172  # "near": one migration at a time


def migrations_directory() -> Path:
    """Where the migrations are: in an installed wheel beside this file, in a checkout at its root."""
    packaged = Path(__file__).parent / "migrations"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "migrations"


def ensure_namespace(connection: Connection) -> None:
    """Make the schema itself, which holds Alembic's version table, if it is not there."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    if connection.scalar(text("SELECT to_regnamespace(:name)"), {"name": SCHEMA}) is None:
        connection.execute(text("CREATE SCHEMA nearsim"))


def upgrade(connection: Connection, revision: str = "head") -> str:
    """Bring the schema to a revision, in the caller's transaction; returns the revision it then has."""
    ensure_namespace(connection)
    found = current_revision(connection)
    _refuse_unknown(found)
    config = _config(connection)
    if found != newest_revision():
        command.upgrade(config, revision)
    return current_revision(connection) or ""


def downgrade(connection: Connection, revision: str) -> None:
    """Take the schema back to a revision (`base` drops everything), in the caller's transaction."""
    command.downgrade(_config(connection), revision)


def check(connection: Connection) -> None:
    """Raise SchemaError unless the schema is at exactly the revision that this code knows."""
    found = current_revision(connection)
    if found is None:
        raise SchemaError("the database has no nearsim schema yet; run: nearsim db init")
    _refuse_unknown(found)
    if found != newest_revision():
        raise SchemaError(
            f"the schema is at revision {found}, this version of nearsim needs {newest_revision()}; "
            "run: nearsim db init"
        )


def current_revision(connection: Connection) -> str | None:
    """The revision the database is at, None when nearsim was never installed there."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    return context.get_current_revision()


def newest_revision() -> str:
    """The revision this code was written for."""
    head = _scripts().get_current_head()
    assert head is not None
    return head


def _refuse_unknown(found: str | None) -> None:
    known = {script.revision for script in _scripts().walk_revisions()}
    if found is not None and found not in known:
        raise SchemaError(
            f"the schema is at revision {found}, which this version of nearsim does not know (its newest is "
            f"{newest_revision()}): it was upgraded by a newer nearsim; upgrade this one"
        )


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(None))


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config

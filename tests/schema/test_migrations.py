"""The migrations go up and down."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect

from nearsim_db.errors import SchemaError
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import INDEX_SCHEMA, SCHEMA, run, statement
from nearsim_db.store.schema import alembic_runs, revisions
from tests.builders.relations import is_partition

ROOT = Path(__file__).parents[2]
TABLES = {path.stem for path in (ROOT / "migrations" / "schema" / "tables").glob("*.sql")}


def table_names(engine: Engine) -> set[str]:
    """The tables of the schemas but Alembic's own and partitions."""
    with alembic_runs.separate_session(engine) as connection:
        found = inspect(connection)
        both = {*found.get_table_names(schema=SCHEMA), *found.get_table_names(schema=INDEX_SCHEMA)}
        return {name for name in both if name != "alembic_version" and not is_partition(name)}


@pytest.mark.each_major
def test_downgrade_and_upgrade(engine: Engine) -> None:
    before = table_names(engine)
    assert before == TABLES
    revisions.downgrade(engine, "base")
    assert table_names(engine) == set()
    assert revisions.upgrade(engine) == revisions.newest_revision()
    with engine.begin() as connection:
        revisions.check(connection)
    assert table_names(engine) == before


def test_second_upgrade_changes_nothing(engine: Engine) -> None:
    for _ in range(2):
        assert revisions.upgrade(engine) == revisions.newest_revision()


def test_missing_schema_names_the_command_to_run(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute("DROP SCHEMA nearsim, nearsim_index CASCADE")
        with pytest.raises(SchemaError, match="nearsim db init"):
            revisions.check(connection)


def pretend(engine: Engine, revision: str, oldest_revision: str) -> None:
    """Change the schema as a newer version would."""
    with engine.begin() as connection:
        connection.execute("UPDATE nearsim.alembic_version SET version_num = %(to)s", {"to": revision})
        connection.execute(
            "UPDATE nearsim_index.schema_floor SET oldest_revision = %(to)s", {"to": oldest_revision}
        )


def test_newer_schema_is_used_while_it_allows_this_version(database_url: str) -> None:
    engine = open_engine(database_url)
    following = f"{int(revisions.newest_revision()) + 1:04d}"
    pretend(engine, following, "0001")
    with engine.begin() as connection:
        assert revisions.check(connection) == following
    assert revisions.upgrade(engine) == following
    Database.connect(database_url).close()
    refused = rf"{following}.*newer nearsim"
    pretend(engine, following, following)
    with engine.begin() as connection, pytest.raises(SchemaError, match=refused):
        revisions.check(connection)
    with pytest.raises(SchemaError, match=refused):
        revisions.upgrade(engine)
    pretend(engine, "0000", "0001")
    with engine.begin() as connection, pytest.raises(SchemaError, match="0000"):
        revisions.check(connection)
    engine.dispose()


@pytest.mark.each_major
def test_other_schemas_are_not_changed(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute("CREATE TABLE public.document (id int)")
    revisions.downgrade(engine, "base")
    with engine.begin() as connection:
        assert run(connection, "SELECT to_regclass('public.document')").value() is not None


CATALOG = """
SELECT 'column', attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull::text
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace) AND attnum > 0
UNION ALL
SELECT 'relation', oid::regclass::text, relkind::text, relacl::text, obj_description(oid)
FROM pg_class WHERE relnamespace IN ('nearsim'::regnamespace, 'nearsim_index'::regnamespace)
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL
FROM pg_constraint WHERE connamespace = 'nearsim'::regnamespace
UNION ALL
SELECT 'function', oid::regprocedure::text, md5(prosrc), proacl::text, obj_description(oid)
FROM pg_proc WHERE pronamespace = 'nearsim'::regnamespace
UNION ALL
SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), NULL FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT 'content', version_num, oldest_revision, baseline_digest, NULL
FROM nearsim.alembic_version, nearsim_index.schema_floor
"""


def catalog(connection: Connection) -> set[tuple[object, ...]]:
    """What is in the schemas."""
    return set(connection.execute(CATALOG).fetchall())


@pytest.mark.slow("starts a process")
def test_alembic_command_makes_the_same_schema(database_url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        installed = catalog(connection)
        connection.execute("DROP SCHEMA nearsim, nearsim_index CASCADE")
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"],
        cwd=ROOT,
        env={**os.environ, "NEARSIM_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with engine.connect() as connection:
        assert revisions.check(connection) == revisions.newest_revision()
        assert not connection.execute(statement("list_unvalidated")).fetchall()
        made = catalog(connection)
    assert made == installed and len(installed) > 300

"""The migrations go up and down, apply every file, and refuse a database made from other contents."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import inspect

from nearsim_db.errors import SchemaError
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import INDEX_SCHEMA, SCHEMA, run, statement
from nearsim_db.store.schema import alembic_runs, baseline, revisions
from tests.builders.command_line import CommandLine
from tests.builders.relations import is_partition
from tests.builders.selection import some

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
        with pytest.raises(SchemaError, match="nearsim schema init"):
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


FOLDER = baseline.migrations_directory() / "schema"
NOT_APPLIED = {"drop"}
MADE_BY_OTHERS = {
    "another digest": "UPDATE nearsim_index.schema_floor SET baseline_digest = 'ab12'",
    "revision 0015": "ALTER TABLE nearsim_index.schema_floor DROP COLUMN baseline_digest;"
    " UPDATE nearsim.alembic_version SET version_num = '0015'",
    "revision 0002": "DROP TABLE nearsim_index.schema_floor; UPDATE nearsim.alembic_version SET version_num = '0002'",
    "an older revision 0001": "DROP TABLE nearsim_index.schema_floor",
}
REFUSED = r"development version of nearsim .* export .* drop the schemas .* nearsim schema init"


def test_every_file_is_applied_once() -> None:
    lines = (FOLDER / "order.txt").read_text("utf-8").splitlines()
    order = [line for line in lines if line and not line.startswith("#")]
    files = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.sql")}
    assert len(order) == len(set(order))
    assert set(order) == files - NOT_APPLIED


def copy_of_migrations(folder: Path) -> Path:
    """The same files elsewhere."""
    shutil.copytree(baseline.migrations_directory(), folder)
    return folder


def test_digest_depends_on_contents_and_names_alone(tmp_path: Path) -> None:
    digest = baseline.compute_digest(baseline.migrations_directory())
    windows = copy_of_migrations(tmp_path / "windows")
    for path in (windows / "schema").rglob("*.sql"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert baseline.compute_digest(windows) == digest
    changed = copy_of_migrations(tmp_path / "changed")
    with (changed / "schema" / "tables" / "lease.sql").open("a") as file:
        file.write("-- changed\n")
    renamed = copy_of_migrations(tmp_path / "renamed")
    (renamed / "schema" / "tables" / "lease.sql").rename(renamed / "schema" / "tables" / "leases.sql")
    assert len({digest, baseline.compute_digest(changed), baseline.compute_digest(renamed)}) == 3


@pytest.mark.parametrize(
    "change", some(list(MADE_BY_OTHERS.values()), "every kind of change"), ids=MADE_BY_OTHERS.keys()
)
def test_a_database_of_a_development_version_is_refused(database_url: str, change: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(change.encode())
    engine = open_engine(database_url)
    with engine.connect() as reading, pytest.raises(SchemaError, match=REFUSED):
        revisions.check(reading)
    for action in (lambda: revisions.upgrade(engine), lambda: Database.connect(database_url)):
        with pytest.raises(SchemaError, match=REFUSED):
            action()
    engine.dispose()
    nearsim = CommandLine({"NEARSIM_DATABASE_URL": database_url})
    for command in (["schema", "init"], ["pairs"], ["worker", "--once"], ["reindex", "status"]):
        assert "development version" in nearsim.fail(*command)
    checks = nearsim.run("doctor", "--json").document()["checks"]
    (problem,) = [check for check in checks if check["verdict"] == "problem"]
    assert problem["check"] == "schema" and "development version" in problem["finding"]


@pytest.mark.slow("starts a process")
def test_alembic_refuses_a_database_of_a_development_version(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(MADE_BY_OTHERS["an older revision 0001"].encode())
    done = subprocess.run(
        [sys.executable, "-m", "alembic", "upgrade", "head"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "NEARSIM_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "development version of nearsim" in done.stderr

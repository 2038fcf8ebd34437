"""The files of migrations/schema: all of them are applied, and a database made from other contents is refused."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from nearsim_db.errors import SchemaError
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.schema import baseline, revisions
from tests.builders.command_line import CommandLine
from tests.builders.selection import some

FOLDER = baseline.migrations_directory() / "schema"
NOT_APPLIED = {"drop"}
MADE_BY_OTHERS = {
    "another digest": "UPDATE nearsim_index.schema_floor SET baseline_digest = 'ab12'",
    "revision 0015": "ALTER TABLE nearsim_index.schema_floor DROP COLUMN baseline_digest;"
    " UPDATE nearsim.alembic_version SET version_num = '0015'",
    "revision 0002": "DROP TABLE nearsim_index.schema_floor; UPDATE nearsim.alembic_version SET version_num = '0002'",
    "an older revision 0001": "DROP TABLE nearsim_index.schema_floor",
}
REFUSED = r"development version of nearsim .* export .* drop the schemas .* nearsim db init"


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
    for command in (["db", "init"], ["pairs"], ["worker", "--once"], ["reindex", "status"]):
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

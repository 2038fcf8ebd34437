"""Objects of the schema that are missing or changed: doctor finds them, schema init restores what it can."""

from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from nearsim_db.admin.doctor import examine
from nearsim_db.store.driver import Connection
from nearsim_db.store.schema import objects
from tests.builders.command_line import CommandLine
from tests.builders.logins import login

pytestmark = pytest.mark.each_major

DAMAGE: dict[str, LiteralString] = {
    "view nearsim.duplicates is missing": "DROP VIEW nearsim.duplicates CASCADE",
    "view nearsim.documents is changed": "ALTER VIEW nearsim.documents SET (security_barrier = true)",
    "function nearsim.may_pair(jsonb,uuid,uuid) is missing": "DROP FUNCTION nearsim.may_pair CASCADE",
    "function nearsim.live_generation(integer,text,bigint) is changed": (
        "ALTER FUNCTION nearsim.live_generation VOLATILE"
    ),
    "trigger document_set_revision on nearsim.document is missing": (
        "DROP TRIGGER document_set_revision ON nearsim.document"
    ),
    "trigger document_capture_updated on nearsim.document is changed": (
        "ALTER TABLE nearsim.document DISABLE TRIGGER document_capture_updated"
    ),
    "grant SELECT on nearsim.pairs to nearsim_reader is missing": (
        "REVOKE SELECT ON nearsim.pairs FROM nearsim_reader"
    ),
}
BEYOND_RESTORING: dict[str, LiteralString] = {
    "table nearsim.probe_match is missing": "DROP TABLE nearsim.probe_match CASCADE",
    "index nearsim_index.band_shared_bucket is missing": "DROP INDEX nearsim_index.band_shared_bucket",
    "column nearsim.document.title is changed": "ALTER TABLE nearsim.document ALTER title SET NOT NULL",
}


OWN: list[LiteralString] = [
    "CREATE VIEW nearsim.mine AS SELECT doc_id FROM nearsim.document",
    "CREATE INDEX mine_by_title ON nearsim.document (title)",
    "GRANT SELECT ON nearsim.pairs TO PUBLIC",
    "COMMENT ON VIEW nearsim.pairs IS 'mine'",
]


@pytest.fixture
def nearsim(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """`nearsim`, and doctor, on a database with the schema."""
    monkeypatch.setenv("NEARSIM_DATABASE_URL", database_url)
    return CommandLine({"NEARSIM_DATABASE_URL": database_url, "NEARSIM_HOME": str(tmp_path / "home")})


def damage(url: str, command: LiteralString) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(command)


def find_objects() -> tuple[str, str]:
    """Return the verdict of doctor on the objects, and the facts."""
    ((verdict, finding),) = [(one.verdict, one.finding) for one in examine() if one.check == "objects"]
    return verdict, finding


def test_a_new_schema_is_as_its_files_define_it(nearsim: CommandLine) -> None:
    assert find_objects() == ("ok", "all are as this version defines them")


def test_what_a_user_adds_is_not_reported(nearsim: CommandLine, database_url: str) -> None:
    for command in OWN:
        damage(database_url, command)
    assert find_objects()[0] == "ok"


@pytest.mark.parametrize("finding", [*DAMAGE, *BEYOND_RESTORING])
def test_doctor_names_an_object_that_is_missing_or_changed(
    nearsim: CommandLine, database_url: str, finding: str
) -> None:
    damage(database_url, (DAMAGE | BEYOND_RESTORING)[finding])
    verdict, found = find_objects()
    assert verdict == "problem"
    assert finding in found.split("; ")


def test_init_restores_views_functions_triggers_and_privileges(
    nearsim: CommandLine, database_url: str
) -> None:
    for command in DAMAGE.values():
        damage(database_url, command)
    done = nearsim.run("schema", "init", "--json").document()
    restored = {finding.rpartition(" is ")[0] for finding in DAMAGE}
    assert (restored - set(done["restored"]), done["differing"]) == (set(), [])
    assert find_objects()[0] == "ok"


def test_check_of_the_schema_fails_until_objects_are_restored(
    nearsim: CommandLine, database_url: str
) -> None:
    assert nearsim.succeed("schema", "check", "--json").document()["ok"] is True
    finding, command = next(iter(DAMAGE.items()))
    damage(database_url, command)
    outcome = nearsim.run("schema", "check")
    assert outcome.exit_code == 1
    assert finding in " ".join(outcome.out.split())
    nearsim.succeed("schema", "init")
    nearsim.succeed("schema", "check")


def test_init_names_what_it_cannot_restore(nearsim: CommandLine, database_url: str) -> None:
    damage(database_url, "DROP INDEX nearsim_index.band_shared_bucket")
    outcome = nearsim.run("schema", "init")
    assert "index nearsim_index.band_shared_bucket is missing" in outcome.err
    assert "CREATE UNIQUE INDEX band_shared_bucket ON nearsim_index.band_shared" in outcome.err


def test_a_comparison_leaves_nothing_behind(connection: Connection) -> None:
    objects.compare(connection)
    assert connection.execute("SELECT to_regnamespace('nearsim_expected')").fetchall() == [(None,)]


def test_a_user_who_may_not_create_schemas_is_told(
    nearsim: CommandLine, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with login(database_url, "nearsim_reader") as url:
        monkeypatch.setenv("NEARSIM_DATABASE_URL", url)
        verdict, finding = find_objects()
    assert (verdict, finding.startswith("not compared: needs a user")) == ("ok", True)

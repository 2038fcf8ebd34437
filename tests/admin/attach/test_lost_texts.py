"""A database that was restored without its attached table: its texts are gone, and every check says so."""

import pytest

from nearsim_db import Index
from nearsim_db.admin.doctor import examine
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import ConflictError
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from tests.builders.command_line import CommandLine
from tests.builders.workers import Application

GONE = "the texts of 10 documents of collection 'story' are gone"


@pytest.fixture
def restored(story: Index, app: Application) -> Index:
    """The collection as a dump of the schemas of nearsim restores it: the row of the missing table cannot be."""
    app.execute("DROP TABLE story")
    app.execute("DELETE FROM nearsim_index.attachment")
    return story


@pytest.mark.usefixtures("restored")
def test_doctor_reports_texts_that_are_gone(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", where)
    (finding,) = [one for one in examine() if one.check == "attached tables"]
    assert (finding.verdict, finding.finding.startswith(GONE)) == ("problem", True)
    assert "restore a dump of the whole database" in finding.advice


@pytest.mark.usefixtures("restored")
def test_verify_index_reports_texts_that_are_gone(where: str) -> None:
    outcome = CommandLine({"NEARSIM_DATABASE_URL": where}).run("verify-index", "--all", "-c", "story")
    assert outcome.exit_code == 3
    assert "cannot be compared with its documents" in outcome.out and GONE in outcome.out


@pytest.mark.usefixtures("restored")
def test_an_index_without_its_texts_is_not_repaired(database: Database) -> None:
    with pytest.raises(ConflictError, match=GONE):
        verify_index(database, "story", repair=True)


def test_no_profile_is_built_over_texts_that_are_gone(restored: Index) -> None:
    with pytest.raises(ConflictError, match=GONE):
        restored.create_profile("again", Recipe())


@pytest.mark.usefixtures("story")
def test_texts_of_an_attached_table_are_not_gone(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARSIM_DATABASE_URL", where)
    assert [one.verdict for one in examine() if one.check == "attached tables"] == ["ok"]

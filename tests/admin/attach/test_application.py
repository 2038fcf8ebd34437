"""Attaching has no effect on the application, whatever it does to its table."""

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.followed_table import TRIGGERS, assert_as_ingested, attached, pairs, words, write
from tests.builders.workers import Application, application, ask


def test_a_role_without_rights_writes_its_table(story: Index, app: Application, database: Database) -> None:
    app.execute("CREATE ROLE plain_writer")
    try:
        app.execute("GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON story TO plain_writer")
        app.execute("SET ROLE plain_writer")
        write(app, 30, words(0, 30))
        app.execute("UPDATE story SET body = 'mine now' WHERE id = 4")
        app.execute("DELETE FROM story WHERE id = 5")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("SELECT * FROM nearsim.change")
        app.execute("RESET ROLE")
        story.build()
        assert_as_ingested(database, app, story)
    finally:
        app.execute("RESET ROLE; DROP OWNED BY plain_writer; DROP ROLE plain_writer")


def test_writers_are_not_blocked(story: Index, app: Application, database_url: str) -> None:
    """Not even by a session that has all documents and all changes locked."""
    with application(database_url) as other, other.transaction():
        other.execute(
            "SELECT FROM nearsim.document FOR UPDATE; SELECT FROM nearsim_index.attachment FOR UPDATE"
        )
        app.execute("SET lock_timeout = '50ms'")
        app.execute("UPDATE story SET body = 'written at once' WHERE id = 4")
        app.execute("DELETE FROM story WHERE id = 5")
        write(app, 31, "written, too")
        app.execute("TRUNCATE story")
    assert ask(app, "SELECT count(*) FROM nearsim.change") == 4


@pytest.mark.slow("several builds")
def test_a_renamed_column_does_not_block_writes(story: Index, app: Application, database: Database) -> None:
    warnings: list[str] = []
    app.add_notice_handler(lambda notice: warnings.append(notice.message_primary or ""))
    app.execute("ALTER TABLE story RENAME body TO content")
    app.execute("UPDATE story SET content = 'after it was renamed' WHERE id < 4")
    app.execute("DELETE FROM story WHERE id = 4")
    (warning,) = warnings
    assert "public.story" in warning and "body" in warning
    app.execute("ALTER TABLE story RENAME content TO body")
    story.build()
    assert_as_ingested(database, app, story)
    app.execute("ALTER TABLE story RENAME id TO number")
    for number in range(100, 105):
        app.execute("INSERT INTO story VALUES (%s, 'x', 'y')", (number,))
    app.execute("ALTER TABLE story RENAME number TO id")
    assert len(warnings) == 6
    story.build()
    assert_as_ingested(database, app, story)


def test_attaching_again_changes_the_columns(story: Index, app: Application, database: Database) -> None:
    app.execute("ALTER TABLE story RENAME body TO content")
    app.execute("ALTER TABLE story RENAME headline TO head")
    index = attached(database, columns=Columns("id", "content", title="head"))
    assert ask(app, "SELECT count(*) FROM nearsim.collection") == 1
    app.execute("UPDATE story SET content = 'new' WHERE id = 3")
    app.execute("ALTER TABLE story RENAME content TO body")
    app.execute("ALTER TABLE story RENAME head TO headline")
    attached(database)
    assert_as_ingested(database, app, index)


def test_an_index_of_a_dropped_table_answers_until_it_is_detached(
    story: Index, app: Application, database: Database
) -> None:
    before = pairs(story)
    app.execute("DROP TABLE story")
    with pytest.raises(NotFoundError, match="nearsim table detach story"):
        story.build()
    assert pairs(story) == before
    assert story.similar("3")
    with pytest.raises(InputError):
        attach.detach(database, "story", keep=True)
    assert attach.detach(database, "story", keep=False).documents == 10
    assert ask(app, "SELECT count(*) FROM nearsim.collection") == 0


@pytest.mark.slow("several builds")
def test_two_collections_of_one_table(story: Index, app: Application, database: Database) -> None:
    other = attached(database, "titles", Columns("id", "headline"))
    app.execute("UPDATE story SET body = headline, headline = body WHERE id % 2 = 0")
    for index in (story, other):
        index.build()
    assert_as_ingested(database, app, story)
    attach.detach(database, "titles", keep=False)
    assert "nearsim_1_rows" in str(ask(app, TRIGGERS))
    write(app, 50, words(0, 50))
    story.build()
    assert_as_ingested(database, app, story)


def test_a_row_just_inserted_has_no_similar_documents_yet(story: Index, app: Application) -> None:
    notices: list[str] = []
    app.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    query = "SELECT external_id FROM nearsim.similar_to('40', collection => 'story')"
    with app.transaction():
        write(app, 40, words(0, 2))
        assert app.execute(query).fetchall() == []
    assert app.execute(query).fetchall() == []
    assert len(notices) == 2
    assert all("'40'" in notice for notice in notices)
    story.build()
    assert (
        {other for (other,) in app.execute(query).fetchall()}
        == {str(found.external_id) for found in story.similar("40")}
        != set()
    )
    with pytest.raises(psycopg.errors.NoDataFound):
        app.execute("SELECT * FROM nearsim.similar_to('41', collection => 'story')")

"""Later changes by the owner of an attached table: none runs code of the owner with other users' rights."""

import re
import shlex
from functools import partial

import psycopg
import pytest

from nearsim_db import Index
from nearsim_db.admin import attach
from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import attached_table
from nearsim_db.store.attached.tables import Columns
from nearsim_db.store.database import Database
from tests.builders.followed_table import attached, words
from tests.builders.workers import Application, ask

BODY = "SELECT nearsim.body_of(doc_id) FROM nearsim.document WHERE external_id = '3'"
WHY = """
SELECT why.*
FROM nearsim.document AS one, nearsim.document AS other, nearsim.why_by_doc_id(one.doc_id, other.doc_id) AS why
WHERE one.external_id = '1' AND other.external_id = '3'
"""
WHY_NOT = WHY.replace("why", "why_not")
SPY = """
CREATE TABLE who_ran (name text);
GRANT ALL ON who_ran TO PUBLIC;
CREATE FUNCTION spy(text) RETURNS text LANGUAGE plpgsql AS
    $$BEGIN INSERT INTO public.who_ran VALUES (current_user); RETURN $1; END$$;
GRANT USAGE ON SCHEMA public TO PUBLIC;
GRANT SELECT ON story TO PUBLIC;
"""
COMPOSITE = """
CREATE TYPE wrapped AS (content text);
CREATE FUNCTION unwrap(wrapped) RETURNS text LANGUAGE sql AS 'SELECT public.spy(($1).content)';
CREATE CAST (wrapped AS text) WITH FUNCTION unwrap(wrapped) AS ASSIGNMENT;
DROP TRIGGER nearsim_1_rows ON story;
ALTER TABLE story ALTER body TYPE wrapped USING CAST(ROW(body) AS wrapped);
"""
VIEW = """
ALTER TABLE story RENAME TO rows_of_story;
CREATE VIEW story AS SELECT id, headline, spy(body) AS body FROM rows_of_story;
GRANT SELECT ON story TO PUBLIC;
UPDATE nearsim_index.attachment SET relation = 'story';
"""


def warned(app: Application, question: str) -> list[str]:
    """Warnings of the server for a query."""
    warnings: list[str] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        warnings.append(notice.message_primary or "")

    app.add_notice_handler(note)
    app.execute(question.encode())
    app.remove_notice_handler(note)
    return warnings


@pytest.mark.parametrize(
    ("change", "reason"),
    [(COMPOSITE, "column 'body' is of type public.wrapped"), (VIEW, "it is a view")],
    ids=["composite", "view"],
)
def test_casts_and_views_of_the_owner_do_not_run(
    story: Index, app: Application, database: Database, change: str, reason: str
) -> None:
    app.execute(SPY.encode())
    assert ask(app, BODY) == words(1, 3)
    app.execute(change.encode())
    (warning,) = warned(app, BODY)
    assert "cannot be read: its collection has no attached table" in warning
    assert ask(app, BODY) is None
    for read in (story.sweep, partial(story.get, "3")):
        with pytest.raises(NotFoundError, match=re.escape(reason)):
            read()
    app.execute("INSERT INTO nearsim.change (collection_id, external_id) VALUES (1, '3')")
    attached_table.catch_up(database.engine)
    assert reason in str(ask(app, "SELECT trouble FROM nearsim_index.attachment"))
    assert attach.detach(database, "story", keep=False).documents == 10
    assert ask(app, "SELECT count(*) FROM who_ran") == 0


def test_id_column_changed_to_an_unsupported_type_is_reported(story: Index, app: Application) -> None:
    app.execute("GRANT USAGE ON SCHEMA public TO PUBLIC; GRANT SELECT ON story TO PUBLIC")
    app.execute("ALTER TABLE story ALTER id TYPE date USING DATE '2026-01-01' + CAST(id AS integer)")
    for question in (WHY, WHY_NOT):
        for warning in warned(app, question):
            assert "cannot be read: its collection has no attached table" in warning
    assert len(warned(app, BODY)) == 1 and ask(app, BODY) is None


def test_id_column_of_a_domain_type_is_read(app: Application, database: Database) -> None:
    app.execute("GRANT USAGE ON SCHEMA public TO PUBLIC; GRANT SELECT ON story TO PUBLIC")
    app.execute(
        "CREATE DOMAIN label AS varchar(9); CREATE DOMAIN short AS label; ALTER TABLE story ALTER id TYPE short"
    )
    attached(database)
    assert ask(app, BODY) == words(1, 3)


def test_missing_grants_for_body_of_are_named(app: Application, database: Database) -> None:
    app.execute("""CREATE SCHEMA "My's"; CREATE TABLE "My's"."Sto ry's" AS SELECT * FROM story""")
    app.execute("""ALTER TABLE "My's"."Sto ry's" ADD PRIMARY KEY (id)""")
    result = attach.attach_table(database, """"My's"."Sto ry's\"""", Columns("id", "body"))
    (warning,) = result.warnings
    grants = warning.partition("until you ")[2]
    assert grants.startswith("""GRANT USAGE ON SCHEMA "My's" TO """)
    attach.ingest_table(Index(database, result.collection), "default", None)
    assert ask(app, BODY) is None
    app.execute(grants.encode())
    assert ask(app, BODY) == words(1, 3)
    again = attach.attach_table(database, """"My's"."Sto ry's\"""", Columns("id", "body"))
    assert again.warnings == ()
    app.execute("""DROP SCHEMA "My's" CASCADE""")
    (one,) = attach.list_attachments(database)
    command = str(one.problem).partition("run: nearsim ")[2]
    assert shlex.split(command) == ["table", "detach", "Sto ry's"]

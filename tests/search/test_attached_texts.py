"""Texts in attached tables: many are read by one statement, which checks the table once."""

from collections.abc import Sequence

import pytest

from nearsim_db import Document, Index
from nearsim_db.search.live_generation import find_live
from nearsim_db.store.clusters import reports
from nearsim_db.store.database import Database
from nearsim_db.store.pairs.review_documents import read_documents
from tests.builders.followed_table import words
from tests.builders.workers import Application, ask

# A text that is read by itself takes as long as the check of its table.
REFUSE_SINGLE_TEXTS = """
CREATE OR REPLACE FUNCTION nearsim.foreign_code(relation regclass, for_update boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('nearsim.checked', true) = 'true' THEN
        RAISE EXCEPTION 'a table is checked twice';
    END IF;
    PERFORM set_config('nearsim.checked', 'true', true);
    RETURN NULL;
END
$$
"""
BODIES = "SELECT array_agg(body ORDER BY doc_id) FROM nearsim.bodies_of(ARRAY(SELECT doc_id FROM nearsim.document))"
QUEUE = """
SELECT count(*) > 0 AND bool_and('4' IN (left_external_id, right_external_id))
FROM nearsim.review_queue('story', queue => 'numbers', text => 'OWN4 own4')
"""

READABLE = "GRANT USAGE ON SCHEMA public TO PUBLIC; GRANT SELECT ON story TO nearsim_admin"


@pytest.fixture
def story(story: Index, app: Application) -> Index:
    """A collection attached to a table that the owner of nearsim's functions may read."""
    app.execute(READABLE)
    return story


def doc_ids(app: Application, external_ids: Sequence[str]) -> list[int]:
    rows = app.execute(
        "SELECT doc_id FROM nearsim.document WHERE external_id = ANY(%s) ORDER BY doc_id",
        (list(external_ids),),
    )
    return [int(str(doc_id)) for (doc_id,) in rows.fetchall()]


@pytest.mark.each_major
def test_bodies_of_reads_the_texts_of_an_attached_table_as_a_set(story: Index, app: Application) -> None:
    app.execute(REFUSE_SINGLE_TEXTS)
    assert ask(app, BODIES) == [words(number % 2, number) for number in range(1, 11)]


def test_bodies_of_reads_own_and_attached_texts(story: Index, app: Application, database: Database) -> None:
    Index(database, "own").add([Document("a", body="a text of its own"), Document("b", body=None)])
    texts = ask(app, BODIES)
    assert isinstance(texts, list)
    assert texts == [words(number % 2, number) for number in range(1, 11)] + ["a text of its own", None]
    assert ask(app, "SELECT count(*) FROM nearsim.bodies_of('{0,-1,NULL}')") == 0
    assert ask(app, "SELECT count(*) FROM nearsim.bodies_of(NULL)") == 0


def test_bodies_of_reads_texts_that_are_too_long_for_one_set(story: Index, app: Application) -> None:
    app.execute("UPDATE nearsim.document SET body_length = 3000000")
    assert ask(app, BODIES) == [words(number % 2, number) for number in range(1, 11)]


def test_review_desk_reads_two_attached_texts_as_a_set(
    story: Index, app: Application, database: Database
) -> None:
    app.execute(REFUSE_SINGLE_TEXTS)
    with database.transaction() as connection:
        live = find_live(connection, story.collection, None)
        shown = read_documents(connection, live.collection_id, doc_ids(app, ["1", "2"]), 1_000)
    assert [one.body for one in shown.values()] == [words(1, 1), words(0, 2)]


def test_report_reads_texts_that_its_user_may_not_read_as_a_set(
    story: Index, app: Application, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "find_source", lambda connection, collection_id: None)
    app.execute(REFUSE_SINGLE_TEXTS)
    with database.transaction() as connection:
        live = find_live(connection, story.collection, None)
        report = live.tables(connection).report
        texts = report.read_texts(live.collection_id, doc_ids(app, ["1", "2"]), 1_000)
    assert [one.body for one in texts.values()] == [words(1, 1), words(0, 2)]


def test_review_queue_searches_attached_texts_as_a_set(story: Index, app: Application) -> None:
    app.execute(REFUSE_SINGLE_TEXTS)
    assert ask(app, QUEUE) is True


def test_spread_reads_the_texts_of_all_documents_paired_with_one(story: Index, app: Application) -> None:
    app.execute(
        "UPDATE story SET body = (SELECT string_agg('common' || at, ' ') FROM generate_series(1, 40) AS at) "
        "|| ' own' || id WHERE id <= 3"
    )
    story.build()
    (passage,) = story.spread("1")
    assert {one.id for one in passage.occurrences} == {"1", "2", "3"}

"""check_insert after a request before the transaction: by a role that only writes, without a second connection."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin import access
from nearsim_db.admin.reindex import Reindex
from nearsim_db.store.database import Database
from nearsim_db.store.work import queue
from tests.builders.followed_table import words
from tests.builders.logins import login, user_of
from tests.builders.workers import BLOCKED, Application, application, ask, running, wait_until

ASK = "SELECT nearsim.ask(%s, collection => 'story', external_id => %s, purpose => 'insert', deadline => '1 minute')"
CHECK = "SELECT external_id FROM nearsim.check_insert(%s, collection => 'story', external_id => %s)"
INSERT = (
    "INSERT INTO nearsim.document (collection_id, external_id, body) "
    "SELECT collection_id, %s, %s FROM nearsim.collection WHERE name = 'story'"
)
BLOCKED_OR_ANSWERED = (
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE NOT granted)"
    " OR EXISTS (SELECT FROM nearsim.probe WHERE answered_at IS NOT NULL)"
)


@pytest.fixture
def writer(database_url: str) -> Iterator[str]:
    """A user who may write one collection, under isolation; a worker runs."""
    with login(database_url, "nearsim_writer") as user:
        for collection in ("story", "other"):
            with Index.connect(database_url, collection=collection) as index:
                index.create_collection()
        with Database.connect(database_url) as database:
            access.grant(database, user_of(user), "writer", ["story"])
            access.set_isolation(database, wanted=True)
        with running(database_url):
            yield user


def insert_if_new(app: Application, name: str, text: str) -> bool:
    """Ask, then insert a document unless it has near-duplicates; return whether it was inserted."""
    while True:
        app.execute(ASK, (text, name))
        try:
            with app.transaction():
                if app.execute(CHECK, (text, name)).fetchall():
                    return False
                app.execute(INSERT, (name, text))
        except pg.SerializationFailure:
            continue
        return True


@pytest.mark.slow("starts a worker")
def test_a_document_committed_before_the_request_is_found(writer: str) -> None:
    with application(writer) as app:
        assert insert_if_new(app, "a", words(0, 1))
        assert not insert_if_new(app, "b", words(0, 2))
        assert insert_if_new(app, "c", words(1, 3))


def test_of_concurrent_near_copies_one_is_inserted(writer: str) -> None:
    def insert(number: int) -> bool:
        with application(writer) as app:
            return insert_if_new(app, f"d{number}", f"{words(number % 3, 0)} number{number}")

    with ThreadPoolExecutor(9) as pool:
        assert sum(pool.map(insert, range(9))) == 3


@pytest.mark.slow("starts a worker")
def test_an_answer_waits_for_changes_that_another_process_dispatches(database_url: str) -> None:
    with Index.connect(database_url, collection="story") as index, application(database_url) as app:
        index.create_collection()
        app.execute(INSERT, ("a", words(0, 1)))
        with index.database.engine.connect() as dispatcher:
            assert queue.dispatch(dispatcher, 1_000).changes == 1
            app.execute(ASK, (words(0, 2), "b"))
            with running(database_url):
                wait_until(app, BLOCKED_OR_ANSWERED)
                assert ask(app, "SELECT answered_at FROM nearsim.probe") is None
                dispatcher.commit()
                assert app.execute(CHECK, (words(0, 2), "b")).fetchall() == [("a",)]


@pytest.mark.slow("starts a worker")
def test_a_promotion_waits_for_checked_insertions_and_outdates_other_answers(
    writer: str, database_url: str
) -> None:
    with Database.connect(database_url) as database, application(writer) as app, application(writer) as other:
        reindex = Reindex(database, "story")
        reindex.start(settings=["match.threshold=0.5"])
        other.execute(ASK, (words(0, 2), "b"))
        with other.transaction(force_rollback=True):  # until it is answered
            assert other.execute(CHECK, (words(0, 2), "b")).fetchall() == []
        app.execute(ASK, (words(0, 1), "a"))
        with ThreadPoolExecutor(1) as pool:
            with app.transaction():
                assert app.execute(CHECK, (words(0, 1), "a")).fetchall() == []
                promotion = pool.submit(reindex.promote)
                wait_until(other, BLOCKED)
                app.execute(INSERT, ("a", words(0, 1)))
            promotion.result()
        with pytest.raises(pg.SerializationFailure):
            other.execute(CHECK, (words(0, 2), "b"))
        assert not insert_if_new(other, "b", words(0, 2))


@pytest.mark.slow("starts a worker")
def test_an_answer_that_lacks_a_later_insertion_is_refused(writer: str) -> None:
    with application(writer) as app, application(writer) as other:
        other.execute(ASK, (words(0, 2), "b"))
        with other.transaction(force_rollback=True):  # until it is answered
            assert other.execute(CHECK, (words(0, 2), "b")).fetchall() == []
        assert insert_if_new(app, "a", words(0, 1))
        with pytest.raises(pg.SerializationFailure, match="inserted after the answer") as raised:
            other.execute(CHECK, (words(0, 2), "b"))
        assert raised.value.diag.message_hint == (
            "Roll back, ask again with nearsim.ask(), and try the transaction again."
        )
        other.execute(ASK, (words(0, 2), "b"))
        assert other.execute(CHECK, (words(0, 2), "b")).fetchall() == [("a",)]


@pytest.mark.slow("starts a worker")
def test_texts_of_other_buckets_do_not_outdate_an_answer(writer: str) -> None:
    with application(writer) as app, application(writer) as other:
        other.execute(ASK, (words(0, 2), "b"))
        with other.transaction(force_rollback=True):
            assert other.execute(CHECK, (words(0, 2), "b")).fetchall() == []
        assert insert_if_new(app, "a", words(1, 1))
        assert other.execute(CHECK, (words(0, 2), "b")).fetchall() == []


@pytest.mark.slow("starts a worker")
def test_add_finds_what_was_inserted_after_a_check(writer: str) -> None:
    with application(writer) as app:
        assert insert_if_new(app, "a", words(0, 1))
    with Index.connect(writer, collection="story") as index:
        assert index.add([Document("b", body=words(0, 2))], on_duplicate="skip").skipped == 1


@pytest.mark.slow("starts a worker")
def test_a_request_of_the_same_transaction_does_not_count(writer: str) -> None:
    with application(writer) as app, app.transaction(force_rollback=True):
        app.execute(ASK, (words(0, 1), "a"))
        with pytest.raises(pg.ObjectNotInPrerequisiteState, match="not asked for before"):
            app.execute(CHECK, (words(0, 1), "a"))


@pytest.mark.slow("starts a worker")
def test_a_trigger_refuses_copies(writer: str, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(
            "CREATE TABLE public.story (id text PRIMARY KEY, body text);"
            "CREATE FUNCTION public.refuse_copies() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF EXISTS (SELECT FROM nearsim.check_insert(NEW.body, collection => 'story', external_id => NEW.id)) THEN "
            "RAISE unique_violation; END IF; RETURN NEW; END $$;"
            "CREATE TRIGGER refuse_copies BEFORE INSERT ON public.story FOR EACH ROW EXECUTE FUNCTION refuse_copies()"
        )
        user = sql.Identifier(user_of(writer))
        admin.execute(sql.SQL("GRANT INSERT ON public.story TO {}").format(user))
    with application(writer) as app:
        assert insert_if_new(app, "a", words(0, 1))
        for name, text in (("b", words(0, 2)), ("c", words(1, 2))):
            app.execute(ASK, (text, name))
        app.execute("INSERT INTO public.story VALUES ('c', %s)", (words(1, 2),))
        with pytest.raises(pg.UniqueViolation):
            app.execute("INSERT INTO public.story VALUES ('b', %s)", (words(0, 2),))


@pytest.mark.slow("starts a worker")
def test_another_tenants_collection_is_not_checked(writer: str) -> None:
    with application(writer) as app, pytest.raises(pg.NoDataFound, match="collection 'other' does not exist"):
        app.execute("SELECT * FROM nearsim.check_insert('a text', collection => 'other')")

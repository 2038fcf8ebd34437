"""The review desk of one database user beside rows that another one wrote into nearsim.review."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import errors as pg

from nearsim_db import Document, Index
from nearsim_db.errors import NotFoundError
from nearsim_db.search.answers import list_newest
from nearsim_db.store.pairs.reviews import Answer, Desk
from nearsim_db.store.pairs.verdicts import Pair
from tests.builders.logins import login

WRITTEN = (
    "INSERT INTO nearsim.review (collection_id, by, queue, left_id, right_id) VALUES (1, 'anna', 'numbers', 1, 2)",
    "UPDATE nearsim.review SET answer = 'different', decided_at = now(), decision_id = review_id, verdict_id = 1",
)


@dataclass
class Users:
    """Anna's desk as the owner, over documents 1 to 3 of default; documents 4 to 6 are of another collection."""

    index: Index
    desk: Desk
    writer: psycopg.Connection[tuple[object, ...]]

    def verdicts(self) -> list[tuple[object, ...]]:
        """Documents of the verdicts and choices in force."""
        with self.index.database.transaction() as connection:
            return connection.execute(
                "SELECT left_id, right_id FROM nearsim.verdict WHERE undone_at IS NULL "
                "UNION ALL SELECT doc_id, doc_id FROM nearsim.survivor_pin WHERE undone_at IS NULL ORDER BY 1, 2"
            ).fetchall()


@pytest.fixture
def users(index: Index, database_url: str) -> Iterator[Users]:
    """Anna, and a writer that may write every collection."""
    documents = [Document(name, body=f"a story of some length {name}") for name in "abc"]
    index.add(documents)
    with Index.connect(database_url, collection="other") as other:
        other.add(documents)
    with (
        login(database_url, "nearsim_writer") as address,
        psycopg.connect(address, autocommit=True) as writer,
    ):
        (generation,) = list_newest(index.database, index.collection)
        desk = Desk(generation.collection_id, index.collection, None, "anna")
        yield Users(index, desk, writer)


def test_undo_leaves_decisions_of_another_user_under_the_same_name(users: Users) -> None:
    users.index.veto("a", "b", "no")
    for command in WRITTEN:
        users.writer.execute(command)
    with users.index.database.transaction() as connection:
        assert users.desk.undo(connection) == []
        assert users.desk.progress(connection).decided == 0
        assert [review.by for review in users.desk.reviews(connection, 1, 2)] == [
            f"anna ({users.writer.info.user})"
        ]
    assert users.verdicts() == [(1, 2)]


def test_a_writer_ends_expired_leases_of_others_and_changes_nothing_else_of_their_rows(users: Users) -> None:
    with users.index.database.transaction() as connection:
        users.desk.decide(connection, "numbers", {(1, 2): "same"})
        connection.execute(
            "INSERT INTO nearsim.review (collection_id, by, queue, left_id, right_id, leased_until) "
            "VALUES (1, 'anna', 'numbers', 1, 3, now() - interval '1 second'), "
            "(1, 'anna', 'numbers', 2, 3, now() + interval '1 hour')"
        )
    for forbidden in (
        "UPDATE nearsim.review SET undone_at = now() WHERE answer = 'same'",
        "UPDATE nearsim.review SET why = 'another' WHERE answer = 'same'",
        "UPDATE nearsim.review SET leased_until = NULL WHERE right_id = 3 AND left_id = 2",
        "UPDATE nearsim.review SET leased_until = now() + interval '1 day' WHERE right_id = 3 AND left_id = 1",
    ):
        with pytest.raises(pg.InsufficientPrivilege, match="only that user may change it"):
            users.writer.execute(forbidden)
    ended = "UPDATE nearsim.review SET leased_until = NULL WHERE leased_until <= now()"
    assert users.writer.execute(ended).rowcount == 1


@pytest.mark.parametrize("answer", ["same", "different", "unsure", "skipped"])
@pytest.mark.parametrize(("pair", "missing"), [((1, 4), 4), ((4, 5), 4), ((1, 99), 99)])
def test_documents_of_another_collection_do_not_exist_at_the_desk(
    users: Users, answer: Answer, pair: Pair, missing: int
) -> None:
    refusal = pytest.raises(NotFoundError, match=f"^there is no document {missing} in this collection$")
    with users.index.database.transaction() as connection, refusal:
        users.desk.decide(connection, "numbers", {pair: answer})
    assert users.verdicts() == []


@pytest.mark.parametrize("missing", [4, 99])
def test_a_document_of_another_collection_is_not_kept_at_the_desk(users: Users, missing: int) -> None:
    refusal = pytest.raises(NotFoundError, match=f"^there is no document {missing} in this collection$")
    with users.index.database.transaction() as connection, refusal:
        users.desk.keep(connection, missing, "this one")
    assert users.verdicts() == []


def test_undo_leaves_a_pair_that_moved_to_another_collection(users: Users) -> None:
    with users.index.database.transaction() as connection:
        users.desk.decide(connection, "numbers", {(1, 2): "same"})
        connection.execute(
            "UPDATE nearsim.document SET collection_id = 2, external_id = external_id || '2' WHERE doc_id IN (1, 2)"
        )
    with (
        users.index.database.transaction() as connection,
        pytest.raises(NotFoundError, match="no document 1"),
    ):
        users.desk.undo(connection)
    assert users.verdicts() == [(1, 2)]

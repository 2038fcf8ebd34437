"""A role that may only write one collection: on_duplicate in its own transactions, and what it cannot lock or read."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import errors as pg

from nearsim_db import Document, DuplicateError, Index, OnDuplicate
from nearsim_db.admin import access
from nearsim_db.errors import ConflictError, DatabaseError
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.database import Database
from tests.builders.followed_table import pairs, words
from tests.builders.logins import login, user_of
from tests.servers.databases import Server

pytestmark = pytest.mark.each_major

RECORDED = "SELECT count(*) FROM nearsim_index.checked_insertion"
LOCK = (
    "INSERT INTO nearsim_index.checked_insertion (collection_id, generation_id, external_id, bucket_hashes) "
    "SELECT %s, %s, 'x', ARRAY[1, 2]"
)


@dataclass(frozen=True)
class Site:
    """A database with the collections feed and other, and a user who may write feed."""

    url: str
    writer: str

    def add(self, document: Document, on_duplicate: OnDuplicate = "skip") -> int:
        """Add a document in a transaction of the writer; return how many were inserted or updated."""
        with psycopg.connect(self.writer) as own, Index.connect(connection=own, collection="feed") as index:
            summary = index.add([document], on_duplicate=on_duplicate)
            return summary.inserted + summary.updated

    def build(self) -> None:
        """Index what was written."""
        with Index.connect(self.url, collection="feed") as index:
            index.build()


@pytest.fixture(params=["open", "isolated"])
def site(server: Server, request: pytest.FixtureRequest) -> Iterator[Site]:
    with server.database() as url, login(url, "nearsim_writer") as writer:
        for collection in ("feed", "other"):
            with Index.connect(url, collection=collection) as index:
                index.add([Document("first", body=words(0, 0))])
        with Database.connect(url) as database:
            access.grant(database, user_of(writer), "writer", ["feed"])
            access.set_isolation(database, wanted=request.param == "isolated")
        yield Site(url, writer)


def test_a_near_duplicate_is_left_out_in_the_writers_transaction(site: Site) -> None:
    with psycopg.connect(site.writer) as own, Index.connect(connection=own, collection="feed") as index:
        assert index.add([Document("copy", body=words(0, 1))], on_duplicate="skip").skipped == 1
        assert index.add([Document("new", body=words(1, 0))], on_duplicate="skip").inserted == 1
        assert index.add([Document("first", body=words(0, 0))], on_duplicate="skip").unchanged == 1
        with pytest.raises(DuplicateError, match="'copy' was not added: it is a near-duplicate of 'first'"):
            index.add([Document("copy", body=words(0, 1))], on_duplicate="raise")
        own.commit()
        stored = own.execute(
            "SELECT external_id FROM nearsim.document JOIN nearsim.collection "
            "USING (collection_id) WHERE name = 'feed' ORDER BY 1"
        ).fetchall()
    assert stored == [("first",), ("new",)]


def test_documents_that_no_worker_has_signed_are_found(site: Site) -> None:
    assert site.add(Document("a", body=words(1, 0))) == 1
    assert site.add(Document("b", body=words(1, 1))) == 0
    with Index.connect(site.url, collection="feed") as index:
        assert index.add([Document("c", body=words(1, 2))], on_duplicate="skip").skipped == 1


def test_a_changed_text_is_compared_before_it_is_signed_again(site: Site) -> None:
    assert site.add(Document("a", body=words(1, 0))) == 1
    site.build()
    assert site.add(Document("a", body=words(2, 0))) == 1
    assert site.add(Document("b", body=words(2, 1))) == 0


def test_of_concurrent_near_copies_one_is_inserted(site: Site) -> None:
    def add(number: int) -> int:
        return site.add(Document(str(number), body=f"{words(1 + number % 3, 0)} number{number}"))

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(add, range(9))) == 3


def test_a_writer_with_connections_of_its_own_adds_too(site: Site) -> None:
    with Index.connect(site.writer, collection="feed") as index:
        given = [Document("a", body=words(1, 0)), Document("b", body=words(1, 1))]
        summary = index.add(given, on_duplicate="skip")
        assert (summary.inserted, summary.skipped) == (1, 1)
        assert index.warnings == ["what was written waits for a worker: this user may not index it"]


def test_flagged_documents_become_pairs(site: Site) -> None:
    assert site.add(Document("a", body=words(0, 1)), "flag") == 1
    site.build()
    with Index.connect(site.url, collection="feed") as index:
        assert pairs(index) == {frozenset(("first", "a"))}


def test_insertions_are_forgotten_once_they_are_signed(site: Site) -> None:
    assert site.add(Document("a", body=words(1, 0))) == 1
    with psycopg.connect(site.url) as admin, Index.connect(site.url, collection="feed") as index:
        index.add([Document("b", body=words(2, 0))], on_duplicate="skip")
        assert admin.execute(RECORDED).fetchone() == (0,)


def test_a_purge_forgets_the_buckets_of_a_text(site: Site) -> None:
    assert site.add(Document("a", body=words(1, 0))) == 1
    with (
        psycopg.connect(site.url, autocommit=True) as admin,
        Index.connect(site.url, collection="feed") as index,
    ):
        assert admin.execute(RECORDED).fetchone() == (1,)
        index.purge(["a"])
        assert admin.execute(RECORDED).fetchone() == (0,)


def test_an_unsigned_document_is_found_after_a_promotion(site: Site) -> None:
    assert site.add(Document("a", body=words(1, 0))) == 1
    with psycopg.connect(site.url) as admin:
        # As after a promotion: the buckets are those of a generation that was live before.
        admin.execute("UPDATE nearsim_index.checked_insertion SET generation_id = 99, bucket_hashes = '{}'")
    assert site.add(Document("b", body=words(1, 1))) == 0


@pytest.mark.parametrize("site", ["isolated"], indirect=True)
def test_buckets_of_another_tenant_are_not_locked(site: Site) -> None:
    with psycopg.connect(site.url) as admin:
        ids: dict[str, list[int]] = dict(
            admin.execute(
                "SELECT collection.name, ARRAY[collection_id, generation_id] FROM nearsim.collection "
                "JOIN nearsim.profile USING (collection_id) JOIN nearsim.generation USING (profile_id)"
            ).fetchall()
        )
    own, foreign = ids["feed"], ids["other"]
    with psycopg.connect(site.writer) as writer:
        for collection_id in (foreign[0], 880_000):
            with pytest.raises(pg.InsufficientPrivilege, match="row-level security"), writer.transaction():
                writer.execute(LOCK, (collection_id, foreign[1]))
        for generation_id in (foreign[1], 880_000):
            message = f"collection {own[0]} has no generation {generation_id}"
            with pytest.raises(pg.ForeignKeyViolation, match=message), writer.transaction():
                writer.execute(LOCK, (own[0], generation_id))
        assert writer.execute("SELECT * FROM pg_locks WHERE locktype = 'advisory'").fetchall() == []
        with pytest.raises(pg.InsufficientPrivilege), writer.transaction():
            writer.execute("SELECT secret FROM nearsim_index.lock_secret")
        writer.execute(LOCK, own)


@pytest.mark.parametrize("site", ["isolated"], indirect=True)
def test_a_reader_of_the_collection_locks_nothing(site: Site) -> None:
    with login(site.url, "nearsim_reader") as reader:
        with Database.connect(site.url) as database:
            access.grant(database, user_of(reader), "reader", ["feed"])
        with (
            psycopg.connect(reader) as own,
            Index.connect(connection=own, collection="feed") as index,
            pytest.raises(DatabaseError, match="permission denied"),
        ):
            index.add([Document("a", body=words(1, 0))], on_duplicate="skip")


def test_a_collection_without_an_index_is_refused_with_the_call_that_makes_one(site: Site) -> None:
    with Index.connect(site.writer, collection="fresh") as index, pytest.raises(ConflictError) as refused:
        index.add([Document("a", body=words(1, 0))], on_duplicate="skip")
    assert "first call as a nearsim_admin create_collection()" in str(refused.value)


def test_of_many_profiles_the_default_one_is_asked(site: Site) -> None:
    with Index.connect(site.url, collection="feed") as index:
        index.create_profile("second", Recipe())
    assert site.add(Document("copy", body=words(0, 1))) == 0

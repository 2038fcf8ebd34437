"""Signing while reading: the same index as when the build signs everything, whatever happens meanwhile."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.indexing.ingest import bulk
from nearsim_db.readers import from_documents
from nearsim_db.records import ReadDocument, Reject
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from tests.builders.reindex_world import RECIPE, jaccard_pairs, stories, texts_of, words
from tests.builders.relations import leaves_of
from tests.builders.selection import some

COUNT = 40
BATCH = 8
WINDOW = ["retain.age=30 days"]
WEIGHTED = ["shingle.k=1", "shingle.scheme=bag", "sketch.family=dart_minhash", "match.threshold=0.5"]

Step = Callable[[psycopg.Connection[tuple[object, ...]]], None]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a few documents go through several batches."""
    monkeypatch.setattr(bulk, "_BATCH_DOCUMENTS", BATCH)


@pytest.fixture
def signed_by_build(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The bodies that builds read to sign them, as they do so."""
    bodies: list[str | None] = []
    read = documents.stream_unsigned

    def recorded(*given: Any, **named: Any) -> Iterator[list[StoredDocument]]:
        for batch in read(*given, **named):
            bodies.extend(one.body for one in batch)
            yield batch

    # A generator, since the build closes it.
    monkeypatch.setattr(documents, "stream_unsigned", recorded)
    return bodies


def records(given: Sequence[Document], url: str, steps: dict[int, Step]) -> Iterator[ReadDocument | Reject]:
    """Records of documents; before some positions another session executes a step and commits."""
    for position, record in enumerate(from_documents(given)):
        if position in steps:
            with psycopg.connect(url) as connection:
                steps[position](connection)
        yield record


def signature_of(url: str) -> sql.Identifier:
    """The table that has the signatures of the only generation, attached or not."""
    (leaves,) = leaves_of(url)
    return leaves.table("signature")


def create(index: Index, *profiles: Iterable[str]) -> None:
    """Profiles p0, p1 ... of these settings."""
    for number, settings in enumerate(profiles):
        index.create_profile(f"p{number}", override(Recipe(), list(settings)))


@pytest.fixture
def index(index: Index) -> Index:
    """An index with a profile that waits for its first documents."""
    create(index, RECIPE)
    return index


def assert_exact(index: Index) -> None:
    """The stored pairs are those of the stored texts, by brute force, and nothing waits."""
    assert {(one.left, one.right) for one in index.pairs()} == jaccard_pairs(texts_of(index.database), 0.5)
    stats = index.stats(recount=True)
    assert (stats["indexed"], stats["queued"]) == (len(texts_of(index.database)), 0)


def run(sql: str, *parameters: object) -> Step:
    """A step of one statement."""

    def execute(connection: psycopg.Connection[tuple[object, ...]]) -> None:
        assert connection.execute(sql.encode(), parameters).rowcount != 0

    return execute


@pytest.mark.parametrize("others", some([1, 0], "either way"), ids=["more documents", "as many documents"])
def test_other_writers_meanwhile(
    index: Index, database_url: str, signed_by_build: list[str | None], others: int
) -> None:
    """One adds a document, one edits and perhaps one deletes a document of an earlier batch."""
    insert = "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'other', %s)"
    edit = "UPDATE nearsim.document SET body = %s WHERE external_id = 'd1'"
    # The first batch is written before the one that begins with the 33rd record.
    steps = {
        33: run(insert, words(4)),
        34: run(edit, words(9)),
        36: run("DELETE FROM nearsim.document WHERE external_id = 'd2'")
        if not others
        else run("SELECT true"),
    }
    index.ingest(records(stories(COUNT), database_url, steps))
    assert_exact(index)
    # If as many are there as were signed, the build looks for no other; the new one is captured like an edit.
    assert signed_by_build == [words(4)] * others


def test_an_id_that_recurs_in_a_later_batch(index: Index) -> None:
    """Its last text counts."""
    again = [Document("d0", body=words(9)), Document("d5", body=words(2)), Document("d0", body=words(14))]
    index.add([*stories(COUNT)[:20], *again[:2], *stories(COUNT)[20:], *again[2:]])
    assert_exact(index)
    assert index.get("d0")["body"] == words(14)


def test_an_ingest_that_ended_early_is_continued(
    index: Index, database_url: str, signed_by_build: list[str | None]
) -> None:
    """The documents of the first attempt that had been signed are not signed again."""

    def end(connection: psycopg.Connection[tuple[object, ...]]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index._ingest(records(stories(COUNT), database_url, {27: end}), resumable=True)
    with psycopg.connect(database_url) as connection:
        connection.execute(sql.SQL("DELETE FROM {} WHERE doc_id % 5 = 0").format(signature_of(database_url)))
    with Index.connect(database_url) as other:
        other.add(stories(COUNT))
        assert_exact(other)
        assert signed_by_build == [words(number - 1) for number in (5, 10, 15, 20)]


@pytest.mark.slow("several builds")
def test_several_profiles_at_once(database_url: str, signed_by_build: list[str | None]) -> None:
    """A profile with a retention window is left to its build."""
    with Index.connect(database_url, profile="p0") as index:
        create(index, RECIPE, WINDOW + RECIPE, WEIGHTED)
        index.add(stories(COUNT))
        assert_exact(index)
        assert signed_by_build == [words(number) for number in range(COUNT)]
    for profile in ("p1", "p2"):
        with Index.connect(database_url, profile=profile) as index:
            assert_exact(index)


def test_a_paused_build_gets_no_more_signatures(index: Index, database_url: str) -> None:
    pause = "UPDATE nearsim.generation SET state = 'paused'"
    index.ingest(records(stories(COUNT), database_url, {32: run(pause)}))
    with psycopg.connect(database_url) as connection:
        signed = connection.execute(
            sql.SQL("SELECT count(*) FROM {}").format(signature_of(database_url))
        ).fetchone()
        assert signed is not None and int(str(signed[0])) < COUNT
        connection.execute("UPDATE nearsim.generation SET state = 'building'")
    index.build()
    assert_exact(index)


def test_a_process_without_the_build_lock_leaves_signing_to_the_one_that_has_it(
    index: Index, database_url: str, signed_by_build: list[str | None]
) -> None:
    with Index.connect(database_url) as other:
        collection_id = index._collection_id()
        with (
            other.database.builder(collection_id) as held,
            index._catch_up.prepare_first_builds(collection_id, [], None, is_few=False) as contexts,
        ):
            assert held and not contexts
        index.add(stories(COUNT))
        assert_exact(index)
        assert signed_by_build == []


def test_an_error_of_signing_ends_the_ingest(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed before is indexed by the next run."""

    class Broken(Exception):
        pass

    def fail(*given: object, **named: object) -> None:
        raise Broken

    with monkeypatch.context() as patch, pytest.raises(Broken):
        patch.setattr("nearsim_db.indexing.steps.finish_encoding", fail)
        index.add(stories(COUNT))
    index.add(stories(COUNT))
    assert_exact(index)

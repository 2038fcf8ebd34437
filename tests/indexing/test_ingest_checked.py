"""Adding under `on_duplicate`: decided before the insert, and correct with any number of concurrent callers."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from threading import Barrier

import numpy as np
import psycopg
import pytest
from psycopg.sql import SQL

from nearsim_db import Document, DuplicateError, Index, OnDuplicate
from nearsim_db.errors import NotFoundError
from nearsim_db.records import GenerationId
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, Leaves
from nearsim_db.store.generations.tables import GenerationTables
from tests.builders.followed_table import pairs
from tests.builders.near_copies import edited, recipe, text
from tests.builders.selection import some

# The collection's own lock is shared.
STRIPES = "SELECT classid, objid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND mode = 'ExclusiveLock'"


def names(index: Index) -> list[str]:
    with index.database.transaction() as connection:
        rows = connection.execute("SELECT external_id FROM nearsim.document ORDER BY 1").fetchall()
    return [row[0] for row in rows]


def in_order(index: Index) -> list[str]:
    return sorted(names(index), key=lambda name: int(index.get(name)["doc_id"]))


def family(rng: random.Random, size: int) -> list[Document]:
    """Texts that are all near-copies of each other."""
    original = text(rng)
    return [Document(f"d{number}", body=edited(rng, original)) for number in range(size)]


def test_skip_omits_duplicates_and_reports_their_matches(index: Index) -> None:
    rng = random.Random(1)
    first, second, third = family(rng, 3)
    other = Document("other", body=text(rng))
    summary = index.add([first, second, other, third, Document("", body="no id")], on_duplicate="skip")
    assert (summary.read, summary.inserted, summary.skipped, summary.rejected) == (5, 2, 2, 1)
    assert names(index) == ["d0", "other"]
    reported = [(one.external_id, [match.external_id for match in one.matches]) for one in summary.duplicates]
    assert reported == [("d1", ["d0"]), ("d2", ["d0"])]
    assert pairs(index) == set()


def test_flag_adds_duplicates_too(index: Index) -> None:
    documents = family(random.Random(2), 4)
    summary = index.add(documents, on_duplicate="flag")
    assert (summary.inserted, summary.skipped) == (4, 0)
    reported = {one.external_id: {match.external_id for match in one.matches} for one in summary.duplicates}
    assert reported == {"d1": {"d0"}, "d2": {"d0", "d1"}, "d3": {"d0", "d1", "d2"}}
    assert pairs(index) == {frozenset(two) for two in combinations(["d0", "d1", "d2", "d3"], 2)}


def test_raise_keeps_earlier_documents(index: Index) -> None:
    rng = random.Random(3)
    first, second = family(rng, 2)
    others = [Document(f"other{number}", body=text(rng)) for number in range(2)]
    with pytest.raises(DuplicateError, match="'d1' was not added: it is a near-duplicate of 'd0'") as caught:
        index.add([first, others[0], second, others[1]], on_duplicate="raise")
    assert caught.value.external_id == "d1"
    assert [match.external_id for match in caught.value.matches] == ["d0"]
    assert names(index) == ["d0", "other0"]
    assert index.stats()["indexed"] == 2 and index.stats()["queued"] == 0


def test_documents_are_not_duplicates_of_themselves(index: Index) -> None:
    rng = random.Random(4)
    (document,) = family(rng, 1)
    assert index.add([document], on_duplicate="raise").inserted == 1
    assert index.add([document], on_duplicate="raise").unchanged == 1
    changed = Document("d0", body=edited(rng, document.body or ""))
    assert index.add([changed], on_duplicate="raise").updated == 1
    assert index.get("d0")["body"] == changed.body


@pytest.mark.parametrize("decision", ["skip", "raise"])
def test_unchanged_documents_are_not_checked_for_duplicates(index: Index, decision: OnDuplicate) -> None:
    given = [
        replace(
            one, title="t", url="u", published_at=datetime(2024, 5, 31, tzinfo=UTC), attributes={"tags": [1]}
        )
        for one in family(random.Random(12), 3)
    ]
    index.add(given)
    summary = index.add(given, on_duplicate=decision)
    assert (summary.read, summary.unchanged, summary.skipped, summary.duplicates) == (3, 3, 0, [])
    other = replace(given[0], attributes={"tags": [2]})
    if decision == "skip":
        assert index.add([other], on_duplicate=decision).skipped == 1
    else:
        with pytest.raises(DuplicateError) as caught:
            index.add([given[1], other], on_duplicate=decision)
        ended = caught.value.summary
        assert ended is not None and (ended.unchanged, ended.skipped) == (1, 1)
    assert index.get("d0")["attributes"] == {"tags": [1]}


def test_documents_written_in_sql_before_the_call_are_found(index: Index, database_url: str) -> None:
    first, second = family(random.Random(5), 2)
    index.create_profile("p", recipe())
    with psycopg.connect(database_url) as plain:
        plain.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body) "
            "SELECT collection_id, %s, %s FROM nearsim.collection",
            (first.external_id, first.body),
        )
    assert index.add([second], on_duplicate="skip").skipped == 1


def test_documents_without_features_are_added(index: Index) -> None:
    summary = index.add(
        [Document("a"), Document("b", body=" \0"), Document("c", body="!?")], on_duplicate="raise"
    )
    assert (summary.inserted, summary.replaced_characters) == (3, 1)


def test_all_columns_are_written_as_without_on_duplicate(index: Index) -> None:
    document = Document(
        "d\u00e9", "a\0b", "some text", "source", "url", None, {"k\0": ["v", {"n": 1}], "date": "2024-01-01"}
    )
    rows = []
    ways: list[OnDuplicate | None] = [None, "flag"]
    for on_duplicate in ways:
        index.add([document], on_duplicate=on_duplicate)
        row = index.get("d\u00e9")
        rows.append(
            {
                name: row[name]
                for name in row
                if name not in ("doc_id", "created_at", "updated_at", "revision")
            }
        )
        index.delete(["d\u00e9"])
    assert rows[0] == rows[1]


def test_several_profiles_require_a_name(index: Index, database_url: str) -> None:
    first, second = family(random.Random(6), 2)
    index.create_profile("loose", recipe())
    index.create_profile("strict", recipe(threshold=0.999))
    with pytest.raises(NotFoundError, match="name one of: loose, strict"):
        index.add([first], on_duplicate="skip")
    with Index.connect(database_url, profile="strict") as strict:
        assert strict.add([first, second], on_duplicate="skip").inserted == 2
    with Index.connect(database_url, profile="loose") as loose:
        assert loose.add([Document("d2", body=first.body)], on_duplicate="skip").skipped == 1
        assert pairs(loose) == {frozenset(("d0", "d1"))}
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE nearsim.profile SET name = 'default' WHERE name = 'loose'")
    assert index.add([Document("d3", body=first.body)], on_duplicate="skip").skipped == 1
    assert pairs(index) == {frozenset(("d0", "d1"))}


def test_a_profile_that_is_not_built_is_built_first(index: Index, database_url: str) -> None:
    first, second = family(random.Random(7), 2)
    index.create_profile("p", recipe())
    with psycopg.connect(database_url) as plain:
        (state,) = plain.execute("SELECT state FROM nearsim.generation").fetchone() or ("",)
        assert state == "building"
    assert index.add([first, second], on_duplicate="skip").skipped == 1


@pytest.mark.parametrize("edits", some([0, 1], "every choice"))
@pytest.mark.slow("many sessions")
def test_threads_insert_one_of_many_near_copies(index: Index, database_url: str, edits: int) -> None:
    index.create_profile("p", recipe())
    index.build()
    callers, families = 8, 5
    rng = random.Random(8)
    originals = [text(rng) for _ in range(families)]
    given = [
        [
            Document(f"{caller}-{at}", body=edited(rng, original, edits))
            for at, original in enumerate(originals)
        ]
        for caller in range(callers)
    ]
    for documents in given:
        rng.shuffle(documents)
    start = Barrier(callers)

    def add(documents: list[Document]) -> tuple[int, int]:
        with Index.connect(database_url) as own:
            start.wait()
            summary = own.add(documents, on_duplicate="skip")
            return summary.inserted, summary.skipped

    with ThreadPoolExecutor(callers) as pool:
        results = list(pool.map(add, given))
    assert sum(inserted for inserted, _ in results) == families
    assert sum(skipped for _, skipped in results) == (callers - 1) * families
    assert sorted(name.split("-")[1] for name in names(index)) == [str(at) for at in range(families)]


def test_one_index_may_be_used_by_many_threads(index: Index) -> None:
    rng = random.Random(9)
    documents = family(rng, 16)
    start = Barrier(8)

    def add(at: int) -> int:
        start.wait()
        return index.add(documents[at::8], on_duplicate="skip").inserted

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(8))) == 1


@pytest.mark.parametrize("on_duplicate", some(["flag", "skip"], "every choice"))
def test_full_buckets_are_decided_by_the_candidate_relation(
    index: Index, database_url: str, on_duplicate: OnDuplicate
) -> None:
    """The anchors of full buckets are the only candidates of the near-copies; concurrent callers find them."""
    index.create_profile("p", recipe(bucket_limit=2))
    rng = random.Random(10)
    documents = family(rng, 30)
    index.add(documents[:6])
    late = documents[6:]
    start = Barrier(6)

    def add(at: int) -> tuple[int, int, int]:
        with Index.connect(database_url) as own:
            start.wait()
            summary = own.add(late[at::6], on_duplicate=on_duplicate)
            return summary.inserted, summary.skipped, len(summary.duplicates)

    with ThreadPoolExecutor(6) as pool:
        results = np.array(list(pool.map(add, range(6)))).sum(axis=0).tolist()
    assert results == ([24, 0, 24] if on_duplicate == "flag" else [0, 24, 24])
    if on_duplicate == "flag":
        stored = pairs(index)
        with Index.connect(database_url, collection="fresh") as fresh:
            fresh.create_profile("p", recipe(bucket_limit=2))
            fresh.add(Document(name, body=index.get(name)["body"]) for name in in_order(index))
            assert pairs(fresh) <= stored
            assert pairs(fresh)


def leaves_of(url: str, *collections: str) -> list[Leaves]:
    """Create empty collections; return the tables of their generations."""
    found = []
    for collection in collections:
        with Index.connect(url, collection=collection) as index:
            index.create_collection()
            found.append(index.serving().context.leaves)
    return found


def lock(connection: Connection, leaves: Leaves, keys: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> bool:
    """Lock buckets of a generation until the transaction ends; return whether there is the generation."""
    return GenerationTables(connection, leaves).lookups.lock_buckets(keys, "a")


def test_inserting_a_near_copy_waits_for_the_other(database_url: str) -> None:
    """While one transaction holds a stripe, only transactions that need the stripe wait."""
    leaves, others = leaves_of(database_url, "first", "second")
    engine = open_engine(database_url)
    mine, shared, apart = (np.array(keys, np.uint64) for keys in ([5, 1029, 2**60 + 8], [8], [9, 10]))
    with engine.connect() as one, engine.connect() as two, psycopg.connect(database_url) as watching:
        assert lock(one, leaves, mine)
        held = watching.execute(STRIPES).fetchall()
        assert len(held) == 2
        lock(two, leaves, apart)
        two.rollback()
        two.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            lock(two, leaves, shared)
        two.rollback()
        lock(two, others, shared)
        one.rollback()
        lock(two, leaves, shared)
        assert not lock(two, Leaves(GenerationId(FIRST_OWN + 7)), shared)
    engine.dispose()


def test_stripes_are_taken_in_ascending_order(database_url: str) -> None:
    """Two callers whose keys cover all stripes in opposite orders never deadlock."""
    (leaves,), keys = leaves_of(database_url, "first"), np.arange(64, dtype=np.uint64)
    start = Barrier(2)
    engine = open_engine(database_url)

    def take(own: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> int:
        done = 0
        start.wait()
        for _ in range(100):
            with engine.connect() as connection:
                lock(connection, leaves, own)
                done += 1
                connection.rollback()
        return done

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(take, (keys, keys[::-1]))) == [100, 100]
    with psycopg.connect(database_url) as watching:
        row = watching.execute(
            SQL("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        ).fetchone()
        assert row == (0,)
    engine.dispose()


def test_locks_do_not_tell_which_text_is_added(database_url: str) -> None:
    """The same buckets have other locks with another secret, which readers and writers do not read."""
    (leaves,), keys = leaves_of(database_url, "first"), np.arange(64, dtype=np.uint64)
    taken = []
    with Index.connect(database_url, collection="first") as index:
        for _ in range(2):
            with index.database.transaction() as connection:
                lock(connection, leaves, keys)
                taken.append(set(connection.execute(STRIPES).fetchall()))
                connection.rollback()
            with index.database.transaction() as connection:
                connection.execute("UPDATE nearsim_index.lock_secret SET secret = sha256(secret)")
    assert len(taken[0]) == len(taken[1]) == 64 and taken[0].isdisjoint(taken[1])

    with psycopg.connect(database_url) as connection:
        hidden = SQL(
            "SELECT has_table_privilege(role, 'nearsim_index.lock_secret', 'SELECT')"
            " FROM unnest(CAST(%s AS text[])) AS role"
        )
        connection.execute(SQL("SELECT nearsim.create_roles(), nearsim.grant_rights()"))
        roles = [["nearsim_reader", "nearsim_writer"]]
        assert connection.execute(hidden, roles).fetchall() == [(False,), (False,)]

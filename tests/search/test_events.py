"""Events: each change is published once, in commit order, whichever session made it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import psycopg
import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.clusters.events import Event
from nearsim_db.store.database import Database
from nearsim_db.store.driver.statements import Leaves
from nearsim_db.worker.worker import Worker
from tests.builders.engine_hooks import before_commits
from tests.builders.event_world import Watcher, snapshot
from tests.builders.relations import leaves_of
from tests.builders.scrambling import DELETE_MEMBER, INSERT_MEMBER, INSERT_PAIR, change, scramble
from tests.builders.selection import some
from tests.builders.workers import BLOCKED, IDLE, Application, application, ask, wait_until

pytestmark = pytest.mark.usefixtures("either_tables")

INSERT_DOCUMENT = (
    b"INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, %s, %s)"
    b" ON CONFLICT (collection_id, external_id) DO UPDATE SET body = excluded.body"
)
RULES = ["match.threshold=0.4", "shingle.k=2"]
BASES = ["a b c d e f g h i j", "k l m n o p q r s t", "a b c d e u v w x y"]
BRIDGE = "a b c d e f g u v w x"  # alike to the first and the last of them, which are not


def unlike(count: int) -> list[Document]:
    """Documents that share no word."""
    return [Document(f"d{number}", body=f"a{number} b{number} c{number}") for number in range(count)]


def all_events(index: Index, after: int | None = None) -> list[Event]:
    """All events of the collection."""
    return list(index.events(after))


@pytest.mark.slow("several builds")
def test_events_equal_the_changes_of_a_transaction(index: Index, database_url: str) -> None:
    """Any statements on the tables, through the parents too, repeated, undone and rolled back."""
    index.add(unlike(14))
    rng = random.Random(3)
    with psycopg.connect(database_url) as writing, application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        watcher.catch_up()
        for _ in range(80):
            scramble(writing, rng)
            if rng.random() < 0.15:
                writing.rollback()
            else:
                writing.commit()
            watcher.look()
            assert watcher.consumer.survivors == watcher.state.survivors()
        assert len(watcher.kinds) == 10
        assert ask(reading, "SELECT count(*) FROM nearsim_index.pending_event") == 0


@pytest.mark.parametrize(
    "setting",
    some(["linkage=connected", "linkage=representative", "numbers_differ=keep-apart"], "every rule"),
)
def test_every_commit_of_a_live_index_is_published(index: Index, database_url: str, setting: str) -> None:
    rng = random.Random(setting)
    index.create_profile(
        "default", override(Recipe(), [*RULES, f"cluster.{setting}", "cluster.keep=longest"])
    )
    index.add(Document(f"d{number}", body=alike(rng)) for number in range(12))
    with Database.connect(database_url) as database, application(database_url) as writing:
        watcher = Watcher(database, writing)
        watcher.catch_up()
        # It is called before each commit, and so looks at the one before.
        before_commits(index.database.engine, watcher.look)
        for number in range(6):
            for _ in range(rng.choice([1, 3, 6])):
                write_somewhere(writing, rng)
            if number % 2:
                writing.execute("DELETE FROM nearsim.document WHERE external_id = 'bridge'")
            else:
                writing.execute(INSERT_DOCUMENT, ["bridge", BRIDGE])
            index.build()
            watcher.look()
        assert {"pair_found", "pair_gone", "cluster_merged", "cluster_split"} <= watcher.kinds
        watcher.catch_up()


@pytest.mark.slow("several workers")
def test_many_writers_and_workers(index: Index, database_url: str) -> None:
    index.create_profile("default", override(Recipe(), RULES))
    index.add(Document(f"d{number}", body=alike(random.Random(number))) for number in range(12))
    workers = [Worker(database_url) for _ in range(2)]
    writers = [Thread(target=write_often, args=(database_url, seed)) for seed in range(2)]
    with at_work(workers), application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        wait_until(reading, IDLE)
        watcher.catch_up()
        assert watcher.kinds > {"pair_found", "pair_gone", "cluster_formed", "cluster_gone"}


@contextmanager
def at_work(workers: list[Worker]) -> Iterator[None]:
    """Workers that run during the block, each in a thread."""
    threads = [Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.stop()
        for thread in threads:
            thread.join()


def alike(rng: random.Random) -> str:
    """One of few texts, with a number in it or a different end."""
    words = rng.choice(BASES).split()
    changed = rng.choice([[], [], [str(rng.randrange(3))], rng.sample("klmno", 2)])
    return " ".join([*words[: len(words) - len(changed)], *changed])


def write_often(database_url: str, seed: int) -> None:
    """One of several writers."""
    rng = random.Random(seed)
    with application(database_url) as writing:
        for _ in range(60):
            write_somewhere(writing, rng)


def write_somewhere(writing: Application, rng: random.Random) -> None:
    """Insert, change or delete a document, as any application would."""
    name = f"d{rng.randrange(16)}"
    if rng.random() < 0.25:
        writing.execute("DELETE FROM nearsim.document WHERE external_id = %s", [name])
    else:
        writing.execute(INSERT_DOCUMENT, [name, alike(rng)])


def test_a_large_cluster_is_not_read_for_one_more_member(index: Index, database_url: str) -> None:
    index.add(unlike(1))
    with application(database_url) as writing:
        writing.execute(LARGE_CLUSTER)
        (leaves,) = leaves_of(database_url)
        writing.execute(sql.SQL("ANALYZE {}").format(leaves.table("cluster_member")))
        before = index_entries_read(writing, leaves)
        for doc_id in (5_001, 5_002):
            change(writing, INSERT_MEMBER, True, 1, False, doc_id)
        assert 0 < index_entries_read(writing, leaves) - before < 20


def index_entries_read(connection: Application, leaves: Leaves) -> int:
    """The number of index entries of cluster members read so far."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    asked = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = %s"
    ((read,),) = connection.execute(asked, [leaves.name("cluster_member")]).fetchall()
    return int(str(read))


def test_events_are_in_commit_order(index: Index, database_url: str) -> None:
    index.add(unlike(6))
    last = all_events(index)[-1].event_id
    with psycopg.connect(database_url) as first, psycopg.connect(database_url) as second:
        change(first, INSERT_PAIR, True, 1, 2, 0.5)
        change(second, INSERT_PAIR, True, 3, 4, 0.5)
        second.commit()
        change(second, INSERT_PAIR, True, 5, 6, 0.5)
        # From here on the first has its numbers, and the second must wait for it to be over.
        first.execute("SET CONSTRAINTS ALL IMMEDIATE")
        committing = Thread(target=second.commit)
        committing.start()
        with application(database_url) as reading:
            wait_until(reading, BLOCKED)
        assert [event.left_id for event in all_events(index, last)] == [3]
        first.commit()
        committing.join()
    assert [event.left_id for event in all_events(index, last)] == [3, 1, 5]


def test_deleting_a_head_publishes_its_pairs(index: Index, database_url: str) -> None:
    """By cascade, and through its twins, which are published under the next head."""
    alike = "one two three four five six"
    texts = {"head": alike, "twin": alike, "third": alike, "near": f"{alike} seven"}
    index.add(Document(name, body=text) for name, text in texts.items())
    with application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        watcher.catch_up()
        last = watcher.consumer.last
        index.delete(["head"])
        watcher.catch_up()
    found = all_events(index, last)
    assert [(one.kind, one.left_id, one.right_id) for one in found if one.kind == "pair_gone"] == [
        ("pair_gone", 1, 2),
        ("pair_gone", 1, 3),
        ("pair_gone", 1, 4),
    ]
    assert {one.left for one in found if one.kind == "pair_gone"} == {None}
    assert {(one.left, one.right) for one in found if one.kind == "pair_found"} == {
        ("twin", "third"),
        ("twin", "near"),
    }
    assert [one.kind for one in found if "pair" not in one.kind] == [
        "cluster_renamed",
        "survivor_changed",
        "cluster_changed",
    ]


def test_verdicts_that_change_no_pair_are_published(index: Index, database_url: str) -> None:
    alike = "one two three four"
    index.add(
        [Document("d0", body=alike), Document("d1", body=alike), Document("far", body="five six seven")]
    )
    with application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        watcher.catch_up()
        for decide in (index.pin, index.undo):
            last = watcher.consumer.last
            decide("d1", "far", "one story")
            watcher.catch_up()
            (changed,) = all_events(index, last)
            assert (changed.kind, changed.cluster_id, changed.survivor) == ("cluster_changed", 1, "d0")
            assert (changed.other_ids, changed.other_survivor_ids) == (None, None)


def test_dropping_publishes_one_event(index: Index, database_url: str) -> None:
    index.add(Document(f"d{number}", body="one two three four") for number in range(5))
    index.create_profile("other", override(Recipe(), RULES))
    with application(database_url) as reading:
        watcher = Watcher(index.database, reading)
        watcher.catch_up()
        last = int(str(ask(reading, "SELECT max(event_id) FROM nearsim.event")))
        first, other = (one.generation_id for one in leaves_of(database_url))
        index.delete_profile("other")
        (dropped,) = all_events(index, last)
        assert (dropped.kind, dropped.profile, dropped.generation_id) == ("generation_gone", None, other)
        reading.execute("DELETE FROM nearsim.collection")
        rows = reading.execute(
            "SELECT kind, collection_id, generation_id, collection FROM nearsim.events WHERE event_id > %s",
            [dropped.event_id],
        ).fetchall()
        assert rows == [("generation_gone", 1, first, None)]
        assert snapshot(reading, first).pairs == watcher.state.pairs


def test_a_generation_that_is_live_again_is_one_event(index: Index, database_url: str) -> None:
    index.add(Document(f"d{number}", body="one two three four") for number in range(3))
    with application(database_url) as writing:
        watcher = Watcher(index.database, writing)
        watcher.catch_up()
        pairs = dict(watcher.consumer.pairs)
        assert len(pairs) == 2
        writing.execute("UPDATE nearsim.generation SET state = 'retired'")
        last = watcher.consumer.last
        change(writing, DELETE_MEMBER, True, 3)
        assert [one.kind for one in all_events(index, last)] == ["generation_gone"]
        writing.execute("UPDATE nearsim.generation SET state = 'live'")
        assert [event.kind for event in all_events(index, last)] == ["generation_gone", "generation_live"]
        watcher.catch_up()
        assert watcher.consumer.pairs == pairs


LARGE_CLUSTER = (
    "INSERT INTO nearsim.cluster_member (generation_id, doc_id, cluster_id, is_survivor)"
    " SELECT (SELECT generation_id FROM nearsim.generation), number, 1, number = 1"
    " FROM generate_series(1, 5000) AS number"
)

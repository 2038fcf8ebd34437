"""Retention: the index equals one that never contained the expired documents."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import combinations, product

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.errors import NotFoundError
from nearsim_db.indexing import retention
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.records import GenerationId
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Engine
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, Leaves, statement
from tests.builders.engine_hooks import before_commits
from tests.builders.interleaving import Actor, Schedule, step_through
from tests.builders.selection import some
from tests.indexing.test_index_model import (
    THRESHOLD,
    assert_bands_are_exact,
    clusters,
    components,
    family,
    fresh_build,
    stored_pairs,
    true_pairs,
)
from tests.store.test_plans import plan, serve

AGE_DAYS = 10
BASE = ["shingle.k=2", f"match.threshold={THRESHOLD}"]
WINDOW = [*BASE, f"retain.age={AGE_DAYS} days"]
ONE_BUCKET = ["match.bucket_limit=2", "bands.count=1", "bands.rows=1", "sketch.seed=2"]
NEAR_COPY = "one two three four five six seven eight nine ten own"


@contextmanager
def unseen(database_url: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection whose writes fire no trigger, just as the passing of time fires none."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


def pass_time(database_url: str, days: float) -> None:
    """Advance the clock: everything with a date becomes older by this time."""
    with unseen(database_url) as connection, connection.transaction():
        passed = {"passed": timedelta(days=days)}
        connection.execute(
            "UPDATE nearsim.document "
            "SET published_at = published_at - %(passed)s, created_at = created_at - %(passed)s",
            passed,
        )
        connection.execute(
            "UPDATE nearsim.generation SET expired_through = expired_through - %(passed)s", passed
        )


def expire(database_url: str, names: list[str]) -> None:
    """Make documents leave the window now."""
    with unseen(database_url) as connection:
        connection.execute(
            "UPDATE nearsim.document SET published_at = clock_timestamp() - %s WHERE external_id = ANY(%s)",
            [timedelta(days=AGE_DAYS), names],
        )


def ago(days: float) -> datetime:
    """The time this many days ago."""
    return datetime.now(UTC) - timedelta(days=days)


def indexed(database_url: str) -> set[str]:
    """The documents that are signed."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT external_id FROM nearsim.signature JOIN nearsim.document USING (doc_id)"
        )
        return {row[0] for row in rows}


def work(database_url: str, stage: str) -> set[int]:
    """What is queued for a stage."""
    with psycopg.connect(database_url) as connection:
        return {
            row[0] for row in connection.execute("SELECT doc_id FROM nearsim.work WHERE stage = %s", [stage])
        }


def doc_ids(database_url: str) -> dict[str, int]:
    """The doc_ids of the documents."""
    with psycopg.connect(database_url) as connection:
        return dict(connection.execute("SELECT external_id, doc_id FROM nearsim.document").fetchall())


def context_of(index: Index) -> Context:
    """The context of the index's only profile."""
    return index.serving().context


@pytest.mark.parametrize("bucket_limit, seed", some(list(product([2, 0, 64], [1, 2])), "long histories"))
@pytest.mark.slow("several builds")
def test_random_histories_equal_a_fresh_build_of_retained_documents(
    database_url: str, bucket_limit: int, seed: int
) -> None:
    rng = random.Random(seed)
    limit = f"match.bucket_limit={bucket_limit}"
    texts: dict[str, str] = {}
    days: dict[str, float] = {}
    with Index.connect(database_url, collection="model") as index:
        index.create_profile("default", override(Recipe(), [*WINDOW, limit]))
        for _ in range(7):
            written = {f"d{rng.randrange(80)}": family(rng) for _ in range(25)}
            redated = rng.sample(sorted(texts), min(len(texts), 6))
            texts |= written
            days |= {name: rng.randrange(16) + 0.5 for name in (*written, *redated)}
            index.add(
                Document(name, body=texts[name], published_at=ago(days[name]))
                for name in (*written, *redated)
            )
            gone = rng.sample(sorted(texts), 3)
            index.delete(gone)
            texts = {name: text for name, text in texts.items() if name not in gone}
            passed = rng.randrange(4)
            pass_time(database_url, passed)
            days = {name: days[name] + passed for name in texts}
        index.build()
        inside = {name: text for name, text in texts.items() if days[name] < AGE_DAYS}
        assert 0 < len(inside) < len(texts)
        assert index.stats()["outside_window"] == len(texts) - len(inside)
        assert indexed(database_url) == set(inside)
        assert_bands_are_exact(index)
        stored = stored_pairs(index)
        assert clusters(index) == components(stored)
        assert index.stats()["queued"] == 0
    fresh = fresh_build(database_url, override(Recipe(), [*BASE, limit]), inside)
    truth = true_pairs(inside)
    assert all(truth.get(pair) == counts for pair, counts in stored.items())
    assert set(fresh) <= set(stored)
    if bucket_limit != 2:
        assert set(fresh) == set(stored)


def test_anchors_of_a_full_bucket_expire_in_bulk(database_url: str) -> None:
    rng = random.Random(1)
    names = [f"d{number}" for number in range(60)]
    leaving = ["d0", "d1", *rng.sample(names[2:], 38)]
    left = [name for name in names if name not in leaving]
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [*ONE_BUCKET, f"retain.age={AGE_DAYS} days"]))
        index.add(Document(name, body=f"{NEAR_COPY}{name}") for name in names)
        expire(database_url, leaving)
        assert retention.expire_documents(index.database.engine, context_of(index)) == 40
        index.build()
        assert indexed(database_url) == set(left)
        expected = {frozenset(pair) for pair in combinations(left, 2) if {*pair} & {*left[:2]}}
        assert set(stored_pairs(index)) == expected
        assert clusters(index) == {frozenset(left)}
        assert_bands_are_exact(index)


def test_only_retained_twins_become_heads(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [f"retain.age={AGE_DAYS} days"]))
        index.add(Document(f"d{number}", body=NEAR_COPY) for number in range(8))
        expire(database_url, ["d0", "d1", "d2", "d4", "d5"])
        index.build()
        assert clusters(index) == {frozenset(("d3", "d6", "d7"))}
        assert next(index.clusters()).survivor == "d3"


def test_documents_expire_once(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [f"retain.age={AGE_DAYS} days"]))
        index.add(Document(f"d{number}", body=NEAR_COPY) for number in range(5))
        expire(database_url, ["d1", "d2"])
        context = context_of(index)
        assert retention.expire_documents(index.database.engine, context) == 2
        assert retention.expire_documents(index.database.engine, context) == 0
        ids = doc_ids(database_url)
        assert work(database_url, "sign") == {ids["d1"], ids["d2"]}


def test_interrupted_expiry_is_completed_by_the_next(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), [f"retain.age={AGE_DAYS} days"]))
        index.add(Document(f"d{number}", body=NEAR_COPY) for number in range(5))
        expire(database_url, ["d1", "d2"])
        engine = open_engine(database_url)

        def interrupt() -> None:
            raise InterruptedError

        before_commits(engine, interrupt)
        with pytest.raises(InterruptedError):
            retention.expire_documents(engine, context_of(index))
        engine.dispose()
        assert work(database_url, "sign") == set()
        index.build()
        assert indexed(database_url) == {"d0", "d3", "d4"}


def test_published_at_and_its_updates_decide(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), WINDOW))
        index.add([Document("here", body=NEAR_COPY), Document("old", body=NEAR_COPY, published_at=ago(99))])
        assert indexed(database_url) == {"here"}
        assert index.stats()["queued"] == 0
        for name, days, expected in (
            ("old", 1, {"here", "old"}),
            ("old", 98, {"here"}),
            ("here", 97, set()),
            ("old", -5, {"old"}),
        ):
            with psycopg.connect(database_url) as connection:
                connection.execute(
                    "UPDATE nearsim.document SET published_at = %s WHERE external_id = %s", [ago(days), name]
                )
            index.build()
            assert indexed(database_url) == expected


def test_full_comparison_queues_no_expired_documents(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), WINDOW))
        index.add(
            Document(f"d{number}", body=NEAR_COPY, published_at=ago(number + 0.5)) for number in range(20)
        )
        expire(database_url, ["d3"])
        with psycopg.connect(database_url) as connection:
            connection.execute("INSERT INTO nearsim.change (collection_id, doc_id) VALUES (NULL, NULL)")
        dispatch_changes(index.database.engine)
        with index.database.lease() as lease_id:
            Runner(index.database.engine, context_of(index)).work("compare", lease_id)
        assert work(database_url, "sign") == {doc_ids(database_url)["d3"]}
        index.build()
        assert indexed(database_url) == {f"d{number}" for number in range(AGE_DAYS) if number != 3}


def test_lookup_of_an_expired_document_names_the_window(database_url: str) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("short", override(Recipe(), WINDOW))
        index.create_profile("long", Recipe())
        index.add([Document("new", body=NEAR_COPY), Document("old", body=NEAR_COPY, published_at=ago(11))])
        index.profile = "short"
        assert index.similar("new") == []
        with pytest.raises(
            NotFoundError, match=r"'old' is outside the retention window of profile 'short' \(10 days\)"
        ):
            index.similar("old")
        assert index.stats()["outside_window"] == 1
        index.profile = "long"
        assert [match.external_id for match in index.similar("old")] == ["new"]
        assert index.stats()["outside_window"] == 0


@pytest.mark.slow("interleavings")
@pytest.mark.parametrize("seed", some(range(5), "every seed"))
def test_any_interleaving_expires_all_documents(database_url: str, major: int, seed: int) -> None:
    """Documents expire and are redated while two processes queue expired ones and a worker signs, by the statement."""
    rng = random.Random(100 * major + seed)
    names = [f"d{number}" for number in range(16)]
    redated = names[12:]
    engine = open_engine(database_url)
    step_through(engine)
    with Index.connect(database_url) as index, psycopg.connect(database_url, autocommit=True) as monitor:
        index.create_profile("default", override(Recipe(), [*ONE_BUCKET, f"retain.age={AGE_DAYS} days"]))
        index.add(Document(name, body=f"{NEAR_COPY}{name}") for name in names[:10])
        expire(database_url, [*names[:4], *redated])
        with psycopg.connect(database_url) as writer:
            for name in names[10:]:
                writer.execute(
                    "INSERT INTO nearsim.document (collection_id, external_id, body) "
                    "SELECT collection_id, %s, %s FROM nearsim.collection",
                    [name, f"{NEAR_COPY}{name}"],
                )
        context = context_of(index)

        def sign() -> None:
            lease = Database(engine, index.database.settings).lease()
            with lease as lease_id:
                dispatch_changes(engine)
                for stage in ("sign", "search", "sign"):
                    Runner(engine, context_of(index)).work(stage, lease_id)

        def expire_documents() -> None:
            retention.expire_documents(engine, context)

        def live() -> None:
            with engine.connect() as connection:
                for name in rng_names:
                    expire(database_url, [name])
                    connection.execute("SELECT 1")
                for name in rng_names[:2]:
                    connection.execute(
                        "UPDATE nearsim.document SET published_at = now() WHERE external_id = %s", [name]
                    )
                    connection.commit()

        rng_names = rng.sample(names[:12], 5)
        actions = {"sign": sign, "expire 1": expire_documents, "expire 2": expire_documents, "live": live}
        schedule = Schedule(rng, monitor)
        schedule.run([Actor(name, action) for name, action in actions.items()], lambda killed: None)
        index.build()
        with psycopg.connect(database_url) as connection:
            inside = connection.execute(
                "SELECT external_id FROM nearsim.document WHERE coalesce(published_at, created_at) >= now() - %s "
                "ORDER BY doc_id",
                [timedelta(days=AGE_DAYS)],
            ).fetchall()
        kept = [row[0] for row in inside]
        assert indexed(database_url) == set(kept), schedule.listing()
        assert_bands_are_exact(index)
        expected = {frozenset(pair) for pair in combinations(kept, 2) if {*pair} & {*kept[:2]}}
        assert expected <= set(stored_pairs(index)), schedule.listing()
    engine.dispose()


def test_only_newly_expired_documents_are_read(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(statement("create_leaves", Leaves(GenerationId(FIRST_OWN + 7))))
        serve(connection, age="10 days")
        connection.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, published_at) "
            "SELECT 7, n::text, now() - make_interval(mins => n) FROM generate_series(1, 20000) AS n"
        )
        connection.commit()
        connection.execute("ANALYZE nearsim.document")
        now = datetime.now(UTC)
        parameters = {
            "collection_id": 7,
            "after": now - timedelta(minutes=10_100),
            "through": now - timedelta(minutes=10_000),
        }
        nodes = plan(connection, "queue_expired", parameters)
        connection.rollback()
    reads = [node for node in nodes if node.get("Index Name") or "Seq" in node["Node Type"]]
    assert {node.get("Index Name") for node in reads} == {"document_age"}
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in reads) <= 250

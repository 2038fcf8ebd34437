"""Workers that die, stop responding or fail at a document: nothing is lost, stored twice or stored late."""

import signal
from collections.abc import Iterator, Sequence

import pytest

from nearsim_db import Index
from nearsim_db.errors import FingerprintError, NearsimError
from nearsim_db.similarity.encoder import Encoded, Encoder
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.store.driver import Engine
from nearsim_db.store.work import backlog, leases, queue
from nearsim_db.store.work.backlog import WorkItem
from nearsim_db.worker.maintenance import StateLog
from nearsim_db.worker.worker import Worker
from tests.builders.workers import (
    BLOCKED,
    IDLE,
    Application,
    WorkerLog,
    WorkerProcess,
    application,
    ask,
    await_first_round,
    running,
    wait_until,
)

WRITE = """
INSERT INTO nearsim.document (collection_id, external_id, body)
SELECT collection_id, 'd' || n, own.text FROM nearsim.collection, generate_series(0, 199) AS n, LATERAL (
    SELECT string_agg('family' || n / 4 || 'word' || at, ' ') || ' own' || n AS text FROM generate_series(1, 12) AS at
) AS own
"""
PAIRS = {
    (f"d{left}", f"d{right}")
    for left in range(200)
    for right in range(200)
    if left // 4 == right // 4 and f"d{left}" < f"d{right}"
}
SIGNED = "SELECT array_agg((doc_id, revision, xmin::text)::text ORDER BY doc_id)::text FROM nearsim.signature"


@pytest.fixture
def other(database_url: str) -> Iterator[Application]:
    """Another application, and an index that has no documents yet."""
    with Index.connect(database_url) as index:
        index.create_profile("default", Recipe())
        index.build()
    with application(database_url) as connection:
        yield connection


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Texts with the word 'poison' cannot be encoded until this is undone; what failed is due again at once."""
    encode = Encoder.encode

    def refuse(encoder: Encoder, texts: Sequence[str], *, keep_features: bool = False) -> Encoded:
        if any("poison" in text for text in texts):
            raise ValueError("this text is poison")
        return encode(encoder, texts, keep_features=keep_features)

    monkeypatch.setattr(Encoder, "encode", refuse)
    monkeypatch.setattr(queue, "DELAYS_SECONDS", (0.0, 0.0, 0.0, 0.0))
    return monkeypatch


def pairs(database_url: str) -> set[tuple[str, str]]:
    """The pairs of the index, without processing its queue."""
    with Index.connect(database_url) as index:
        return {(min(pair.left, pair.right), max(pair.left, pair.right)) for pair in index.pairs()}


def failed(engine: Engine) -> list[WorkItem]:
    """The errors of failed work."""
    with engine.connect() as connection:
        return list(backlog.stream_work(connection, None, None, failed=True))


def stop_in_the_middle(database_url: str, other: Application, worker: WorkerProcess) -> None:
    """Write documents, and suspend a worker after it took them and before it stored anything."""
    await_first_round(other)
    worker.signal(signal.SIGSTOP)
    other.execute(WRITE)
    with application(database_url) as locking, locking.transaction():
        locking.execute("LOCK TABLE nearsim.document IN ACCESS EXCLUSIVE MODE")
        worker.signal(signal.SIGCONT)
        wait_until(other, "SELECT count(*) = 200 FROM nearsim_index.queued_work WHERE lease_id IS NOT NULL")
        wait_until(other, BLOCKED)
        worker.signal(signal.SIGSTOP)


@pytest.mark.slow("kills a process")
def test_a_killed_worker_costs_one_attempt_and_loses_nothing(
    database_url: str, engine: Engine, other: Application
) -> None:
    with running(database_url) as killed:
        stop_in_the_middle(database_url, other, killed)
        killed.signal(signal.SIGKILL)
        killed.wait()
    with engine.connect() as connection:
        wait_until(other, "SELECT NOT (" + BLOCKED + ")")
        assert leases.release_lost_work(connection) == 200
        connection.commit()
    assert ask(other, "SELECT array_agg(DISTINCT attempts)::text FROM nearsim.work") == "{1}"
    with running(database_url, "--once") as another:
        assert another.wait() == 0
    assert pairs(database_url) == PAIRS
    assert ask(other, IDLE)


@pytest.mark.slow("waits until a lease expires")
def test_a_worker_without_heartbeat_loses_its_lease_and_stores_nothing(
    database_url: str, other: Application, logged: WorkerLog
) -> None:
    with running(database_url) as silent:
        stop_in_the_middle(database_url, other, silent)
        assert Worker(database_url, silence_seconds=2.5).drain() == 0
        assert [one.facts["documents"] for one in logged.events("freed")] == [200]
        assert pairs(database_url) == PAIRS
        before = ask(other, SIGNED)
        silent.signal(signal.SIGCONT)
        silent.wait_for_line("this worker's lease expired")
        wait_until(other, IDLE)
        assert ask(other, SIGNED) == before
        silent.signal(signal.SIGTERM)
        assert silent.wait() == 0
    assert ask(other, "SELECT count(*) FROM nearsim_index.lease") == 0


@pytest.mark.slow("repeats failing work")
def test_only_the_failing_document_is_set_aside(
    database_url: str, engine: Engine, other: Application, poison: pytest.MonkeyPatch, logged: WorkerLog
) -> None:
    other.execute(WRITE)
    worker = Worker(database_url)
    assert worker.drain() == 0
    other.execute("UPDATE nearsim.document SET body = body || ' poison' WHERE external_id = 'd9'")
    other.execute("UPDATE nearsim.document SET body = body || ' anew' WHERE external_id <> 'd9'")
    assert worker.drain() == 1
    assert pairs(database_url) == {pair for pair in PAIRS if "d9" not in pair}
    (item,) = failed(engine)
    assert (item.id, item.stage, item.state, item.attempts) == ("d9", "sign", "set aside", 5)
    assert item.error == "ValueError: this text is poison"
    (given_up,) = logged.events("set_aside")
    reported = [one for one in logged.events() if one.event != "summary"]
    assert given_up.level == "error" and reported[-1] == given_up
    assert given_up.facts["collection"] == given_up.facts["profile"] == "default"
    assert given_up.message.startswith("default/default: sign of 1 ")
    assert given_up.message.endswith(": ValueError: this text is poison; see: nearsim work list --failed")
    # A batch of all, smaller ones, then it alone: each failure is logged once.
    assert ["this text is poison" in one.message for one in reported] == [True] * 5

    poison.undo()
    assert worker.drain() == 1
    with engine.begin() as connection:
        assert backlog.retry(connection, None, ["d9", "d8"]) == ["d9"]
    assert worker.drain() == 0
    assert pairs(database_url) == PAIRS
    assert failed(engine) == []


def test_failing_work_can_be_retried_at_once_and_discarded(
    database_url: str, engine: Engine, other: Application, poison: pytest.MonkeyPatch
) -> None:
    poison.setattr(queue, "DELAYS_SECONDS", (3600.0, 3600.0))
    other.execute(
        "INSERT INTO nearsim.document (collection_id, external_id, body) VALUES (1, 'd1', 'poison')"
    )
    worker = Worker(database_url)
    with worker._session(lasts=True) as session:
        while session.run_once():
            pass
        assert [(one.id, one.state, one.attempts) for one in failed(engine)] == [("d1", "failing", 1)]
        assert not session.run_once()
        with engine.begin() as connection:
            assert backlog.retry(connection, None, None) == ["d1"]
        assert session.run_once()
    assert [(one.state, one.attempts) for one in failed(engine)] == [("failing", 2)]
    with engine.begin() as connection:
        assert backlog.discard(connection, None, ["d1", "d2"]) == ["d1"]
        assert backlog.discard(connection, None, None) == []


def test_a_collection_without_a_profile_is_logged_once(
    database_url: str, other: Application, logged: WorkerLog
) -> None:
    other.execute("INSERT INTO nearsim.collection (name) VALUES ('news'), ('empty')")
    other.execute(
        "INSERT INTO nearsim.document (collection_id, external_id)"
        " SELECT collection_id, 'a' FROM nearsim.collection WHERE name = 'news'"
    )
    worker = Worker(database_url)
    with worker._session(lasts=True) as session:
        state_log = StateLog(session._scope)
        for _ in range(2):
            state_log.log_unindexed()
    assert [(one.message, one.level) for one in logged.events()] == [
        ("collection news has documents but no profile; create one: nearsim build -c news", "warning")
    ]
    Worker(database_url, "default").drain()
    assert len(logged.events()) == 1


@pytest.mark.slow("repeats failing work")
def test_discarded_documents_are_not_indexed_until_they_change_and_corrected_ones_need_no_retry(
    database_url: str, engine: Engine, other: Application, poison: pytest.MonkeyPatch
) -> None:
    worker = Worker(database_url)
    other.execute(WRITE)
    other.execute("UPDATE nearsim.document SET title = 'poison' WHERE external_id IN ('d8', 'd9', 'd10')")
    assert worker.drain() == 3
    other.execute("DELETE FROM nearsim.document WHERE external_id = 'd10'")
    other.execute("UPDATE nearsim.document SET title = NULL WHERE external_id = 'd8'")
    with engine.begin() as connection:
        assert backlog.discard(connection, None, ["d9"]) == ["d9"]
    assert worker.drain() == 0
    assert pairs(database_url) == {pair for pair in PAIRS if not {"d9", "d10"} & set(pair)}
    other.execute("UPDATE nearsim.document SET title = 'cured' WHERE external_id = 'd9'")
    assert worker.drain() == 0
    assert pairs(database_url) == {pair for pair in PAIRS if "d10" not in pair}


def test_a_generation_of_another_version_does_not_stop_others(
    database_url: str, other: Application, logged: WorkerLog
) -> None:
    with Index.connect(database_url) as index:
        index.create_profile("older", Recipe())
        index.build()
    other.execute("UPDATE nearsim.generation SET fingerprint = 'older' WHERE generation_id = 2")
    other.execute(WRITE)
    with pytest.raises(FingerprintError):
        Worker(database_url).drain()
    assert [one.facts for one in logged.events("refused")] == [
        {"collection": "default", "profile": "older", "generation": 2}
    ]
    assert ask(other, "SELECT array_agg(DISTINCT generation_id)::text FROM nearsim.work") == "{2}"
    with Index.connect(database_url, profile="default") as index:
        assert len(list(index.pairs())) == len(PAIRS)


def test_an_unattended_profile_is_built_when_it_has_documents(database_url: str, other: Application) -> None:
    with Index.connect(database_url, collection="later") as index:
        index.create_profile("default", Recipe())
        index.database.create_collection("without a profile")
        assert Worker(database_url).drain() == 0
        assert index.stats()["state"] == "building"
        other.execute(
            "INSERT INTO nearsim.document (collection_id, external_id, body)"
            " SELECT collection_id, n, 'the same text' FROM nearsim.collection, generate_series(1, 2) AS n"
            " WHERE name = 'later'"
        )
        assert Worker(database_url).drain() == 0
        assert [(pair.left, pair.right) for pair in index.pairs()] == [("1", "2")]
        assert index.stats()["state"] == "live"


@pytest.mark.slow("repeats failing work")
def test_a_failed_build_does_not_stop_others(
    database_url: str, engine: Engine, other: Application, poison: pytest.MonkeyPatch, logged: WorkerLog
) -> None:
    other.execute(WRITE)
    other.execute("UPDATE nearsim.document SET title = 'poison' WHERE external_id = 'd9'")
    with Index.connect(database_url) as index, pytest.raises(ValueError, match="poison"):
        index.create_profile("second", Recipe())
    with pytest.raises(NearsimError, match="cannot be built: ValueError: this text is poison"):
        Worker(database_url).drain()
    assert [one.level for one in logged.events("build_failed")] == ["error"]
    with Index.connect(database_url, profile="default") as index:
        assert len(list(index.pairs())) == len(PAIRS) - 3
    poison.undo()
    with engine.begin() as connection:
        backlog.retry(connection, None, None)
    assert Worker(database_url).drain() == 0
    with Index.connect(database_url, profile="second") as index:
        assert len(list(index.pairs())) == len(PAIRS)


def test_cached_features_are_dropped_after_a_purge(database_url: str, other: Application) -> None:
    other.execute(WRITE)
    worker = Worker(database_url)
    with worker._session(lasts=True) as session:
        while session.run_once() or session.has_work():
            session.wait()
        (context,) = session._scope.contexts._contexts.values()
        assert context.cache._entries
        other.execute("UPDATE nearsim.collection SET purged_at = now()")
        session._scope.refresh()
        assert not context.cache._entries

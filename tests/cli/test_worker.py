"""nearsim worker as processes that run, stop and lose their database; its log; nearsim work for set-aside work."""

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from nearsim_db import Index
from nearsim_db.similarity.recipe import Recipe
from tests.builders.selection import some
from tests.builders.server_kills import kill
from tests.builders.workers import (
    BLOCKED,
    IDLE,
    PATIENCE_SECONDS,
    Application,
    application,
    ask,
    await_first_round,
    running,
    wait_until,
)
from tests.servers.citus import AnyServer

INSERT = """
INSERT INTO nearsim.document (collection_id, external_id, body)
SELECT collection_id, 'd' || n, own.text FROM nearsim.collection, generate_series(%s::int, %s::int) AS n, LATERAL (
    SELECT string_agg('family' || n / 4 || 'word' || at, ' ') || ' own' || n AS text FROM generate_series(1, 12) AS at
) AS own
ORDER BY random()
"""


@pytest.fixture
def other(database_url: str) -> Iterator[Application]:
    """Another application, and an index that has no documents yet."""
    prepare(database_url)
    with application(database_url) as connection:
        yield connection


def prepare(url: str) -> None:
    """Make an index of no documents."""
    with Index.connect(url) as index:
        index.create_profile("default", Recipe())
        index.build()


def get(address: str) -> tuple[int, str]:
    """Status and body of a page."""
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.slow("stops a process")
@pytest.mark.parametrize(
    ("number", "code"), some([(signal.SIGTERM, 0), (signal.SIGINT, 130)], "every signal")
)
def test_a_stopped_worker_finishes_its_batch(
    database_url: str, other: Application, number: signal.Signals, code: int
) -> None:
    with running(database_url) as worker:
        await_first_round(other)
        worker.signal(signal.SIGSTOP)
        other.execute(INSERT, (0, 99))
        with application(database_url) as locking, locking.transaction():
            # Only a batch that was taken writes to it.
            locking.execute("LOCK TABLE nearsim.signature IN SHARE MODE")
            worker.signal(signal.SIGCONT)
            wait_until(other, BLOCKED)
            worker.signal(number)
        assert worker.wait() == code
    assert ask(other, "SELECT count(*) FROM nearsim_index.lease") == 0
    assert ask(other, "SELECT count(*) FROM nearsim.work WHERE stage = 'sign' OR lease_id IS NOT NULL") == 0
    assert ask(other, "SELECT count(*) FROM nearsim.signature") == 100


def get_when_ready(other: Application, address: str, part: str = "") -> str:
    """The answer of a worker with this part; its queue may be empty a moment before it counts what it did."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := get(address))[0] != 200 or part not in answer[1]:
        assert time.monotonic() < deadline, answer
        other.execute("SELECT pg_sleep(0.02)")
    return answer[1]


def test_health_and_metrics(database_url: str, other: Application) -> None:
    with running(database_url, "--http", "0", "--json") as worker:
        address = json.loads(worker.wait_for_line("starts"))["http"]
        other.execute(INSERT, (0, 99))
        wait_until(other, "SELECT count(*) = 150 FROM nearsim.similar_pair")
        wait_until(other, IDLE)
        body = get_when_ready(other, f"{address}/healthz")
        assert json.loads(body)["ok"] is True
        body = get_when_ready(other, f"{address}/metrics", "nearsim_pairs_stored_total 150")
        metrics = dict(line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
        assert float(metrics['nearsim_documents_total{outcome="done",stage="sign"}']) == 100
        assert float(metrics["nearsim_pairs_stored_total"]) == 150
        assert float(metrics['nearsim_backlog{stage="search"}']) == 0
        assert float(metrics["nearsim_leases"]) == 1
        assert float(metrics['nearsim_info{version="0.1.0"}']) == 1
        assert float(metrics['nearsim_batch_seconds_count{stage="sign"}']) >= 1
        assert get(f"{address}/nothing")[0] == 404


@pytest.mark.slow("starts processes")
def test_a_port_in_use_is_refused(database_url: str) -> None:
    with running(database_url, "--http", "0", "--json") as worker:
        port = json.loads(worker.wait_for_line("starts"))["http"].rsplit(":", 1)[1]
        with running(database_url, "--http", port) as refused:
            assert refused.wait() == 1
            assert f"error: cannot serve at 127.0.0.1, port {port}" in refused.lines[-1]
        with running(database_url, "--http", port, "--json") as refused:
            assert refused.wait() == 1
            record = json.loads(refused.lines[-1])
            assert record["level"] == "error" and f"port {port}" in record["message"]


@pytest.mark.slow("kills a server")
def test_a_worker_reconnects_after_its_server_was_killed(server_to_kill: AnyServer) -> None:
    with server_to_kill.database() as url:
        prepare(url)
        with running(url, "--http", "0") as worker:
            address = worker.wait_for_line("metrics at").rsplit(" ", 1)[1].removesuffix("/metrics")
            with application(url) as other:
                other.execute(INSERT, (0, 99))
                wait_until(other, IDLE)
            kill(server_to_kill.cluster)
            assert "retrying" in worker.wait_for_line("error: ")
            assert get(f"{address}/healthz")[0] == 503
            assert "nearsim_backlog{" not in get(f"{address}/metrics")[1]
            server_to_kill.cluster.start()
            worker.wait_for_line("reconnected")
            with application(url) as other:
                other.execute(INSERT, (100, 199))
                wait_until(other, IDLE)
                assert ask(other, "SELECT count(*) FROM nearsim.similar_pair") == 300
            reasons = [line.split("error: ")[1] for line in worker.lines if "error: " in line]
            assert len(reasons) == len(set(reasons)) <= 3
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0

"""The HTTP server of a worker: health, metrics, and clients that send anything but a request."""

import json
import logging
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from nearsim_db.worker import metrics_server
from nearsim_db.worker.contexts import Schedule
from nearsim_db.worker.metrics import Monitor

PATIENCE_SECONDS = 20.0
BRIEF_SECONDS = 0.3
HEALTH = b"GET /healthz HTTP/1.0\r\n\r\n"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"


class HeldMonitor(Monitor):
    """Answers only when it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.released = threading.Event(), threading.Event()

    def health(self) -> tuple[bool, str]:
        self.asked.set()
        assert self.released.wait(PATIENCE_SECONDS)
        return True, "held"


class BrokenMonitor(Monitor):
    """Fails to produce metrics."""

    def exposition(self) -> bytes:
        raise ValueError("a fault of its own")


@contextmanager
def served(
    monitor: Monitor | None = None, client_seconds: float = PATIENCE_SECONDS
) -> Iterator[tuple[str, int]]:
    """The address of a server."""
    with metrics_server.serve(monitor or Monitor(), "127.0.0.1", 0, client_seconds) as address:
        split = urlsplit(address)
        assert split.hostname is not None and split.port is not None
        yield split.hostname, split.port
        wait_for_idle_server()


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """The address of a server that several tests share."""
    with served() as address:
        yield address


def wait_for_idle_server() -> None:
    """Wait until every client's thread has ended, with what it printed."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for thread in threading.enumerate():
        if "process_request_thread" in thread.name:
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive()


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, PATIENCE_SECONDS)


def reset(client: socket.socket) -> None:
    """Close a connection so that the other side's next write to it fails."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def answer(address: tuple[str, int], request: bytes) -> bytes:
    """All that a server sends back until it closes the connection."""
    with connected(address) as client:
        client.sendall(request)
        return received(client)


def received(client: socket.socket) -> bytes:
    parts = []
    try:
        while part := client.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def status(response: bytes) -> int:
    found = re.match(rb"HTTP/1.0 (\d+) ", response)
    assert found is not None, response
    return int(found[1])


def test_a_client_that_hangs_up_leaves_no_trace(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monitor = HeldMonitor()
    with served(monitor) as address:
        early, late = connected(address), connected(address)
        reset(early)
        late.sendall(HEALTH)
        assert monitor.asked.wait(PATIENCE_SECONDS)
        reset(late)
        monitor.released.set()
        assert status(answer(address, HEALTH)) == 200
    assert capsys.readouterr() == ("", "") and caplog.records == []


def test_a_table_that_is_not_followed_makes_a_worker_unhealthy_but_alive() -> None:
    monitor = Monitor()
    monitor.round_done()
    with served(monitor) as address:
        assert status(answer(address, HEALTH)) == 200
        monitor.record_not_followed(["collection 'story' cannot read its attached table"])
        unhealthy = answer(address, HEALTH)
        assert status(unhealthy) == 503 and b"cannot read its attached table" in unhealthy
        assert status(answer(address, HEALTH.replace(b"/healthz", b"/livez"))) == 200


def test_slow_and_silent_clients_are_disconnected(capsys: pytest.CaptureFixture[str]) -> None:
    with served(client_seconds=BRIEF_SECONDS) as address:
        with connected(address) as silent:
            assert received(silent) == b""
        with connected(address) as slow:
            slow.settimeout(0.01)
            began, sent, closed = time.monotonic(), 0, False
            while not closed and time.monotonic() - began < PATIENCE_SECONDS:
                try:
                    sent += slow.send(b"G")
                    closed = slow.recv(1) == b""
                except TimeoutError:
                    continue
                except ConnectionError:
                    closed = True
            assert closed and sent > 1
    assert capsys.readouterr() == ("", "")


def test_many_silent_clients_do_not_stop_the_server() -> None:
    with served(client_seconds=BRIEF_SECONDS) as address, ExitStack() as clients:
        for _ in range(metrics_server.MAX_CLIENTS):
            clients.enter_context(connected(address))
        with connected(address) as refused:
            assert received(refused) == b""
        wait_for_idle_server()
        assert status(answer(address, METRICS)) == 200


def test_a_client_may_close_its_side_after_the_request(address: tuple[str, int]) -> None:
    with connected(address) as client:
        client.sendall(HEALTH.rstrip())
        client.shutdown(socket.SHUT_WR)
        response = received(client)
        assert status(response) == 503
        assert json.loads(response.partition(b"\r\n\r\n")[2])["ok"] is False


def test_head_is_get_without_the_body(address: tuple[str, int]) -> None:
    for path in (b"/healthz", b"/livez", b"/metrics", b"/elsewhere"):
        headers, got = (
            answer(address, method + b" " + path + b" HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
            for method in (b"HEAD", b"GET")
        )
        assert headers[2] == b"" and got[2] != b"" and status(headers[0]) == status(got[0])
        assert b"\nContent-Length: %d" % len(got[2]) in headers[0] + got[0]


MALFORMED = [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    (b"GET /healthz HTTP/9.9.9\r\n\r\n", 400),
    (b"GET /healthz HTTP/2.0\r\n\r\n", 505),
    (b"POST /healthz HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 501),
    (b"GET /\r\n\r\n", 404),
    (b"GET /../../etc/passwd HTTP/1.0\r\n\r\n", 404),
    (b"GET /healthz HTTP/1.0\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
    (b"GET /healthz HTTP/1.0\r\nA: " + b"b" * metrics_server.MAX_HEAD_BYTES, 431),
    (b"GET /" + b"a" * metrics_server.MAX_HEAD_BYTES, 431),
]


def test_malformed_requests_are_refused_without_a_trace(
    address: tuple[str, int], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for request, expected in MALFORMED:
        assert status(answer(address, request)) == expected
    rng = random.Random(5)
    for _ in range(100):
        kept = rng.choice([HEALTH, METRICS])[: rng.randrange(30)]
        answer(address, kept + rng.randbytes(rng.randrange(200)) + b"\r\n\r\n")
    assert status(answer(address, METRICS)) == 200
    wait_for_idle_server()
    assert capsys.readouterr() == ("", "") and caplog.records == []


def test_a_fault_of_the_server_is_one_log_record(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with served(BrokenMonitor()) as address:
        assert answer(address, METRICS) == b""
        assert status(answer(address, HEALTH)) == 503
    (record,) = caplog.records
    assert record.levelno == logging.ERROR and record.__dict__["event"] == "http_failed"
    assert record.getMessage() == "an HTTP request failed: ValueError: a fault of its own"
    assert capsys.readouterr() == ("", "")


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_worker_is_healthy_after_a_recent_round_or_in_a_recent_batch() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    assert monitor.health() == (False, "not connected to the database yet")
    monitor.round_done()
    clock.now += 9
    assert monitor.health() == (True, "last round 9.0 s ago")
    with monitor.batch("sign"):
        clock.now += 299
        assert monitor.health()[0]
        clock.now += 2
        assert monitor.health() == (False, "sign: no progress in the current batch for 301 s")
        monitor.batch_progressed("sign")
        assert monitor.health()[0]
    assert not monitor.health()[0]
    monitor.round_done()
    monitor.database_lost("the server is gone")
    assert monitor.health() == (False, "the server is gone")


def test_a_worker_without_a_database_is_alive_while_it_tries_to_reach_it() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    assert monitor.liveness()[0]
    clock.now += 299
    monitor.database_lost("no space left on device", "disk_full")
    clock.now += 299
    assert monitor.liveness()[0] and not monitor.health()[0]
    clock.now += 2
    assert not monitor.liveness()[0]


def test_batches_are_counted_by_outcome() -> None:
    monitor = Monitor()
    monitor.count_batch("sign", 10, {"failed": 2, "set aside": 1})
    monitor.count_batch("search", 5, {"pairs": 7})
    shown = monitor.exposition().decode().splitlines()
    assert 'nearsim_documents_total{outcome="done",stage="sign"} 7.0' in shown
    assert 'nearsim_documents_total{outcome="set_aside",stage="sign"} 1.0' in shown
    assert 'nearsim_failures_total{stage="sign"} 1.0' in shown
    assert 'nearsim_failures_total{stage="search"} 0.0' in shown
    assert "nearsim_pairs_stored_total 7.0" in shown


def test_services_run_in_order_when_their_period_has_passed() -> None:
    clock, runs = Clock(), list[str]()

    def work() -> None:
        runs.append("slow")
        clock.now += 5

    schedule = Schedule([(60, work), (1, lambda: runs.append("fast"))], clock)
    schedule.run_due()
    assert runs == ["slow", "fast"]
    schedule.run_due()
    assert runs == ["slow", "fast"]
    clock.now += 1
    schedule.run_due()
    assert runs == ["slow", "fast", "fast"]
    clock.now += 59
    schedule.run_due()
    assert runs == ["slow", "fast", "fast", "slow", "fast"]

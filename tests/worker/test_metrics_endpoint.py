"""Health of a worker under a clock of the test; its metrics and services."""

from nearsim_db.worker.contexts import Schedule
from nearsim_db.worker.metrics import Monitor


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

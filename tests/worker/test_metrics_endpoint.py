"""When a worker counts as well, by a clock of the test's own."""

from nearsim_db.worker.metrics import Monitor


class Clock:
    """Time as the test has it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_health_needs_a_round_of_late_or_a_batch_that_is_young() -> None:
    clock = Clock()
    monitor = Monitor(clock)
    assert monitor.health() == (False, "it has not reached the database yet")
    monitor.round_done()
    clock.now += 9
    assert monitor.health() == (True, "last round 9.0 s ago")
    with monitor.batch("sign"):
        clock.now += 299
        assert monitor.health()[0]
        clock.now += 2
        assert monitor.health() == (False, "sign: at the batch at hand for 301 s")
        monitor.batch_goes_on("sign")
        assert monitor.health()[0]
    assert not monitor.health()[0]
    monitor.round_done()
    monitor.troubled("the server is gone")
    assert monitor.health() == (False, "the server is gone")


def test_what_came_of_batches_is_counted() -> None:
    monitor = Monitor()
    monitor.count("sign", 10, {"failed": 2, "set aside": 1})
    monitor.count("search", 5, {"pairs": 7})
    shown = monitor.exposition().decode().splitlines()
    assert 'nearsim_documents_total{outcome="done",stage="sign"} 7.0' in shown
    assert 'nearsim_documents_total{outcome="set_aside",stage="sign"} 1.0' in shown
    assert 'nearsim_failures_total{stage="sign"} 1.0' in shown
    assert 'nearsim_failures_total{stage="search"} 0.0' in shown
    assert "nearsim_pairs_stored_total 7.0" in shown

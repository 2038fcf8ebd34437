"""What a worker shows of itself: its metrics, and whether it is well."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from nearsim_db.errors import NearsimError
from nearsim_db.store.work.backlog import Backlog

_ROUND_SECONDS = 10.0
_BATCH_SECONDS = 300.0
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Monitor:
    """Counts what a worker does, in a registry of its own, and knows when it last showed a sign of life.

    What waits in the database is read by `read_backlog` when the metrics are asked for, from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry = CollectorRegistry()
        self.documents = Counter(
            "nearsim_documents",
            "Documents that went through a stage, by what came of it: done, failed or set_aside",
            ["stage", "outcome"],
            registry=self.registry,
        )
        self.pairs = Counter("nearsim_pairs_stored", "Pairs stored", registry=self.registry)
        self.failures = Counter("nearsim_failures", "Batches that failed", ["stage"], registry=self.registry)
        self.seconds = Histogram(
            "nearsim_batch_seconds",
            "How long batches took, by stage",
            ["stage"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.lost = Counter(
            "nearsim_database_lost", "How often the database was lost", registry=self.registry
        )
        build = Gauge("nearsim_info", "The version at work", ["version"], registry=self.registry)
        build.labels(version("nearsim-db")).set(1)
        self.registry.register(_Waiting(self))
        self.read_backlog: Callable[[], Backlog] | None = None
        self._clock = clock
        self._round_at: float | None = None
        self._batch: tuple[str, float] | None = None
        self._trouble = "it has not reached the database yet"

    def count(self, stage: str, taken: int, came: Mapping[str, int]) -> None:
        """A batch of a stage: how many documents were taken, and the pairs, failures and documents set aside."""
        failed, set_aside = came.get("failed", 0), came.get("set aside", 0)
        outcomes = {"done": taken - failed - set_aside, "failed": failed, "set_aside": set_aside}
        for outcome, documents in outcomes.items():
            self.documents.labels(stage, outcome).inc(max(0, documents))
        self.failures.labels(stage).inc(int(failed + set_aside > 0))
        self.pairs.inc(came.get("pairs", 0))

    def round_done(self) -> None:
        """The worker has been to the database and back."""
        self._round_at = self._clock()

    def troubled(self, reason: str) -> None:
        """The database was lost."""
        self._trouble = reason
        self._round_at = None
        self.read_backlog = None
        self.lost.inc()

    @contextmanager
    def batch(self, stage: str) -> Iterator[None]:
        """A batch is at hand in the block."""
        self.batch_goes_on(stage)
        begun = self._clock()
        try:
            yield
            self.seconds.labels(stage).observe(self._clock() - begun)
        finally:
            self._batch = None

    def batch_goes_on(self, stage: str) -> None:
        """What is at hand takes long, but is coming on."""
        self._batch = (stage, self._clock())

    def health(self) -> tuple[bool, str]:
        """Whether the worker is well, and why or why not."""
        now, batch, round_at = self._clock(), self._batch, self._round_at
        if batch is not None:
            stage, since = batch
            seconds = now - since
            return seconds < _BATCH_SECONDS, f"{stage}: at the batch at hand for {seconds:.0f} s"
        if round_at is None:
            return False, self._trouble
        return now - round_at < _ROUND_SECONDS, f"last round {now - round_at:.1f} s ago"

    def exposition(self) -> bytes:
        """The metrics as Prometheus reads them; without those of the database where it cannot be read."""
        return generate_latest(self.registry)


class _Waiting(Collector):
    """The gauges that are read from the database."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """What waits now."""
        read = self._monitor.read_backlog
        if read is None:
            return
        try:
            backlog = read()
        except NearsimError:
            return
        stages = GaugeMetricFamily(
            "nearsim_backlog", "Work that waits or is being done, by stage", labels=["stage"]
        )
        for stage, waiting in backlog.by_stage.items():
            stages.add_metric([stage], waiting)
        yield stages
        for name, told, value in (
            ("set_aside", "Work set aside after its last attempt", backlog.set_aside),
            ("oldest_waiting_seconds", "The age of the oldest work or change", backlog.oldest_seconds),
            ("changes_waiting", "Changes of documents that are not work yet", backlog.changes),
            ("leases", "Processes at work", backlog.leases),
            ("held", "Work that waits until an index is built or resumed", backlog.held),
        ):
            yield GaugeMetricFamily(f"nearsim_{name}", told, value)

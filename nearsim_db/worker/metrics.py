"""Count what a worker does, for Prometheus, and decide whether it is healthy."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from nearsim_db.errors import NearsimError
from nearsim_db.store.embedded import free_bytes
from nearsim_db.store.work.backlog import Backlog

_MAX_ROUND_SECONDS = 10.0
_MAX_BATCH_SECONDS = 300.0
_CAUSES = ("disk_full", "resources", "limit", "read_only", "connection", "other")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Monitor(Collector):
    """Metrics of one worker in a separate registry, and the times by which its health is judged."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        # Metrics of the worker's work.
        self.registry: CollectorRegistry = CollectorRegistry()
        self.documents: Counter = Counter(
            "nearsim_documents",
            "Documents by stage (compare, sign, search, anchor, link) and outcome: done, failed, set_aside",
            ["stage", "outcome"],
            registry=self.registry,
        )
        self.pairs: Counter = Counter("nearsim_pairs_stored", "Pairs stored", registry=self.registry)
        self.failures: Counter = Counter(
            "nearsim_failures", "Batches that failed", ["stage"], registry=self.registry
        )
        self.seconds: Histogram = Histogram(
            "nearsim_batch_seconds",
            "Duration of batches by stage; build_slices are slices of a build that another process leads",
            ["stage"],
            buckets=_BUCKETS,
            registry=self.registry,
        )

        # Metrics of its surroundings.
        self.interruptions: Counter = Counter(
            "nearsim_database_lost",
            "Interruptions by the server or the connection, by cause: " + ", ".join(_CAUSES),
            ["cause"],
            registry=self.registry,
        )
        for cause in _CAUSES:
            self.interruptions.labels(cause)
        self.connected: Gauge = Gauge(
            "nearsim_database_connected", "1 while the worker has a session", registry=self.registry
        )
        build = Gauge("nearsim_info", "Version of nearsim", ["version"], registry=self.registry)
        build.labels(version("nearsim-db")).set(1)
        self._disk = Gauge(
            "nearsim_disk_free_bytes",
            "Free disk of the worker: temporary (TMPDIR), and data for the embedded server",
            ["place"],
            registry=self.registry,
        )
        with suppress(OSError):  # no temporary folder is writable, and a worker does not need one
            self.watch_disk("temporary", Path(tempfile.gettempdir()))
        self._read_backlog: Callable[[], Backlog] | None = None
        self.registry.register(self)
        self._collecting = Lock()

        # The worker's health.
        self._not_followed: Sequence[str] = ()
        self._clock = clock
        self._round_at: float | None = None  # when the last round ended; None without a database
        self._batch: tuple[str, float] | None = (
            None  # the stage of the current batch, and when it last progressed
        )
        self._problem = "not connected to the database yet"
        self._active_at = clock()  # when a round ended, a batch progressed, or the database was last tried

    def watch_disk(self, place: str, folder: Path) -> None:
        """Export the free space of the disk of a folder, which may not exist yet."""
        self._disk.labels(place).set_function(lambda: free_bytes(folder))

    def count_batch(self, stage: str, taken: int, counts: Mapping[str, int]) -> None:
        """Count a batch of `taken` documents; `counts` has the numbers "failed", "set aside" and "pairs"."""
        failed, set_aside = counts.get("failed", 0), counts.get("set aside", 0)
        outcomes = {"done": taken - failed - set_aside, "failed": failed, "set_aside": set_aside}
        for outcome, documents in outcomes.items():
            self.documents.labels(stage, outcome).inc(max(0, documents))
        self.failures.labels(stage).inc(int(failed + set_aside > 0))
        self.pairs.inc(counts.get("pairs", 0))

    def session_began(self, read_backlog: Callable[[], Backlog]) -> None:
        """Call `read_backlog` to count the queue whenever the metrics are requested; any thread may call it."""
        self._read_backlog = read_backlog

    def session_ended(self) -> None:
        """Leave the queue out of the metrics until the next session begins."""
        self._read_backlog = None

    def record_not_followed(self, reasons: Sequence[str]) -> None:
        """Record the reasons why attached tables are not followed; empty if all of them are."""
        self._not_followed = reasons

    def round_done(self) -> None:
        """Record that the worker completed a round of work."""
        self.connected.set(1)
        self._round_at = self._active_at = self._clock()

    def database_lost(self, reason: str, cause: str = "connection") -> None:
        """Record that the server or the connection interrupted the work; `cause` is one of `_CAUSES`."""
        self._problem = reason
        self._round_at = None
        self._active_at = self._clock()
        self.session_ended()
        self.connected.set(0)
        self.interruptions.labels(cause).inc()

    @contextmanager
    def batch(self, stage: str) -> Iterator[None]:
        """Time the block as a batch of a stage."""
        self.batch_progressed(stage)
        began = self._clock()
        try:
            yield
            self.seconds.labels(stage).observe(self._clock() - began)
        finally:
            self._batch = None

    def batch_progressed(self, stage: str) -> None:
        """Record that a long batch made progress."""
        self._active_at = self._clock()
        self._batch = (stage, self._active_at)

    def liveness(self) -> tuple[bool, str]:
        """Return whether the worker is still running, with or without a database, and the reason."""
        seconds = self._clock() - self._active_at
        return seconds < _MAX_BATCH_SECONDS, f"last active {seconds:.1f} s ago"

    def health(self) -> tuple[bool, str]:
        """Return whether the worker keeps all indexes up to date, and the reason."""
        is_working, reason = self._progress()
        if is_working and self._not_followed:
            return False, "; ".join(self._not_followed)
        return is_working, reason

    def _progress(self) -> tuple[bool, str]:
        """Return whether the worker makes progress, and the reason."""
        now, batch, round_at = self._clock(), self._batch, self._round_at
        if batch is not None:
            stage, since = batch
            seconds = now - since
            return (
                seconds < _MAX_BATCH_SECONDS,
                f"{stage}: no progress in the current batch for {seconds:.0f} s",
            )
        if round_at is None:
            return False, self._problem
        return now - round_at < _MAX_ROUND_SECONDS, f"last round {now - round_at:.1f} s ago"

    def exposition(self) -> bytes:
        """Return the metrics in the text format of Prometheus; the queue is included if the database can be read."""
        # Only one call at a time reads the database, so that many clients do not use up the worker's connections.
        with self._collecting:
            return generate_latest(self.registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges that are read from the database; none if it cannot be read."""
        read_backlog = self._read_backlog
        if read_backlog is None:
            return
        try:
            backlog = read_backlog()
        except NearsimError:
            return

        stages = GaugeMetricFamily(
            "nearsim_backlog", "Queued work, including what is in progress, by stage", labels=["stage"]
        )
        for stage, queued in backlog.by_stage.items():
            stages.add_metric([stage], queued)
        yield stages

        responsive = sum(worker.is_responsive for worker in backlog.workers)
        workers = GaugeMetricFamily(
            "nearsim_workers",
            "Processes at work with an open session: running, or silent without a heartbeat for 30 seconds",
            labels=["state"],
        )
        workers.add_metric(["running"], responsive)
        workers.add_metric(["silent"], len(backlog.workers) - responsive)
        yield workers

        for name, help, value in (
            ("set_aside", "Work set aside after its last attempt", backlog.set_aside),
            (
                "oldest_waiting_seconds",
                "Age of the oldest queued work or change, or since when an attached table is not followed",
                backlog.oldest_seconds,
            ),
            ("changes_waiting", "Changes of documents that are not dispatched yet", backlog.changes),
            ("leases", "Workers and other processes with a lease", backlog.leases),
            (
                "held",
                "Work of an index that waits to be built or resumed, or that this version cannot write to",
                backlog.held,
            ),
            ("tables_attached", "Tables that collections are attached to", backlog.attached),
            ("tables_not_followed", "Attached tables whose changes are not indexed", backlog.not_followed),
        ):
            yield GaugeMetricFamily(f"nearsim_{name}", help, value)

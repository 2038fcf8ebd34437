"""Do the queued work of all generations in batches; log each batch (debug) and a summary each minute (info)."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from nearsim_db.indexing.context import Context
from nearsim_db.indexing.queue.dispatch import dispatch_leased
from nearsim_db.indexing.queue.runner import Runner
from nearsim_db.messages import count_of
from nearsim_db.records import WorkStage
from nearsim_db.store.work import queue
from nearsim_db.store.work.queue import Batch
from nearsim_db.worker.contexts import WorkerLease, WorkerScope, facts_of, log, place_of
from nearsim_db.worker.metrics import Monitor


class WorkLog:
    """Logs batches, and counts them for the next summary."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._documents = Counter[str]()
        self._counts = Counter[str]()

    def log_batch(self, context: Context, batch: Batch, counts: Mapping[str, int], seconds: float) -> None:
        """Log a batch; `counts` has the numbers of stored "pairs", and of documents "failed" and "set aside"."""
        stage, documents = batch.stage, len(batch.doc_ids)
        if not documents:
            return

        self._documents[stage] += documents
        self._counts.update(counts)
        generation, outcome = context.generation, _outcome(counts)
        facts = facts_of(generation) | {
            "stage": stage,
            "documents": documents,
            "pairs": counts.get("pairs", 0),
            "seconds": round(seconds, 3),
        }
        done = f"{stage} {batch.subject} in {seconds:.2f} s{outcome}"
        log(logging.DEBUG, "batch", f"{place_of(generation)}: {done}", facts)

    def summarise(self) -> None:
        """Log what was done in the batches since the last summary, if there were any."""
        seconds = time.monotonic() - self._since

        if self._documents:
            done = ", ".join(f"{stage} {number:,}" for stage, number in self._documents.items())
            facts = {
                "seconds": round(seconds, 1),
                "documents": dict(self._documents),
                "pairs": self._counts["pairs"],
                "failed": self._counts["failed"],
                "set_aside": self._counts["set aside"],
            }
            message = f"documents in the last {seconds:.0f} s: {done}{_outcome(self._counts)}"
            log(logging.INFO, "summary", message, facts)

        self._since = time.monotonic()
        self._documents.clear()
        self._counts.clear()


def _outcome(counts: Mapping[str, int]) -> str:
    pairs = counts.get("pairs", 0)
    shown = [f"{count_of(pairs, 'pair')} stored"] if pairs else []
    shown += [f"{counts[name]:,} {name}" for name in ("failed", "set aside") if counts.get(name)]
    return "".join(f", {outcome}" for outcome in shown)


class QueuedWork:
    """Dispatches changes and does queued work under the worker's lease."""

    def __init__(self, scope: WorkerScope, lease: WorkerLease, monitor: Monitor, work_log: WorkLog) -> None:
        self._scope = scope
        self._lease = lease
        self._monitor = monitor
        self._work_log = work_log

    def run(self, between: Callable[[], None]) -> bool:
        """Dispatch changes, then do a batch of each stage that has work; return whether anything was done.

        `between` is called after the batches of a stage.
        """
        scope = self._scope
        is_done = self._dispatch(between)
        with scope.engine.connect() as connection:
            queued = queue.find_work(connection, scope.collection_id)
            works = [(scope.contexts.find(connection, id), stage) for id, stage in queued]

        for context, stage in works:
            if scope.stopping():
                break
            if context is None:
                continue
            for batch in Runner(scope.engine, context).take(stage, self._lease.lease_id):
                self._run(context, batch)
                is_done = True
            between()

        return is_done

    def _dispatch(self, between: Callable[[], None]) -> bool:
        """Dispatch a batch of changes, and do the work that dispatching puts under the lease."""
        scope = self._scope
        contexts = {
            id: context
            for id, context in scope.contexts.in_use.items()
            if scope.includes(context.collection_id)
        }
        dispatched, batches = dispatch_leased(scope.engine, self._lease.lease_id, list(contexts))

        for id, batch in batches.items():
            if scope.stopping():
                break
            self._run(contexts[id], batch)
            between()
        return dispatched > 0

    def run_during_build(self) -> None:
        """During a long build, keep the lease valid and all other generations up to date."""
        self._lease.keep_alive()
        self.run(self._lease.keep_alive)

    def _run(self, context: Context, batch: Batch) -> None:
        """Do a batch, and search the documents that it signed while their features are cached; count and log both."""
        following: Batch | None = batch
        while following is not None:
            current, warnings = following, list[str]()
            before, began = context.totals.copy(), time.monotonic()
            with self._monitor.batch(current.stage):
                runner = Runner(self._scope.engine, replace(context, warn=warnings.append))
                following = runner.run(current)

            counts = context.totals - before
            self._monitor.count_batch(current.stage, len(current.doc_ids), counts)
            self._work_log.log_batch(context, current, counts, time.monotonic() - began)
            _report(context, current.stage, counts, warnings)


def _report(context: Context, stage: WorkStage, counts: Mapping[str, int], warnings: Sequence[str]) -> None:
    """Log the warnings of a batch; if documents were set aside, log an error that contains the warnings."""
    if not counts["set aside"]:
        for message in warnings:
            context.warn(message)
        return

    place = place_of(context.generation)
    shown = [*(f"{place}: {message}" for message in warnings), "see: nearsim work list --failed"]
    facts = facts_of(context.generation) | {"stage": stage, "documents": counts["set aside"]}
    log(logging.ERROR, "set_aside", "; ".join(shown), facts)

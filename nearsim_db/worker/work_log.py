"""What a worker logs: its batches (debug), their summary (info), and states that need manual action (warning)."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping

from nearsim_db.errors import count_of, suggested_command
from nearsim_db.indexing.context import Context
from nearsim_db.records import CollectionId, GenerationId
from nearsim_db.store import collection_rows, generations
from nearsim_db.store.generation_rows import Generation
from nearsim_db.worker.contexts import Contexts, Scope

_log = logging.getLogger("nearsim.worker")


class WorkLog:
    """Logs batches, and counts them for the next summary."""

    def __init__(self, contexts: Contexts, clock: Callable[[], float] = time.monotonic) -> None:
        self._contexts = contexts
        self._clock = clock
        self._since = clock()
        self._documents = Counter[str]()
        self._counts = Counter[str]()

    def log_batch(
        self, context: Context, stage: str, documents: int, counts: Mapping[str, int], seconds: float
    ) -> None:
        """Log a batch of a stage: its documents, and of these "failed" and "set aside", and the "pairs" stored."""
        if not documents:
            return
        self._documents[stage] += documents
        self._counts.update(counts)
        generation = context.generation
        facts = self._contexts.facts(generation) | {
            "stage": stage,
            "documents": documents,
            "pairs": counts.get("pairs", 0),
            "seconds": round(seconds, 3),
        }
        _log.debug(
            f"{self._contexts.place(generation)}: {stage} {count_of(documents, 'document')} in {seconds:.2f} s"
            f"{_outcome(counts)}",
            extra={"event": "batch", "facts": facts},
        )

    def summarise(self) -> None:
        """Log what the batches since the last summary did, if there were any."""
        seconds = self._clock() - self._since
        if self._documents:
            done = ", ".join(f"{stage} {number:,}" for stage, number in self._documents.items())
            facts = {
                "seconds": round(seconds, 1),
                "documents": dict(self._documents),
                "pairs": self._counts["pairs"],
                "failed": self._counts["failed"],
                "set_aside": self._counts["set aside"],
            }
            _log.info(
                f"documents in the last {seconds:.0f} s: {done}{_outcome(self._counts)}",
                extra={"event": "summary", "facts": facts},
            )
        self._since = self._clock()
        self._documents.clear()
        self._counts.clear()


def _outcome(counts: Mapping[str, int]) -> str:
    pairs = counts.get("pairs", 0)
    shown = [f"{count_of(pairs, 'pair')} stored"] if pairs else []
    shown += [f"{counts[name]:,} {name}" for name in ("failed", "set aside") if counts.get(name)]
    return "".join(f", {one}" for one in shown)


class StateLog:
    """Logs each state once, when it is first seen."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._unindexed: set[CollectionId] = set()
        self._left_behind: set[GenerationId] = set()

    def mark_ready(self) -> None:
        """Mark generations that have caught up as ready to be promoted, and log them."""
        contexts = self._scope.contexts
        with self._scope.engine.connect() as connection:
            ready = generations.mark_ready(connection)
            connection.commit()
            found = [contexts.find(connection, one) for one in ready]
        for one in [context.generation for context in found if context is not None]:
            compare, promote = one.advice("reindex diff"), one.advice("reindex promote")
            _log.info(
                f"{contexts.describe(one)} has caught up; compare: {compare}; then: {promote}",
                extra={"event": "ready", "facts": contexts.facts(one)},
            )

    def log_left_behind(self) -> None:
        """Log builds beside a live index whose process died."""
        with self._scope.engine.connect() as connection:
            left = generations.find_unattended(connection, self._scope.collection_id)
        for generation in left:
            if generation.generation_id not in self._left_behind:
                _log.warning(
                    _left_behind(generation), extra={"event": "left_behind", "facts": _facts(generation)}
                )
        self._left_behind = {one.generation_id for one in left}

    def log_unindexed(self) -> None:
        """Log collections that have documents and no profile."""
        with self._scope.engine.connect() as connection:
            unindexed = collection_rows.list_unindexed(connection)
        for one in unindexed:
            if self._scope.includes(one.collection_id) and one.collection_id not in self._unindexed:
                self._unindexed.add(one.collection_id)
                build = suggested_command("build", one.name)
                _log.warning(
                    f"collection {one.name} has documents but no profile; create one: {build}",
                    extra={"event": "no_profile", "facts": {"collection": one.name}},
                )


def _left_behind(generation: Generation) -> str:
    remedy = generations.remedy(generation, attended=False)
    return (
        f"the build of generation {generation.generation_id} of profile {generation.profile} of collection "
        f"{generation.collection} was left behind: its process ended; {remedy}"
    )


def _facts(generation: Generation) -> dict[str, object]:
    return {"profile": generation.profile, "generation": generation.generation_id}

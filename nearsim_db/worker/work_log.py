"""What a worker logs of its work: each batch at level debug, and a summary of the batches at level info."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping

from nearsim_db.errors import count_of
from nearsim_db.indexing.context import Context
from nearsim_db.worker.contexts import Contexts

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

"""Progress on standard error: bars on a terminal, and log lines elsewhere."""

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Literal

from nearsim_db.cli.output.terminal import logged_to, stderr_handler
from nearsim_db.records import Progress, silent

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from nearsim_db.readers import Source

# The shown name of each step, and the unit of its counts. A step without a unit is not counted.
STEPS = {
    "spool": ("copying the input to disk", "MB"),
    "read": ("reading", "documents"),
    "save": ("writing the rest", "documents"),
    "follow": ("comparing", "rows"),
    "keep": ("copying", "documents"),
    "sign": ("signing", "documents"),
    "signatures": ("indexing sketches", "documents"),
    "bands": ("storing band keys", "documents"),
    "band_index": ("indexing band keys", "documents"),
    "candidates": ("verifying", "documents"),
    "pairs": ("indexing pairs", "documents"),
    "changes": ("checking changes", "documents"),
    "search": ("searching", "documents"),
    "clusters": ("clustering", "documents"),
    "write": ("writing", "documents"),
    "shingle": ("shingling", "documents"),
    "judge": ("scoring shingles", "schemes"),
    "compare": ("comparing pairs", ""),
    "cluster": ("clustering", ""),
    "report": ("reading the index", ""),
    "diff": ("comparing the two indexes", ""),
    "tables": ("reading tables", "tables"),
    "check": ("checking documents", "documents"),
    "check_bands": ("checking band rows", "documents"),
    "check_clusters": ("checking clusters", ""),
}


LogFormat = Literal["text", "json"]

# No rate is shown before this time, because it would say little.
_RATE_SECONDS = 1.0
_LINE_SECONDS = 30.0


class _Bars:
    """A progress bar for each step. The first report of a step completes the bar of the step before."""

    def __init__(self, bars: "RichProgress", source: "Source | None") -> None:
        self._bars = bars
        self._source = source
        self._step: str | None = None
        self._task: TaskID | None = None
        self._whole = ""  # the count to show when the step is complete

    def __call__(self, step: str, done: int, total: int | None) -> None:
        if total == 0:
            return

        if step != self._step or self._task is None:
            self.finish()
            self._step = step
            self._task = self._bars.add_task(STEPS.get(step, (step, ""))[0], total=None, count="", left="")

        unit = STEPS.get(step, (step, ""))[1]
        count = count_shown(done, total, unit, self._bars.tasks[-1].elapsed or 0.0)
        self._whole = ""

        # Measure reading in bytes: the size of the files is known beforehand, the number of their documents is not.
        if step == "read" and self._source is not None:
            done, total = self._source.bytes_read, self._source.total_bytes
        elif total is not None and done < total:
            self._whole = count_shown(0, total, unit, 0.0)

        self._bars.update(self._task, completed=done, total=total, count=count)
        seconds = self._bars.tasks[-1].time_remaining
        self._bars.update(self._task, left=f"{timedelta(seconds=round(seconds))} left" if seconds else "")

    def finish(self) -> None:
        """Show the current step as complete."""
        if self._task is not None:
            # Fill the bar, even if its last report was below the total.
            self._bars.update(self._task, completed=1, total=1, left="")
            if self._whole:
                self._bars.update(self._task, count=self._whole)
            self._bars.stop_task(self._task)


def count_shown(done: int, total: int | None, unit: str, seconds: float) -> str:
    """Return the number of things done and the rate, or the total if nothing is done yet; empty without a unit."""
    if not unit:
        return ""
    if not done:
        return f"{total:,} {unit}" if total else ""
    rate = f", {done / seconds:,.0f}/s" if seconds >= _RATE_SECONDS else ""
    return f"{done:,} {unit}{rate}"


class _ProgressLines:
    """Writes a log record when a step ends, and every 30 seconds while a step runs."""

    def __init__(self, log: logging.Logger) -> None:
        # Reports come from the caller's thread, the lines every 30 seconds from another thread; both take the lock.
        self._log, self._lock, self._ended = log, Lock(), Event()
        self._thread = Thread(target=self._repeat, name="nearsim-progress", daemon=True)
        self._step: str | None = None
        self._total: int | None = None
        self._done, self._begun = 0, 0.0

    def __call__(self, step: str, done: int, total: int | None) -> None:
        if total == 0:
            return
        with self._lock:
            if step != self._step:
                self._write(is_complete=True)
                self._step, self._begun = step, time.monotonic()
            self._done, self._total = done, total

    def __enter__(self) -> "_ProgressLines":
        self._thread.start()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self._ended.set()
        self._thread.join()

        # The other thread has ended, so no lock is needed.
        if error is None:
            self._write(is_complete=True)

    def _repeat(self) -> None:
        while not self._ended.wait(_LINE_SECONDS):
            with self._lock:
                self._write(is_complete=False)

    def _write(self, *, is_complete: bool) -> None:
        if self._step is None:
            return

        seconds = time.monotonic() - self._begun
        name, unit = STEPS.get(self._step, (self._step, ""))
        # The last report of a step may be below its total.
        done = self._total if is_complete and self._total is not None else self._done
        count = count_shown(done, self._total, unit, seconds)
        message = f"{name}: {count}{', ' if count else ''}{'done in ' if is_complete else ''}{seconds:,.1f} s"

        facts = {
            "stage": self._step,
            "done": done,
            "total": self._total,
            "seconds": round(seconds, 3),
            "complete": is_complete,
        }
        self._log.info("%s", message, extra={"event": "progress", "facts": facts})


@contextmanager
def progress_bars(
    quiet: bool, source: "Source | None" = None, log_format: LogFormat | None = None
) -> Iterator[Progress]:
    """Yield a callable that draws progress bars, or that logs lines if there is no terminal or a log format is given.

    With a source, the bar of reading is measured in bytes.
    """
    if quiet:
        yield silent
        return

    if log_format is not None or not sys.stderr.isatty():
        handler = stderr_handler(as_json=log_format == "json")
        with logged_to(handler, "nearsim.progress") as log, _ProgressLines(log) as lines:
            yield lines
        return

    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    with RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=Console(file=sys.stderr, highlight=False, markup=False, emoji=False),
    ) as bars:
        shown = _Bars(bars, source)
        yield shown
        shown.finish()

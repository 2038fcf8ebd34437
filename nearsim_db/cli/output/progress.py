"""Progress bars on standard error, if it is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from nearsim_db.records import Progress, silent

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from nearsim_db.readers import Source

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
    "events": ("publishing events", "events"),
    "write": ("writing", "documents"),
    "shingle": ("shingling", "documents"),
    "judge": ("scoring shingles", "schemes"),
    "compare": ("comparing pairs", ""),
    "report": ("reading the index", ""),
    "diff": ("comparing the two indexes", ""),
    "tables": ("reading tables", "tables"),
    "check": ("checking documents", "documents"),
    "check_bands": ("checking band rows", "documents"),
    "check_clusters": ("checking clusters", ""),
}


_RATE_SECONDS = 1.0


class _Bars:
    """One progress bar per step; the first report of a step completes the bar before it."""

    def __init__(self, bars: "RichProgress", source: "Source | None") -> None:
        self._bars = bars
        self._source = source
        self._step: str | None = None
        self._task: TaskID | None = None
        self._whole = ""  # what a step shows once it is complete

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
            self._bars.update(self._task, completed=1, total=1, left="")
            if self._whole:
                self._bars.update(self._task, count=self._whole)
            self._bars.stop_task(self._task)


def count_shown(done: int, total: int | None, unit: str, seconds: float) -> str:
    """Return how many were done, and how many a second; of a step that does all at once, how many those are."""
    if not unit:
        return ""
    if not done:
        return f"{total:,} {unit}" if total else ""
    rate = f", {done / seconds:,.0f}/s" if seconds >= _RATE_SECONDS else ""
    return f"{done:,} {unit}{rate}"


@contextmanager
def progress_bars(quiet: bool, source: "Source | None" = None) -> Iterator[Progress]:
    """Yield a callable that draws bars, or nothing; with a source, reading is measured in bytes."""
    if quiet or not sys.stderr.isatty():
        yield silent
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

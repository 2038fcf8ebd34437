"""Ingest a file in small batches and die: python -m tests.builders.killed_ingest URL FILE PROGRESS_EVENT|STEP."""

import json
import os
import signal
import sys
from pathlib import Path

from nearsim_db.index import Index
from nearsim_db.indexing import build_bands, build_plan, slice_taker
from nearsim_db.indexing.ingest import bulk
from nearsim_db.indexing.queue import runner, stages
from nearsim_db.readers import Source
from nearsim_db.store.documents import documents


def make_batches_small() -> None:
    """Make batches so small that a small file takes several batches of every stage."""
    bulk._BATCH_DOCUMENTS = documents._MAX_BATCH_DOCUMENTS = 40
    build_bands._BAND_ROWS_PER_COPY = build_bands._SKETCHES_PER_BATCH = 50
    slice_taker._CANDIDATES_PER_BATCH = build_plan._DOCUMENTS_PER_SLICE = 50
    build_plan._MIN_BAND_ROWS_PER_SLICE = 500
    runner._BATCH_DOCUMENTS.update({"sign": 40, "search": 40, "link": 40})
    stages._MEMBERS_PER_BATCH = 40


def main(url: str, file: str, kill_at: str) -> None:
    """Ingest the file, and die at a progress event.

    The event is named by its number, or by a step for the first event of the step. With 0, the ingest is not killed.
    """
    left = int(kill_at) if kill_at.isdigit() else 0

    def progress(step: str, done: int, total: int | None) -> None:
        nonlocal left
        # If `kill_at` is 0 or the name of a step, `left` is below 0 from here on.
        left -= 1
        if left == 0 or (step == kill_at and done):
            os.kill(os.getpid(), signal.SIGKILL)

    make_batches_small()
    with Index.connect(url, progress=progress) as index:
        sys.stdout.write(json.dumps(index.ingest(Source([Path(file)])).inserted))


if __name__ == "__main__":
    main(*sys.argv[1:])

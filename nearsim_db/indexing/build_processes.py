"""Child processes that help with a build."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from nearsim_db.errors import NearsimError
from nearsim_db.indexing.feature_spool import FeatureSpool, SpoolHandle
from nearsim_db.records import GenerationId
from nearsim_db.store import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.generation_rows import Generation

_LEAST_DOCUMENTS = 20_000  # of a build that takes longer than a process to start
_PATIENCE_SECONDS = 5.0


class Helpers:
    """Child processes that take slices of a build; they end with this process, however it ends."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._processes: list[subprocess.Popen[str]] = []

    def start(
        self,
        url: str,
        generation_id: GenerationId,
        amount: int,
        threads: int,
        spool: SpoolHandle | None = None,
    ) -> None:
        """Start so many processes, each with so many threads, that read features from a spool."""
        request = {"url": url, "generation_id": generation_id, "spool": spool and asdict(spool)}
        for _ in range(amount):
            process = subprocess.Popen(
                [sys.executable, "-m", "nearsim_db.indexing.build_helper"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ | {"NEARSIM_THREADS": str(threads), "PYTHONSAFEPATH": "1"},
                text=True,
                pass_fds=() if spool is None else (spool.descriptor,),
            )
            self._processes.append(process)
            assert process.stdin is not None
            # Not an argument, which other users could read: the URL may have a password.
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()

    def check(self) -> None:
        """Raise NearsimError if a process failed; a killed one is only reported, as its slice is done by another."""
        for process in self._processes[:]:
            code = process.poll()
            if code is None:
                continue
            self._processes.remove(process)
            output = process.communicate()[0]
            if code < 0:
                self._warn(f"a process that helped with the build was killed by signal {-code}")
            elif code:
                raise NearsimError(json.loads(output)["error"] if output else "a process of the build failed")

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()
        self._processes = []


@contextmanager
def helpers(
    database: Database,
    generation: Generation,
    warn: Callable[[str], None],
    spool: FeatureSpool | None = None,
) -> Iterator[Helpers]:
    """Have processes help during the block: one less than `database.jobs`, none for a small collection."""
    started = Helpers(warn)
    try:
        if database.jobs > 1 and _is_large(database, generation):
            threads = max(1, database.settings.threads // database.jobs)
            handle = spool.handle() if spool is not None else None
            started.start(database.engine.url, generation.generation_id, database.jobs - 1, threads, handle)
        yield started
    finally:
        started.close()


def _is_large(database: Database, generation: Generation) -> bool:
    with database.transaction() as connection:
        return collection_rows.count_documents(connection, generation.collection_id) > _LEAST_DOCUMENTS

"""Helper processes of a build."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nearsim_db.indexing.context import Context
from nearsim_db.indexing.feature_spool import SpoolHandle
from nearsim_db.indexing.helper_process import HelpBuild, HelperKilledError, HelperProcess
from nearsim_db.store import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.generation_rows import Generation

_LEAST_DOCUMENTS = 20_000  # of a build that takes longer than a process to start


class Helpers:
    """Processes that take slices of a build; they end with this process, however it ends."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self.processes: list[HelperProcess] = []

    def add(self, process: HelperProcess, spool: SpoolHandle | None = None) -> None:
        """Have a process help, which reads features from a spool."""
        self.processes.append(process)
        process.send(HelpBuild(spool))

    def check(self) -> None:
        """Raise NearsimError if a process failed; a killed one is only reported, as its slice is done by another."""
        for process in self.processes[:]:
            try:
                if not process.is_done():
                    continue
            except HelperKilledError as error:
                self._warn(f"a process that helped with the build {error}")
            self.processes.remove(process)

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.close()
        self.processes = []


@contextmanager
def helpers(database: Database, context: Context, warn: Callable[[str], None]) -> Iterator[Helpers]:
    """Have processes help during the block: those that signed the documents, or new ones for a large collection."""
    started = Helpers(warn)
    try:
        processes = context.build.helpers
        if not processes and _is_large(database, context.generation):
            processes = start_helpers(database, context)
        spool = context.build.spool.handle() if processes and context.build.spool is not None else None
        for process in processes:
            started.add(process, spool)
        yield started
    finally:
        started.close()


def start_helpers(database: Database, context: Context) -> list[HelperProcess]:
    """Start processes for a generation, one less than `database.jobs`; they inherit the file of the spool."""
    threads = max(1, database.settings.threads // database.jobs)
    descriptor = None if context.build.spool is None else context.build.spool.descriptor
    return [
        HelperProcess(database.engine.url, context.generation.generation_id, threads, descriptor)
        for _ in range(database.jobs - 1)
    ]


def _is_large(database: Database, generation: Generation) -> bool:
    with database.transaction() as connection:
        return collection_rows.count_documents(connection, generation.collection_id) > _LEAST_DOCUMENTS

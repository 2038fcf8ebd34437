"""A helper process, which signs documents and takes slices of a build: python -m nearsim_db.indexing.helper.

It reads requests from the socket that is its standard input, whose end tells it that the parent has ended, and answers
there. An error that ends it is its last answer.
"""

import os
import sys
import time
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread

from nearsim_db.errors import BuildStoppedError, NearsimError
from nearsim_db.indexing import build
from nearsim_db.indexing.band_keys import BandKeys
from nearsim_db.indexing.context import Context, ContextFactory
from nearsim_db.indexing.feature_spool import FeatureSpool
from nearsim_db.indexing.helper_process import (
    BeginSigning,
    Finished,
    FinishSigning,
    HelpBuild,
    Request,
    SignDocuments,
    Signed,
    Start,
)
from nearsim_db.indexing.signing import sign_new
from nearsim_db.records import GenerationId
from nearsim_db.store.database import Database
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.generations import generation_rows
from nearsim_db.store.settings import prepare_process

_POLL_SECONDS = 0.05


def main() -> int:
    """Help until the build is done, paused or abandoned; return the exit code."""
    prepare_process()
    parent = Connection(os.dup(0))
    try:
        with translate_errors():
            _Helper(parent).run()
    except BuildStoppedError:
        return 0
    except NearsimError as error:
        parent.send(error if type(error).__init__ is NearsimError.__init__ else NearsimError(str(error)))
        return 1
    except Exception as error:
        parent.send(NearsimError(f"{type(error).__name__}: {error}"))
        return 1
    return 0


class _Helper:
    def __init__(self, parent: Connection) -> None:
        self._parent = parent
        self._requests: SimpleQueue[Request] = SimpleQueue()
        Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        try:
            while True:
                self._requests.put(self._parent.recv())
        except (EOFError, ConnectionResetError):
            os._exit(0)

    def run(self) -> None:
        """Connect, and do what the parent asks for."""
        start = self._requests.get()
        assert isinstance(start, Start)
        with (
            Database.connect(start.url) as database,
            ContextFactory.open(database.settings, lambda message: None) as contexts,
        ):
            with database.transaction() as connection:
                generation = generation_rows.get_generation(connection, start.generation_id)
            context = contexts.make(generation)
            while not isinstance(request := self._requests.get(), HelpBuild):
                self._sign(database, context, request)
            if request.spool is not None and context.build.spool is None:
                context.build.spool = FeatureSpool(context.encoder, request.spool)
            _help(database, context)

    def _sign(self, database: Database, context: Context, request: Request) -> None:
        match request:
            case BeginSigning():
                if request.spool is not None:
                    context.build.spool = FeatureSpool(context.encoder, request.spool)
                self._parent.send(Signed(context.build.is_spooling))
            case SignDocuments():
                with database.engine.connect() as connection:
                    sign_new(connection, context, request)
                self._parent.send(Signed(context.build.is_spooling))
            case FinishSigning():
                context.build.finish_spool()
                self._parent.send(Finished(context.build.signed_early, context.build.texts))


def _help(database: Database, context: Context) -> None:
    generation_id, keys = context.generation.generation_id, None
    while stage := _find_stage(database, generation_id):
        if keys is None and stage != "sign" and (stage == "pairs" or not BandKeys.are_spooled(context)):
            # The leader loads and indexes the same band rows meanwhile, on one core.
            with database.transaction() as connection:
                keys = BandKeys.load(connection, context)
        if build.join(database.engine, context, lambda: None, keys):
            context.build.finish_spool()
        else:
            time.sleep(_POLL_SECONDS)


def _find_stage(database: Database, generation_id: GenerationId) -> str | None:
    """Return the stage of the build, None once no slices will follow."""
    with database.transaction() as connection:
        generation = generation_rows.get_generation(connection, generation_id)
    is_unfinished = generation.state == "building" and generation.stage in ("sign", "bands", "pairs")
    return generation.stage if is_unfinished else None


if __name__ == "__main__":
    sys.exit(main())

"""A process that takes slices of a build that its parent leads: python -m nearsim_db.indexing.build_helper.

It reads one line of JSON from standard input, whose end tells it that the parent has ended, and writes the error that
ended it, if any, to standard output.
"""

import json
import os
import signal
import sys
import time
from threading import Thread

from nearsim_db.errors import BuildStoppedError, NearsimError
from nearsim_db.indexing import build
from nearsim_db.indexing.band_keys import BandKeys
from nearsim_db.indexing.context import ContextFactory
from nearsim_db.indexing.feature_spool import FeatureSpool, SpoolHandle
from nearsim_db.indexing.own_process import prepare_process
from nearsim_db.records import GenerationId
from nearsim_db.store import generation_rows
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import translate_errors

_POLL_SECONDS = 0.05


def main() -> int:
    """Help until the build is done, paused or abandoned; return the exit code."""
    # Ctrl-C reaches the parent too, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare_process()
    request = json.loads(sys.stdin.readline())
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        with translate_errors():
            spool = SpoolHandle(**request["spool"]) if request["spool"] else None
            _help(request["url"], GenerationId(request["generation_id"]), spool)
    except BuildStoppedError:
        return 0
    except NearsimError as error:
        sys.stdout.write(json.dumps({"error": str(error)}))
        return 1
    except Exception as error:
        sys.stdout.write(json.dumps({"error": f"{type(error).__name__}: {error}"}))
        return 1
    return 0


def _help(url: str, generation_id: GenerationId, spool: SpoolHandle | None) -> None:
    with Database.connect(url) as database:
        with database.transaction() as connection:
            generation = generation_rows.get_generation(connection, generation_id)
        with ContextFactory.open(database.settings, lambda message: None) as contexts:
            context, keys = contexts.make(generation), None
            if spool is not None:
                context.spool = FeatureSpool.inherited(context.encoder, spool)
            while stage := _find_stage(database, generation_id):
                if keys is None and stage != "sign":
                    # The leader loads and indexes the same band rows meanwhile, on one core.
                    with database.transaction() as connection:
                        keys = BandKeys.load(connection, context)
                if not build.join(database.engine, context, lambda: None, keys):
                    time.sleep(_POLL_SECONDS)


def _find_stage(database: Database, generation_id: GenerationId) -> str | None:
    """Return the stage of the build, None once no slices will follow."""
    with database.transaction() as connection:
        generation = generation_rows.get_generation(connection, generation_id)
    is_unfinished = generation.state == "building" and generation.stage in ("sign", "bands", "pairs")
    return generation.stage if is_unfinished else None


def _end_with_parent() -> None:
    # Not sys.stdin: a thread that waits in it would keep the interpreter from ending.
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())

"""The switch from one generation to another: one short transaction, tried again where it meets a lock."""

from collections.abc import Sequence

from tenacity import RetryError, Retrying, retry_if_exception, stop_after_attempt, wait_random

from nearsim_db.errors import ConflictError
from nearsim_db.records import GenerationId
from nearsim_db.store import generations
from nearsim_db.store.catalog import Generation, State
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import is_lock_timeout, translated

_ATTEMPTS = 200


def promote(database: Database, generation: Generation, before: Sequence[State]) -> GenerationId | None:
    """Let a generation answer in place of the one that does, which is retired; returns that one.

    Raises ConflictError where its state is none of those `before`, or where others hold the locks on and on.
    """
    attempts = Retrying(
        retry=retry_if_exception(is_lock_timeout),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random(0.02, 0.2),
    )

    def attempt() -> GenerationId | None:
        autocommit = {"isolation_level": "AUTOCOMMIT"}
        with database.engine.connect().execution_options(**autocommit) as connection:
            return generations.promote(connection, generation, before)

    with translated():
        try:
            return attempts(attempt)
        except RetryError as error:
            raise ConflictError(
                f"generation {generation.generation_id} was not promoted: others locked the generations of its "
                "profile all the time; nothing was changed, try again"
            ) from error

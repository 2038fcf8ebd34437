"""Promotion: one short transaction that replaces the live generation, retried while locks are held."""

from collections.abc import Sequence

from tenacity import RetryError, Retrying, retry_if_exception, stop_after_attempt, wait_random

from nearsim_db.errors import ConflictError
from nearsim_db.records import GenerationId
from nearsim_db.store import generations
from nearsim_db.store.database import Database
from nearsim_db.store.driver.engine import is_lock_timeout, translate_errors
from nearsim_db.store.generation_rows import Generation, State

_ATTEMPTS = 200


def promote(database: Database, generation: Generation, states: Sequence[State]) -> GenerationId | None:
    """Make a generation in one of some states live; return the previous one, which is retired.

    Raises ConflictError if it is in another state, or if its profile's generations stay locked.
    """
    attempts = Retrying(
        retry=retry_if_exception(is_lock_timeout),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random(0.02, 0.2),
    )

    def attempt() -> GenerationId | None:
        with database.engine.connect(autocommit=True) as connection:
            return generations.promote(connection, generation, states)

    with translate_errors():
        try:
            return attempts(attempt)
        except RetryError as error:
            raise ConflictError(
                f"generation {generation.generation_id} was not promoted: other sessions kept the generations of its "
                "profile locked; nothing was changed, try again"
            ) from error

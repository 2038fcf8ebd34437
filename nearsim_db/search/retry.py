"""The retry policy of queries whose generation is replaced or dropped while they run."""

from collections.abc import Callable
from typing import TypeVar

from nearsim_db.errors import NotFoundError
from nearsim_db.store.driver.engine import is_missing_table

_ATTEMPTS = 50

Answer = TypeVar("Answer")


class GenerationReplacedError(Exception):
    """The generation that a query uses is no longer live."""


def retry_if_replaced(query: Callable[[], Answer], reset: Callable[[], None] = lambda: None) -> Answer:
    """Run a query, and again with the generation that is live then if its own was replaced or dropped.

    `reset` is called before each retry. Raises NotFoundError after 50 attempts. The driver's errors must arrive
    untranslated.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return query()
        except Exception as error:
            if not _is_replaced(error):
                raise
            if attempt < _ATTEMPTS:
                reset()
    raise NotFoundError(f"the live index was replaced during each of {_ATTEMPTS} attempts; try again later")


def _is_replaced(error: Exception) -> bool:
    return isinstance(error, GenerationReplacedError) or is_missing_table(error)

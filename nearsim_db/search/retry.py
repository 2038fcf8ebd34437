"""The retry policy of queries whose generation is replaced or dropped while they run."""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

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
    attempts = Retrying(
        retry=retry_if_exception(_is_replaced),
        stop=stop_after_attempt(_ATTEMPTS),
        before_sleep=lambda state: reset(),
        retry_error_callback=_give_up,
    )
    return attempts(query)


def _is_replaced(error: BaseException) -> bool:
    return isinstance(error, GenerationReplacedError) or (
        isinstance(error, Exception) and is_missing_table(error)
    )


def _give_up(state: RetryCallState) -> NoReturn:
    raise NotFoundError(f"the live index was replaced during each of {_ATTEMPTS} attempts; try again later")

"""Lookups: the verified pairs that a document would have if it were added. Nothing is written."""

from collections.abc import Callable
from functools import partial

from nearsim_db.errors import InputError
from nearsim_db.indexing.context import Context
from nearsim_db.records import Document, Match, Matches
from nearsim_db.search.live_generation import GenerationReplacedError, LiveIndex, retry_if_replaced
from nearsim_db.search.matching import FoundAll, Wanted, encode, look_up
from nearsim_db.store import lookups
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import translate_errors


class Lookups:
    """Looks documents up in the live generation. Threads may share one.

    The live generation is opened once, and again when a lookup finds that it was replaced.
    """

    def __init__(self, database: Database, open_index: Callable[[], LiveIndex]) -> None:
        self._database = database
        self._open_index = open_index
        self._index: LiveIndex | None = None

    def live(self) -> LiveIndex:
        """The live generation. Raises NotFoundError if there is none."""
        index = self._index
        if index is None:
            index = self._index = self._open_index()
        return index

    def find(self, document: Document, min_similarity: float = 0.0, limit: int | None = None) -> Matches:
        """The documents that one would be paired with, twins expanded, without the document that it would replace.

        With a limit the first in the order of their estimates; see `look_up`.
        """
        answer = self.find_wanted(document, Wanted(min_similarity, limit, document.external_id))
        metric = self.live().context.encoder.metric.name
        return Matches((one.match for one in answer.found), metric, has_more=answer.has_more)

    def find_wanted(self, document: Document, wanted: Wanted) -> FoundAll:
        """The documents that one would be paired with."""

        def query() -> FoundAll:
            index = self.live()
            _refuse_text(index.context, document)
            encoded = encode(index.context.encoder, document)
            if encoded is None:
                return FoundAll([])
            found = self._database.ask(partial(look_up, index=index, query=encoded, wanted=wanted))
            if found is None:
                raise GenerationReplacedError
            return found

        with translate_errors():
            return retry_if_replaced(query, self._close)

    def find_locked(self, connection: Connection, document: Document) -> tuple[Context, list[Match]]:
        """Return the documents that one would be paired with, on the caller's connection, and the live generation.

        Locks the document's stripes, so that no other caller adds a near-duplicate before this transaction ends.
        """

        def query() -> tuple[Context, list[Match]]:
            index = self.live()
            encoded = encode(index.context.encoder, document)
            if encoded is None:
                return index.context, []
            lookups.lock_stripes(connection, index.context.leaves, encoded.keys)
            answer = look_up(connection, index, encoded, Wanted(replaced=document.external_id))
            if answer is None:
                raise GenerationReplacedError
            return index.context, [one.match for one in answer.found]

        def reset() -> None:
            connection.rollback()
            self._close()

        return retry_if_replaced(query, reset)

    def _close(self) -> None:
        self._index = None


def _refuse_text(context: Context, document: Document) -> None:
    """Raise InputError for a text without a vector if vectors are compared; a stored document may have its own."""
    if context.encoder.takes_vectors and document.vector is None and not document.external_id:
        raise InputError(
            f"profile {context.generation.profile!r} compares vectors, and this text has none; look up a document that "
            "is stored or has a vector, or name a profile that compares texts"
        )

"""Answer lookup requests: applications submit texts with nearsim.ask() in SQL, and workers look them up."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event

from nearsim_db.errors import DatabaseError, EmptyIndexError, NearsimError
from nearsim_db.indexing.context import ContextFactory
from nearsim_db.indexing.queue.dispatch import dispatch_changes
from nearsim_db.records import CollectionId, Document
from nearsim_db.search.live_generation import LiveIndex, open_live
from nearsim_db.search.locked_lookup import LockedLookups
from nearsim_db.search.lookup import MatchFilter, encode
from nearsim_db.similarity.cache import BoundedCache
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text.clean import clean
from nearsim_db.store import query_rows
from nearsim_db.store.access import collection_rows
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.connection import autocommitting
from nearsim_db.store.driver.driver_errors import is_transient, translate_errors
from nearsim_db.store.signatures import lookup_requests
from nearsim_db.store.signatures.lookup_requests import Answer, Moment, Probe
from nearsim_db.store.work import queue

# A batch is answered in one transaction: the first answer waits for the last, but all share one commit.
_MAX_REQUESTS_PER_BATCH = 8
_POLL_SECONDS = 0.25
# The poll while a check of an insertion waits until other documents are signed.
_SIGNING_POLL_SECONDS = 0.01
_REFRESH_SECONDS = 1.0
_MAX_LOOKUPS_KEPT = 64  # each may cache features of texts
# No document has this external_id.
_NO_ID = ""

_Target = tuple[CollectionId, str, str | None]  # collection, its name, profile


class LookupRequestService:
    """Answers the requests of one collection, or of all collections, exactly as `Index.check` would.

    The service has its own thread and connections, so that no request waits for a batch of documents. If the worker is
    killed, other workers answer the requests that it took. With `lasts` the compiled code is loaded at the start, so
    that the first request does not wait for it.
    """

    def __init__(self, database: Database, collection: str | None, *, lasts: bool) -> None:
        self._database = database
        self._collection = collection
        self._lasts = lasts
        self._stopped = Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="nearsim-lookups")
        self._contexts = ContextFactory(
            replace(database.settings, threads=1), self._pool, lambda warning: None
        )
        self._lookups = BoundedCache[_Target, LockedLookups](_MAX_LOOKUPS_KEPT)
        # What was last read of the live generations of collections with lookups.
        self._live_states: dict[CollectionId, object] = {}
        self._refresh_at = 0.0
        # For each request that checks an insertion: all documents committed before this moment must be signed first.
        self._moments: dict[int, Moment] = {}
        self._running: Future[None] = self._pool.submit(self._run)

    def check(self) -> None:
        """Raise the exception that ended the service, if one did."""
        if self._running.done():
            self._running.result()

    def stop(self) -> None:
        """Finish the current requests and end."""
        self._stopped.set()
        self._pool.shutdown()

    def _run(self) -> None:
        with translate_errors(), self._database.engine.connect(autocommit=True) as connection:
            connection.listen()
            if self._lasts:
                backend = self._database.settings.backend
                encode(Encoder(resolve(Recipe()), backend), Document(_NO_ID, body="a text"))

            while not self._stopped.is_set():
                self._refresh(connection)
                if not self._answer_batch(connection):
                    pause = _SIGNING_POLL_SECONDS if self._moments else _POLL_SECONDS
                    connection.await_notice(pause)

    def _refresh(self, connection: Connection) -> None:
        """Drop the lookups and their caches if a generation was promoted or documents were purged."""
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + _REFRESH_SECONDS
            if collection_rows.read_live_states(connection, self._live_states) != self._live_states:
                self._forget()

    def _forget(self) -> None:
        self._lookups.clear()
        self._live_states.clear()

    def _answer_batch(self, connection: Connection) -> bool:
        """Answer the most urgent requests in one transaction, which locks them; return whether there were any."""
        with autocommitting(connection).transaction():
            requests = lookup_requests.take(connection, self._collection, _MAX_REQUESTS_PER_BATCH)
            taken = {request.probe_id for request in requests}
            self._moments = {id: moment for id, moment in self._moments.items() if id in taken}
            answers = [
                answer
                for request in requests
                if (answer := self._answer_if_signed(connection, request)) is not None
            ]
            if answers:
                lookup_requests.answer(connection, answers)
        return bool(answers)

    def _answer_if_signed(self, connection: Connection, request: Probe) -> Answer | None:
        """Answer a request.

        Returns None if the request checks an insertion, and some documents that were committed before it are not signed
        yet.
        """
        if request.purpose not in ("insert", "locked"):
            return self._answer(request)

        moment = self._moments.get(request.probe_id)
        if moment is None:
            # This order ensures that every change visible in the snapshot is dispatched, here or by another process.
            before = lookup_requests.read_moment(connection)
            dispatch_changes(self._database.engine)
            with self._database.transaction() as dispatched:
                queue.await_dispatchers(dispatched)
            moment = self._moments[request.probe_id] = before._replace(at=queue.server_time(connection))

        try:
            generation = self._lookups_for(request).live().context.generation
        except EmptyIndexError:
            if query_rows.has_documents(connection, request.collection_id):
                return None
            generation_id = None
        except NearsimError:
            return self._answer(request)  # the answer is the same error
        else:
            if generation.tables(connection).work.has_unfinished("sign", moment.at):
                return None
            generation_id = generation.generation_id

        # Discard an answer of a generation that was promoted in between, because it may lack documents.
        answer = self._answer(request)
        return answer if answer.generation_id in (generation_id, None) else None

    def _answer(self, request: Probe) -> Answer:
        """Look up the text of a request. If the error would occur again, the answer is the error message."""
        moment = self._moments.get(request.probe_id)
        snapshot = None if moment is None else moment.snapshot
        try:
            document = Document(_NO_ID, request.title, request.body)
            match_filter = MatchFilter(
                request.min_similarity, request.max_matches, request.external_id or _NO_ID
            )
            lookups = self._lookups_for(request)
            matches = lookups.find(document, match_filter)

            if request.purpose is None:
                generation_id, hashes = None, None
            else:
                # If another generation was promoted in between, nearsim.check_insert asks again or fails.
                generation_id, hashes = lookups.bucket_hashes(document)
        except EmptyIndexError:
            return Answer(request.probe_id, bucket_hashes=[], snapshot=snapshot)
        except Exception as error:
            cause = error.__cause__ if isinstance(error, DatabaseError) else None
            if is_transient(cause if isinstance(cause, Exception) else error):
                raise  # the connection was lost, and the request is answered later
            reason = str(error) if isinstance(error, NearsimError) else f"{type(error).__name__}: {error}"
            return Answer(request.probe_id, error=clean(reason)[0])

        answered = list(zip(matches.doc_ids, matches, strict=True))
        return Answer(request.probe_id, answered, None, generation_id, hashes, snapshot)

    def _lookups_for(self, request: Probe) -> LockedLookups:
        # The key includes the collection's number, because another collection may get the same name later.
        target = request.collection_id, request.collection, request.profile
        lookups = self._lookups.get(target)
        if lookups is None:
            if len(self._live_states) == _MAX_LOOKUPS_KEPT:
                self._forget()
            # Read the state before the index is opened, so that a promotion in between is noticed.
            with self._database.transaction() as connection:
                self._live_states |= collection_rows.read_live_states(connection, [request.collection_id])
            lookups = LockedLookups(
                self._database, partial(self._resolve, request.collection, request.profile)
            )
            self._lookups.put(target, lookups, 1)
        return lookups

    def _resolve(self, collection: str, profile: str | None) -> LiveIndex:
        with self._database.transaction() as connection:
            return open_live(connection, self._contexts, collection, profile)

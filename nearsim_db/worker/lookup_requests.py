"""Answer lookup requests: texts that applications submit with nearsim.ask() in SQL, beside a worker's other work."""

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
from nearsim_db.search.lookup import Wanted, encode
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

# In one transaction: the first answer waits for the last, but they share a commit.
_MAX_REQUESTS_PER_BATCH = 8
_POLL_SECONDS = 0.25
# While documents that an insertion waits for are signed.
_SIGNING_POLL_SECONDS = 0.01
_REFRESH_SECONDS = 1.0
# Each may cache features of texts.
_MAX_LOOKUPS_KEPT = 64
# No document has this external_id.
_NO_ID = ""

_Target = tuple[CollectionId, str, str | None]  # collection, its name, profile


class LookupRequestService:
    """Answers the requests of one collection, or of all, exactly as `Index.check` would.

    It has a thread and connections of its own, so that no request waits for a batch of documents. If the worker is
    killed, other workers answer its requests. With `lasts` it loads compiled code at once, so that the first request
    does not wait for that.
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
        self._live_states: dict[CollectionId, object] = {}  # of collections with lookups, as last read
        self._refresh_at = 0.0
        # By request that checks an insertion: all that was committed before this has to be signed.
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
        """Drop the lookups, with their caches, when a generation was promoted or texts were purged."""
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
        """Answer a request; None if it checks an insertion, and documents committed before are not all signed yet."""
        if request.purpose not in ("insert", "locked"):
            return self._answer(request)

        moment = self._moments.get(request.probe_id)
        if moment is None:
            # In this order, whatever the snapshot shows is dispatched, also what other processes are dispatching.
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
            return self._answer(request)  # which is the error
        else:
            if generation.tables(connection).work.has_unfinished("sign", moment.at):
                return None
            generation_id = generation.generation_id

        # A generation that was promoted meanwhile may lack documents.
        answer = self._answer(request)
        return answer if answer.generation_id in (generation_id, None) else None

    def _answer(self, request: Probe) -> Answer:
        """Look the request's text up; an error that would come again is the answer."""
        moment = self._moments.get(request.probe_id)
        snapshot = None if moment is None else moment.snapshot
        try:
            document = Document(_NO_ID, request.title, request.body)
            wanted = Wanted(request.min_similarity, request.max_matches, request.external_id or _NO_ID)
            lookups = self._lookups_for(request)
            matches = lookups.find(document, wanted)

            if request.purpose is None:
                generation_id, hashes = None, None
            else:
                # After a promotion in between, check_insert asks again or fails.
                generation_id, hashes = lookups.bucket_hashes(document)
        except EmptyIndexError:
            return Answer(request.probe_id, bucket_hashes=[], snapshot=snapshot)
        except Exception as error:
            cause = error.__cause__ if isinstance(error, DatabaseError) else None
            if is_transient(cause if isinstance(cause, Exception) else error):
                raise  # the database was lost, and the request is still to be answered
            reason = str(error) if isinstance(error, NearsimError) else f"{type(error).__name__}: {error}"
            return Answer(request.probe_id, error=clean(reason)[0])

        answered = list(zip(matches.doc_ids, matches, strict=True))
        return Answer(request.probe_id, answered, None, generation_id, hashes, snapshot)

    def _lookups_for(self, request: Probe) -> LockedLookups:
        # By the number too: another collection may get the name.
        target = request.collection_id, request.collection, request.profile
        lookups = self._lookups.get(target)
        if lookups is None:
            if len(self._live_states) == _MAX_LOOKUPS_KEPT:
                self._forget()
            # Read before the index is opened, so that a promotion after that is noticed.
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

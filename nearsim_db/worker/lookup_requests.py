"""Probes: texts that applications ask about from SQL, answered by workers beside their other work."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event

from nearsim_db.errors import DatabaseError, NearsimError
from nearsim_db.indexing.context import Context
from nearsim_db.records import CollectionId, Document
from nearsim_db.search.live_generation import choose_live
from nearsim_db.search.lookup import Found, Lookups, Serving, encode
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve, restore
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text.clean import clean
from nearsim_db.store import catalog, lookup_requests
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection, notify
from nearsim_db.store.driver.engine import autocommitting, is_passing, translated
from nearsim_db.store.lookup_requests import Answer, Probe, ProbeMatch

_AT_ONCE = 8  # in a transaction: the first answer waits for the last, but they share a commit
_POLL_SECONDS = 0.25
_LOOK_SECONDS = 1.0
_KEPT_LOOKUPS = 64  # each may keep features of texts in memory
_UNNAMED = ""  # no document has this external_id

_Asked = tuple[CollectionId, str, str | None]  # of a probe: the collection, its name, and the profile


class Prober:
    """Answers the probes of one collection, or of all, exactly as `Index.check` would.

    It has a thread and connections of its own, so that nobody waits for a batch of documents. Who is killed leaves the
    probes at hand to the others.
    """

    def __init__(self, database: Database, collection: str | None) -> None:
        self._database = database
        self._collection = collection
        self._over = Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="nearsim-probes")
        self._lookups: dict[_Asked, Lookups] = {}
        self._known: object = None
        self._look_at = 0.0
        self._running: Future[None] = self._pool.submit(self._run)

    def check(self) -> None:
        """Raise what ended it, if anything did."""
        if self._running.done():
            self._running.result()

    def end(self) -> None:
        """Finish what is at hand and end."""
        self._over.set()
        self._pool.shutdown()

    def _run(self) -> None:
        engine = self._database.engine.execution_options(isolation_level="AUTOCOMMIT")
        with translated(), engine.connect() as connection:
            notify.listen(connection)
            self._warm_up()
            while not self._over.is_set():
                self._let_go(connection)
                if not self._answer_some(connection):
                    notify.await_notice(connection, _POLL_SECONDS)

    def _warm_up(self) -> None:
        """Load the kernels, for which the first to ask would wait else."""
        encode(Encoder(resolve(Recipe()), self._database.settings.backend), Document(_UNNAMED, body="a text"))

    def _let_go(self, connection: Connection) -> None:
        """Keep nothing of generations that do not serve any more, nor of texts that were purged."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_SECONDS
            known = catalog.list_live(connection), catalog.read_purges(connection)
            if known != self._known:
                self._lookups.clear()
                self._known = known

    def _answer_some(self, connection: Connection) -> bool:
        """One transaction: the most urgent probes, in which they stay locked; whether there were any."""
        with autocommitting(connection).transaction():
            taken = lookup_requests.take(connection, self._collection, _AT_ONCE)
            if taken:
                lookup_requests.answer(connection, [self._answer(probe) for probe in taken])
        return bool(taken)

    def _answer(self, probe: Probe) -> Answer:
        try:
            found = self._lookups_for(probe).find_all(Document(_UNNAMED, probe.title, probe.body))
        except Exception as error:
            if _is_passing(error):
                raise
            told = str(error) if isinstance(error, NearsimError) else f"{type(error).__name__}: {error}"
            return Answer(probe.probe_id, error=clean(told)[0])
        return Answer(
            probe.probe_id,
            [_match(one) for one in found if one.match.similarity >= probe.min_similarity],
        )

    def _lookups_for(self, probe: Probe) -> Lookups:
        asked = probe.collection_id, probe.collection, probe.profile
        if asked not in self._lookups:
            if len(self._lookups) >= _KEPT_LOOKUPS:
                del self._lookups[next(iter(self._lookups))]
            self._lookups[asked] = Lookups(self._database, partial(self._resolve, *asked))
        return self._lookups[asked]

    def _resolve(self, collection_id: CollectionId, collection: str, profile: str | None) -> Serving:
        with self._database.transaction() as connection:
            generations = catalog.list_generations(connection, collection_id)
            generation = choose_live(connection, collection, generations, profile)
            purged_at = catalog.read_purges(connection).get(collection_id)
        encoder = Encoder(restore(generation.recipe, generation.fingerprint), self._database.settings.backend)
        return Serving(Context(generation, encoder, self._pool, 1, lambda warning: None), purged_at)


def _match(found: Found) -> ProbeMatch:
    match = found.match
    return ProbeMatch(
        found.doc_id,
        match.similarity,
        match.estimate,
        match.shared_bands,
        match.intersection,
        match.union,
        match.distance,
    )


def _is_passing(error: Exception) -> bool:
    """Whether the database was lost, by which the probe is as unanswered as before."""
    cause = error.__cause__
    return is_passing(cause if isinstance(error, DatabaseError) and isinstance(cause, Exception) else error)

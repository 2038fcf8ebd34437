"""Updates of clusters after decisions, beside the pages."""

import threading
from typing import Literal, Self

from nearsim_db.errors import NearsimError
from nearsim_db.index import Index
from nearsim_db.search.live_generation import find_live
from nearsim_db.store.review_documents import has_visible_work

State = Literal["current", "updating", "waiting", "failed"]


class Indexer:
    """Brings a collection's index up to date after decisions, in a thread of its own.

    Where the user may not index, `state` is waiting after a decision: a worker updates the clusters.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._requested = threading.Event()
        self._lock = (
            threading.Lock()
        )  # held where a request must not come between a check and a change of the state
        self._stopped = False
        self._may_index = index.database.may_index
        self._thread = threading.Thread(target=self._run, name="review-indexer", daemon=True)
        self.state: State = "current"
        self.error: str = ""

    def __enter__(self) -> Self:
        if self._may_index:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped = True
        self._requested.set()
        if self._may_index:
            self._thread.join()

    def request(self) -> None:
        """Update the index soon; decisions made until then are updated together."""
        with self._lock:
            self.state = "updating" if self._may_index else "waiting"
            self._requested.set()

    def look(self) -> State:
        """Return the state; where a worker updates the clusters, that is current once nothing waits for it."""
        if self.state == "waiting":
            self._requested.clear()
            with self._index.database.transaction() as connection:
                live = find_live(connection, self._index.collection, self._index.profile)
                is_waiting = has_visible_work(connection, live.collection_id, live.generation_id)
            if not is_waiting:
                self._become_current()
        return self.state

    def _become_current(self) -> None:
        with self._lock:
            if not self._requested.is_set():
                self.state = "current"

    def _run(self) -> None:
        while True:
            self._requested.wait()
            if self._stopped:
                return
            self._requested.clear()
            try:
                self._index.build()
            except NearsimError as error:
                self.state, self.error = "failed", str(error)
                continue
            self._become_current()

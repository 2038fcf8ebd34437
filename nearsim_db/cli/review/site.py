"""The state of a review desk that all pages share: the reviewer, the database, the index, and how to render a page.

A thread brings the index up to date after decisions, so that pages need not wait for it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from starlette.responses import HTMLResponse, Response

from nearsim_db.analysis.report.page import asset, content_policy, environment
from nearsim_db.analysis.tuning.labels import write_labels
from nearsim_db.cli.review.call import QUEUES
from nearsim_db.errors import NearsimError
from nearsim_db.index import Index
from nearsim_db.search.live_generation import find_live
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.pairs.review_documents import has_visible_work
from nearsim_db.store.pairs.reviews import Desk, may_review

_PACKAGE = "nearsim_db.cli.review"
State = Literal["current", "updating", "waiting", "failed"]


class Indexer:
    """Brings the index of a collection up to date after decisions, in its own thread.

    If the user may not index, `state` becomes waiting after a decision, and a worker updates the clusters.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._requested = threading.Event()
        # Prevents a request between the check and the change of the state.
        self._lock = threading.Lock()
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
        # Wake the thread, so that it ends.
        self._requested.set()
        if self._may_index:
            self._thread.join()

    def request(self) -> None:
        """Ask for an update of the index. Several decisions before the update need only one update."""
        with self._lock:
            self.state = "updating" if self._may_index else "waiting"
            self._requested.set()

    def look(self) -> State:
        """Return the state. If a worker updates the clusters, the state becomes current when no work waits any more."""
        if self.state == "waiting":
            # Clear the request first: a decision during the query sets it again, and then the state stays waiting.
            self._requested.clear()
            with self._index.database.transaction() as connection:
                live = find_live(connection, self._index.collection, self._index.profile)
                is_waiting = has_visible_work(connection, live.collection_id, live.generation_id)
            if not is_waiting:
                self._become_current()
        return self.state

    def _become_current(self) -> None:
        with self._lock:
            # A decision during the update needs another update.
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


@dataclass(frozen=True, slots=True)
class Site:
    """A review desk that is being served."""

    index: Index
    desk: Desk
    indexer: Indexer
    may_review: bool  # if not, the user may only read
    labels: Path | None = None  # the file of labels, which is kept up to date

    @classmethod
    @contextmanager
    def open(
        cls,
        database: Database,
        collection: str,
        profile: str | None,
        by: str | None,
        labels: Path | None = None,
    ) -> "Iterator[Self]":
        """Open the desk of a collection; at the end, release the leased pairs that are not decided.

        `by` is the author of the decisions, by default the database user. Raises NotFoundError if there is no index.
        """
        with Index(database, collection, profile) as index:
            with index.database.transaction() as connection:
                live = find_live(connection, collection, profile)
                may, user = may_review(connection, live.collection_id)

            desk = Desk(live.collection_id, collection, profile, (by or user).strip() or user)
            with Indexer(index) as indexer:
                site = cls(index, desk, indexer, may, labels)
                site.write_labels()
                yield site
                if may:
                    with index.database.transaction() as connection:
                        desk.release(connection)

    @property
    def database(self) -> Database:
        """The database of the index."""
        return self.index.database

    def live(self, connection: Connection) -> Generation:
        """Return the live generation of the desk's profile. Raises NotFoundError if there is none."""
        return find_live(connection, self.desk.collection, self.desk.profile)

    def render(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """Render a page from a template."""
        style, script = asset("page.css") + asset("review.css", _PACKAGE), asset("review.js", _PACKAGE)
        page = environment(_PACKAGE, "nearsim_db.analysis.report").get_template(template)
        rendered = page.render(
            {"done": None, "queue": None, "filters": "", "in_documents": False} | values,
            desk=self.desk,
            style=style,
            script=script,
            may_review=self.may_review,
            indexer=self.indexer,
            queues=QUEUES,
        )
        policy = content_policy(style, [script], "'self'") + "; connect-src 'self'; frame-ancestors 'none'"
        headers = {"Content-Security-Policy": policy}
        return HTMLResponse(rendered.encode("utf-8", "replace"), status, headers)

    def changed(self) -> None:
        """Update the clusters and the file of labels after a change of verdicts."""
        self.indexer.request()
        self.write_labels()

    def write_labels(self) -> None:
        """Write the active verdicts to the file of labels, if there is one."""
        if self.labels is not None:
            write_labels(self.labels, self.database.labels(self.desk.collection))

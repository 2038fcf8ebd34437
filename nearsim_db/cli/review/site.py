"""One review desk as its pages share it: the reviewer, the database, the index, and how a page is rendered."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from starlette.responses import HTMLResponse, Response

from nearsim_db.analysis.report.page import asset, content_policy, environment
from nearsim_db.analysis.tuning.labels import write_labels
from nearsim_db.cli.review.call import QUEUES
from nearsim_db.cli.review.work import Indexer
from nearsim_db.index import Index
from nearsim_db.search.live_generation import find_live
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.reviews import Desk, may_review

_PACKAGE = "nearsim_db.cli.review"


@dataclass(frozen=True, slots=True)
class Site:
    """A desk that is served."""

    index: Index
    desk: Desk
    indexer: Indexer
    may_review: bool
    labels: Path | None = None

    @classmethod
    @contextmanager
    def open(
        cls, collection: str, profile: str | None, reviewer: str | None, labels: Path | None = None
    ) -> "Iterator[Self]":
        """Open the desk of a collection; at the end what is leased and undecided is given back.

        The reviewer is by default the database user. Raises NotFoundError if nothing is indexed.
        """
        with Index.connect(collection=collection, profile=profile) as index:
            with index.database.transaction() as connection:
                live = find_live(connection, collection, profile)
                may, user = may_review(connection, live.collection_id)
            desk = Desk(live.collection_id, collection, profile, (reviewer or user).strip() or user)
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
        """Return the live generation of the desk's profile. Raises NotFoundError."""
        return find_live(connection, self.desk.collection, self.desk.profile)

    def render(self, template: str, status: int = 200, /, **values: Any) -> Response:
        """Render a page."""
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
        """Follow a change of verdicts: in the clusters, and in the file of labels."""
        self.indexer.request()
        self.write_labels()

    def write_labels(self) -> None:
        """Write the verdicts in force to the file of labels, if one is wanted."""
        if self.labels is not None:
            write_labels(self.labels, self.database.labels(self.desk.collection))

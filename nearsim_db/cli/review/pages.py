"""The pages of the review desk: what they read, and what they do with a decision."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from nearsim_db.analysis.report.page import asset, content_policy, environment
from nearsim_db.analysis.reviewed_sample import estimate
from nearsim_db.analysis.text_diff import compare
from nearsim_db.analysis.tuning.labels import write_labels
from nearsim_db.cli.review.call import OPPOSITE, QUEUES, Call
from nearsim_db.cli.review.clusters import SIDE, draw
from nearsim_db.cli.review.work import Indexer
from nearsim_db.errors import ConflictError, InputError, NearsimError, NotFoundError, UnreachableError
from nearsim_db.index import Index
from nearsim_db.search.live_generation import find_live
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.similarity.text.markup import shown_text
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.reviews import (
    Answer,
    DecidedRow,
    Desk,
    Listed,
    Pair,
    ShownDocument,
    may_review,
)

_PACKAGE = "nearsim_db.cli.review"
_READ_CHARACTERS = 100_000
_COUNTED = 1_000
_LISTED, _COMPARED = 30, 10
_MOST_MEMBERS = 1_000
_SHORTLIST_CHARACTERS, _SHORTLIST_WORDS, _CONTEXT = 20_000, 400, 10
_LARGEST_FORM = 100_000

_ABOUT = {
    "review": "Pairs that the recipe keeps to be looked at (match.review), the most similar first.",
    "threshold": "The least similar fifth of the range above the threshold, the least similar first.",
    "numbers": "Pairs whose numbers differ, the most similar first.",
    "ties": "Pairs that tie a cluster at one place: no third document is similar to both.",
    "torn": "Similar pairs whose documents a verdict keeps in different clusters.",
    "nearly": "Pairs below the threshold between two clusters, the most similar first.",
    "sample": "Pairs drawn at random from each step of similarity; they estimate the precision.",
}
_READ_ONLY = "this user may read the desk only; an administrator grants more: nearsim db grant USER writer"
_TITLES: dict[type[NearsimError], tuple[str, int]] = {
    NotFoundError: ("Not found", 404),
    ConflictError: ("Somebody was faster", 409),
    InputError: ("Not understood", 400),
    UnreachableError: ("The database cannot be reached", 503),
    NearsimError: ("That did not work", 500),
}


@dataclass(frozen=True, slots=True)
class Pages:
    """The application of one desk."""

    database: Database
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
                pages = cls(index.database, desk, indexer, may, labels)
                pages.write_labels()
                yield pages
                if may:
                    with index.database.transaction() as connection:
                        desk.release(connection)

    def application(self) -> Starlette:
        """Return the web application."""
        return Starlette(
            routes=[
                Route("/", self._answer(self.overview)),
                Route("/queue/{queue}", self._answer(self.next)),
                Route("/documents/{queue}", self._answer(self.next_document)),
                Route("/pair/{left:int}/{right:int}", self._answer(self.pair)),
                Route("/cluster/{cluster:int}", self._answer(self.cluster)),
                Route("/counts", self._answer(self.counts)),
                Route("/state", self._answer(self.state)),
                Route("/decide", self._answer(self.decide), methods=["POST"]),
                Route("/take-out", self._answer(self.take_out), methods=["POST"]),
                Route("/keep", self._answer(self.keep), methods=["POST"]),
                Route("/undo", self._answer(self.undo), methods=["POST"]),
            ],
            exception_handlers={404: self._not_found},
        )

    def _answer(self, page: Callable[[Call], Response]) -> "Callable[[Request], Any]":
        """Run a page in a thread; an error of nearsim becomes a page that says it."""

        async def answer(request: Request) -> Response:
            body = await request.body() if request.method == "POST" else b""
            return await run_in_threadpool(self._run, page, Call.of(request, body))

        return answer

    def _run(self, page: Callable[[Call], Response], call: Call) -> Response:
        try:
            if len(call.body) > _LARGEST_FORM:
                raise InputError("the form is too large")
            if call.is_form and not self.may_review:
                return self._message("Read only", 403, NearsimError(_READ_ONLY))
            return page(call)
        except NearsimError as error:
            kinds = (kind for kind in _TITLES if isinstance(error, kind))
            return self._message(*_TITLES[next(kinds)], error)

    def _not_found(self, request: Request, error: Exception) -> Response:
        return self._message("Not found", 404, NotFoundError("there is no such page"))

    def _message(self, title: str, status: int, error: NearsimError) -> Response:
        return self._render("message.html", status, title=title, error=str(error))

    def _render(self, template: str, status: int = 200, /, **values: Any) -> Response:
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

    def overview(self, call: Call) -> Response:
        """The queues with how many pairs are left, and this reviewer's progress."""
        with self.database.transaction() as connection:
            live = find_live(connection, self.desk.collection, self.desk.profile)
            progress = self.desk.progress(connection)
            sampled = self.desk.sampled(connection, live.generation_id)
        return self._render(
            "overview.html",
            estimate=estimate(sampled, _least(from_mapping(live.recipe))),
            about=_ABOUT,
            progress=progress,
            live=live,
            done=call.done(),
        )

    def next(self, call: Call) -> Response:
        """The next pair of a queue, leased to this reviewer; a reader is shown the first."""
        queue, filters = call.queue(), call.filters()
        with self.database.transaction() as connection:
            if self.may_review:
                found = self.desk.lease(connection, queue, filters)
            else:
                listed = self.desk.queue(connection, queue, filters, 1)
                found = (listed[0].left_id, listed[0].right_id) if listed else None
            if found is None:
                return self._empty(connection, call, queue)
            return self._pair(connection, call, queue, *found)

    def _empty(self, connection: Connection, call: Call, queue: str) -> Response:
        return self._render(
            "empty.html", queue=queue, progress=self.desk.progress(connection), done=call.done()
        )

    def next_document(self, call: Call) -> Response:
        """The next document of a queue with its shortlist; side by side if that has one document."""
        queue, filters = call.queue(), call.filters()
        with self.database.transaction() as connection:
            live = find_live(connection, self.desk.collection, self.desk.profile)
            place = connection, live.generation_id
            if self.may_review:
                found = self.desk.lease_document(*place, queue, filters, _LISTED)
            else:
                first = self.desk.queue(connection, queue, filters, 1)
                found = None
                if first:
                    doc_id = first[0].left_id
                    found = doc_id, self.desk.shortlist(*place, doc_id, _LISTED)
            if found is None:
                return self._empty(connection, call, queue)
            doc_id, listed = found
            if len(listed) == 1:
                return self._pair(connection, call, queue, *listed[0].pair)
            return self._document(connection, call, queue, doc_id, listed)

    def _document(
        self, connection: Connection, call: Call, queue: str, doc_id: int, listed: Sequence[Listed]
    ) -> Response:
        """A document and those similar to it, the first of them with what differs."""
        compared = [one.other_id for one in listed[:_COMPARED]]
        shown = self.desk.documents(connection, [doc_id, *compared], _SHORTLIST_CHARACTERS)
        live = find_live(connection, self.desk.collection, self.desk.profile)
        content = _content_of(from_mapping(live.recipe))
        if doc_id not in shown:
            raise NotFoundError(f"there is no document {doc_id} in this collection")
        diffs = {
            one: compare(content(shown[doc_id]), content(shown[one]), _CONTEXT, _SHORTLIST_WORDS)
            for one in compared
            if one in shown
        }
        return self._render(
            "document.html",
            queue=queue,
            in_documents=True,
            document=shown[doc_id],
            shortlist=listed,
            diffs=diffs,
            progress=self.desk.progress(connection),
            filters=call.filter_query(),
            done=call.done(),
        )

    def pair(self, call: Call) -> Response:
        """A pair by its documents."""
        left, right = sorted((int(call.path["left"]), int(call.path["right"])))
        with self.database.transaction() as connection:
            return self._pair(connection, call, call.query.get("queue"), left, right)

    def _pair(
        self, connection: Connection, call: Call, queue: str | None, left_id: int, right_id: int
    ) -> Response:
        live = find_live(connection, self.desk.collection, self.desk.profile)
        shown = self.desk.documents(connection, [left_id, right_id], _READ_CHARACTERS)
        for doc_id in (left_id, right_id):
            if doc_id not in shown:
                raise NotFoundError(f"there is no document {doc_id} in this collection")
        left, right = shown[left_id], shown[right_id]
        recipe = from_mapping(live.recipe)
        content = _content_of(recipe)
        return self._render(
            "pair.html",
            queue=queue if queue in QUEUES else None,
            left=left,
            right=right,
            in_documents=call.in_documents,
            pair=self.desk.pair(connection, live.profile, left_id, right_id),
            diff=compare(content(left), content(right)),
            is_cut=any((one.characters or 0) > _READ_CHARACTERS for one in (left, right)),
            clusters=sorted(
                set(self.desk.cluster_ids(connection, live.generation_id, [left_id, right_id]).values())
            ),
            reviews=self.desk.reviews(connection, left_id, right_id),
            progress=self.desk.progress(connection),
            filters=call.filter_query(),
            done=call.done(),
            threshold=_least(recipe),
        )

    def cluster(self, call: Call) -> Response:
        """A cluster with its documents and the graph of their ties."""
        cluster_id = int(call.path["cluster"])
        with self.database.transaction() as connection:
            live = find_live(connection, self.desk.collection, self.desk.profile)
            members, ties = self.desk.cluster(connection, live.generation_id, cluster_id, _MOST_MEMBERS)
        if not members:
            raise NotFoundError(f"there is no cluster {cluster_id} any more")
        drawing = draw([one.doc_id for one in members], ties)
        return self._render(
            "cluster.html",
            queue=call.query.get("queue") if call.query.get("queue") in QUEUES else None,
            cluster_id=cluster_id,
            members=members,
            is_cut=len(members) == _MOST_MEMBERS,
            names={one.doc_id: one.title or one.external_id for one in members},
            all_ties=len(ties),
            ties=drawing.ties,
            places=drawing.places,
            weakest=drawing.weakest,
            spanning=drawing.spanning,
            side=SIDE,
            least=_least(from_mapping(live.recipe)),
            done=call.done(),
        )

    def counts(self, call: Call) -> Response:
        """How many pairs each queue has left, for the script of the overview."""
        with self.database.transaction() as connection:
            found = self.desk.count(connection, _COUNTED)
        return JSONResponse({name: f"{pairs:,}{'+' * (pairs >= _COUNTED)}" for name, pairs in found.items()})

    def state(self, call: Call) -> Response:
        """Whether the clusters are up to date, for the script of the pages."""
        return JSONResponse({"state": self.indexer.state})

    def decide(self, call: Call) -> Response:
        """Store a decision, and go to the next pair or document."""
        queue, answer = call.form.get("queue", ""), call.form.get("answer", "")
        way = "documents" if call.in_documents else "queue"
        cluster = call.numbers("cluster")
        target = f"/cluster/{cluster[0]}" if cluster else f"/{way}/{queue}" if queue in QUEUES else "/"
        if answer != "next" and answer not in get_args(Answer):
            raise InputError(f"there is no answer {answer!r}; answers: {', '.join(get_args(Answer))}")
        with self.database.transaction() as connection:
            if answer == "next":
                self.desk.release(connection)
            else:
                self.desk.decide(
                    connection,
                    queue or "threshold",
                    call.answers(),
                    call.form.get("why", ""),
                    replaces=bool(cluster),
                )
        if answer in OPPOSITE:
            self._changed()
        return _see(target, call.form.get("filters", ""), answer)

    def take_out(self, call: Call) -> Response:
        """Veto a document against each of its neighbours in the cluster, as one decision."""
        taken, cluster = call.numbers("document"), call.numbers("cluster")
        if len(taken) != 1 or len(cluster) != 1:
            raise InputError("the form names no document and its cluster")
        with self.database.transaction() as connection:
            live = find_live(connection, self.desk.collection, self.desk.profile)
            _, ties = self.desk.cluster(connection, live.generation_id, cluster[0], _MOST_MEMBERS)
            own = [tie for tie in ties if taken[0] in (tie.left_id, tie.right_id)]
            if not own:
                raise NotFoundError(f"document {taken[0]} has no neighbour in this cluster any more")
            answers: dict[Pair, Answer] = {(tie.left_id, tie.right_id): "different" for tie in own}
            self.desk.decide(connection, "cluster", answers, "taken out of its cluster", replaces=True)
        self._changed()
        return _see(f"/cluster/{cluster[0]}", "", "different")

    def keep(self, call: Call) -> Response:
        """Choose the document to keep of a cluster."""
        chosen, cluster = call.numbers("document"), call.numbers("cluster")
        if len(chosen) != 1 or len(cluster) != 1:
            raise InputError("the form names no document and its cluster")
        with self.database.transaction() as connection:
            self.desk.keep(connection, chosen[0], call.form.get("why", ""))
        self.indexer.request()
        return _see(f"/cluster/{cluster[0]}", "", "kept")

    def _see_cluster(self, row: DecidedRow) -> Response:
        """Redirect to the cluster that a decision was about."""
        with self.database.transaction() as connection:
            live = find_live(connection, self.desk.collection, self.desk.profile)
            clusters = self.desk.cluster_ids(connection, live.generation_id, [row.left_id, row.right_id])
        return _see(f"/cluster/{min(clusters.values())}" if clusters else "/", "", "undone")

    def _changed(self) -> None:
        """Follow a change of verdicts: in the clusters, and in the file of labels."""
        self.indexer.request()
        self.write_labels()

    def write_labels(self) -> None:
        """Write the verdicts in force to the file of labels, if one is wanted."""
        if self.labels is not None:
            write_labels(self.labels, self.database.labels(self.desk.collection))

    def undo(self, call: Call) -> Response:
        """Undo this reviewer's last decision, and show its pair."""
        with self.database.transaction() as connection:
            rows = self.desk.undo(connection)
        if not rows:
            return _see("/", "", "nothing")
        if any(row.verdict_id is not None for row in rows):
            self._changed()
        first = rows[0]
        if first.queue == "cluster":
            return self._see_cluster(first)
        if len(rows) > 1:
            return _see(f"/documents/{first.queue}" if first.queue in QUEUES else "/", "", "undone")
        return _see(f"/pair/{first.left_id}/{first.right_id}", urlencode({"queue": first.queue}), "undone")


def _see(path: str, query: str, done: str) -> Response:
    """Redirect to a page of the desk, which says what was done."""
    values = [(key, value) for key, value in parse_qsl(query) if key != "done"]
    return RedirectResponse(f"{path}?{urlencode([*values, ('done', done)])}", 303)


def _least(recipe: Recipe) -> float:
    """Return the similarity at the threshold of a recipe, which may be a distance."""
    threshold = recipe.match.threshold
    return 1 / (1 + threshold) if METRIC_OF_FAMILY[recipe.sketch.family] == "euclidean" else threshold


def _content_of(recipe: Recipe) -> Callable[[ShownDocument], str]:
    """Return what makes the text of a document that is compared under a recipe."""

    def content(document: ShownDocument) -> str:
        values = {"title": document.title, "body": document.body}
        return shown_text(values, recipe.fields, html=recipe.normalise.html)

    return content

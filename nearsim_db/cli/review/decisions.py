"""What the review desk does with a decision: verdicts, choices of documents to keep, and undo."""

from typing import get_args
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse, Response

from nearsim_db.cli.review.call import OPPOSITE, QUEUES, Call
from nearsim_db.cli.review.pages import MOST_MEMBERS
from nearsim_db.cli.review.site import Site
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.store.review_documents import find_clusters, read_cluster, read_ties
from nearsim_db.store.reviews import Answer, DecidedRow
from nearsim_db.store.verdicts import Pair


def decide(site: Site, call: Call) -> Response:
    """Store a decision, and go to the next pair or document."""
    queue, answer = call.form.get("queue", ""), call.form.get("answer", "")
    way = "documents" if call.in_documents else "queue"
    cluster = call.numbers("cluster")
    target = f"/cluster/{cluster[0]}" if cluster else f"/{way}/{queue}" if queue in QUEUES else "/"
    if answer != "next" and answer not in get_args(Answer):
        raise InputError(f"there is no answer {answer!r}; answers: {', '.join(get_args(Answer))}")
    with site.database.transaction() as connection:
        if answer == "next":
            site.desk.release(connection)
        else:
            site.desk.decide(
                connection,
                queue or "threshold",
                call.answers(),
                call.form.get("why", ""),
                replaces=bool(cluster),
            )
    if answer in OPPOSITE:
        site.changed()
    return _see(target, call.form.get("filters", ""), answer)


def take_out(site: Site, call: Call) -> Response:
    """Veto a document against each of its neighbours in the cluster, as one decision."""
    taken, cluster = call.numbers("document"), call.numbers("cluster")
    if len(taken) != 1 or len(cluster) != 1:
        raise InputError("the form names no document and its cluster")
    with site.database.transaction() as connection:
        live = site.live(connection)
        place = site.desk.collection_id, live.generation_id
        members = read_cluster(connection, *place, cluster[0], MOST_MEMBERS)
        ties = read_ties(connection, live.generation_id, [one.doc_id for one in members])
        own = [tie for tie in ties if taken[0] in (tie.left_id, tie.right_id)]
        if not own:
            raise NotFoundError(f"document {taken[0]} has no neighbour in this cluster any more")
        answers: dict[Pair, Answer] = {(tie.left_id, tie.right_id): "different" for tie in own}
        site.desk.decide(connection, "cluster", answers, "taken out of its cluster", replaces=True)
    site.changed()
    return _see(f"/cluster/{cluster[0]}", "", "different")


def keep(site: Site, call: Call) -> Response:
    """Choose the document to keep of a cluster."""
    chosen, cluster = call.numbers("document"), call.numbers("cluster")
    if len(chosen) != 1 or len(cluster) != 1:
        raise InputError("the form names no document and its cluster")
    with site.database.transaction() as connection:
        site.desk.keep(connection, chosen[0], call.form.get("why", ""))
    site.indexer.request()
    return _see(f"/cluster/{cluster[0]}", "", "kept")


def _see_cluster(site: Site, row: DecidedRow) -> Response:
    """Redirect to the cluster that a decision was about."""
    with site.database.transaction() as connection:
        live = site.live(connection)
        clusters = find_clusters(connection, live.generation_id, [row.left_id, row.right_id])
    return _see(f"/cluster/{min(clusters.values())}" if clusters else "/", "", "undone")


def undo(site: Site, call: Call) -> Response:
    """Undo this reviewer's last decision, and show its pair."""
    with site.database.transaction() as connection:
        rows = site.desk.undo(connection)
    if not rows:
        return _see("/", "", "nothing")
    if any(row.verdict_id is not None or row.pin_id is not None for row in rows):
        site.changed()
    first = rows[0]
    if first.queue == "cluster":
        return _see_cluster(site, first)
    if len(rows) > 1:
        return _see(f"/documents/{first.queue}" if first.queue in QUEUES else "/", "", "undone")
    return _see(f"/pair/{first.left_id}/{first.right_id}", urlencode({"queue": first.queue}), "undone")


def _see(path: str, query: str, done: str) -> Response:
    """Redirect to a page of the desk, which says what was done."""
    values = [(key, value) for key, value in parse_qsl(query) if key != "done"]
    return RedirectResponse(f"{path}?{urlencode([*values, ('done', done)])}", 303)

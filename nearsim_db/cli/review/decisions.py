"""Store the decisions of the review desk: verdicts, choices of documents to keep, and undo."""

from collections.abc import Mapping
from typing import get_args
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from nearsim_db.cli.review.call import OPPOSITE, QUEUES, Call
from nearsim_db.cli.review.done import address
from nearsim_db.cli.review.site import Site
from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.store.pairs.review_documents import find_clusters, find_neighbours
from nearsim_db.store.pairs.reviews import Answer, DecidedRow, pair_of
from nearsim_db.store.pairs.verdicts import Pair


def decide(site: Site, call: Call) -> Response:
    """Store a decision on a pair, or on a document and its shortlist; redirect to the next one."""
    queue, answer = call.form.get("queue", ""), call.form.get("answer", "")
    way = "documents" if call.in_documents else "queue"
    cluster = call.numbers("cluster")
    target = f"/cluster/{cluster[0]}" if cluster else f"/{way}/{queue}" if queue in QUEUES else "/"
    if answer != "next" and answer not in get_args(Answer):
        raise InputError(f"there is no answer {answer!r}; answers: {', '.join(get_args(Answer))}")

    answers = {} if answer == "next" else call.answers()
    with site.database.transaction() as connection:
        # Without an answer, release the lease.
        if answer == "next":
            site.desk.release(connection)
        else:
            site.desk.decide(
                connection,
                queue or "threshold",
                answers,
                call.form.get("why", ""),
                replaces=bool(cluster),
            )

    if answer in OPPOSITE:
        site.changed()
    kept = urlencode({"of": call.numbers("document")[0]}) if cluster else call.form.get("filters", "")
    return _see(target, kept, answer, answers)


def take_out(site: Site, call: Call) -> Response:
    """Veto a document against each of its neighbours in the cluster, as one decision."""
    taken, cluster = call.numbers("document"), call.numbers("cluster")
    if len(taken) != 1 or len(cluster) != 1:
        raise InputError("the form names no document and its cluster")
    with site.database.transaction() as connection:
        live = site.live(connection)
        tied = find_neighbours(connection, live.generation_id, cluster[0], taken[0])
        if not tied:
            raise NotFoundError(f"document {taken[0]} has no neighbour in this cluster any more")
        answers: dict[Pair, Answer] = {pair_of(taken[0], neighbour): "different" for neighbour in tied}
        site.desk.decide(connection, "cluster", answers, "taken out of its cluster", replaces=True)

    site.changed()
    return _see(f"/cluster/{cluster[0]}", urlencode({"of": tied[-1]}), "different", answers)


def keep(site: Site, call: Call) -> Response:
    """Choose the document to keep of a cluster, its survivor."""
    chosen, cluster = call.numbers("document"), call.numbers("cluster")
    if len(chosen) != 1 or len(cluster) != 1:
        raise InputError("the form names no document and its cluster")
    with site.database.transaction() as connection:
        site.desk.keep(connection, chosen[0], call.form.get("why", ""))
    site.indexer.request()
    return _see(f"/cluster/{cluster[0]}", "", "kept", {(chosen[0], chosen[0]): "kept"})


def _see_cluster(site: Site, row: DecidedRow, answers: Mapping[Pair, str]) -> Response:
    """Redirect to the cluster that an undone decision was about."""
    with site.database.transaction() as connection:
        live = site.live(connection)
        clusters = find_clusters(connection, live.generation_id, [row.left_id, row.right_id])
    return _see(f"/cluster/{min(clusters.values())}" if clusters else "/", "", "undone", answers)


def undo(site: Site, call: Call) -> Response:
    """Undo this reviewer's last decision, and redirect to its pair, document or cluster."""
    with site.database.transaction() as connection:
        rows = site.desk.undo(connection)
    if not rows:
        return _see("/", "", "nothing", {})
    if any(row.verdict_id is not None or row.pin_id is not None for row in rows):
        site.changed()

    first, answers = rows[0], {row.pair: str(row.answer) for row in rows}
    if first.queue == "cluster":
        return _see_cluster(site, first, answers)

    if len(rows) > 1:
        return _see(f"/documents/{first.queue}" if first.queue in QUEUES else "/", "", "undone", answers)
    return _see(
        f"/pair/{first.left_id}/{first.right_id}", urlencode({"queue": first.queue}), "undone", answers
    )


def _see(path: str, query: str, done: str, answers: Mapping[Pair, str]) -> Response:
    """Redirect to a page of the desk, which says what was done."""
    # With 303 the browser fetches the page with GET, so reloading it does not send the form again.
    return RedirectResponse(address(path, query, done, answers), 303)

"""The pages of the review desk: the overview of queues, pairs, documents, clusters and disagreements."""

from collections.abc import Callable, Sequence
from itertools import groupby

from starlette.responses import JSONResponse, Response

from nearsim_db.analysis.evaluation import estimate, find_disagreements
from nearsim_db.analysis.text_diff import compare
from nearsim_db.analysis.tuning.labels import PairLabels
from nearsim_db.cli.review.call import QUEUES, Call, filter_query
from nearsim_db.cli.review.clusters import SIDE, draw
from nearsim_db.cli.review.done import message
from nearsim_db.cli.review.site import Site
from nearsim_db.errors import NotFoundError
from nearsim_db.search.passages import passages_if_contained
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.similarity.text.pages import shown_text
from nearsim_db.store.driver import Connection
from nearsim_db.store.pairs.review_documents import (
    ClusterDocument,
    ShownDocument,
    find_clusters,
    read_cluster,
    read_documents,
    read_pair,
    read_ties,
)
from nearsim_db.store.pairs.reviews import ShortlistedDocument, pair_of

_MAX_COUNTED_PAIRS = 1_000
_MAX_DISAGREEMENTS = 200
_MAX_MEMBERS = 1_000

# For the page of a pair.
_MAX_CHARACTERS = 100_000
_MAX_PASSAGES = 10
_MAX_OTHER_MEMBERS = 10

# For the page of a document: the similar documents of its shortlist, the first of them with their differences.
_MAX_SHORTLIST = 30
_MAX_COMPARED = 10
_SHORTLIST_CHARACTERS = 20_000
_SHORTLIST_WORDS = 400
_SHORTLIST_PASSAGES = 3
_CONTEXT_WORDS = 10

_ABOUT = {
    "review": "Pairs below the threshold that the recipe stores for review (match.review), the most similar first.",
    "threshold": "Pairs in the lowest fifth of the range above the threshold, the least similar first.",
    "numbers": "Pairs whose texts have different numbers, the most similar first.",
    "ties": "Pairs in clusters, near the threshold: no third document is similar to both.",
    "torn": "Similar pairs whose documents a veto keeps in different clusters.",
    "nearly": "Pairs below the threshold between two clusters, the most similar first.",
    "sample": "Pairs drawn at random from ten ranges of similarity; they estimate the precision.",
}


def overview(site: Site, call: Call) -> Response:
    """The page of all queues, with this reviewer's progress and the estimated precision."""
    with site.database.transaction() as connection:
        live = site.live(connection)
        progress = site.desk.progress(connection)
        sampled = site.desk.sampled(connection, live.generation_id)
        done = message(connection, site.desk, call)
    return site.render(
        "overview.html",
        estimate=estimate(sampled, _threshold_similarity(from_mapping(live.recipe))),
        about=_ABOUT,
        progress=progress,
        live=live,
        done=done,
    )


def next_pair(site: Site, call: Call) -> Response:
    """The page of the next pair of a queue, leased to this reviewer; a reader always sees the first pair."""
    queue, filters = call.queue(), call.filters()
    with site.database.transaction() as connection:
        if site.may_review:
            pair_ids = site.desk.lease(connection, queue, filters)
        else:
            listed = site.desk.queue(connection, queue, filters, 1)
            pair_ids = (listed[0].left_id, listed[0].right_id) if listed else None
        if pair_ids is None:
            return _empty(site, connection, call, queue)
        return _pair(site, connection, call, queue, *pair_ids)


def _empty(site: Site, connection: Connection, call: Call, queue: str) -> Response:
    further = site.desk.look_further(connection, queue, call.filters())
    return site.render(
        "empty.html",
        queue=queue,
        in_documents=call.in_documents,
        further=further,
        filters="" if further is None else filter_query(further),
        progress=site.desk.progress(connection),
        done=message(connection, site.desk, call),
    )


def next_document(site: Site, call: Call) -> Response:
    """The page of the next document of a queue with its shortlist; if this has one document, the page of the pair."""
    queue, filters = call.queue(), call.filters()
    with site.database.transaction() as connection:
        live = site.live(connection)
        place = connection, live.generation_id
        if site.may_review:
            document = site.desk.lease_document(*place, queue, filters, _MAX_SHORTLIST)
        else:
            first = site.desk.queue(connection, queue, filters, 1)
            document = None
            if first:
                doc_id = first[0].left_id
                document = doc_id, site.desk.shortlist(*place, doc_id, _MAX_SHORTLIST)

        if document is None:
            return _empty(site, connection, call, queue)

        doc_id, listed = document
        if len(listed) == 1:
            return _pair(site, connection, call, queue, *pair_of(doc_id, listed[0].doc_id))
        return _document(site, connection, call, queue, doc_id, listed)


def _document(
    site: Site,
    connection: Connection,
    call: Call,
    queue: str,
    doc_id: int,
    listed: Sequence[ShortlistedDocument],
) -> Response:
    """The page of a document and the documents similar to it; the first of them are shown with their differences."""
    compared = [document.doc_id for document in listed[:_MAX_COMPARED]]
    shown = read_documents(connection, site.desk.collection_id, [doc_id, *compared], _SHORTLIST_CHARACTERS)
    live = site.live(connection)
    if doc_id not in shown:
        raise NotFoundError(f"there is no document {doc_id} in this collection")

    # A document of the shortlist may have been deleted meanwhile.
    content = _content_of(from_mapping(live.recipe))
    diffs = {
        other_id: compare(content(shown[doc_id]), content(shown[other_id]), _CONTEXT_WORDS, _SHORTLIST_WORDS)
        for other_id in compared
        if other_id in shown
    }
    text = content(shown[doc_id])
    passages = {
        other_id: passages_if_contained(connection, live, text, content(shown[other_id]))[
            :_SHORTLIST_PASSAGES
        ]
        for other_id in diffs
    }
    return site.render(
        "document.html",
        queue=queue,
        in_documents=True,
        document=shown[doc_id],
        shortlist=listed,
        diffs=diffs,
        shared=passages,
        progress=site.desk.progress(connection),
        filters=call.filter_query(),
        done=message(connection, site.desk, call),
    )


def pair(site: Site, call: Call) -> Response:
    """The page of the pair of two documents, side by side."""
    # Pairs are stored with the smaller doc_id on the left.
    left, right = sorted((call.path_number("left"), call.path_number("right")))
    with site.database.transaction() as connection:
        return _pair(site, connection, call, call.query.get("queue"), left, right)


def _pair(
    site: Site, connection: Connection, call: Call, queue: str | None, left_id: int, right_id: int
) -> Response:
    live = site.live(connection)
    shown = read_documents(connection, site.desk.collection_id, [left_id, right_id], _MAX_CHARACTERS)
    for doc_id in (left_id, right_id):
        if doc_id not in shown:
            raise NotFoundError(f"there is no document {doc_id} in this collection")

    left, right = shown[left_id], shown[right_id]
    recipe = from_mapping(live.recipe)
    left_text, right_text = map(_content_of(recipe), (left, right))
    return site.render(
        "pair.html",
        queue=queue if queue in QUEUES else None,
        left=left,
        right=right,
        in_documents=call.in_documents,
        pair=read_pair(connection, site.desk.collection_id, live.profile, left_id, right_id),
        diff=compare(left_text, right_text),
        passages=passages_if_contained(connection, live, left_text, right_text)[:_MAX_PASSAGES],
        is_cut=any((document.characters or 0) > _MAX_CHARACTERS for document in (left, right)),
        clusters=_clusters(site, connection, live.generation_id, left_id, right_id),
        reviews=site.desk.reviews(connection, left_id, right_id),
        progress=site.desk.progress(connection),
        filters=call.filter_query(),
        done=message(connection, site.desk, call),
        threshold=_threshold_similarity(recipe),
    )


def _clusters(
    site: Site, connection: Connection, generation_id: int, left_id: int, right_id: int
) -> list[tuple[int, str, list[ClusterDocument]]]:
    """Return the clusters of two documents: number, "left", "right" or both, and the first other documents."""
    cluster_of = find_clusters(connection, generation_id, [left_id, right_id])
    clusters = []
    for cluster_id in sorted(set(cluster_of.values())):
        sides = [
            name
            for name, doc_id in (("left", left_id), ("right", right_id))
            if cluster_of.get(doc_id) == cluster_id
        ]

        # Read two more, because the two documents may be among the first.
        members = read_cluster(
            connection, site.desk.collection_id, generation_id, cluster_id, _MAX_OTHER_MEMBERS + 2
        )
        others = [document for document in members if document.doc_id not in (left_id, right_id)]
        clusters.append((cluster_id, " and ".join(sides), others[:_MAX_OTHER_MEMBERS]))
    return clusters


def cluster(site: Site, call: Call) -> Response:
    """The page of a cluster, with its documents and the graph of their ties.

    If the cluster does not exist any more, the page shows the present cluster of the document in the parameter `of`, so
    that an open page follows a cluster whose number changes. The number of a cluster is the doc_id of its first
    document, so an old link shows the cluster that this document is in now.
    """
    cluster_id, followed = call.path_number("cluster"), call.query_numbers("of")
    with site.database.transaction() as connection:
        live = site.live(connection)
        place = site.desk.collection_id, live.generation_id
        members = read_cluster(connection, *place, cluster_id, _MAX_MEMBERS)
        if not members:
            documents = [*followed, cluster_id]
            clusters = find_clusters(connection, live.generation_id, documents)
            numbers = [clusters[doc_id] for doc_id in documents if doc_id in clusters]
            cluster_id = next(iter(numbers), cluster_id)
            members = read_cluster(connection, *place, cluster_id, _MAX_MEMBERS)

        ties = read_ties(connection, live.generation_id, [member.doc_id for member in members])
        done = message(connection, site.desk, call)

    if not members:
        gone = f"there is no cluster {cluster_id} any more"
        if followed:
            return site.render("message.html", title="No cluster", error=gone)
        raise NotFoundError(gone)

    drawing = draw([member.doc_id for member in members], ties)
    return site.render(
        "cluster.html",
        queue=call.query.get("queue") if call.query.get("queue") in QUEUES else None,
        cluster_id=cluster_id,
        members=members,
        is_cut=len(members) == _MAX_MEMBERS,
        names={member.doc_id: member.title or member.external_id for member in members},
        all_ties=len(ties),
        ties=drawing.ties,
        places=drawing.places,
        weakest=drawing.weakest,
        spanning=drawing.spanning,
        side=SIDE,
        least=_threshold_similarity(from_mapping(live.recipe)),
        done=done,
    )


def disagreements(site: Site, call: Call) -> Response:
    """The page of the pairs on which verdicts and index disagree, by cluster."""
    labelled = PairLabels(site.database.labels(site.desk.collection))
    ends = [(left, right) for left, right, _ in labelled.pairs]
    all_disagreements = find_disagreements(site.index.look_up_pairs(ends), labelled)
    listed = all_disagreements[:_MAX_DISAGREEMENTS]

    doc_ids = [
        doc_id for _, stored in listed for doc_id in (stored.left_id, stored.right_id) if doc_id is not None
    ]
    with site.database.transaction() as connection:
        # Read titles only: 0 characters of the texts.
        shown = read_documents(connection, site.desk.collection_id, doc_ids, 0)
        done = message(connection, site.desk, call)

    return site.render(
        "disagreements.html",
        groups=[(cluster, list(rows)) for cluster, rows in groupby(listed, lambda two: two[0].cluster)],
        listed=len(listed),
        all_found=len(all_disagreements),
        judged=len(labelled.pairs),
        names={document.doc_id: document.title or document.external_id for document in shown.values()},
        done=done,
    )


def counts(site: Site, call: Call) -> Response:
    """The number of open pairs of each queue, for the script of the overview."""
    with site.database.transaction() as connection:
        pair_counts = site.desk.count(connection, _MAX_COUNTED_PAIRS)
    return JSONResponse(
        {name: f"{pairs:,}{'' if is_all else '+'}" for name, (pairs, is_all) in pair_counts.items()}
    )


def state(site: Site, call: Call) -> Response:
    """Whether the clusters are up to date, for the script of the pages."""
    return JSONResponse({"state": site.indexer.look()})


def _threshold_similarity(recipe: Recipe) -> float:
    """Return the threshold of a recipe as a similarity, also if it is a distance."""
    threshold = recipe.match.threshold
    return 1 / (1 + threshold) if METRIC_OF_FAMILY[recipe.sketch.family] == "euclidean" else threshold


def _content_of(recipe: Recipe) -> Callable[[ShownDocument], str]:
    """Return a function that returns the text of a document as the recipe compares it."""

    def content(document: ShownDocument) -> str:
        values = {"title": document.title, "body": document.body}
        return shown_text(values, recipe.fields, html=recipe.normalise.html)

    return content

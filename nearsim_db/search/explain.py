"""Explain why two documents are a pair or are not, with the exact similarity computed from their texts."""

from typing import Any

from nearsim_db.errors import InputError, NotFoundError
from nearsim_db.search.explanation import ExplainedDocument, Explanation
from nearsim_db.search.pair_figures import PairFigures, find_remedy, measure, required_bands
from nearsim_db.search.pair_reasons import find_reasons, needed_limit
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.family_metrics import METRIC_OF_FAMILY
from nearsim_db.similarity.profile import restore_for_reading
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.text.markup import strip_html
from nearsim_db.store import query_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation


def explain(
    connection: Connection, generation: Generation, encoder: Encoder | None, one: str, other: str
) -> Explanation:
    """Explain two documents of a live generation's collection, in the order given; `connection` is in a snapshot.

    `encoder` is None if this version would make different sketches. Raises NotFoundError for a missing document, and
    InputError if both are the same.
    """
    if one == other:
        raise InputError(f"{one!r} is given twice; name two documents")
    found = tuple(_find_document(connection, generation, name) for name in (one, other))
    left, right = sorted(found, key=lambda document: int(document["doc_id"]))
    ids = left["doc_id"], right["doc_id"]
    evidence = query_rows.read_evidence(connection, *ids, generation.profile)
    buckets = tuple(query_rows.read_shared_buckets(connection, generation.leaves, *ids))
    profile = restore_for_reading(
        generation.recipe, generation.fingerprint, generation.bands, generation.rows
    )
    metric = METRIC_OF_FAMILY[profile.recipe.sketch.family]
    figures = None if encoder is None else measure(connection, generation, encoder, ids)
    names = left["external_id"], right["external_id"]
    numbers = {ids[0]: evidence.left_numbers, ids[1]: evidence.right_numbers}
    sides = [_side(document, profile.recipe, numbers[document["doc_id"]]) for document in found]
    is_missing = figures is not None and not evidence.is_pair
    return Explanation(
        left=sides[0],
        right=sides[1],
        collection=generation.collection,
        profile=generation.profile,
        generation=generation.generation_id,
        metric=metric,
        is_pair=evidence.is_pair,
        are_twins=evidence.are_twins,
        same_cluster=evidence.same_cluster,
        **_scores(figures),
        stored_similarity=evidence.similarity,
        estimate=None if evidence.estimate is None else round(evidence.estimate, 6),
        threshold=profile.recipe.match.threshold,
        shared_bands=evidence.shared_bands,
        required=required_bands(profile),
        bands=profile.bands,
        rows=profile.rows,
        bucket_limit=profile.recipe.match.bucket_limit,
        buckets=buckets,
        numbers_differ=evidence.numbers_differ,
        verified_at=evidence.verified_at,
        verdict=evidence.verdict,
        verdict_by=evidence.verdict_by,
        verdict_why=evidence.verdict_why,
        reasons=tuple(find_reasons(names, metric, profile, evidence, buckets, figures)),
        remedy=find_remedy(figures, needed_limit(evidence, buckets)) if figures and is_missing else None,
        verified=evidence.verified,
    )


def _find_document(connection: Connection, generation: Generation, external_id: str) -> dict[str, Any]:
    found = query_rows.find_document(connection, generation.collection_id, external_id)
    if found is None:
        raise NotFoundError(f"collection {generation.collection!r} has no document {external_id!r}")
    return found


def _side(document: dict[str, Any], recipe: Recipe, numbers: Any) -> ExplainedDocument:
    content = "\n\n".join(value for field in recipe.fields if (value := document[field]))
    text = strip_html(content) if recipe.normalise.html else content
    return ExplainedDocument(document["external_id"], document["title"], text, numbers)


def _scores(figures: PairFigures | None) -> dict[str, Any]:
    """Return the exact figures by field, all None without."""
    if figures is None:
        return dict.fromkeys(("similarity", "intersection", "union", "distance", "probability"))
    scores = figures.scores
    return {
        "similarity": figures.similarity,
        "intersection": None if scores.intersection is None else int(scores.intersection[0]),
        "union": None if scores.union is None else int(scores.union[0]),
        "distance": None if scores.distance is None else float(scores.distance[0]),
        "probability": figures.probability,
    }

"""Why two documents are a pair, or are not: reasons and exact figures, the deciding reason first."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nearsim_db.errors import InputError, count_of
from nearsim_db.search.answers import find_document, metric_of, profile_of
from nearsim_db.search.explanation import (
    ExplainedDocument,
    Explanation,
    PairFigures,
    Reason,
    find_remedy,
    measure,
    required_bands,
)
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.screening import are_certain
from nearsim_db.similarity.text.markup import strip_html
from nearsim_db.store import query_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.query_rows import PairEvidence, SharedBucket


def explain(
    connection: Connection, generation: Generation, encoder: Encoder | None, one: str, other: str
) -> Explanation:
    """Explain two documents of a live generation's collection, in the order given; `connection` is in a snapshot.

    `encoder` is None if this version would make different sketches. Raises NotFoundError for a missing document, and
    InputError if both are the same.
    """
    if one == other:
        raise InputError(f"{one!r} is given twice; name two documents")
    found = tuple(find_document(connection, generation, name) for name in (one, other))
    left, right = sorted(found, key=lambda document: int(document["doc_id"]))
    ids = left["doc_id"], right["doc_id"]
    evidence = query_rows.read_evidence(connection, *ids, generation.profile)
    buckets = tuple(query_rows.read_shared_buckets(connection, generation.leaves, *ids))
    profile = profile_of(generation)
    metric = metric_of(generation.recipe)
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


_MEASURES = {"euclidean": "distance", "cosine": "cosine"}


def value_of(metric: str, value: float) -> str:
    """Return a similarity, or a distance, with its name."""
    return f"{_MEASURES.get(metric, 'similarity')} {value:.4f}"


def measured(metric: str, scores: Scores, profile: Profile) -> str:
    """Return the first of the scores that decide under a profile."""
    value = value_of(metric, float((scores.similarity if scores.distance is None else scores.distance)[0]))
    return value if profile.recipe.match.verify == "exact" else f"the estimated {value}"


def threshold_of(profile: Profile) -> str:
    """Return the threshold."""
    return f"the threshold of {profile.recipe.match.threshold:g}"


def missed_threshold(metric: str, scores: Scores, profile: Profile, shared: int) -> str:
    """Say that a pair does not reach the threshold, nor shares the bands that make up for it."""
    side, certain = "above" if metric == "euclidean" else "below", profile.recipe.match.certain_shared_bands
    missed = f"{measured(metric, scores, profile)} is {side} {threshold_of(profile)}"
    if not certain:
        return missed
    return f"{missed}, and they share {count_of(shared, 'band')}, fewer than match.certain_shared_bands = {certain}"


def shared_too_few(profile: Profile, shared: int) -> str:
    """Say that two documents share too few bands to be candidates."""
    required = required_bands(profile)
    if not shared:
        return f"they share none of {count_of(profile.bands, 'band')}"
    if required.isdigit():
        return f"they share {count_of(shared, 'band')}, and {required} are required"
    return f"they share {count_of(shared, 'band')}, and not those that {required} requires"


def separated(profile: Profile) -> str:
    """Say that the bucket limit keeps two documents from being compared."""
    limit = profile.recipe.match.bucket_limit
    return f"the bucket limit separates them: neither is among the first {limit} of a bucket that they share"


def unexplained(metric: str, scores: Scores, profile: Profile, shared: int) -> str:
    """Say that nothing explains why two documents are not a pair."""
    if are_certain(profile.recipe.match, np.array([shared]))[0]:
        enough = f"they share {count_of(shared, 'band')}"
    else:
        enough = f"{measured(metric, scores, profile)} reaches {threshold_of(profile)}"
    return f"{enough}, but the pair is not stored; check the index with: nearsim verify-index"


_NO_FEATURES = "has no features"  # of nearsim.document_state


def needed_limit(evidence: PairEvidence, buckets: Sequence[SharedBucket]) -> int | None:
    """Return the smallest bucket limit that would link two documents, None if the present one does."""
    if evidence.are_linked or not buckets:
        return None
    return min(one.place for one in buckets)


def find_reasons(
    names: tuple[str, str],
    metric: str,
    profile: Profile,
    evidence: PairEvidence,
    buckets: Sequence[SharedBucket],
    figures: PairFigures | None,
) -> list[Reason]:
    """Return the reasons: verdict first, then the pair itself, else all that keeps the two from being a pair."""
    found = list(_verdict(evidence))
    if evidence.are_twins:
        return [*found, Reason("twins", "they are a pair: twins with the same features")]
    if evidence.is_pair:
        return [
            *found,
            Reason("pair", f"they are a pair: {_deciding(metric, profile, evidence)}"),
        ]
    waiting = list(_states(names, evidence))
    return [*found, *(waiting or _missing(metric, profile, evidence, buckets, figures))]


def _deciding(metric: str, profile: Profile, evidence: PairEvidence) -> str:
    match, shared = profile.recipe.match, evidence.shared_bands or 0
    if match.verify == "bands":
        return f"they share {count_of(shared, 'band')}; {_stored(metric, evidence)} is an estimate"
    if 0 < match.certain_shared_bands <= shared:
        return f"they share {count_of(shared, 'band')}, match.certain_shared_bands is {match.certain_shared_bands}"
    value = _stored(metric, evidence)
    return f"{value if evidence.verified else f'the estimated {value}'} reaches {threshold_of(profile)}"


def _stored(metric: str, evidence: PairEvidence) -> str:
    similarity = evidence.similarity or 0.0
    value = 1 / similarity - 1 if metric == "euclidean" and similarity else similarity
    return value_of(metric, value)


def _verdict(evidence: PairEvidence) -> Iterator[Reason]:
    by = f"{evidence.verdict_by}: {evidence.verdict_why}"
    if evidence.verdict == "vetoed":
        yield Reason("vetoed", f"they never share a cluster: vetoed by {by}")
    elif evidence.verdict == "pinned":
        yield Reason("pinned", f"they share a cluster whatever their similarity: pinned by {by}")


def _states(names: tuple[str, str], evidence: PairEvidence) -> Iterator[Reason]:
    for name, state in zip(names, (evidence.left_state, evidence.right_state), strict=True):
        if state is not None:
            text = f"document {name!r} {state}"
            yield Reason("no_features" if state == _NO_FEATURES else "not_indexed", text)


def _missing(
    metric: str,
    profile: Profile,
    evidence: PairEvidence,
    buckets: Sequence[SharedBucket],
    figures: PairFigures | None,
) -> Iterator[Reason]:
    """Yield every condition of a pair that the two do not meet."""
    reaches = figures is not None and figures.reaches
    if figures is not None and not reaches:
        yield Reason(
            "below_threshold", missed_threshold(metric, figures.decisive, profile, evidence.shared_bands or 0)
        )
    if figures is None:
        yield Reason(
            "unknown", "their similarity is unknown: a text changed, or this version makes other sketches"
        )
    if evidence.are_candidates is False:
        yield Reason("too_few_shared_bands", _sharing(profile, evidence, figures))
    elif evidence.are_linked is False:
        text = separated(profile)
        needed = needed_limit(evidence, buckets)
        yield Reason(
            "bucket_limit", text if needed is None else f"{text}; a limit of {needed} would link them"
        )
    elif figures is not None and reaches:
        yield Reason(
            "unexplained", unexplained(metric, figures.decisive, profile, evidence.shared_bands or 0)
        )


def _sharing(profile: Profile, evidence: PairEvidence, figures: PairFigures | None) -> str:
    text = shared_too_few(profile, evidence.shared_bands or 0)
    if figures is None:
        return text
    return f"{text}; pairs of this similarity become candidates with probability {figures.probability:.4f}"

"""Explain why two documents are a pair or are not, with exact figures, the deciding reason first."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import msgspec
import numpy as np

from nearsim_db.errors import InputError
from nearsim_db.messages import count_of
from nearsim_db.readers.labels import label_of
from nearsim_db.readers.values import field_of
from nearsim_db.search.answers import find_documents, metric_of, positions_of, profile_of
from nearsim_db.search.pair_figures import (
    PairFigures,
    Remedy,
    find_remedy,
    read_contents,
    required_bands,
    separated,
    shared_too_few,
    threshold_of,
    value_of,
)
from nearsim_db.search.passages import passages_if_contained
from nearsim_db.similarity.encoder import Content, Encoder
from nearsim_db.similarity.field_rules import FieldRules
from nearsim_db.similarity.passages import Passage
from nearsim_db.similarity.profile import Profile
from nearsim_db.similarity.recipe import Recipe
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.similarity.text.normalise import make_fold
from nearsim_db.similarity.text.pages import shown_text
from nearsim_db.store import query_rows
from nearsim_db.store.driver import Connection
from nearsim_db.store.generations.generation_rows import Generation
from nearsim_db.store.query_rows import PairEvidence, SharedBucket

_NUMBER = re.compile(r"[0-9]+")

ReasonKind = Literal[
    "vetoed",
    "pinned",
    "twins",
    "pair",
    "not_indexed",
    "no_features",
    "below_threshold",
    "too_few_shared_bands",
    "bucket_limit",
    "same_value",
    "other_value",
    "distant_dates",
    "unequal_sizes",
    "unexplained",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why two documents are a pair or are not."""

    kind: ReasonKind  # a word for programs
    text: str  # a sentence for people


@dataclass(frozen=True, slots=True)
class ExplainedDocument:
    """One of the two documents of an explanation."""

    id: str
    title: str | None
    text: str  # the text that the profile compares
    # The numbers in the text that the other text lacks; None while a text is newer than the index.
    only_here: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The evidence for or against two documents being a pair in a live generation.

    `similarity`, `intersection`, `union`, `distance` and `probability` are computed from the present texts, even if the
    two documents are not a pair. They are None if a document has no features, if its text cannot be read, or if this
    version would make different sketches. `estimate`, `shared_bands` and `buckets` are from the stored sketches.
    """

    left: ExplainedDocument
    right: ExplainedDocument
    collection: str
    profile: str
    generation: int
    metric: str
    is_pair: bool
    are_twins: bool
    same_cluster: bool
    similarity: float | None
    intersection: int | None
    union: int | None
    distance: float | None
    stored_similarity: float | None
    """Similarity of the stored pair; it is an estimate unless `verified` is true."""
    estimate: float | None
    threshold: float
    shared_bands: int | None
    required: str
    """The shared bands that make a candidate: a number of bands, or an amplification."""
    bands: int
    """Number of bands of the index."""
    rows: int
    """Sketch positions per band."""
    bucket_limit: int
    buckets: tuple[SharedBucket, ...]
    """The buckets that contain both documents."""
    probability: float | None
    """Probability that two documents of this similarity (winnow: with such a longest common run) become candidates."""
    numbers_differ: bool | None
    verified_at: datetime | None
    verdict: str | None
    verdict_by: str | None
    verdict_why: str | None
    reasons: tuple[Reason, ...]
    remedy: Remedy | None
    """A change of the recipe under which they would be a pair."""
    verified: bool | None
    passages: tuple[Passage, ...]
    """Under containment, the passages that the present texts share, the longest first."""
    positions: int | None = None
    """Number of positions of a sketch; None for other families than fast_similarity and minhash."""

    @property
    def signature_intersection(self) -> int | None:
        """The number of positions in which both signatures have the same value; None if `positions` is None."""
        if self.estimate is None or self.positions is None:
            return None
        return round(self.estimate * self.positions)

    @property
    def signature_union(self) -> int | None:
        """The number of values in both signatures, where equal values in a position count once.

        None if `positions` is None.
        """
        if self.signature_intersection is None or self.positions is None:
            return None
        return 2 * self.positions - self.signature_intersection

    @property
    def signature_similarity(self) -> float | None:
        """The fraction of equal values among all distinct values of two MinHash signatures.

        If m of k values are equal, this is m / (2 k - m), whereas the estimate is m / k. None if the metric is not
        Jaccard.
        """
        if self.estimate is None or self.metric != "jaccard":
            return None
        if self.signature_intersection is not None and self.signature_union:
            # Use these whole numbers, because the estimate is rounded.
            return round(self.signature_intersection / self.signature_union, 6)
        return round(self.estimate / (2 - self.estimate), 6)


# The fields that have the same name and value in PairEvidence.
_OF_EVIDENCE = (
    *("is_pair", "are_twins", "same_cluster", "shared_bands", "numbers_differ", "verified", "verified_at"),
    *("verdict", "verdict_by", "verdict_why"),
)


def explain(
    connection: Connection, generation: Generation, encoder: Encoder | None, first: str, second: str
) -> Explanation:
    """Explain two documents of a live generation's collection; the first one is `left` in the explanation.

    `connection` must be in a snapshot. `encoder` is None if this version would make different sketches. Raises
    NotFoundError for a missing document, and InputError if both are the same.
    """
    profile, documents = profile_of(generation), find_two(connection, generation, first, second)

    # Read the evidence from the index, where the document with the smaller doc_id is on the left.
    left, right = sorted(documents, key=lambda document: int(document["doc_id"]))
    names, ids = (left["external_id"], right["external_id"]), (left["doc_id"], right["doc_id"])
    evidence = query_rows.read_evidence(connection, *ids, generation.profile)
    buckets = tuple(generation.tables(connection).shown.read_shared_buckets(*ids))
    needed_limit = _needed_limit(evidence, buckets)

    # Compare the present texts.
    contents, figures = _measure(connection, generation, encoder, ids)
    excluded = _exclusion(profile.recipe, documents)
    remedy = None
    if figures and not evidence.is_pair and excluded is None:
        remedy = find_remedy(figures, contents, needed_limit)
    numbers = {ids[0]: evidence.left_numbers, ids[1]: evidence.right_numbers}
    sides = [_side(document, profile.recipe, numbers[document["doc_id"]]) for document in documents]
    if profile.recipe.normalise.html == "main" and evidence.left_state is evidence.right_state is None:
        sides = _with_numbers(sides, profile.recipe)
    passages = passages_if_contained(connection, generation, *(side.text for side in sides))

    return Explanation(
        left=sides[0],
        right=sides[1],
        collection=generation.collection,
        profile=generation.profile,
        generation=generation.generation_id,
        metric=metric_of(generation.recipe),
        **{name: getattr(evidence, name) for name in _OF_EVIDENCE},
        **_scores(figures),
        stored_similarity=evidence.similarity,
        estimate=None if evidence.estimate is None else round(evidence.estimate, 6),
        threshold=profile.recipe.match.threshold,
        required=required_bands(profile),
        bands=profile.bands,
        rows=profile.rows,
        bucket_limit=profile.recipe.match.bucket_limit,
        buckets=buckets,
        reasons=tuple(_reasons(names, profile, evidence, needed_limit, figures, excluded=excluded)),
        remedy=remedy,
        passages=tuple(passages),
        positions=positions_of(generation.recipe),
    )


def find_two(
    connection: Connection, generation: Generation, first: str, second: str
) -> tuple[dict[str, Any], ...]:
    """Return two documents of a generation's collection, in this order. Raises the same errors as `explain`."""
    if first == second:
        raise InputError(f"{first!r} is given twice; name two documents")
    return tuple(find_documents(connection, generation, (first, second)))


def _measure(
    connection: Connection, generation: Generation, encoder: Encoder | None, doc_ids: tuple[int, int]
) -> tuple[list[Content], PairFigures | None]:
    """Return the present texts or vectors of two documents, and their figures.

    The figures are None if a document has no features, or if its text in an attached table differs from the recorded
    revision.
    """
    if encoder is None:
        return [], None
    content_by_id = read_contents(connection, generation.collection_id, encoder, doc_ids)
    if len(content_by_id) < len(doc_ids):
        return [], None

    contents = [content_by_id[doc_id] for doc_id in doc_ids]
    features = encoder.features(contents)
    sets = [features.of(0), features.of(1)]
    if not all(map(len, sets)):
        return contents, None
    return contents, PairFigures.of(encoder, encoder.sketch(features), sets)


def _exclusion(recipe: Recipe, documents: Sequence[Mapping[str, Any]]) -> Reason | None:
    """Return the reason if the value of a field keeps two documents from being a pair, else None."""
    rules = FieldRules.of(recipe)
    if rules is None:
        return None

    labels = []
    for document in documents:
        values = [field_of(name, document["source"], document["attributes"]) for name in rules.fields]
        label = label_of(rules, values, document["published_at"])
        labels.append(np.frombuffer(label, np.uint8).reshape(1, -1))
    excluded = rules.exclusion(*labels)
    return None if excluded is None else Reason(*excluded)


def _side(document: dict[str, Any], recipe: Recipe, numbers: Any) -> ExplainedDocument:
    text = shown_text(document, recipe.fields, html=recipe.normalise.html)
    return ExplainedDocument(document["external_id"], document["title"], text, numbers)


def _with_numbers(sides: Sequence[ExplainedDocument], recipe: Recipe) -> list[ExplainedDocument]:
    """Return two documents with the numbers in the articles of their pages; SQL cannot extract articles."""
    fold = make_fold(msgspec.structs.replace(recipe.normalise, html=False))
    counts = [Counter(_NUMBER.findall(fold(side.text))) for side in sides]
    only = counts[0] - counts[1], counts[1] - counts[0]
    return [
        replace(side, only_here=list(numbers.elements())) for side, numbers in zip(sides, only, strict=True)
    ]


def _scores(figures: PairFigures | None) -> dict[str, Any]:
    """Return the exact figures by field; all are None if `figures` is None."""
    names = ("similarity", "intersection", "union", "distance")
    if figures is None:
        return dict.fromkeys((*names, "probability"))
    scores = {name: getattr(figures.scores, name) for name in names}
    exact = {name: None if values is None else values[0].item() for name, values in scores.items()}
    return exact | {"probability": figures.probability}


# One of the states that nearsim.document_state returns.
_NO_FEATURES = "has no features"


def _needed_limit(evidence: PairEvidence, buckets: Sequence[SharedBucket]) -> int | None:
    """Return the smallest bucket limit that would link two documents, None if the present limit links them.

    Also None if no bucket contains both.
    """
    if evidence.are_linked or not buckets:
        return None
    return min(bucket.place for bucket in buckets)


def _reasons(
    names: tuple[str, str],
    profile: Profile,
    evidence: PairEvidence,
    needed_limit: int | None,
    figures: PairFigures | None,
    *,
    excluded: Reason | None,
) -> Iterator[Reason]:
    """Yield the reasons: first a verdict, then the reason that makes the two a pair, or all reasons against it."""
    by = f"{evidence.verdict_by}: {evidence.verdict_why}"
    if evidence.verdict == "vetoed":
        yield Reason("vetoed", f"they never share a cluster: vetoed by {by}")
    elif evidence.verdict == "pinned":
        yield Reason("pinned", f"they share a cluster whatever their similarity: pinned by {by}")

    states = zip(names, (evidence.left_state, evidence.right_state), strict=True)
    waiting = [(name, state) for name, state in states if state is not None]
    if evidence.are_twins:
        yield Reason("twins", "they are a pair: twins with the same features")
    elif evidence.is_pair:
        yield Reason("pair", f"they are a pair: {_deciding(profile, evidence)}")
    elif waiting:
        for name, state in waiting:
            kind: ReasonKind = "no_features" if state == _NO_FEATURES else "not_indexed"
            yield Reason(kind, f"document {name!r} {state}")
    elif excluded is not None:
        yield excluded
    else:
        yield from _missing(profile, evidence, needed_limit, figures)


def _deciding(profile: Profile, evidence: PairEvidence) -> str:
    """Return a sentence about the condition of the recipe that makes the two documents a pair."""
    match, shared, similarity = profile.recipe.match, evidence.shared_bands or 0, evidence.similarity or 0.0
    is_distance = METRIC_OF_FAMILY[profile.recipe.sketch.family] == "euclidean"
    value = value_of(profile, 1 / similarity - 1 if is_distance and similarity else similarity)
    if match.verify == "bands":
        return f"they share {count_of(shared, 'band')}; {value} is an estimate"
    if 0 < match.certain_shared_bands <= shared:
        return f"they share {count_of(shared, 'band')}; match.certain_shared_bands is {match.certain_shared_bands}"
    if match.passage_words is not None and similarity < match.threshold:
        return (
            f"both have a run of match.passage_words = {match.passage_words} equal words; the {value} is below "
            f"{threshold_of(profile)}, so the pair is in no cluster"
        )
    return f"{value if evidence.verified else f'the estimated {value}'} reaches {threshold_of(profile)}"


def _missing(
    profile: Profile, evidence: PairEvidence, needed_limit: int | None, figures: PairFigures | None
) -> Iterator[Reason]:
    """Yield a reason for every condition of a pair that the two documents do not meet."""
    if figures is None:
        unknown = "their similarity is unknown: a text changed, or this version makes other sketches"
        yield Reason("unknown", unknown)
    elif not figures.reaches:
        yield Reason("below_threshold", figures.missed_threshold())
    if figures is not None and figures.unequal_sizes is not None:
        yield Reason("unequal_sizes", figures.unequal_sizes)

    if evidence.are_candidates is False:
        text = shared_too_few(profile, evidence.shared_bands or 0)
        if figures is not None:
            text = f"{text}; {figures.chance}"
        yield Reason("too_few_shared_bands", text)
    elif evidence.are_linked is False:
        linked = "" if needed_limit is None else f"; a limit of {needed_limit} would link them"
        yield Reason("bucket_limit", separated(profile) + linked)
    elif figures is not None and figures.reaches and figures.unequal_sizes is None:
        yield Reason("unexplained", figures.unexplained())

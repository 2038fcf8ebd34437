"""Views of what was found: documents, pairs, clusters, verdicts and events."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from nearsim_db.store.schema.orm_views.base import Big, BigKey, Key, Name, Real, Small, View


class Documents(View):
    """Every document once per live profile of its collection, with its state in the index."""

    __tablename__ = "documents"
    collection: Mapped[str]
    profile: Mapped[str | None]
    collection_id: Mapped[int]
    generation_id: Mapped[int | None] = mapped_column(primary_key=True)
    doc_id: Mapped[BigKey]
    external_id: Mapped[Name]
    title: Mapped[str | None]
    source: Mapped[str | None]
    url: Mapped[str | None]
    published_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    revision: Mapped[Big]
    state: Mapped[str]
    feature_count: Mapped[int | None]
    head_id: Mapped[Big | None]
    cluster_id: Mapped[Big | None]
    is_survivor: Mapped[bool | None]


class Pairs(View):
    """Verified pairs with both documents and the evidence, twins expanded; `left_id` is the smaller."""

    __tablename__ = "pairs"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    generation_id: Mapped[Key]
    left_id: Mapped[BigKey]
    right_id: Mapped[BigKey]
    left_external_id: Mapped[Name]
    right_external_id: Mapped[Name]
    left_title: Mapped[str | None]
    right_title: Mapped[str | None]
    left_source: Mapped[str | None]
    right_source: Mapped[str | None]
    left_published_at: Mapped[datetime | None]
    right_published_at: Mapped[datetime | None]
    similarity: Mapped[float]
    intersection_size: Mapped[int | None]
    union_size: Mapped[int | None]
    estimate: Mapped[Real]
    shared_bands: Mapped[Small]
    are_twins: Mapped[bool]
    are_heads: Mapped[bool]
    numbers_differ: Mapped[bool]
    verdict: Mapped[str | None]
    verified_at: Mapped[datetime | None]
    distance: Mapped[float | None]


class CombinedPairs(View):
    """Pairs of all live profiles of a collection, each once with the profiles that have it."""

    __tablename__ = "combined_pairs"
    collection: Mapped[str]
    collection_id: Mapped[Key]
    left_id: Mapped[BigKey]
    right_id: Mapped[BigKey]
    left_external_id: Mapped[Name]
    right_external_id: Mapped[Name]
    left_title: Mapped[str | None]
    right_title: Mapped[str | None]
    verdict: Mapped[str | None]
    profiles: Mapped[list[str]]
    similarities: Mapped[dict[str, Any]]
    highest_similarity: Mapped[float]
    lowest_similarity: Mapped[float]


class Clusters(View):
    """Clusters of documents connected by pairs: size and document to keep."""

    __tablename__ = "clusters"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    generation_id: Mapped[Key]
    cluster_id: Mapped[BigKey]
    documents: Mapped[Big]
    survivor_id: Mapped[Big]
    survivor_external_id: Mapped[Name]
    survivor_title: Mapped[str | None]
    survivor_source: Mapped[str | None]
    first_published_at: Mapped[datetime | None]
    last_published_at: Mapped[datetime | None]
    sources: Mapped[Big]


class Duplicates(View):
    """Duplicates: every document of a cluster except the one to keep, with that one."""

    __tablename__ = "duplicates"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    generation_id: Mapped[Key]
    cluster_id: Mapped[Big]
    doc_id: Mapped[BigKey]
    external_id: Mapped[Name]
    title: Mapped[str | None]
    source: Mapped[str | None]
    url: Mapped[str | None]
    published_at: Mapped[datetime | None]
    survivor_id: Mapped[Big]
    survivor_external_id: Mapped[Name]
    survivor_title: Mapped[str | None]
    survivor_source: Mapped[str | None]
    survivor_published_at: Mapped[datetime | None]


class Verdicts(View):
    """Manual verdicts on two documents, in force while `undone_at` is None."""

    __tablename__ = "verdicts"
    collection: Mapped[str]
    collection_id: Mapped[int]
    verdict_id: Mapped[BigKey]
    left_id: Mapped[Big]
    right_id: Mapped[Big]
    left_external_id: Mapped[Name | None]
    right_external_id: Mapped[Name | None]
    left_title: Mapped[str | None]
    right_title: Mapped[str | None]
    verdict: Mapped[str]
    by: Mapped[str]
    why: Mapped[str]
    at: Mapped[datetime]
    undone_by: Mapped[str | None]
    undone_why: Mapped[str | None]
    undone_at: Mapped[datetime | None]


class Events(View):
    """Changes of pairs, clusters and their survivors, with the documents' current external_ids."""

    __tablename__ = "events"
    event_id: Mapped[BigKey]
    at: Mapped[datetime]
    kind: Mapped[str]
    collection: Mapped[str | None]
    profile: Mapped[str | None]
    left_external_id: Mapped[Name | None]
    right_external_id: Mapped[Name | None]
    similarity: Mapped[float | None]
    cluster_id: Mapped[Big | None]
    survivor_external_id: Mapped[Name | None]
    left_id: Mapped[Big | None]
    right_id: Mapped[Big | None]
    survivor_id: Mapped[Big | None]
    other_ids: Mapped[list[int] | None]
    other_survivor_ids: Mapped[list[int] | None]
    collection_id: Mapped[int]
    profile_id: Mapped[int]
    generation_id: Mapped[int]
    pruned: Mapped[bool]

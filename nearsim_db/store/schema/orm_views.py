"""The views as mapped classes, read only, in a separate metadata that is never created, dropped or compared."""

from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    DateTime,
    Double,
    Interval,
    MetaData,
    SmallInteger,
    Text,
    event,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from nearsim_db.errors import NearsimError
from nearsim_db.store.schema.tables import SCHEMA

_Big = Annotated[int, mapped_column(BigInteger)]
_Small = Annotated[int, mapped_column(SmallInteger)]
_Real = Annotated[float, mapped_column(REAL)]
_Name = Annotated[str, mapped_column(Text(collation="C"))]
_Key = Annotated[int, mapped_column(primary_key=True)]
_BigKey = Annotated[int, mapped_column(BigInteger, primary_key=True)]


class View(DeclarativeBase):
    """Base of the mapped views, which show live generations only."""

    metadata = MetaData(schema=SCHEMA)
    type_annotation_map: ClassVar = {
        str: Text,
        float: Double,
        datetime: DateTime(timezone=True),
        timedelta: Interval,
        dict[str, Any]: JSONB,
        list[int]: ARRAY(BigInteger),
        list[str]: ARRAY(Text),
    }


@event.listens_for(View, "before_insert", propagate=True)
@event.listens_for(View, "before_update", propagate=True)
@event.listens_for(View, "before_delete", propagate=True)
def _refuse(mapper: object, connection: object, target: object) -> None:
    raise NearsimError(f"{type(target).__name__} is a view, to be read only; write nearsim.document instead")


class Documents(View):
    """Every document once per live profile of its collection, with its state in the index."""

    __tablename__ = "documents"
    collection: Mapped[str]
    profile: Mapped[str | None]
    collection_id: Mapped[int]
    generation_id: Mapped[int | None] = mapped_column(primary_key=True)
    doc_id: Mapped[_BigKey]
    external_id: Mapped[_Name]
    title: Mapped[str | None]
    source: Mapped[str | None]
    url: Mapped[str | None]
    published_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    revision: Mapped[_Big]
    state: Mapped[str]
    feature_count: Mapped[int | None]
    head_id: Mapped[_Big | None]
    cluster_id: Mapped[_Big | None]
    is_survivor: Mapped[bool | None]


class Pairs(View):
    """Verified pairs with both documents and the evidence, twins expanded; `left_id` is the smaller."""

    __tablename__ = "pairs"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    generation_id: Mapped[_Key]
    left_id: Mapped[_BigKey]
    right_id: Mapped[_BigKey]
    left_external_id: Mapped[_Name]
    right_external_id: Mapped[_Name]
    left_title: Mapped[str | None]
    right_title: Mapped[str | None]
    left_source: Mapped[str | None]
    right_source: Mapped[str | None]
    left_published_at: Mapped[datetime | None]
    right_published_at: Mapped[datetime | None]
    similarity: Mapped[float]
    intersection_size: Mapped[int | None]
    union_size: Mapped[int | None]
    estimate: Mapped[_Real]
    shared_bands: Mapped[_Small]
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
    collection_id: Mapped[_Key]
    left_id: Mapped[_BigKey]
    right_id: Mapped[_BigKey]
    left_external_id: Mapped[_Name]
    right_external_id: Mapped[_Name]
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
    generation_id: Mapped[_Key]
    cluster_id: Mapped[_BigKey]
    documents: Mapped[_Big]
    survivor_id: Mapped[_Big]
    survivor_external_id: Mapped[_Name]
    survivor_title: Mapped[str | None]
    survivor_source: Mapped[str | None]
    first_published_at: Mapped[datetime | None]
    last_published_at: Mapped[datetime | None]
    sources: Mapped[_Big]


class Duplicates(View):
    """Duplicates: every document of a cluster except the one to keep, with that one."""

    __tablename__ = "duplicates"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    generation_id: Mapped[_Key]
    cluster_id: Mapped[_Big]
    doc_id: Mapped[_BigKey]
    external_id: Mapped[_Name]
    title: Mapped[str | None]
    source: Mapped[str | None]
    url: Mapped[str | None]
    published_at: Mapped[datetime | None]
    survivor_id: Mapped[_Big]
    survivor_external_id: Mapped[_Name]
    survivor_title: Mapped[str | None]
    survivor_source: Mapped[str | None]
    survivor_published_at: Mapped[datetime | None]


class Buckets(View):
    """Buckets with two or more members; those over the limit are hot. Counts all band rows."""

    __tablename__ = "buckets"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    generation_id: Mapped[_Key]
    band_no: Mapped[_Small]
    bucket_hash: Mapped[_BigKey]
    members: Mapped[_Big]
    anchors: Mapped[_Big]
    left_out: Mapped[_Big]
    is_hot: Mapped[bool]


class LiveGenerations(View):
    """The live generation of each profile, with the main parts of its recipe."""

    __tablename__ = "live_generations"
    generation_id: Mapped[_Key]
    profile_id: Mapped[int]
    profile: Mapped[str]
    collection_id: Mapped[int]
    collection: Mapped[str]
    threshold: Mapped[float]
    bands: Mapped[_Small | None]
    rows: Mapped[_Small | None]
    min_shared_bands: Mapped[int]
    bucket_limit: Mapped[int]
    retained: Mapped[timedelta | None]
    fingerprint: Mapped[str]
    recipe: Mapped[dict[str, Any]]
    figures: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    live_at: Mapped[datetime | None]


class Profiles(View):
    """All profiles: recipe, live (else newest) generation and counts of its build."""

    __tablename__ = "profiles"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    profile_id: Mapped[_Key]
    generation_id: Mapped[int | None]
    state: Mapped[str | None]
    stage: Mapped[str | None]
    threshold: Mapped[float | None]
    bands: Mapped[_Small | None]
    rows: Mapped[_Small | None]
    min_shared_bands: Mapped[int | None]
    bucket_limit: Mapped[int | None]
    expected_recall: Mapped[float | None]
    documents: Mapped[_Big]
    buckets: Mapped[_Big | None]
    largest_bucket: Mapped[_Big | None]
    buckets_over_limit: Mapped[_Big | None]
    links_left_out: Mapped[_Big | None]
    created_at: Mapped[datetime]
    live_at: Mapped[datetime | None]
    figures: Mapped[dict[str, Any] | None]
    fingerprint: Mapped[str | None]
    recipe: Mapped[dict[str, Any] | None]
    amplification: Mapped[str | None]


class Generations(View):
    """All builds of all profiles in any state."""

    __tablename__ = "generations"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    profile_id: Mapped[int]
    generation_id: Mapped[_Key]
    state: Mapped[str]
    stage: Mapped[str]
    bands: Mapped[_Small | None]
    rows: Mapped[_Small | None]
    created_at: Mapped[datetime]
    live_at: Mapped[datetime | None]
    expired_through: Mapped[datetime | None]
    fingerprint: Mapped[str]
    figures: Mapped[dict[str, Any]]
    recipe: Mapped[dict[str, Any]]
    replaces: Mapped[int | None]
    detached: Mapped[bool]
    dropping: Mapped[bool]
    ready_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]


class Backlog(View):
    """Queued work by generation and stage, and captured changes not yet dispatched (stage "change")."""

    __tablename__ = "backlog"
    collection: Mapped[str | None]
    profile: Mapped[str | None]
    collection_id: Mapped[int | None] = mapped_column(primary_key=True)
    generation_id: Mapped[int | None] = mapped_column(primary_key=True)
    state: Mapped[str | None]
    stage: Mapped[str] = mapped_column(primary_key=True)
    waiting: Mapped[_Big]
    due: Mapped[_Big]
    leased: Mapped[_Big]
    tried: Mapped[_Big]
    set_aside: Mapped[_Big]
    oldest_queued_at: Mapped[datetime | None]


class Verdicts(View):
    """Manual verdicts on two documents, in force while `undone_at` is None."""

    __tablename__ = "verdicts"
    collection: Mapped[str]
    collection_id: Mapped[int]
    verdict_id: Mapped[_BigKey]
    left_id: Mapped[_Big]
    right_id: Mapped[_Big]
    left_external_id: Mapped[_Name | None]
    right_external_id: Mapped[_Name | None]
    left_title: Mapped[str | None]
    right_title: Mapped[str | None]
    verdict: Mapped[str]
    by: Mapped[str]
    why: Mapped[str]
    at: Mapped[datetime]
    undone_by: Mapped[str | None]
    undone_why: Mapped[str | None]
    undone_at: Mapped[datetime | None]


class Functions(View):
    """Functions for callers, with their arguments."""

    __tablename__ = "functions"
    name: Mapped[_Name] = mapped_column(primary_key=True)
    arguments: Mapped[str] = mapped_column(primary_key=True)
    returns: Mapped[str | None]
    comment: Mapped[_Name]


class Events(View):
    """Changes of pairs, clusters and their survivors, with the documents' current external_ids."""

    __tablename__ = "events"
    event_id: Mapped[_BigKey]
    at: Mapped[datetime]
    kind: Mapped[str]
    collection: Mapped[str | None]
    profile: Mapped[str | None]
    left_external_id: Mapped[_Name | None]
    right_external_id: Mapped[_Name | None]
    similarity: Mapped[float | None]
    cluster_id: Mapped[_Big | None]
    survivor_external_id: Mapped[_Name | None]
    left_id: Mapped[_Big | None]
    right_id: Mapped[_Big | None]
    survivor_id: Mapped[_Big | None]
    other_ids: Mapped[list[int] | None]
    other_survivor_ids: Mapped[list[int] | None]
    collection_id: Mapped[int]
    profile_id: Mapped[int]
    generation_id: Mapped[int]
    pruned: Mapped[bool]


class GrantedGenerations(View):
    """Internal: the generations that were granted to the user."""

    __tablename__ = "granted_generations"
    generation_id: Mapped[_Key]
    collection_id: Mapped[int]


class VisibleProfiles(View):
    """Internal: the profiles that the user may see, each with its live generation."""

    __tablename__ = "visible_profiles"
    collection_id: Mapped[_Key]
    profile: Mapped[str] = mapped_column(primary_key=True)
    generation_id: Mapped[int | None]
    bands: Mapped[int | None] = mapped_column(SmallInteger)
    rows: Mapped[int | None] = mapped_column(SmallInteger)
    recipe: Mapped[dict[str, Any] | None]


class QueuedWork(View):
    """Internal: queued work by document, with the documents of batches."""

    __tablename__ = "queued_work"
    generation_id: Mapped[_Key]
    stage: Mapped[str] = mapped_column(primary_key=True)
    doc_id: Mapped[_BigKey]
    queued_at: Mapped[datetime]
    due_at: Mapped[datetime]
    lease_id: Mapped[int | None]
    attempts: Mapped[int] = mapped_column(SmallInteger)
    error: Mapped[str | None]
    set_aside_at: Mapped[datetime | None]


class VisibleWork(View):
    """Internal: queued work of the generations that the user may see."""

    __tablename__ = "visible_work"
    generation_id: Mapped[_Key]
    stage: Mapped[str] = mapped_column(primary_key=True)
    doc_id: Mapped[_BigKey]
    set_aside_at: Mapped[datetime | None]


class VisibleChanges(View):
    """Internal: captured writes of the collections that the user may see."""

    __tablename__ = "visible_changes"
    collection_id: Mapped[int | None] = mapped_column(primary_key=True)
    doc_id: Mapped[_Big | None] = mapped_column(primary_key=True)
    external_id: Mapped[str | None] = mapped_column(primary_key=True)


class AttachedTexts(View):
    """Internal: documents whose texts are in an attached table."""

    __tablename__ = "attached_texts"
    doc_id: Mapped[_BigKey]
    body: Mapped[str | None]

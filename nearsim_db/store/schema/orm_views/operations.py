"""Views of how an index is made and kept: profiles, generations, buckets and work."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from nearsim_db.store.schema.orm_views.base import Big, BigKey, Key, Name, Small, View


class Profiles(View):
    """All profiles: recipe, live (else newest) generation and counts of its build."""

    __tablename__ = "profiles"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    profile_id: Mapped[Key]
    generation_id: Mapped[int | None]
    state: Mapped[str | None]
    stage: Mapped[str | None]
    threshold: Mapped[float | None]
    bands: Mapped[Small | None]
    rows: Mapped[Small | None]
    min_shared_bands: Mapped[int | None]
    bucket_limit: Mapped[int | None]
    expected_recall: Mapped[float | None]
    documents: Mapped[Big]
    buckets: Mapped[Big | None]
    largest_bucket: Mapped[Big | None]
    buckets_over_limit: Mapped[Big | None]
    links_left_out: Mapped[Big | None]
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
    generation_id: Mapped[Key]
    state: Mapped[str]
    stage: Mapped[str]
    bands: Mapped[Small | None]
    rows: Mapped[Small | None]
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


class LiveGenerations(View):
    """The live generation of each profile, with the main parts of its recipe."""

    __tablename__ = "live_generations"
    generation_id: Mapped[Key]
    profile_id: Mapped[int]
    profile: Mapped[str]
    collection_id: Mapped[int]
    collection: Mapped[str]
    threshold: Mapped[float]
    bands: Mapped[Small | None]
    rows: Mapped[Small | None]
    min_shared_bands: Mapped[int]
    bucket_limit: Mapped[int]
    retained: Mapped[timedelta | None]
    fingerprint: Mapped[str]
    recipe: Mapped[dict[str, Any]]
    figures: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    live_at: Mapped[datetime | None]


class Buckets(View):
    """Buckets with two or more members; those over the limit are hot. Counts all band rows."""

    __tablename__ = "buckets"
    collection: Mapped[str]
    profile: Mapped[str]
    collection_id: Mapped[int]
    generation_id: Mapped[Key]
    band_no: Mapped[Small]
    bucket_hash: Mapped[BigKey]
    members: Mapped[Big]
    anchors: Mapped[Big]
    left_out: Mapped[Big]
    is_hot: Mapped[bool]


class Backlog(View):
    """Queued work by generation and stage, and captured changes not yet dispatched (stage "change")."""

    __tablename__ = "backlog"
    collection: Mapped[str | None]
    profile: Mapped[str | None]
    collection_id: Mapped[int | None] = mapped_column(primary_key=True)
    generation_id: Mapped[int | None] = mapped_column(primary_key=True)
    state: Mapped[str | None]
    stage: Mapped[str] = mapped_column(primary_key=True)
    waiting: Mapped[Big]
    due: Mapped[Big]
    leased: Mapped[Big]
    tried: Mapped[Big]
    set_aside: Mapped[Big]
    oldest_queued_at: Mapped[datetime | None]


class Functions(View):
    """Functions for callers, with their arguments."""

    __tablename__ = "functions"
    name: Mapped[Name] = mapped_column(primary_key=True)
    arguments: Mapped[str] = mapped_column(primary_key=True)
    returns: Mapped[str | None]
    comment: Mapped[Name]

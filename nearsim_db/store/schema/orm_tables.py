"""The tables as mapped classes, for applications that use the ORM of SQLAlchemy; the columns are those of `tables`.

Any application may write `Document` and `Probe`, and with rights `Collection`; the rest is read.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy.orm import DeclarativeBase, Mapped, relationship

from nearsim_db.store.schema import tables


class Base(DeclarativeBase):
    """Base of the mapped tables."""

    metadata = tables.metadata


class Collection(Base):
    """A named set of documents that are compared with each other."""

    __table__ = tables.collection
    collection_id: Mapped[int]
    name: Mapped[str]
    temporary: Mapped[bool]
    created_at: Mapped[datetime]
    purged_at: Mapped[datetime | None]


class Document(Base):
    """A document under its owner's `external_id`; a worker or `nearsim build` indexes what is written here."""

    __table__ = tables.document
    doc_id: Mapped[int]
    collection_id: Mapped[int]
    external_id: Mapped[str]
    title: Mapped[str | None]
    body: Mapped[str | None]
    vector: Mapped[list[float] | None]
    source: Mapped[str | None]
    url: Mapped[str | None]
    published_at: Mapped[datetime | None]
    attributes: Mapped[dict[str, Any]]
    revision: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    body_digest: Mapped[UUID | None]
    body_length: Mapped[int | None]
    collection: Mapped[Collection] = relationship()


class Profile(Base):
    """A named recipe for one collection."""

    __table__ = tables.profile
    profile_id: Mapped[int]
    collection_id: Mapped[int]
    name: Mapped[str]
    created_at: Mapped[datetime]
    collection: Mapped[Collection] = relationship()
    generations: Mapped[list["Generation"]] = relationship(
        back_populates="profile", order_by=tables.generation.c.generation_id, passive_deletes=True
    )


class Generation(Base):
    """One build of a profile's index, with its complete recipe; the one in state "live" answers queries."""

    __table__ = tables.generation
    generation_id: Mapped[int]
    profile_id: Mapped[int]
    state: Mapped[str]
    stage: Mapped[str]
    recipe: Mapped[dict[str, Any]]
    fingerprint: Mapped[str]
    figures: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    live_at: Mapped[datetime | None]
    expired_through: Mapped[datetime | None]
    bands: Mapped[int | None]
    rows: Mapped[int | None]
    expected_recall: Mapped[float | None]
    replaces: Mapped[int | None]
    detached: Mapped[bool]
    distributed: Mapped[bool]
    dropping: Mapped[bool]
    ready_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]
    published_left_id: Mapped[int | None]
    published_right_id: Mapped[int | None]
    profile: Mapped[Profile] = relationship(back_populates="generations")


class Signature(Base):
    """An indexed document: number and digest of features, sketch, and head (first document with identical features)."""

    __table__ = tables.signature
    __mapper_args__ = {"primary_key": [tables.signature.c.generation_id, tables.signature.c.doc_id]}
    generation_id: Mapped[int]
    doc_id: Mapped[int]
    revision: Mapped[int]
    feature_count: Mapped[int]
    feature_digest: Mapped[UUID | None]
    sketch: Mapped[bytes | None]
    numbers_digest: Mapped[int]
    head_id: Mapped[int | None]


class Band(Base):
    """A band of a head: documents with the same `bucket_hash` may be similar."""

    __table__ = tables.band
    __mapper_args__ = {
        "primary_key": [tables.band.c.generation_id, tables.band.c.bucket_hash, tables.band.c.doc_id]
    }
    bucket_hash: Mapped[int]
    doc_id: Mapped[int]
    generation_id: Mapped[int]
    band_no: Mapped[int | None]


class SimilarPair(Base):
    """A verified pair of heads; `Pairs` includes the pairs of their twins."""

    __table__ = tables.similar_pair
    __mapper_args__ = {
        "primary_key": [
            tables.similar_pair.c.generation_id,
            tables.similar_pair.c.left_id,
            tables.similar_pair.c.right_id,
        ]
    }
    left_id: Mapped[int]
    right_id: Mapped[int]
    generation_id: Mapped[int]
    estimate: Mapped[float]
    similarity: Mapped[float]
    intersection_size: Mapped[int | None]
    union_size: Mapped[int | None]
    verified_at: Mapped[datetime]
    distance: Mapped[float | None]
    shared_bands: Mapped[int]


class ClusterMember(Base):
    """A document of a cluster, and whether it is the one to keep."""

    __table__ = tables.cluster_member
    __mapper_args__ = {"primary_key": [tables.cluster_member.c.generation_id, tables.cluster_member.c.doc_id]}
    generation_id: Mapped[int]
    doc_id: Mapped[int]
    cluster_id: Mapped[int]
    is_survivor: Mapped[bool]


class Verdict(Base):
    """A person's verdict on a pair of documents, in force until it is undone."""

    __table__ = tables.verdict
    verdict_id: Mapped[int]
    collection_id: Mapped[int]
    left_id: Mapped[int]
    right_id: Mapped[int]
    verdict: Mapped[str]
    by: Mapped[str]
    why: Mapped[str]
    at: Mapped[datetime]
    undone_by: Mapped[str | None]
    undone_why: Mapped[str | None]
    undone_at: Mapped[datetime | None]
    collection: Mapped[Collection] = relationship()


class Event(Base):
    """A change of a pair, a cluster or its survivor."""

    __table__ = tables.event
    event_id: Mapped[int]
    left_id: Mapped[int | None]
    right_id: Mapped[int | None]
    similarity: Mapped[float | None]
    cluster_id: Mapped[int | None]
    survivor_id: Mapped[int | None]
    at: Mapped[datetime]
    collection_id: Mapped[int]
    profile_id: Mapped[int]
    generation_id: Mapped[int]
    pruned: Mapped[bool]
    kind: Mapped[str]
    other_ids: Mapped[list[int] | None]
    other_survivor_ids: Mapped[list[int] | None]


class Probe(Base):
    """A lookup request, answered by a worker."""

    __table__ = tables.probe
    probe_id: Mapped[int]
    collection_id: Mapped[int]
    profile: Mapped[str | None]
    title: Mapped[str | None]
    body: Mapped[str | None]
    min_similarity: Mapped[float]
    max_matches: Mapped[int | None]
    asked_by: Mapped[str]
    asked_at: Mapped[datetime]
    deadline: Mapped[datetime]
    answered_at: Mapped[datetime | None]
    error: Mapped[str | None]
    collection: Mapped[Collection] = relationship()
    matches: Mapped[list["ProbeMatch"]] = relationship(
        order_by=(tables.probe_match.c.similarity.desc(), tables.probe_match.c.doc_id), viewonly=True
    )


class ProbeMatch(Base):
    """A matching document of a lookup request."""

    __table__ = tables.probe_match
    probe_id: Mapped[int]
    doc_id: Mapped[int]
    similarity: Mapped[float]
    estimate: Mapped[float]
    shared_bands: Mapped[int]
    intersection_size: Mapped[int | None]
    union_size: Mapped[int | None]
    distance: Mapped[float | None]


def include_name(name: str | None, type_: str, parent_names: object) -> bool:
    """For the `env.py` of an application: autogenerate skips nearsim's schemas."""
    return not (type_ == "schema" and name in (tables.SCHEMA, tables.INDEX_SCHEMA))


def include_object(object: Any, name: str | None, type_: str, reflected: bool, compare_to: object) -> bool:
    """For the `env.py` of an application: autogenerate neither creates, drops nor changes nearsim's objects."""
    table = object if type_ == "table" else object.table
    return bool(table.schema not in (tables.SCHEMA, tables.INDEX_SCHEMA))

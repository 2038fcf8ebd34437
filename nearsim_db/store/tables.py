"""The tables as SQLAlchemy metadata, for Alembic and for applications that share the database."""

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

SCHEMA = "nearsim"
metadata = MetaData(schema=SCHEMA)

_NOW = text("now()")


def _moment(name: str, *, required: bool = True) -> Column[object]:
    return Column(
        name, DateTime(timezone=True), nullable=not required, server_default=_NOW if required else None
    )


collection = Table(
    "collection",
    metadata,
    Column("collection_id", Integer, Identity(always=True), primary_key=True),
    Column("name", Text, nullable=False),
    Column("temporary", Boolean, nullable=False, server_default=text("false")),
    _moment("created_at"),
    _moment("purged_at", required=False),
    UniqueConstraint("name", name="collection_name_key"),
    CheckConstraint("name <> ''", name="collection_name_given"),
    comment="A named set of documents that are compared with each other: a tenant, a feed, a corpus",
)

document = Table(
    "document",
    metadata,
    Column("doc_id", BigInteger, Identity(always=True), primary_key=True),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="document_collection_fkey", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("external_id", Text(collation="C"), nullable=False),
    Column("title", Text),
    Column("body", Text),
    Column("vector", ARRAY(REAL)),
    Column("source", Text),
    Column("url", Text),
    _moment("published_at", required=False),
    Column("attributes", JSONB, nullable=False, server_default=text("'{}'")),
    Column(
        "revision",
        BigInteger,
        nullable=False,
        server_default=text("nextval('nearsim.document_revision'::regclass)"),
    ),
    _moment("created_at"),
    _moment("updated_at"),
    UniqueConstraint("collection_id", "external_id", name="document_external_id_key"),
    CheckConstraint("doc_id > 0", name="document_doc_id_positive"),
    CheckConstraint(
        "octet_length(external_id) >= 1 AND octet_length(external_id) <= 1024",
        name="document_external_id_length",
    ),
    Index("document_collection_doc", "collection_id", "doc_id"),
    Index("document_age", "collection_id", text("coalesce(published_at, created_at)")),
    comment="Texts with their owners own external_id; any application may write here, nearsim build takes it in",
)

profile = Table(
    "profile",
    metadata,
    Column("profile_id", Integer, Identity(always=True), primary_key=True),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="profile_collection_fkey", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("name", Text, nullable=False),
    _moment("created_at"),
    UniqueConstraint("collection_id", "name", name="profile_name_key"),
    CheckConstraint("name <> ''", name="profile_name_given"),
    comment="A named recipe for one collection",
)

generation = Table(
    "generation",
    metadata,
    Column("generation_id", Integer, Identity(always=True), primary_key=True),
    Column(
        "profile_id",
        Integer,
        ForeignKey("nearsim.profile.profile_id", name="generation_profile_fkey", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("state", Text, nullable=False, server_default=text("'building'")),
    Column("stage", Text, nullable=False, server_default=text("'sign'")),
    Column("verified_through", BigInteger, nullable=False, server_default=text("0")),
    Column("recipe", JSONB, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("figures", JSONB, nullable=False, server_default=text("'{}'")),
    _moment("created_at"),
    _moment("live_at", required=False),
    _moment("expired_through", required=False),
    Column("bands", SmallInteger),
    Column("rows", SmallInteger),
    CheckConstraint(
        "state IN ('building', 'catching_up', 'ready', 'live', 'retired', 'paused', 'abandoned')",
        name="generation_state_known",
    ),
    CheckConstraint("stage IN ('sign', 'bands', 'pairs', 'clusters', 'done')", name="generation_stage_known"),
    Index("generation_one_live", "profile_id", unique=True, postgresql_where=text("state = 'live'")),
    comment="One build of a profile, with its whole recipe and the fingerprint of what makes its sketches",
)

collection_access = Table(
    "collection_access",
    metadata,
    Column(
        "collection_id",
        Integer,
        ForeignKey(
            "nearsim.collection.collection_id", name="collection_access_collection_fkey", ondelete="CASCADE"
        ),
        nullable=False,
    ),
    Column("role_name", Text, nullable=False),
    _moment("granted_at"),
    PrimaryKeyConstraint("collection_id", "role_name", name="collection_access_pkey"),
    comment="Which roles may read which collections, where readers are kept apart (nearsim db isolation)",
)

verdict = Table(
    "verdict",
    metadata,
    Column("verdict_id", BigInteger, Identity(always=True), nullable=False),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="verdict_collection_fkey", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("left_id", BigInteger, nullable=False),
    Column("right_id", BigInteger, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("why", Text, nullable=False),
    _moment("at"),
    Column("undone_by", Text),
    Column("undone_why", Text),
    _moment("undone_at", required=False),
    PrimaryKeyConstraint("verdict_id", name="verdict_pkey"),
    CheckConstraint("left_id < right_id", name="verdict_ordered"),
    CheckConstraint("verdict IN ('pinned', 'vetoed')", name="verdict_known"),
    CheckConstraint(
        "(undone_at IS NULL) = (undone_by IS NULL) AND (undone_at IS NULL) = (undone_why IS NULL)",
        name="verdict_undone_whole",
    ),
    Index(
        "verdict_one_standing",
        "left_id",
        "right_id",
        unique=True,
        postgresql_where=text("undone_at IS NULL"),
    ),
    comment="Pairs that a person pinned (they belong together) or vetoed (they do not), with who, why and what was "
    "undone",
)

signature = Table(
    "signature",
    metadata,
    Column("generation_id", Integer, nullable=False),
    Column("doc_id", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("feature_count", Integer, nullable=False),
    Column("feature_digest", Uuid),
    Column("sketch", LargeBinary),
    Column("numbers_digest", BigInteger, nullable=False),
    Column("head_id", BigInteger),
    CheckConstraint(
        "(feature_count > 0) = (feature_digest IS NOT NULL) AND (feature_count > 0) = (sketch IS NOT NULL) "
        "AND (feature_count > 0) = (head_id IS NOT NULL)",
        name="signature_features_or_none",
    ),
    CheckConstraint("head_id <= doc_id", name="signature_head_first"),
    postgresql_partition_by="LIST (generation_id)",
    comment="A document in a generation: its features counted and digested, its sketch, the head of its twins",
)

band = Table(
    "band",
    metadata,
    Column("bucket_hash", BigInteger, nullable=False),
    Column("doc_id", BigInteger, nullable=False),
    Column("generation_id", Integer, nullable=False),
    Column("band_no", SmallInteger, Computed("((bucket_hash >> 56) & 255)", persisted=True)),
    postgresql_partition_by="LIST (generation_id)",
    comment="A band of a head: documents with the same bucket_hash may be similar; band_no is its top byte",
)

similar_pair = Table(
    "similar_pair",
    metadata,
    Column("generation_id", Integer, nullable=False),
    Column("left_id", BigInteger, nullable=False),
    Column("right_id", BigInteger, nullable=False),
    Column("shared_bands", SmallInteger, nullable=False),
    Column("estimate", REAL, nullable=False),
    Column("similarity", Double, nullable=False),
    Column("intersection_size", Integer, nullable=False),
    Column("union_size", Integer, nullable=False),
    _moment("verified_at"),
    CheckConstraint("left_id < right_id", name="similar_pair_ordered"),
    CheckConstraint(
        "intersection_size BETWEEN 0 AND union_size AND union_size > 0", name="similar_pair_counts"
    ),
    postgresql_partition_by="LIST (generation_id)",
    comment="Verified pairs of heads, left_id < right_id; the twins of a head (signature.head_id) are paired alike",
)

cluster_member = Table(
    "cluster_member",
    metadata,
    Column("generation_id", Integer, nullable=False),
    Column("doc_id", BigInteger, nullable=False),
    Column("cluster_id", BigInteger, nullable=False),
    Column("is_survivor", Boolean, nullable=False),
    postgresql_partition_by="LIST (generation_id)",
    comment="Documents tied together by pairs, twins included, and which one of each cluster survives",
)

lease = Table(
    "lease",
    metadata,
    Column("lease_id", Integer, Identity(always=True), primary_key=True),
    Column("worker", Text, nullable=False),
    _moment("taken_at"),
    _moment("beat_at"),
    comment="Processes at work, each holding an advisory lock as long as it lives; their work is free again when they "
    "are gone",
)

work = Table(
    "work",
    metadata,
    Column(
        "generation_id",
        Integer,
        ForeignKey("nearsim.generation.generation_id", name="work_generation_fkey", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("doc_id", BigInteger, nullable=False),
    Column("stage", Text, nullable=False),
    _moment("queued_at"),
    _moment("due_at"),
    Column("lease_id", Integer),
    Column("again", Boolean, nullable=False, server_default=text("false")),
    Column("attempts", SmallInteger, nullable=False, server_default=text("0")),
    Column("reached", BigInteger, nullable=False, server_default=text("0")),
    Column("error", Text),
    _moment("set_aside_at", required=False),
    PrimaryKeyConstraint("generation_id", "stage", "doc_id", name="work_pkey"),
    CheckConstraint("stage IN ('sign', 'search', 'anchor', 'link', 'compare')", name="work_stage_known"),
    Index("work_not_tried", "generation_id", "stage", "doc_id", postgresql_where=text("attempts = 0")),
    Index(
        "work_tried_before",
        "generation_id",
        "stage",
        "attempts",
        "doc_id",
        postgresql_where=text("attempts > 0 AND set_aside_at IS NULL"),
    ),
    Index(
        "work_set_aside",
        "generation_id",
        "stage",
        "doc_id",
        postgresql_where=text("set_aside_at IS NOT NULL"),
    ),
    comment="What a generation has still to sign, search or link: who is at it, since when, and what went wrong before",
)

change = Table(
    "change",
    metadata,
    Column("collection_id", Integer),
    Column("doc_id", BigInteger),
    _moment("changed_at"),
    CheckConstraint("(collection_id IS NULL) = (doc_id IS NULL)", name="change_one_or_everything"),
    comment="Writes to document that no index has taken in yet; triggers append and do nothing else",
)


def is_ours(name: str | None, kind: str, parents: object) -> bool:
    """For Alembic: look at the schema nearsim and nothing else in the database."""
    return name == SCHEMA if kind == "schema" else True

"""Captured changes, the work queue with its leases, and the slices of builds."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from nearsim_db.store.schema.tables.base import metadata, timestamp_column

lease = Table(
    "lease",
    metadata,
    Column("lease_id", Integer, Identity(always=True), primary_key=True, comment="Number of the lease"),
    Column("worker", Text, nullable=False, comment="The process that holds it, as host:pid"),
    timestamp_column("taken_at", "When it was acquired"),
    timestamp_column("beat_at", "Last heartbeat"),
    comment=(
        "Processes at work, each holding an advisory lock while it runs; their work is released when they end"
    ),
)

work = Table(
    "work",
    metadata,
    Column(
        "generation_id",
        Integer,
        ForeignKey("nearsim.generation.generation_id", name="work_generation_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The generation",
    ),
    Column(
        "doc_id",
        BigInteger,
        nullable=False,
        comment="The document; 0 for the whole index, a random negative number for a batch",
    ),
    Column(
        "stage",
        Text,
        nullable=False,
        comment=(
            "sign, search (for pairs), anchor (through a whole bucket), link (clusters), compare (all "
            "documents) or publish (events after promotion)"
        ),
    ),
    timestamp_column("queued_at", "When it was queued"),
    timestamp_column("due_at", "Earliest start"),
    Column("lease_id", Integer, comment="The lease under which it is processed; NULL if it waits"),
    Column(
        "again",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether it was queued again while being processed",
    ),
    Column(
        "attempts",
        SmallInteger,
        nullable=False,
        server_default=text("0"),
        comment="Number of failed attempts",
    ),
    Column(
        "reached",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Progress of an anchor through its buckets: the last doc_id",
    ),
    Column("error", Text, comment="Last error"),
    timestamp_column(
        "set_aside_at",
        "When it was set aside after its last attempt, for a person to look at",
        required=False,
    ),
    Column(
        "doc_ids",
        ARRAY(BigInteger),
        comment=(
            "The documents of a batch that a worker signs and then searches; NULL for work of one document or of "
            "the whole index"
        ),
    ),
    PrimaryKeyConstraint("generation_id", "stage", "doc_id", name="work_pkey"),
    CheckConstraint(
        "stage IN ('sign', 'search', 'anchor', 'link', 'compare', 'publish')", name="work_stage_known"
    ),
    CheckConstraint(
        "doc_id >= 0 AND doc_ids IS NULL OR doc_id < 0 AND doc_ids IS NOT NULL AND lease_id IS NOT NULL "
        "AND attempts = 0",
        name="work_batch_leased",
    ),
    Index(
        "work_free",
        "generation_id",
        "stage",
        "doc_id",
        postgresql_where=text("attempts = 0 AND lease_id IS NULL"),
    ),
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
    comment="Work queue of a generation: sign, search and link, with leases, retries and errors",
)

build_slice = Table(
    "build_slice",
    metadata,
    Column(
        "generation_id",
        Integer,
        ForeignKey(
            "nearsim.generation.generation_id", name="build_slice_generation_fkey", ondelete="CASCADE"
        ),
        nullable=False,
        comment="The generation",
    ),
    Column(
        "stage", Text, nullable=False, comment="sign (a range of documents) or pairs (a range of buckets)"
    ),
    Column(
        "slice_no",
        Integer,
        nullable=False,
        comment="Number of the slice in its stage, from 0, in the order of the ranges",
    ),
    Column("low", BigInteger, nullable=False, comment="First doc_id or bucket_hash"),
    Column("high", BigInteger, nullable=False, comment="Last doc_id or bucket_hash"),
    Column(
        "documents",
        BigInteger,
        nullable=False,
        comment="Documents to sign, or this slice's share of the documents with bands",
    ),
    Column("done", Boolean, nullable=False, server_default=text("false"), comment="Whether it is done"),
    Column("counts", JSONB, nullable=False, server_default=text("'{}'"), comment="What was counted in it"),
    Column(
        "full_buckets",
        ARRAY(BigInteger),
        nullable=False,
        server_default=text("'{}'"),
        comment="Buckets over the limit in this range",
    ),
    Column(
        "last_anchors",
        ARRAY(BigInteger),
        nullable=False,
        server_default=text("'{}'"),
        comment="The last anchor of each",
    ),
    PrimaryKeyConstraint("generation_id", "stage", "slice_no", name="build_slice_pkey"),
    CheckConstraint("stage IN ('sign', 'pairs')", name="build_slice_stage_known"),
    comment="Slices of a running build, which any number of processes take; deleted when the build is done",
)

change = Table(
    "change",
    metadata,
    Column("doc_id", BigInteger, comment="The document that was written"),
    Column(
        "revision",
        BigInteger,
        comment="Revision of the document that was written; NULL if it was deleted or left the collection",
    ),
    timestamp_column("changed_at", "When it was written"),
    Column("collection_id", Integer, comment="The collection; NULL for all documents"),
    Column(
        "stage",
        Text,
        comment=(
            "link if only clusters have to be updated, after a verdict; NULL if the document itself "
            "was written"
        ),
    ),
    Column(
        "external_id",
        Text,
        comment=(
            "Id of a row in the attached table; if this and doc_id are NULL, the whole collection is meant"
        ),
    ),
    CheckConstraint(
        "num_nonnulls(doc_id, external_id) <= num_nonnulls(collection_id)", name="change_one_or_everything"
    ),
    CheckConstraint("stage = 'link'", name="change_stage_known"),
    comment="Captured writes that are not yet dispatched to the work queue; triggers only append here",
)

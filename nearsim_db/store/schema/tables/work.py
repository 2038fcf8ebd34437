"""What is still to be done, and who is at it."""

from sqlalchemy import (
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

from nearsim_db.store.schema.tables.base import metadata, moment

lease = Table(
    "lease",
    metadata,
    Column("lease_id", Integer, Identity(always=True), primary_key=True, comment="Number of the lease"),
    Column("worker", Text, nullable=False, comment="The process that holds it, as host and number"),
    moment("taken_at", "When it began"),
    moment("beat_at", "When it was last heard of"),
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
        comment="The generation it is to be done for",
    ),
    Column("doc_id", BigInteger, nullable=False, comment="The document; 0 stands for all of the index"),
    Column(
        "stage",
        Text,
        nullable=False,
        comment="sign, search (for pairs), anchor (through a whole bucket), link (clusters), compare (all documents) "
        "or tell (events of an index that went live)",
    ),
    moment("queued_at", "When it was queued"),
    moment("due_at", "When it may begin"),
    Column("lease_id", Integer, comment="Who is at it; NULL for nobody"),
    Column(
        "again",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether it was queued once more while somebody was at it",
    ),
    Column(
        "attempts", SmallInteger, nullable=False, server_default=text("0"), comment="How often it has failed"
    ),
    Column(
        "reached",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="How far an anchor has gone through its buckets: the last doc_id",
    ),
    Column("error", Text, comment="Why it failed last"),
    moment("set_aside_at", "When it was given up until somebody looks", required=False),
    PrimaryKeyConstraint("generation_id", "stage", "doc_id", name="work_pkey"),
    CheckConstraint(
        "stage IN ('sign', 'search', 'anchor', 'link', 'compare', 'tell')", name="work_stage_known"
    ),
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
    Column("collection_id", Integer, comment="The collection; NULL for all documents there are"),
    Column("doc_id", BigInteger, comment="The document that was written"),
    moment("changed_at", "When it was written"),
    Column(
        "stage",
        Text,
        comment="link where only clusters are to be put right, after a verdict; null where the document itself was "
        "written",
    ),
    Column(
        "external_id",
        Text,
        comment="The id of a row in the table that the collection follows; with neither this nor doc_id all of it is "
        "meant",
    ),
    CheckConstraint(
        "num_nonnulls(doc_id, external_id) <= num_nonnulls(collection_id)", name="change_one_or_everything"
    ),
    CheckConstraint("stage = 'link'", name="change_stage_known"),
    comment="Writes to document that no index has taken in yet; triggers append and do nothing else",
)

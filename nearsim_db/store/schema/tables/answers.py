"""What people decide and ask, and what is told of changes."""

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
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
from sqlalchemy.dialects.postgresql import ARRAY

from nearsim_db.store.schema.tables.base import NOW, metadata

verdict = Table(
    "verdict",
    metadata,
    Column(
        "verdict_id",
        BigInteger,
        Identity(always=True),
        nullable=False,
        comment="Number of the verdict, rising with time",
    ),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="verdict_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection that both documents were in",
    ),
    Column("left_id", BigInteger, nullable=False, comment="doc_id of the earlier document"),
    Column("right_id", BigInteger, nullable=False, comment="doc_id of the later document"),
    Column(
        "verdict",
        Text,
        nullable=False,
        comment="pinned: always in one cluster; vetoed: never in one cluster",
    ),
    Column(
        "by",
        Text,
        nullable=False,
        comment="Who decided, as they said; the database user if they did not",
    ),
    Column("why", Text, nullable=False, comment="Their reason"),
    Column("at", DateTime(timezone=True), nullable=False, server_default=NOW, comment="When they decided"),
    Column("undone_by", Text, comment="Who undid or replaced it, null while it stands"),
    Column("undone_why", Text, comment="Why it was undone or replaced, null while it stands"),
    Column(
        "undone_at", DateTime(timezone=True), comment="When it was undone or replaced, null while it stands"
    ),
    PrimaryKeyConstraint("verdict_id", name="verdict_pkey"),
    CheckConstraint("left_id < right_id", name="verdict_ordered"),
    CheckConstraint("verdict IN ('pinned', 'vetoed')", name="verdict_known"),
    CheckConstraint("btrim(why) <> '' AND btrim(by) <> ''", name="verdict_explained"),
    CheckConstraint(
        "(undone_at IS NULL) = (undone_by IS NULL) AND (undone_at IS NULL) = (undone_why IS NULL)",
        name="verdict_undone_whole",
    ),
    Index(
        "verdict_one_current",
        "left_id",
        "right_id",
        unique=True,
        postgresql_where=text("undone_at IS NULL"),
    ),
    Index("verdict_left", "left_id"),
    Index("verdict_right", "right_id"),
    Index("verdict_collection", "collection_id", "verdict"),
    comment="Pairs that a person pinned (they belong together) or vetoed (they do not), with who, why and what was "
    "undone",
)

probe = Table(
    "probe",
    metadata,
    Column(
        "probe_id",
        BigInteger,
        Identity(always=True),
        nullable=False,
        comment="The number by which the answer is asked for",
    ),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="probe_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection whose documents the text is compared with",
    ),
    Column(
        "profile",
        Text,
        comment="The profile that answers; may be left out where the collection has one, or one called default",
    ),
    Column("title", Text, comment="The title of the text, for profiles whose fields have it"),
    Column("body", Text, comment="The text"),
    Column(
        "min_similarity",
        Double,
        nullable=False,
        server_default=text("0"),
        comment="What is less similar is left out of the answer",
    ),
    Column(
        "asked_by",
        Text,
        nullable=False,
        server_default=text("nearsim.caller()"),
        comment="The role that asked",
    ),
    Column(
        "asked_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("clock_timestamp()"),
        comment="When it was asked",
    ),
    Column(
        "deadline",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("(clock_timestamp() + '00:00:05'::interval)"),
        comment="Nobody waits for the answer any longer; at most 24 hours after asked_at",
    ),
    Column("answered_at", DateTime(timezone=True), comment="When a worker answered; NULL while none has"),
    Column("error", Text, comment="Why there is no answer, where the worker could not give one"),
    PrimaryKeyConstraint("probe_id", name="probe_pkey"),
    CheckConstraint("deadline <= asked_at + interval '24 hours'", name="probe_deadline_near"),
    CheckConstraint("isfinite(asked_at) AND isfinite(deadline)", name="probe_moments_finite"),
    CheckConstraint("min_similarity BETWEEN 0 AND 1", name="probe_min_similarity_possible"),
    CheckConstraint("error IS NULL OR answered_at IS NOT NULL", name="probe_error_answers"),
    Index("probe_waiting", "deadline", postgresql_where=text("answered_at IS NULL")),
    Index("probe_age", "deadline"),
    comment="Texts that applications ask about; a worker answers each before its deadline and removes it an hour after "
    "that",
)

probe_match = Table(
    "probe_match",
    metadata,
    Column(
        "probe_id",
        BigInteger,
        ForeignKey("nearsim.probe.probe_id", name="probe_match_probe_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The probe that is answered",
    ),
    Column("doc_id", BigInteger, nullable=False, comment="The document found; it may be gone since"),
    Column(
        "similarity",
        Double,
        nullable=False,
        comment="Verified similarity; of a distance d it is 1 / (1 + d)",
    ),
    Column("estimate", REAL, nullable=False, comment="What the two sketches alone say of the similarity"),
    Column(
        "shared_bands", SmallInteger, nullable=False, comment="How many bands of the two sketches are equal"
    ),
    Column(
        "intersection_size",
        Integer,
        comment="How many distinct features the two texts share; NULL where the metric counts none",
    ),
    Column(
        "union_size",
        Integer,
        comment="How many distinct features they have together; NULL where the metric counts none",
    ),
    Column("distance", Double, comment="Verified distance; NULL where the metric measures none"),
    PrimaryKeyConstraint("probe_id", "doc_id", name="probe_match_pkey"),
    comment="The documents that the text of a probe would be paired with if it were added, twins expanded",
)

event = Table(
    "event",
    metadata,
    Column(
        "event_id",
        BigInteger,
        Identity(always=True),
        nullable=False,
        comment="The order; there are gaps, but nothing is ever added before what is there",
    ),
    Column("left_id", BigInteger, comment="doc_id of the left document of a pair"),
    Column(
        "right_id",
        BigInteger,
        comment="doc_id of the right document of a pair; of twins the one that is not the head",
    ),
    Column("similarity", Double, comment="Similarity of a pair that was found; 1 for a twin and its head"),
    Column(
        "cluster_id", BigInteger, comment="The cluster; of one that was split or is gone, what it was called"
    ),
    Column("survivor_id", BigInteger, comment="doc_id of the document that survives in the cluster, or did"),
    Column(
        "at",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("clock_timestamp()"),
        comment="When it was about to be committed",
    ),
    Column("collection_id", Integer, nullable=False, comment="The collection"),
    Column("profile_id", Integer, nullable=False, comment="The profile"),
    Column("generation_id", Integer, nullable=False, comment="The generation that answered for the profile"),
    Column(
        "pruned",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether this event and all before it of its kind and profile were removed",
    ),
    Column(
        "kind",
        Text,
        nullable=False,
        comment="pair_found, pair_gone, cluster_formed, cluster_gone, cluster_merged, cluster_split, cluster_renamed, "
        "cluster_changed, survivor_changed, generation_live or generation_gone",
    ),
    Column(
        "other_ids",
        ARRAY(BigInteger),
        comment="Clusters: those that were merged, those that a cluster fell into, or what it was called before",
    ),
    Column(
        "other_survivor_ids",
        ARRAY(BigInteger),
        comment="The survivors of those clusters, in the same order",
    ),
    PrimaryKeyConstraint("event_id", name="event_pkey"),
    CheckConstraint(
        "kind IN ('pair_found', 'pair_gone', 'cluster_formed', 'cluster_gone', 'cluster_merged', 'cluster_split', "
        "'cluster_renamed', 'cluster_changed', 'survivor_changed', 'generation_live', 'generation_gone')",
        name="event_kind_known",
    ),
    CheckConstraint(
        "pruned OR (kind IN ('pair_found', 'pair_gone')) = (left_id IS NOT NULL AND right_id IS NOT NULL)",
        name="event_of_pair_whole",
    ),
    CheckConstraint("left_id < right_id", name="event_pair_ordered"),
    CheckConstraint(
        "pruned OR (kind IN ('pair_found', 'pair_gone', 'generation_live', 'generation_gone')) = (cluster_id IS NULL)",
        name="event_of_cluster_whole",
    ),
    Index("event_pruned", "profile_id", "kind", postgresql_where=text("pruned")),
    comment="What happened to pairs, clusters and their survivors, in the order in which it was committed; kept for "
    "some days",
)

pending_event = Table(
    "pending_event",
    metadata,
    Column(
        "pending_id", BigInteger, Identity(always=True), nullable=False, comment="The order of the statements"
    ),
    Column("generation_id", Integer, nullable=False, comment="The generation that was changed"),
    Column(
        "kind",
        Text,
        nullable=False,
        comment="pairs_before, pairs_after, members (their state before), live or not_live (promoted or retired)",
    ),
    Column(
        "collection_id",
        Integer,
        comment="The collection of a generation that became live, or no longer is",
    ),
    Column("profile_id", Integer, comment="The profile of such a generation"),
    Column("left_ids", ARRAY(BigInteger), comment="The left documents of pairs, and the heads of twins"),
    Column("right_ids", ARRAY(BigInteger), comment="The right documents, and the twins"),
    Column("similarities", ARRAY(Double), comment="The similarities of these pairs"),
    Column(
        "doc_ids",
        ARRAY(BigInteger),
        comment="Documents that joined, left or changed a cluster, or survive otherwise",
    ),
    Column("cluster_ids", ARRAY(BigInteger), comment="The clusters that these were in; NULL for none"),
    Column("survive", ARRAY(Boolean), comment="Whether they survived there; NULL where they were in none"),
    PrimaryKeyConstraint("pending_id", name="pending_event_pkey"),
    CheckConstraint(
        "kind IN ('pairs_before', 'pairs_after', 'members', 'live', 'not_live')",
        name="pending_event_kind_known",
    ),
    prefixes=["UNLOGGED"],
    comment="What the transaction at hand has changed, a row a statement; made into events when it commits, and gone "
    "by then",
)

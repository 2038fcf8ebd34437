"""Verdicts, events and lookup requests."""

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
        comment="Number of the verdict, ascending with time",
    ),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="verdict_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection of both documents",
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
        comment="Author as stated; by default the database user",
    ),
    Column("why", Text, nullable=False, comment="Reason"),
    Column("at", DateTime(timezone=True), nullable=False, server_default=NOW, comment="When it was set"),
    Column("undone_by", Text, comment="Who undid or replaced it; NULL while it is in force"),
    Column("undone_why", Text, comment="Why it was undone or replaced; NULL while it is in force"),
    Column(
        "undone_at",
        DateTime(timezone=True),
        comment="When it was undone or replaced; NULL while it is in force",
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
    comment=(
        "Pairs that a person pinned (always in one cluster) or vetoed (never), with author, reason and undo"
    ),
)

probe = Table(
    "probe",
    metadata,
    Column(
        "probe_id",
        BigInteger,
        Identity(always=True),
        nullable=False,
        comment="Number of the request, an argument of similar_to_text",
    ),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="probe_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection to search",
    ),
    Column(
        "profile",
        Text,
        comment="The profile to search; optional if the collection has one profile, or one named default",
    ),
    Column("title", Text, comment="Title, for profiles whose fields include it"),
    Column("body", Text, comment="Text"),
    Column(
        "min_similarity",
        Double,
        nullable=False,
        server_default=text("0"),
        comment="Minimum similarity of the documents in the answer",
    ),
    Column(
        "max_matches",
        Integer,
        comment=(
            "Maximum number of documents in the answer, the first in the order of their estimates; NULL for all"
        ),
    ),
    Column(
        "asked_by",
        Text,
        nullable=False,
        server_default=text("current_user"),
        comment="The requesting role",
    ),
    Column(
        "asked_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("clock_timestamp()"),
        comment="When it was requested",
    ),
    Column(
        "deadline",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("(clock_timestamp() + '00:00:05'::interval)"),
        comment="When the request expires; at most 24 hours after asked_at",
    ),
    Column("answered_at", DateTime(timezone=True), comment="When a worker answered; NULL until then"),
    Column("error", Text, comment="Why the request failed; NULL if it did not"),
    PrimaryKeyConstraint("probe_id", name="probe_pkey"),
    CheckConstraint("deadline <= asked_at + interval '24 hours'", name="probe_deadline_near"),
    CheckConstraint("isfinite(asked_at) AND isfinite(deadline)", name="probe_moments_finite"),
    CheckConstraint("min_similarity BETWEEN 0 AND 1", name="probe_min_similarity_possible"),
    CheckConstraint("max_matches > 0", name="probe_max_matches_positive"),
    CheckConstraint("error IS NULL OR answered_at IS NOT NULL", name="probe_error_answers"),
    Index("probe_waiting", "deadline", postgresql_where=text("answered_at IS NULL")),
    Index("probe_age", "deadline"),
    comment=(
        "Lookup requests of applications; a worker answers each before its deadline and deletes "
        "it an hour later"
    ),
)

probe_match = Table(
    "probe_match",
    metadata,
    Column(
        "probe_id",
        BigInteger,
        ForeignKey("nearsim.probe.probe_id", name="probe_match_probe_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The lookup request",
    ),
    Column(
        "doc_id", BigInteger, nullable=False, comment="The matching document; it may have been deleted since"
    ),
    Column(
        "similarity",
        Double,
        nullable=False,
        comment="Verified similarity; 1 / (1 + d) for a distance d",
    ),
    Column("estimate", REAL, nullable=False, comment="Similarity estimated from the two sketches"),
    Column("shared_bands", SmallInteger, nullable=False, comment="Number of equal bands of the two sketches"),
    Column(
        "intersection_size",
        Integer,
        comment="Number of features in both texts; NULL if the metric does not count features",
    ),
    Column(
        "union_size",
        Integer,
        comment="Number of features in either text; NULL if the metric does not count features",
    ),
    Column("distance", Double, comment="Verified distance; NULL if the metric is not a distance"),
    PrimaryKeyConstraint("probe_id", "doc_id", name="probe_match_pkey"),
    comment=(
        "Answers to lookup requests: the documents that the text would be paired with if it were "
        "added, twins expanded"
    ),
)

event = Table(
    "event",
    metadata,
    Column(
        "event_id",
        BigInteger,
        Identity(always=True),
        nullable=False,
        comment="Position in commit order; there are gaps, but later events always have larger numbers",
    ),
    Column("left_id", BigInteger, comment="doc_id of the left document of a pair"),
    Column(
        "right_id",
        BigInteger,
        comment="doc_id of the right document of a pair; for twins the one that is not the head",
    ),
    Column("similarity", Double, comment="Similarity of a new pair; 1 for a twin and its head"),
    Column("cluster_id", BigInteger, comment="The cluster; its former number if it was split or dissolved"),
    Column(
        "survivor_id",
        BigInteger,
        comment="doc_id of the document to keep in the cluster, or formerly to keep",
    ),
    Column(
        "at",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("clock_timestamp()"),
        comment="Time shortly before commit",
    ),
    Column("collection_id", Integer, nullable=False, comment="The collection"),
    Column("profile_id", Integer, nullable=False, comment="The profile"),
    Column("generation_id", Integer, nullable=False, comment="The generation that was live"),
    Column(
        "pruned",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether this event and all earlier ones of its kind and profile were deleted",
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
        comment=(
            "Other clusters: those that were merged, those that resulted from a split, or the former number"
        ),
    ),
    Column(
        "other_survivor_ids",
        ARRAY(BigInteger),
        comment="Survivors of those clusters, in the same order",
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
    comment="Changes of pairs, clusters and their survivors, in commit order; deleted after some days",
)

pending_event = Table(
    "pending_event",
    metadata,
    Column(
        "pending_id", BigInteger, Identity(always=True), nullable=False, comment="Order of the statements"
    ),
    Column("generation_id", Integer, nullable=False, comment="The changed generation"),
    Column(
        "kind",
        Text,
        nullable=False,
        comment="pairs_before, pairs_after, members (their state before), live or not_live (promoted or retired)",
    ),
    Column(
        "collection_id",
        Integer,
        comment="Collection of a generation that was promoted or retired",
    ),
    Column("profile_id", Integer, comment="Profile of such a generation"),
    Column("left_ids", ARRAY(BigInteger), comment="Left documents of pairs, and heads of twins"),
    Column("right_ids", ARRAY(BigInteger), comment="Right documents, and twins"),
    Column("similarities", ARRAY(Double), comment="Similarities of these pairs"),
    Column(
        "doc_ids",
        ARRAY(BigInteger),
        comment="Documents that joined, left or changed a cluster, or whose survivor flag changed",
    ),
    Column("cluster_ids", ARRAY(BigInteger), comment="Their clusters before; NULL for none"),
    Column(
        "survive",
        ARRAY(Boolean),
        comment="Whether each was the survivor of that cluster; NULL if in no cluster",
    ),
    PrimaryKeyConstraint("pending_id", name="pending_event_pkey"),
    CheckConstraint(
        "kind IN ('pairs_before', 'pairs_after', 'members', 'live', 'not_live')",
        name="pending_event_kind_known",
    ),
    prefixes=["UNLOGGED"],
    comment=(
        "Changes of the running transaction, one row per statement; converted into events and "
        "deleted at commit"
    ),
)

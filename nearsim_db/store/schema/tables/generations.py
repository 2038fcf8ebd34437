"""Profiles, their generations, and the partitioned tables of the index."""

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from nearsim_db.store.schema.tables.base import metadata, moment

profile = Table(
    "profile",
    metadata,
    Column("profile_id", Integer, Identity(always=True), primary_key=True, comment="Number of the profile"),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="profile_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection whose documents it compares",
    ),
    Column("name", Text, nullable=False, comment="Its name, unique in the collection"),
    moment("created_at", "When it was made"),
    UniqueConstraint("collection_id", "name", name="profile_name_key"),
    CheckConstraint("name <> ''", name="profile_name_given"),
    comment="A named recipe for one collection",
)

generation = Table(
    "generation",
    metadata,
    Column(
        "generation_id",
        Integer,
        Identity(always=True),
        primary_key=True,
        comment="Number of the generation; its own tables end in it, as nearsim_index.band_7",
    ),
    Column(
        "profile_id",
        Integer,
        ForeignKey("nearsim.profile.profile_id", name="generation_profile_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The profile it is a build of",
    ),
    Column(
        "state",
        Text,
        nullable=False,
        server_default=text("'building'"),
        comment="building, catching_up, ready, live (answers), retired, paused or abandoned",
    ),
    Column(
        "stage",
        Text,
        nullable=False,
        server_default=text("'sign'"),
        comment="How far its build has come: sign, bands, pairs, clusters, done",
    ),
    Column(
        "verified_through",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="The doc_id up to which a build has verified pairs",
    ),
    Column("recipe", JSONB, nullable=False, comment="The whole recipe, every default spelled out"),
    Column(
        "fingerprint", Text, nullable=False, comment="SHA-256 of all that decides sketches, bands and pairs"
    ),
    Column("figures", JSONB, nullable=False, server_default=text("'{}'"), comment="What its build counted"),
    moment("created_at", "When it was made"),
    moment("live_at", "Since when it answers, or did", required=False),
    moment("expired_through", "The date up to which documents have left its window", required=False),
    Column("bands", SmallInteger, comment="How many bands a sketch is cut into"),
    Column("rows", SmallInteger, comment="How many values of the sketch make one band"),
    Column(
        "expected_recall",
        Double,
        comment="Probability that two documents right at the threshold become candidates; NULL where it was not "
        "written down",
    ),
    Column(
        "replaces",
        Integer,
        comment="The generation that answered when this one was begun beside it; NULL for the first of a profile, "
        "which goes live by itself",
    ),
    Column(
        "detached",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether its build is left to the workers",
    ),
    Column(
        "dropping",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether its tables are being dropped, which waits for who still reads them",
    ),
    moment("ready_at", "When it had caught up with the documents", required=False),
    moment("retired_at", "When it ceased to answer; NULL while it does, or never did", required=False),
    Column(
        "told_left_id",
        BigInteger,
        comment="The left document of the last pair, or the cluster, that was told of since it answers; NULL once all "
        "are",
    ),
    Column(
        "told_right_id",
        BigInteger,
        comment="The right document of that pair, or the largest number after a cluster",
    ),
    CheckConstraint(
        "state IN ('building', 'catching_up', 'ready', 'live', 'retired', 'paused', 'abandoned')",
        name="generation_state_known",
    ),
    CheckConstraint("stage IN ('sign', 'bands', 'pairs', 'clusters', 'done')", name="generation_stage_known"),
    CheckConstraint(
        "(told_left_id IS NULL) = (told_right_id IS NULL) AND (told_left_id IS NULL OR state = 'live')",
        name="generation_told_while_live",
    ),
    Index("generation_one_live", "profile_id", unique=True, postgresql_where=text("state = 'live'")),
    Index(
        "generation_one_coming",
        "profile_id",
        unique=True,
        postgresql_where=text("state IN ('building', 'catching_up', 'ready', 'paused')"),
    ),
    comment="One build of a profile, with its whole recipe and the fingerprint of what makes its sketches",
)

signature = Table(
    "signature",
    metadata,
    Column("generation_id", Integer, nullable=False, comment="The generation"),
    Column(
        "doc_id",
        BigInteger,
        nullable=False,
        comment="The document; it may be gone, until its index rows are taken out",
    ),
    Column("revision", BigInteger, nullable=False, comment="The revision of the document that was signed"),
    Column(
        "feature_count",
        Integer,
        nullable=False,
        comment="How many distinct features it has; 0 where its text is empty or too short, and it is like nothing",
    ),
    Column(
        "feature_digest",
        Uuid,
        comment="Digest of the fingerprint and the sorted features: equal for equal feature sets",
    ),
    Column(
        "sketch",
        LargeBinary,
        comment="The summary of the features that bands are cut from and similarity is estimated with",
    ),
    Column(
        "numbers_digest",
        BigInteger,
        nullable=False,
        comment="Sum of the hashes of the runs of digits in the text, 0 for none: equal where the numbers are the same",
    ),
    Column(
        "head_id",
        BigInteger,
        comment="The first document with the same features, which alone has bands and pairs; often itself",
    ),
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
    Column(
        "bucket_hash",
        BigInteger,
        nullable=False,
        comment="Hash of one band of the sketch, its top byte the number of the band",
    ),
    Column("doc_id", BigInteger, nullable=False, comment="The head whose band it is"),
    Column("generation_id", Integer, nullable=False, comment="The generation"),
    Column(
        "band_no",
        SmallInteger,
        Computed("((bucket_hash >> 56) & 255)", persisted=True),
        comment="The number of the band: the top byte of bucket_hash",
    ),
    postgresql_partition_by="LIST (generation_id)",
    comment="A band of a head: documents with the same bucket_hash may be similar; band_no is its top byte",
)

similar_pair = Table(
    "similar_pair",
    metadata,
    Column("generation_id", Integer, nullable=False, comment="The generation"),
    Column("left_id", BigInteger, nullable=False, comment="The head with the smaller doc_id"),
    Column("right_id", BigInteger, nullable=False, comment="The head with the larger doc_id"),
    Column(
        "shared_bands", SmallInteger, nullable=False, comment="How many bands of the two sketches are equal"
    ),
    Column("estimate", REAL, nullable=False, comment="Similarity as estimated from the two sketches"),
    Column(
        "similarity",
        Double,
        nullable=False,
        comment="Verified similarity, which reaches the recipe's threshold; of a distance d it is 1 / (1 + d)",
    ),
    Column(
        "intersection_size",
        Integer,
        comment="How many features both have; NULL where the metric counts none",
    ),
    Column("union_size", Integer, comment="How many features either has; NULL where the metric counts none"),
    moment("verified_at", "When the similarity was computed"),
    Column("distance", Double, comment="Verified distance; NULL where the metric measures none"),
    CheckConstraint("left_id < right_id", name="similar_pair_ordered"),
    CheckConstraint(
        "(intersection_size IS NULL) = (union_size IS NULL) AND intersection_size BETWEEN 0 AND union_size "
        "AND union_size > 0",
        name="similar_pair_counts",
    ),
    CheckConstraint("distance >= 0", name="similar_pair_distance_possible"),
    postgresql_partition_by="LIST (generation_id)",
    comment="Verified pairs of heads, left_id < right_id; the twins of a head (signature.head_id) are paired alike",
)

cluster_member = Table(
    "cluster_member",
    metadata,
    Column("generation_id", Integer, nullable=False, comment="The generation"),
    Column("doc_id", BigInteger, nullable=False, comment="The document"),
    Column(
        "cluster_id",
        BigInteger,
        nullable=False,
        comment="The cluster: the smallest doc_id that it was linked with",
    ),
    Column("is_survivor", Boolean, nullable=False, comment="Whether it is the one of its cluster to keep"),
    postgresql_partition_by="LIST (generation_id)",
    comment="Documents tied together by pairs, twins included, and which one of each cluster survives",
)

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

from nearsim_db.store.schema.tables.base import metadata, timestamp_column

profile = Table(
    "profile",
    metadata,
    Column("profile_id", Integer, Identity(always=True), primary_key=True, comment="Number of the profile"),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="profile_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection",
    ),
    Column("name", Text, nullable=False, comment="Name, unique in the collection"),
    timestamp_column("created_at", "When it was created"),
    UniqueConstraint("collection_id", "name", name="profile_name_key"),
    CheckConstraint("name <> ''", name="profile_name_given"),
    comment="A named index configuration of a collection; each generation stores its recipe",
)

generation = Table(
    "generation",
    metadata,
    Column(
        "generation_id",
        Integer,
        Identity(always=True),
        primary_key=True,
        comment="Number of the generation, and suffix of its own tables, as in nearsim_index.band_7",
    ),
    Column(
        "profile_id",
        Integer,
        ForeignKey("nearsim.profile.profile_id", name="generation_profile_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The profile",
    ),
    Column(
        "state",
        Text,
        nullable=False,
        server_default=text("'building'"),
        comment="building, catching_up, ready, live (answers queries), retired, paused or abandoned",
    ),
    Column(
        "stage",
        Text,
        nullable=False,
        server_default=text("'sign'"),
        comment="Stage of its build: sign, bands, pairs, clusters, done",
    ),
    Column("recipe", JSONB, nullable=False, comment="The complete recipe, including defaults"),
    Column(
        "fingerprint",
        Text,
        nullable=False,
        comment="SHA-256 of everything that determines sketches, bands and pairs",
    ),
    Column("figures", JSONB, nullable=False, server_default=text("'{}'"), comment="Build statistics"),
    timestamp_column("created_at", "When it was created"),
    timestamp_column("live_at", "When it last became live", required=False),
    timestamp_column(
        "expired_through", "Date up to which documents have expired ([retain] age)", required=False
    ),
    Column("bands", SmallInteger, comment="Number of bands of a sketch"),
    Column("rows", SmallInteger, comment="Number of sketch positions per band"),
    Column(
        "expected_recall",
        Double,
        comment=(
            "Probability that two documents exactly at the threshold become candidates; NULL if not recorded"
        ),
    ),
    Column(
        "replaces",
        Integer,
        comment=(
            "The generation that was live when this one was started; NULL for a profile's first, "
            "which becomes live when built"
        ),
    ),
    Column(
        "detached",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether workers continue its build",
    ),
    Column(
        "distributed",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether its band rows are on the nodes of a Citus cluster; the default is set by nearsim db init",
    ),
    Column(
        "dropping",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether its tables are being dropped, which waits for sessions that read them",
    ),
    timestamp_column("ready_at", "When it became ready", required=False),
    timestamp_column("retired_at", "When it was retired; NULL if it is live or never was", required=False),
    Column(
        "published_left_id",
        BigInteger,
        comment=(
            "Position of publishing its events since promotion: left document of the last pair, or "
            "the cluster; NULL when complete"
        ),
    ),
    Column(
        "published_right_id",
        BigInteger,
        comment="Right document of that pair, or the largest bigint for a cluster",
    ),
    CheckConstraint(
        "state IN ('building', 'catching_up', 'ready', 'live', 'retired', 'paused', 'abandoned')",
        name="generation_state_known",
    ),
    CheckConstraint("stage IN ('sign', 'bands', 'pairs', 'clusters', 'done')", name="generation_stage_known"),
    CheckConstraint(
        "(published_left_id IS NULL) = (published_right_id IS NULL) AND (published_left_id IS NULL OR state = 'live')",
        name="generation_published_while_live",
    ),
    Index("generation_one_live", "profile_id", unique=True, postgresql_where=text("state = 'live'")),
    Index(
        "generation_one_pending",
        "profile_id",
        unique=True,
        postgresql_where=text("state IN ('building', 'catching_up', 'ready', 'paused')"),
    ),
    comment="One build of a profile's index, with its complete recipe and its fingerprint",
)

signature = Table(
    "signature",
    metadata,
    Column("generation_id", Integer, nullable=False, comment="The generation"),
    Column(
        "doc_id",
        BigInteger,
        nullable=False,
        comment="The document; a deleted document's row is removed by the next dispatch",
    ),
    Column("revision", BigInteger, nullable=False, comment="Revision of the document that was sketched"),
    Column(
        "feature_count",
        Integer,
        nullable=False,
        comment=(
            "Number of distinct features; 0 if the text is empty or too short, so that it matches nothing"
        ),
    ),
    Column(
        "feature_digest",
        Uuid,
        comment="Digest of the fingerprint and the sorted features: equal for equal feature sets",
    ),
    Column(
        "sketch",
        LargeBinary,
        comment="Sketch, from which bands are hashed and similarity is estimated",
    ),
    Column(
        "numbers_digest",
        BigInteger,
        nullable=False,
        comment=(
            "Sum of the hashes of the runs of digits in the text, 0 for none; equal for texts with "
            "the same numbers"
        ),
    ),
    Column(
        "head_id",
        BigInteger,
        comment=(
            "The first document with the same features, which alone has bands and pairs; often the "
            "document itself"
        ),
    ),
    CheckConstraint(
        "(feature_count > 0) = (feature_digest IS NOT NULL) AND (feature_count > 0) = (sketch IS NOT NULL) "
        "AND (feature_count > 0) = (head_id IS NOT NULL)",
        name="signature_features_or_none",
    ),
    CheckConstraint("head_id <= doc_id", name="signature_head_first"),
    postgresql_partition_by="LIST (generation_id)",
    comment="Indexed documents: number and digest of features, sketch, and head "
    "(first document with identical features)",
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
    comment=("Bands of heads: documents with the same bucket_hash may be similar; band_no is its top byte"),
)

similar_pair = Table(
    "similar_pair",
    metadata,
    Column("left_id", BigInteger, nullable=False, comment="The head with the smaller doc_id"),
    Column("right_id", BigInteger, nullable=False, comment="The head with the larger doc_id"),
    Column("generation_id", Integer, nullable=False, comment="The generation"),
    Column("estimate", REAL, nullable=False, comment="Similarity estimated from the two sketches"),
    Column(
        "similarity",
        Double,
        nullable=False,
        comment="Verified similarity, at or above the recipe's threshold; 1 / (1 + d) for a distance d",
    ),
    Column(
        "intersection_size",
        Integer,
        comment="Number of features in both; NULL if the metric does not count features",
    ),
    Column(
        "union_size",
        Integer,
        comment="Number of features in either; NULL if the metric does not count features",
    ),
    timestamp_column("verified_at", "When the similarity was computed"),
    Column("distance", Double, comment="Verified distance; NULL if the metric is not a distance"),
    Column("shared_bands", SmallInteger, nullable=False, comment="Number of equal bands of the two sketches"),
    CheckConstraint("left_id < right_id", name="similar_pair_ordered"),
    CheckConstraint(
        "(intersection_size IS NULL) = (union_size IS NULL) AND intersection_size BETWEEN 0 AND union_size "
        "AND union_size > 0",
        name="similar_pair_counts",
    ),
    CheckConstraint("distance >= 0", name="similar_pair_distance_possible"),
    postgresql_partition_by="LIST (generation_id)",
    comment=(
        "Verified pairs of heads, left_id < right_id; twins of a head (signature.head_id) have the same pairs"
    ),
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
        comment="The cluster, identified by its smallest doc_id",
    ),
    Column(
        "is_survivor", Boolean, nullable=False, comment="Whether it is the document of its cluster to keep"
    ),
    postgresql_partition_by="LIST (generation_id)",
    comment=("Clusters: documents connected by pairs, twins included, and the one of each cluster to keep"),
)

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
    FetchedValue,
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
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, REGCLASS

SCHEMA = "nearsim"
metadata = MetaData(schema=SCHEMA)

_NOW = text("now()")


def _moment(name: str, comment: str, *, required: bool = True) -> Column[object]:
    return Column(
        name,
        DateTime(timezone=True),
        nullable=not required,
        server_default=_NOW if required else None,
        comment=comment,
    )


collection = Table(
    "collection",
    metadata,
    Column(
        "collection_id", Integer, Identity(always=True), primary_key=True, comment="Number of the collection"
    ),
    Column("name", Text, nullable=False, comment="Its name, unique"),
    Column(
        "temporary",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether it was made for one run of nearsim dedupe and goes with it",
    ),
    _moment("created_at", "When it was made"),
    _moment(
        "purged_at",
        "When texts were last purged from it; processes that remember texts forget them then",
        required=False,
    ),
    UniqueConstraint("name", name="collection_name_key"),
    CheckConstraint("name <> ''", name="collection_name_given"),
    comment="A named set of documents that are compared with each other: a tenant, a feed, a corpus",
)

document = Table(
    "document",
    metadata,
    Column(
        "doc_id",
        BigInteger,
        Identity(always=True),
        primary_key=True,
        comment="The index's own number of the document, above 0; it is its place in time",
    ),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="document_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection it belongs to",
    ),
    Column(
        "external_id",
        Text(collation="C"),
        nullable=False,
        comment="The owner's name of it, unique in the collection; at most 1,024 bytes",
    ),
    Column("title", Text, comment="Its title"),
    Column("body", Text, comment="Its text"),
    Column(
        "vector", ARRAY(REAL), comment="Numbers that its owner computed, for profiles that compare vectors"
    ),
    Column("source", Text, comment="Where it comes from, such as an agency or a site"),
    Column("url", Text, comment="Its address"),
    _moment("published_at", "When it was published; where it is NULL, created_at counts", required=False),
    Column(
        "attributes",
        JSONB,
        nullable=False,
        server_default=text("'{}'"),
        comment="Whatever else its owner wants to keep with it",
    ),
    Column(
        "revision",
        BigInteger,
        nullable=False,
        server_default=text("nextval('nearsim.document_revision'::regclass)"),
        server_onupdate=FetchedValue(),
        comment="Grows with every change; kept by a trigger",
    ),
    _moment("created_at", "When it was first stored"),
    Column(
        "updated_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=_NOW,
        server_onupdate=FetchedValue(),
        comment="When it was last changed; kept by a trigger",
    ),
    Column(
        "body_digest",
        Uuid,
        comment="Where the collection follows a table: md5 of the text that is there (of an empty one, where that is "
        "NULL)",
    ),
    Column(
        "body_length",
        Integer,
        comment="Where the collection follows a table: how many characters the text there has",
    ),
    UniqueConstraint("collection_id", "external_id", name="document_external_id_key"),
    CheckConstraint("doc_id > 0", name="document_doc_id_positive"),
    CheckConstraint("body IS NULL OR body_digest IS NULL", name="document_body_here_or_there"),
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
    Column("profile_id", Integer, Identity(always=True), primary_key=True, comment="Number of the profile"),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="profile_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection whose documents it compares",
    ),
    Column("name", Text, nullable=False, comment="Its name, unique in the collection"),
    _moment("created_at", "When it was made"),
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
        comment="Number of the generation; its own tables end in it, as nearsim.band_7",
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
    _moment("created_at", "When it was made"),
    _moment("live_at", "Since when it answers, or did", required=False),
    _moment("expired_through", "The date up to which documents have left its window", required=False),
    Column("bands", SmallInteger, comment="How many bands a sketch is cut into"),
    Column("rows", SmallInteger, comment="How many values of the sketch make one band"),
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
        comment="The collection",
    ),
    Column(
        "role_name",
        Text,
        nullable=False,
        comment="The role, by name: whoever is a member of it sees the collection, and so does a later role of that "
        "name",
    ),
    Column(
        "may_write",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether the role may also write documents of the collection, being a nearsim_writer",
    ),
    Column("granted_at", DateTime(timezone=True), nullable=False, server_default=_NOW, comment="Since when"),
    PrimaryKeyConstraint("collection_id", "role_name", name="collection_access_pkey"),
    comment="Which roles may read which collections, where readers are kept apart (nearsim db isolation)",
)

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
    Column("at", DateTime(timezone=True), nullable=False, server_default=_NOW, comment="When they decided"),
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
        "verdict_one_standing",
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
        comment="Verified similarity, at or above the recipe's threshold",
    ),
    Column("intersection_size", Integer, nullable=False, comment="How many features both have"),
    Column("union_size", Integer, nullable=False, comment="How many features either has"),
    _moment("verified_at", "When the similarity was computed"),
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

lease = Table(
    "lease",
    metadata,
    Column("lease_id", Integer, Identity(always=True), primary_key=True, comment="Number of the lease"),
    Column("worker", Text, nullable=False, comment="The process that holds it, as host and number"),
    _moment("taken_at", "When it began"),
    _moment("beat_at", "When it was last heard of"),
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
        comment="sign, search (for pairs), anchor (through a whole bucket), link (clusters) or compare (all documents)",
    ),
    _moment("queued_at", "When it was queued"),
    _moment("due_at", "When it may begin"),
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
    _moment("set_aside_at", "When it was given up until somebody looks", required=False),
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
    Column("collection_id", Integer, comment="The collection; NULL for all documents there are"),
    Column("doc_id", BigInteger, comment="The document that was written"),
    _moment("changed_at", "When it was written"),
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
    Column("profile", Text, comment="The profile that answers; may be left out where the collection has one"),
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
    Column("similarity", Double, nullable=False, comment="intersection_size / union_size"),
    Column("estimate", REAL, nullable=False, comment="What the two sketches alone say of the similarity"),
    Column(
        "shared_bands", SmallInteger, nullable=False, comment="How many bands of the two sketches are equal"
    ),
    Column(
        "intersection_size",
        Integer,
        nullable=False,
        comment="How many distinct features the two texts share",
    ),
    Column("union_size", Integer, nullable=False, comment="How many distinct features they have together"),
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
        "survivor_changed, generation_live or generation_gone",
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
        "'cluster_renamed', 'survivor_changed', 'generation_live', 'generation_gone')",
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

event_draft = Table(
    "event_draft",
    metadata,
    Column(
        "draft_id", BigInteger, Identity(always=True), nullable=False, comment="The order of the statements"
    ),
    Column("generation_id", Integer, nullable=False, comment="The generation that was changed"),
    Column(
        "kind",
        Text,
        nullable=False,
        comment="pairs_gone, pairs_come, members (as they were before), live or not_live (the generation was made so)",
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
    PrimaryKeyConstraint("draft_id", name="event_draft_pkey"),
    CheckConstraint(
        "kind IN ('pairs_gone', 'pairs_come', 'members', 'live', 'not_live')", name="event_draft_kind_known"
    ),
    prefixes=["UNLOGGED"],
    comment="What the transaction at hand has changed, a row a statement; made into events when it commits, and gone "
    "by then",
)


attachment = Table(
    "attachment",
    metadata,
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="attachment_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        autoincrement=False,
        comment="The collection",
    ),
    Column("relation", REGCLASS, nullable=False, comment="The table, under whatever name it has now"),
    Column("id_column", Text, nullable=False, comment="Its column of ids, which as text are external_id"),
    Column("text_column", Text, nullable=False, comment="Its column of texts"),
    Column("title_column", Text, comment="Its column of titles"),
    Column("source_column", Text, comment="Its column of sources"),
    Column("url_column", Text, comment="Its column of addresses"),
    Column("published_at_column", Text, comment="Its column of dates of publication"),
    Column(
        "attached_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=_NOW,
        comment="Since when it is followed",
    ),
    Column(
        "wanted_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("clock_timestamp()"),
        comment="When a sweep of the whole table was last asked for",
    ),
    Column(
        "swept_at",
        DateTime(timezone=True),
        comment="When the last sweep that was finished began; earlier than wanted_at, another is to come",
    ),
    Column("sweep_seconds", Double, nullable=False, server_default=text("0"), comment="How long that took"),
    Column(
        "unusable",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="How many rows it left out because their id is NULL, empty or longer than 1,024 bytes",
    ),
    Column(
        "detaching",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether the texts are being copied and the table is not followed any more",
    ),
    Column("trouble", Text, comment="Why the table cannot be followed now"),
    Column("troubled_at", DateTime(timezone=True), comment="When that was last found"),
    PrimaryKeyConstraint("collection_id", name="attachment_pkey"),
    CheckConstraint("(trouble IS NULL) = (troubled_at IS NULL)", name="attachment_trouble_dated"),
    comment="Which collections follow a table of an application, that keeps their texts (nearsim attach)",
)


def is_ours(name: str | None, kind: str, parents: object) -> bool:
    """For Alembic: look at the schema nearsim and nothing else in the database."""
    return name == SCHEMA if kind == "schema" else True

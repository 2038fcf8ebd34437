"""For applications that use SQLAlchemy: tables and views as mapped classes, and filters for Alembic.

Generated from the catalogue by `make generated`. Any application may write `Document` and `Probe`, and with rights
`Collection`; the rest is read.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Computed,
    FetchedValue,
    ForeignKey,
    Identity,
    Integer,
    MetaData,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from nearsim_db.store.schema.mapped_base import Base, View, include_name, include_object

metadata: MetaData = Base.metadata


class Band(Base):
    """Bands of heads: documents with the same bucket_hash may be similar; band_no is its top byte."""

    __tablename__ = "band"
    bucket_hash: Mapped[int] = mapped_column(
        primary_key=True, comment="Hash of one band of the sketch; its top byte is the number of the band"
    )
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="The head to whose sketch the band belongs")
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    band_no: Mapped[int | None] = mapped_column(
        SmallInteger,
        Computed("((bucket_hash >> 56) & (255)::bigint)", persisted=True),
        comment="The number of the band: the top byte of bucket_hash",
    )


class ClusterMember(Base):
    """Members of clusters: documents connected by pairs, twins included, and the document to keep in each cluster."""

    __tablename__ = "cluster_member"
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="The document")
    cluster_id: Mapped[int] = mapped_column(comment="The cluster, identified by its smallest doc_id")
    is_survivor: Mapped[bool] = mapped_column(comment="Whether it is the document to keep in its cluster")


class Collection(Base):
    """A named set of documents that are compared with each other: a tenant, a feed, a corpus."""

    __tablename__ = "collection"
    collection_id: Mapped[int] = mapped_column(
        Integer, Identity(always=True), primary_key=True, comment="Number of the collection"
    )
    name: Mapped[str] = mapped_column(comment="Name, unique")
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was created")
    purged_at: Mapped[datetime | None] = mapped_column(
        comment="When texts were last purged from it; a process that cached texts before then discards them"
    )


class Document(Base):
    """Documents, each with the external_id that its owner chose; any application may write here, and nearsim indexes the changes."""

    __tablename__ = "document"
    doc_id: Mapped[int] = mapped_column(
        Identity(always=True),
        primary_key=True,
        comment="Number of the document, above 0; documents created later have larger numbers",
    )
    collection_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="document_collection_fkey", ondelete="CASCADE"),
        comment="The collection",
    )
    external_id: Mapped[str] = mapped_column(
        Text(collation="C"),
        comment="The owner's id of the document, unique in the collection; at most 1,024 bytes",
    )
    title: Mapped[str | None] = mapped_column(comment="Title")
    body: Mapped[str | None] = mapped_column(comment="Text")
    vector: Mapped[list[float] | None] = mapped_column(
        ARRAY(REAL), comment="Vector supplied by the owner, for profiles that compare vectors"
    )
    source: Mapped[str | None] = mapped_column(comment="Source, such as an agency or a site")
    url: Mapped[str | None] = mapped_column(comment="URL")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When it was published; if NULL, created_at is used"
    )
    attributes: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'::jsonb"),
        comment="Any further data of the owner, nested at most 100 levels deep",
    )
    revision: Mapped[int] = mapped_column(
        server_default=text("nextval('nearsim.document_revision'::regclass)"),
        server_onupdate=FetchedValue(),
        comment="Increases with every change; set by a trigger",
    )
    created_at: Mapped[datetime] = mapped_column(
        server_default=text("now()"), comment="When it was first stored"
    )
    updated_at: Mapped[datetime] = mapped_column(
        server_default=text("now()"),
        server_onupdate=FetchedValue(),
        comment="When it was last changed; set by a trigger",
    )
    body_digest: Mapped[UUID | None] = mapped_column(
        comment="MD5 of the text in the attached table, of an empty text if it is NULL there; NULL if the text is in body"
    )
    body_length: Mapped[int | None] = mapped_column(
        Integer, comment="Length in characters of the text in the attached table; NULL if the text is in body"
    )
    collection: Mapped["Collection"] = relationship()


class Event(Base):
    """Changes of pairs, of clusters and of the documents to keep, in commit order; old events are deleted."""

    __tablename__ = "event"
    event_id: Mapped[int] = mapped_column(
        Identity(always=True),
        primary_key=True,
        comment="Position in commit order; there are gaps, but later events always have larger numbers",
    )
    left_id: Mapped[int | None] = mapped_column(comment="doc_id of the left document of a pair")
    right_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the right document of a pair; for twins, of the document that is not the head"
    )
    similarity: Mapped[float | None] = mapped_column(
        comment="Similarity of a new pair; an estimate if verified is false, 1 for a twin and its head; NULL for other events"
    )
    cluster_id: Mapped[int | None] = mapped_column(
        comment="Number of the cluster; its former number if it was split or dissolved"
    )
    survivor_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the document to keep in the cluster, or that it kept if it was split or dissolved"
    )
    at: Mapped[datetime] = mapped_column(
        server_default=text("clock_timestamp()"), comment="Time shortly before commit"
    )
    collection_id: Mapped[int] = mapped_column(Integer, comment="The collection")
    profile_id: Mapped[int] = mapped_column(Integer, comment="The profile")
    generation_id: Mapped[int] = mapped_column(Integer, comment="The generation that was live")
    verified: Mapped[bool | None] = mapped_column(
        comment="Whether the similarity was computed from the features, which is also true for documents with the same features; false if it is an estimate from the sketches (match.verify of the recipe decides); NULL for other events"
    )
    pruned: Mapped[bool | None] = mapped_column(
        comment="True if this event and all earlier events of its kind and profile were deleted, and this row only marks the place; NULL, which takes no space, for other events"
    )
    kind: Mapped[str] = mapped_column(
        comment="pair_found, pair_gone, cluster_formed, cluster_gone, cluster_merged, cluster_split, cluster_renamed, cluster_changed, survivor_changed, generation_live or generation_gone"
    )
    other_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger),
        comment="Numbers of other clusters: those that were merged into this one, those that it was split into, or its own former number",
    )
    other_survivor_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger), comment="doc_ids of the documents to keep in those clusters, in the same order"
    )


class Generation(Base):
    """One build of a profile's index, with its complete recipe and its fingerprint."""

    __tablename__ = "generation"
    generation_id: Mapped[int] = mapped_column(
        Integer,
        Identity(always=True),
        primary_key=True,
        comment="Number of the generation. Generations of large collections have numbers from 100,000,000 on and tables of their own with this number as suffix, such as nearsim_index.band_100000007; other generations share tables, such as nearsim_index.band_shared",
    )
    profile_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.profile.profile_id", name="generation_profile_fkey", ondelete="CASCADE"),
        comment="The profile",
    )
    state: Mapped[str] = mapped_column(
        server_default=text("'building'::text"),
        comment="building, catching_up, ready, live (this generation answers queries), retired, paused or abandoned",
    )
    stage: Mapped[str] = mapped_column(
        server_default=text("'sign'::text"), comment="Stage of its build: sign, bands, pairs, clusters, done"
    )
    recipe: Mapped[dict[str, Any]] = mapped_column(comment="The complete recipe, including defaults")
    fingerprint: Mapped[str] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs"
    )
    figures: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'::jsonb"), comment="Counts of the build"
    )
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was created")
    live_at: Mapped[datetime | None] = mapped_column(comment="When it last became live")
    expired_through: Mapped[datetime | None] = mapped_column(
        comment="Documents from before this time have expired ([retain] age)"
    )
    bands: Mapped[int | None] = mapped_column(SmallInteger, comment="Number of bands of a sketch")
    rows: Mapped[int | None] = mapped_column(SmallInteger, comment="Number of sketch positions per band")
    expected_recall: Mapped[float | None] = mapped_column(
        comment="Probability that two documents exactly at the threshold become candidates; NULL if not recorded"
    )
    replaces: Mapped[int | None] = mapped_column(
        Integer,
        comment="The generation that was live when this one was started; NULL for the first generation of a profile, which becomes live as soon as it is built",
    )
    detached: Mapped[bool] = mapped_column(
        server_default=text("false"), comment="Whether workers continue its build"
    )
    distributed: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether its band rows are on the nodes of a Citus cluster; nearsim schema init sets the default",
    )
    dropping: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether its tables are being dropped; this waits for sessions that read them",
    )
    ready_at: Mapped[datetime | None] = mapped_column(comment="When it became ready")
    retired_at: Mapped[datetime | None] = mapped_column(
        comment="When it was retired; NULL if it is live or was never live"
    )
    common_shingles: Mapped[bytes | None] = mapped_column(
        comment="Ids, of eight bytes each, of the shingles that are ignored because too many documents have them (match.ignore_common); NULL if there are none"
    )
    frequencies: Mapped[bytes | None] = mapped_column(
        comment="Number of texts that contain each frequent shingle, from which the weights of shingles are computed (sketch.weights = idf). Each entry is an id of eight bytes and a count of four bytes; the first entry has the number of all texts. NULL for other weights"
    )
    profile: Mapped["Profile"] = relationship(back_populates="generations")


class Probe(Base):
    """Lookup requests of applications; a worker answers each request before its deadline, and deletes it an hour after the deadline."""

    __tablename__ = "probe"
    probe_id: Mapped[int] = mapped_column(
        Identity(always=True),
        primary_key=True,
        comment="Number of the request, an argument of similar_to_text",
    )
    collection_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="probe_collection_fkey", ondelete="CASCADE"),
        comment="The collection to search",
    )
    profile: Mapped[str | None] = mapped_column(
        comment="The profile to search; optional if the collection has one profile, or one named default"
    )
    title: Mapped[str | None] = mapped_column(comment="Title, for profiles whose fields include it")
    body: Mapped[str | None] = mapped_column(comment="Text")
    min_similarity: Mapped[float] = mapped_column(
        server_default=text("0"), comment="Minimum similarity of the documents in the answer"
    )
    max_matches: Mapped[int | None] = mapped_column(
        Integer,
        comment="Maximum number of documents in the answer, which are those with the best estimates; NULL for all",
    )
    asked_by: Mapped[str] = mapped_column(server_default=text("CURRENT_USER"), comment="The requesting role")
    asked_at: Mapped[datetime] = mapped_column(
        server_default=text("clock_timestamp()"), comment="When it was requested"
    )
    deadline: Mapped[datetime] = mapped_column(
        server_default=text("(clock_timestamp() + '00:00:05'::interval)"),
        comment="When the request expires; at most 24 hours after asked_at",
    )
    answered_at: Mapped[datetime | None] = mapped_column(comment="When a worker answered; NULL until then")
    error: Mapped[str | None] = mapped_column(comment="Why the request failed; NULL if it did not")
    external_id: Mapped[str | None] = mapped_column(
        comment="external_id of the document whose text this is; the answer leaves this document out"
    )
    purpose: Mapped[str | None] = mapped_column(
        comment="lock: the answer includes bucket_hashes. insert, or locked if the caller already holds the locks: the answer also takes into account all documents that were committed before it. NULL: neither"
    )
    generation_id: Mapped[int | None] = mapped_column(
        Integer,
        comment="The generation to whose buckets bucket_hashes belong; NULL if purpose is NULL, or if the collection has no index",
    )
    bucket_hashes: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger),
        comment="Buckets of the text, which a transaction locks before it inserts the text, because near-duplicates have a bucket in common; NULL if purpose is NULL",
    )
    snapshot: Mapped[str | None] = mapped_column(
        comment="The transactions whose documents the answer takes into account, as pg_snapshot; NULL unless the purpose is insert"
    )
    collection: Mapped["Collection"] = relationship()
    matches: Mapped[list["ProbeMatch"]] = relationship(
        order_by="(ProbeMatch.similarity.desc(), ProbeMatch.doc_id)", viewonly=True
    )


class ProbeMatch(Base):
    """Answers to lookup requests: the documents, twins included, that the text would be paired with if it were added."""

    __tablename__ = "probe_match"
    probe_id: Mapped[int] = mapped_column(
        ForeignKey("nearsim.probe.probe_id", name="probe_match_probe_fkey", ondelete="CASCADE"),
        primary_key=True,
        comment="The lookup request",
    )
    doc_id: Mapped[int] = mapped_column(
        primary_key=True, comment="The matching document; it may have been deleted since"
    )
    similarity: Mapped[float] = mapped_column(
        comment="Similarity, or 1 / (1 + d) for a distance d; an estimate if verified is false"
    )
    estimate: Mapped[float] = mapped_column(REAL, comment="Similarity estimated from the two sketches")
    shared_bands: Mapped[int] = mapped_column(
        SmallInteger, comment="Number of bands in which the two sketches are equal"
    )
    intersection_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in both texts, or of equal values of the sketches if verified is false; NULL if the metric does not count features",
    )
    union_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in either text, or of values of a sketch if verified is false; NULL if the metric does not count features",
    )
    distance: Mapped[float | None] = mapped_column(
        comment="Distance, an estimate if verified is false; NULL if the metric is not a distance"
    )
    verified: Mapped[bool] = mapped_column(
        comment="Whether the similarity was computed from the features; false if it is an estimate from the sketches (match.verify of the recipe decides)"
    )


class Profile(Base):
    """A named index configuration of a collection; each generation stores the recipe with which it is built."""

    __tablename__ = "profile"
    profile_id: Mapped[int] = mapped_column(
        Integer, Identity(always=True), primary_key=True, comment="Number of the profile"
    )
    collection_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="profile_collection_fkey", ondelete="CASCADE"),
        comment="The collection",
    )
    name: Mapped[str] = mapped_column(comment="Name, unique in the collection")
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was created")
    collection: Mapped["Collection"] = relationship()
    generations: Mapped[list["Generation"]] = relationship(
        back_populates="profile", order_by="Generation.generation_id", passive_deletes=True
    )


class Review(Base):
    """Pairs that reviewers were shown at the review desk, with the reviewers' leases, decisions and verdicts."""

    __tablename__ = "review"
    review_id: Mapped[int] = mapped_column(
        Identity(always=True), primary_key=True, comment="Number of the row, ascending with time"
    )
    collection_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="review_collection_fkey", ondelete="CASCADE"),
        comment="The collection of the documents",
    )
    reviewer: Mapped[str] = mapped_column(
        server_default=text("CURRENT_USER"),
        comment="The database user that was shown the pair; set by the database",
    )
    by: Mapped[str] = mapped_column(
        comment="Name of the reviewer, as stated by the caller; the author of the verdict"
    )
    queue: Mapped[str] = mapped_column(
        comment="The queue from which the pair was taken, an argument of review_queue"
    )
    left_id: Mapped[int] = mapped_column(
        ForeignKey("nearsim.verdict.left_id", name="review_verdict_fkey", ondelete=None),
        comment="doc_id of the left document, the smaller of the two",
    )
    right_id: Mapped[int] = mapped_column(
        comment="doc_id of the right document, the larger of the two; equal to left_id for the choice of a document to keep"
    )
    leased_until: Mapped[datetime | None] = mapped_column(
        comment="Until when nobody else is shown the pair; NULL once it is decided or released"
    )
    seen_at: Mapped[datetime] = mapped_column(
        server_default=text("clock_timestamp()"), comment="When the pair was shown"
    )
    answer: Mapped[str | None] = mapped_column(
        comment="same, different, unsure or skipped; kept for the choice of a document to keep; NULL if the pair was only shown"
    )
    why: Mapped[str | None] = mapped_column(comment="Reason; NULL if the reviewer stated none")
    decided_at: Mapped[datetime | None] = mapped_column(
        comment="When the pair was decided; NULL if it was not"
    )
    decision_id: Mapped[int | None] = mapped_column(
        comment="Number of the decision: the smallest review_id among its rows, which are undone together; NULL if the pair was not decided"
    )
    verdict_id: Mapped[int | None] = mapped_column(
        comment="The verdict that the decision set; NULL if it set none"
    )
    replaced_id: Mapped[int | None] = mapped_column(
        comment="The verdict that the decision replaced, and that undo sets again; NULL if there was none"
    )
    pin_id: Mapped[int | None] = mapped_column(
        comment="The choice of a document to keep that the decision made; NULL if it made none"
    )
    undone_at: Mapped[datetime | None] = mapped_column(
        comment="When the decision was undone; NULL while it is in force"
    )
    probability: Mapped[float | None] = mapped_column(
        comment="Probability with which the queue sample draws this pair; NULL in other queues"
    )


class Signature(Base):
    """Indexed documents: number and digest of their features, sketch, and head (the first document with the same features)."""

    __tablename__ = "signature"
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    doc_id: Mapped[int] = mapped_column(
        primary_key=True, comment="The document; the next dispatch removes the row of a deleted document"
    )
    revision: Mapped[int] = mapped_column(comment="Revision of the document that was sketched")
    feature_count: Mapped[int] = mapped_column(
        Integer,
        comment="Number of distinct features; 0 if the text is empty or too short, so that the document matches nothing",
    )
    feature_digest: Mapped[UUID | None] = mapped_column(
        comment="Digest of the fingerprint and the sorted features, equal for equal sets of features"
    )
    sketch: Mapped[bytes | None] = mapped_column(
        comment="Sketch, from which bucket hashes are computed and similarities are estimated"
    )
    numbers_digest: Mapped[int] = mapped_column(
        comment="Sum of the hashes of the runs of digits in the text, equal for texts with the same numbers; 0 for a text without digits"
    )
    head_id: Mapped[int | None] = mapped_column(
        comment="The head: the first document with the same features, often the document itself; only heads have bands and pairs"
    )


class SimilarPair(Base):
    """Pairs of heads, with left_id < right_id; the twins of a head (signature.head_id) have the same pairs as the head."""

    __tablename__ = "similar_pair"
    left_id: Mapped[int] = mapped_column(primary_key=True, comment="The head with the smaller doc_id")
    right_id: Mapped[int] = mapped_column(primary_key=True, comment="The head with the larger doc_id")
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    estimate: Mapped[float] = mapped_column(REAL, comment="Similarity estimated from the two sketches")
    similarity: Mapped[float] = mapped_column(
        comment='Similarity, or 1 / (1 + d) for a distance d; an estimate unless match.verify of the recipe is exact. It is at or above the threshold, except for pairs that count because of their shared bands (match.verify = "bands", match.certain_shared_bands), because of a passage (by_passage), or not at all (in_review)'
    )
    intersection_size: Mapped[int | None] = mapped_column(
        Integer, comment="Number of features in both documents; NULL if the metric does not count features"
    )
    union_size: Mapped[int | None] = mapped_column(
        Integer, comment="Number of features in either document; NULL if the metric does not count features"
    )
    verified_at: Mapped[datetime] = mapped_column(
        server_default=text("now()"), comment="When the similarity was computed"
    )
    distance: Mapped[float | None] = mapped_column(comment="Distance; NULL if the metric is not a distance")
    shared_bands: Mapped[int] = mapped_column(
        SmallInteger, comment="Number of bands in which the two sketches are equal"
    )
    in_review: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether the pair is only stored for a person to look at, because its similarity is between match.review and the threshold",
    )
    by_passage: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether the two are a pair only because they share a run of match.passage_words words, although their similarity is below the threshold; such a pair connects no cluster and is no reason to remove a document",
    )
    longest_passage: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of words in the longest run of words that both texts have, not counting words that the recipe leaves out; NULL unless the metric is containment and the similarity is verified",
    )


class SurvivorPin(Base):
    """Documents that a person chose to keep. If several documents of a cluster were chosen, the newest choice counts; it takes precedence over the keep policy."""

    __tablename__ = "survivor_pin"
    pin_id: Mapped[int] = mapped_column(
        Identity(always=True), primary_key=True, comment="Number of the choice, ascending with time"
    )
    collection_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey(
            "nearsim.collection.collection_id", name="survivor_pin_collection_fkey", ondelete="CASCADE"
        ),
        comment="The collection of the document",
    )
    doc_id: Mapped[int] = mapped_column(comment="The document to keep")
    by: Mapped[str] = mapped_column(comment="Author, as stated by the caller; by default the database user")
    why: Mapped[str] = mapped_column(comment="Reason")
    at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was chosen")
    undone_by: Mapped[str | None] = mapped_column(comment="Who undid it; NULL while it is in force")
    undone_why: Mapped[str | None] = mapped_column(comment="Why it was undone; NULL while it is in force")
    undone_at: Mapped[datetime | None] = mapped_column(
        comment="When it was undone; NULL while it is in force"
    )


class Verdict(Base):
    """Pairs of documents that a person pinned (always in one cluster) or vetoed (never in one cluster), with author, reason and undo."""

    __tablename__ = "verdict"
    verdict_id: Mapped[int] = mapped_column(
        Identity(always=True), primary_key=True, comment="Number of the verdict, ascending with time"
    )
    collection_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="verdict_collection_fkey", ondelete="CASCADE"),
        comment="The collection of both documents",
    )
    left_id: Mapped[int] = mapped_column(comment="doc_id of the left document, the smaller of the two")
    right_id: Mapped[int] = mapped_column(comment="doc_id of the right document, the larger of the two")
    verdict: Mapped[str] = mapped_column(
        comment="pinned: always in one cluster; vetoed: never in one cluster"
    )
    by: Mapped[str] = mapped_column(comment="Author, as stated by the caller; by default the database user")
    why: Mapped[str] = mapped_column(comment="Reason")
    at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was set")
    undone_by: Mapped[str | None] = mapped_column(
        comment="Who undid or replaced it; NULL while it is in force"
    )
    undone_why: Mapped[str | None] = mapped_column(
        comment="Why it was undone or replaced; NULL while it is in force"
    )
    undone_at: Mapped[datetime | None] = mapped_column(
        comment="When it was undone or replaced; NULL while it is in force"
    )
    collection: Mapped["Collection"] = relationship()


class OfGeneration:
    """Columns of a view by live generation."""

    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    profile: Mapped[str] = mapped_column(comment="Name of the profile")
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    generation_id: Mapped[int] = mapped_column(
        Integer, primary_key=True, comment="The live generation of the profile"
    )


class PairColumns(OfGeneration):
    """Columns of the views of pairs."""

    left_id: Mapped[int] = mapped_column(
        primary_key=True, comment="doc_id of the left document, the smaller of the two"
    )
    right_id: Mapped[int] = mapped_column(
        primary_key=True, comment="doc_id of the right document, the larger of the two"
    )
    left_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the left document"
    )
    right_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the right document"
    )
    left_title: Mapped[str | None] = mapped_column(comment="Title of the left document; NULL if it has none")
    right_title: Mapped[str | None] = mapped_column(
        comment="Title of the right document; NULL if it has none"
    )
    left_source: Mapped[str | None] = mapped_column(
        comment="Source of the left document; NULL if it has none"
    )
    right_source: Mapped[str | None] = mapped_column(
        comment="Source of the right document; NULL if it has none"
    )
    left_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the left document was published; NULL if it has no date"
    )
    right_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the right document was published; NULL if it has no date"
    )
    similarity: Mapped[float] = mapped_column(
        comment="Similarity in the profile's metric, or 1 / (1 + d) for a distance d; an estimate if verified is false"
    )
    intersection_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in both documents, or of equal values of the sketches if verified is false; NULL if the metric does not count features",
    )
    union_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in either document, or of values of a sketch if verified is false; NULL if the metric does not count features",
    )
    estimate: Mapped[float] = mapped_column(REAL, comment="Similarity estimated from the two sketches")
    shared_bands: Mapped[int | None] = mapped_column(
        SmallInteger,
        comment="Number of bands in which the two sketches are equal; NULL for documents with the same features if the metric is containment, where they share all bands and the number of bands depends on the length of the text",
    )
    are_twins: Mapped[bool] = mapped_column(comment="Whether both documents have the same features")
    are_heads: Mapped[bool] = mapped_column(
        comment="Whether each of the two is the first document with its features; with WHERE are_heads, every distinct text counts once"
    )
    numbers_differ: Mapped[bool] = mapped_column(
        comment="Whether the runs of digits in the two texts differ, such as figures or dates"
    )
    verdict: Mapped[str | None] = mapped_column(comment="pinned or vetoed by a person; NULL if neither")
    verified_at: Mapped[datetime | None] = mapped_column(
        comment="When the similarity was computed; NULL for documents with the same features"
    )
    distance: Mapped[float | None] = mapped_column(
        comment="Distance; an estimate if verified is false; NULL if the metric is not a distance"
    )
    verified: Mapped[bool] = mapped_column(
        comment="Whether the similarity was computed from the features, which is also true for documents with the same features; false if it is an estimate from the sketches (match.verify of the recipe decides)"
    )
    left_in_right: Mapped[float | None] = mapped_column(
        comment="Fraction of the features of the left document that the right document has; NULL unless the metric is containment and the similarity is verified"
    )
    right_in_left: Mapped[float | None] = mapped_column(
        comment="Fraction of the features of the right document that the left document has; NULL unless the metric is containment and the similarity is verified"
    )
    longest_passage: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of words in the longest run of words that both texts have, not counting words that the recipe leaves out; NULL for documents with the same features, and unless the metric is containment and the similarity is verified",
    )


class Backlog(View):
    """Queued work by generation and stage, including work of retired generations, and captured changes that are not dispatched yet (stage change)."""

    __tablename__ = "backlog"
    collection: Mapped[str | None] = mapped_column(
        comment="Name of the collection; NULL if it was deleted, or for a change that concerns all collections"
    )
    profile: Mapped[str | None] = mapped_column(comment="Name of the profile; NULL for changes")
    collection_id: Mapped[int | None] = mapped_column(
        Integer,
        primary_key=True,
        comment="Number of the collection; NULL for a change that concerns all collections",
    )
    generation_id: Mapped[int | None] = mapped_column(
        Integer, primary_key=True, comment="The generation; NULL for changes"
    )
    state: Mapped[str | None] = mapped_column(comment="State of the generation; NULL for captured changes")
    stage: Mapped[str] = mapped_column(
        primary_key=True,
        comment="change (captured, not dispatched), compare (compare the index with all documents), sign, search (for pairs), anchor (search a whole bucket) or link (update clusters)",
    )
    waiting: Mapped[int] = mapped_column(
        comment="Number of unfinished rows, including leased rows but not rows that were set aside"
    )
    due: Mapped[int] = mapped_column(
        comment="Number of rows that a worker could start now: they are due and not leased, and their index is neither being built nor paused"
    )
    leased: Mapped[int] = mapped_column(comment="Number of rows that a worker is processing")
    tried: Mapped[int] = mapped_column(comment="Number of rows that failed and will be tried again")
    set_aside: Mapped[int] = mapped_column(
        comment="Number of rows that were set aside after repeated failures; see nearsim work list --failed"
    )
    oldest_queued_at: Mapped[datetime | None] = mapped_column(
        comment="When the oldest row was queued, without rows that were set aside; NULL if there are no others"
    )


class Buckets(OfGeneration, View):
    """Buckets with two or more members, counted from all band rows. Buckets with more members than the bucket limit are hot."""

    __tablename__ = "buckets"
    band_no: Mapped[int] = mapped_column(
        SmallInteger, comment="Number of the band, the top byte of bucket_hash"
    )
    bucket_hash: Mapped[int] = mapped_column(
        primary_key=True, comment="Hash of the band, equal for all members"
    )
    members: Mapped[int] = mapped_column(comment="Number of heads in the bucket")
    anchors: Mapped[int] = mapped_column(
        comment="Number of anchors: the first members by doc_id, up to the bucket limit, with which every member is compared"
    )
    left_out: Mapped[int] = mapped_column(
        comment="Number of pairs of members that are not compared in this bucket because of the bucket limit; another bucket may link them"
    )
    is_hot: Mapped[bool] = mapped_column(comment="Whether the bucket has more members than the bucket limit")


class Clusters(OfGeneration, View):
    """Clusters of documents that are connected by pairs, each with its size, the document to keep, and the first and last publication."""

    __tablename__ = "clusters"
    cluster_id: Mapped[int] = mapped_column(
        primary_key=True, comment="Number of the cluster: its smallest doc_id"
    )
    documents: Mapped[int] = mapped_column(comment="Number of documents in the cluster")
    survivor_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_title: Mapped[str | None] = mapped_column(
        comment="Title of the document to keep; NULL if it has none"
    )
    survivor_source: Mapped[str | None] = mapped_column(
        comment="Source of the document to keep; NULL if it has none"
    )
    first_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the first of its documents was published; NULL if no date is known"
    )
    last_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the last of its documents was published; NULL if no date is known"
    )
    sources: Mapped[int] = mapped_column(comment="Number of distinct sources of its documents")
    members: Mapped[list[str]] = mapped_column(
        ARRAY(Text(collation="C")), comment="external_ids of its documents, in the order of doc_id"
    )


class CombinedPairs(View):
    """Pairs under all live profiles of a collection: one row for each pair, with the profiles under which it is a pair. profiles && ARRAY['headline', 'body'] selects pairs under at least one of the two profiles, profiles @> ARRAY['headline', 'body'] pairs under both, and NOT profiles && ARRAY['headline'] pairs under other profiles only."""

    __tablename__ = "combined_pairs"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    collection_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="Number of the collection")
    left_id: Mapped[int] = mapped_column(
        primary_key=True, comment="doc_id of the left document, the smaller of the two"
    )
    right_id: Mapped[int] = mapped_column(
        primary_key=True, comment="doc_id of the right document, the larger of the two"
    )
    left_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the left document"
    )
    right_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the right document"
    )
    left_title: Mapped[str | None] = mapped_column(comment="Title of the left document; NULL if it has none")
    right_title: Mapped[str | None] = mapped_column(
        comment="Title of the right document; NULL if it has none"
    )
    verdict: Mapped[str | None] = mapped_column(comment="pinned or vetoed by a person; NULL if neither")
    profiles: Mapped[list[str]] = mapped_column(
        ARRAY(Text), comment="Names of the profiles under which the documents are a pair, sorted"
    )
    similarities: Mapped[dict[str, Any]] = mapped_column(
        comment="Similarity under each profile, by profile name, as in similarities ->> 'headline'; 1 for documents with the same features"
    )
    highest_similarity: Mapped[float] = mapped_column(comment="The highest of these similarities")
    lowest_similarity: Mapped[float] = mapped_column(comment="The lowest of these similarities")
    verified: Mapped[bool] = mapped_column(
        comment="Whether all of these similarities are verified; false if any is an estimate"
    )


class DefaultClusters(OfGeneration, View):
    """Clusters under the default profile of each collection: the profile named default, or the only one. A collection with several profiles, none of them named default, has no rows here. The columns are those of the view clusters."""

    __tablename__ = "default_clusters"
    cluster_id: Mapped[int] = mapped_column(
        primary_key=True, comment="Number of the cluster: its smallest doc_id"
    )
    documents: Mapped[int] = mapped_column(comment="Number of documents in the cluster")
    survivor_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_title: Mapped[str | None] = mapped_column(
        comment="Title of the document to keep; NULL if it has none"
    )
    survivor_source: Mapped[str | None] = mapped_column(
        comment="Source of the document to keep; NULL if it has none"
    )
    first_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the first of its documents was published; NULL if no date is known"
    )
    last_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the last of its documents was published; NULL if no date is known"
    )
    sources: Mapped[int] = mapped_column(comment="Number of distinct sources of its documents")
    members: Mapped[list[str]] = mapped_column(
        ARRAY(Text(collation="C")), comment="external_ids of its documents, in the order of doc_id"
    )


class DefaultDuplicates(OfGeneration, View):
    """Duplicates under the default profile of each collection: the profile named default, or the only one. A collection with several profiles, none of them named default, has no rows here. The columns are those of the view duplicates."""

    __tablename__ = "default_duplicates"
    cluster_id: Mapped[int] = mapped_column(comment="Number of the cluster of both documents")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the duplicate")
    external_id: Mapped[str] = mapped_column(Text(collation="C"), comment="external_id of the duplicate")
    title: Mapped[str | None] = mapped_column(comment="Title of the duplicate; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source of the duplicate; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL of the duplicate; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When the duplicate was published; NULL if it has no date"
    )
    survivor_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_title: Mapped[str | None] = mapped_column(
        comment="Title of the document to keep; NULL if it has none"
    )
    survivor_source: Mapped[str | None] = mapped_column(
        comment="Source of the document to keep; NULL if it has none"
    )
    survivor_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the document to keep was published; NULL if it has no date"
    )
    copy_of: Mapped[str | None] = mapped_column(
        Text(collation="C"),
        comment="external_id of the document to keep, equal to survivor_external_id; NULL if the recipe keeps none",
    )


class DefaultPairs(PairColumns, View):
    """Pairs under the default profile of each collection: the profile named default, or the only one. A collection with several profiles, none of them named default, has no rows here. The columns are those of the view pairs."""

    __tablename__ = "default_pairs"


class Documents(View):
    """Every document once per live profile of its collection, with its state in the index."""

    __tablename__ = "documents"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    profile: Mapped[str | None] = mapped_column(
        comment="Name of the profile; NULL if the collection has no live profile"
    )
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    generation_id: Mapped[int | None] = mapped_column(
        Integer,
        primary_key=True,
        comment="The live generation of the profile; NULL if the collection has no live profile",
    )
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="Number of the document")
    external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="The owner's id of the document, unique in its collection"
    )
    title: Mapped[str | None] = mapped_column(comment="Title; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When it was published; NULL if it has no date"
    )
    created_at: Mapped[datetime] = mapped_column(comment="When it was first stored")
    updated_at: Mapped[datetime] = mapped_column(comment="When it was last changed")
    revision: Mapped[int] = mapped_column(comment="Increases with every change of the document")
    state: Mapped[str] = mapped_column(
        comment="indexed; twin (it has the same features as the document head_id); no features (its text is empty or too short, so it matches nothing); outdated (an older revision is indexed); waiting (it is not indexed yet); outside window (it is older than [retain] age); not indexed (the collection has no live profile)"
    )
    feature_count: Mapped[int | None] = mapped_column(
        Integer, comment="Number of distinct features; NULL if it is not in the index"
    )
    head_id: Mapped[int | None] = mapped_column(
        comment="The first document with the same features, often the document itself; only this document is compared with others; NULL if it has no features or is not in the index"
    )
    cluster_id: Mapped[int | None] = mapped_column(
        comment="Number of its cluster; NULL if it is in no cluster"
    )
    is_survivor: Mapped[bool | None] = mapped_column(
        comment="Whether it is the document to keep in its cluster; NULL if it is in no cluster"
    )


class Duplicates(OfGeneration, View):
    """Duplicates: every document of a cluster except the document to keep, together with the document to keep."""

    __tablename__ = "duplicates"
    cluster_id: Mapped[int] = mapped_column(comment="Number of the cluster of both documents")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the duplicate")
    external_id: Mapped[str] = mapped_column(Text(collation="C"), comment="external_id of the duplicate")
    title: Mapped[str | None] = mapped_column(comment="Title of the duplicate; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source of the duplicate; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL of the duplicate; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When the duplicate was published; NULL if it has no date"
    )
    survivor_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep; NULL if the recipe keeps none"
    )
    survivor_title: Mapped[str | None] = mapped_column(
        comment="Title of the document to keep; NULL if it has none"
    )
    survivor_source: Mapped[str | None] = mapped_column(
        comment="Source of the document to keep; NULL if it has none"
    )
    survivor_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the document to keep was published; NULL if it has no date"
    )
    copy_of: Mapped[str | None] = mapped_column(
        Text(collation="C"),
        comment="external_id of the document to keep, equal to survivor_external_id; NULL if the recipe keeps none",
    )


class Events(View):
    """Changes of pairs, of clusters and of the documents to keep, in the order of event_id; new events always have larger numbers."""

    __tablename__ = "events"
    event_id: Mapped[int] = mapped_column(
        primary_key=True, comment="Position in commit order; there are gaps"
    )
    at: Mapped[datetime] = mapped_column(comment="Time shortly before commit")
    kind: Mapped[str] = mapped_column(
        comment="pair_found, pair_gone, cluster_formed, cluster_gone, cluster_merged, cluster_split, cluster_renamed, cluster_changed, survivor_changed, generation_live or generation_gone"
    )
    collection: Mapped[str | None] = mapped_column(comment="Name of the collection; NULL if it was deleted")
    profile: Mapped[str | None] = mapped_column(comment="Name of the profile; NULL if it was deleted")
    left_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the left document of a pair; NULL if it was deleted"
    )
    right_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the right document of a pair; NULL if it was deleted"
    )
    similarity: Mapped[float | None] = mapped_column(
        comment="Similarity of a new pair; an estimate if verified is false, 1 for documents with the same features; NULL for other events"
    )
    cluster_id: Mapped[int | None] = mapped_column(
        comment="Number of the cluster; its former number if it was split or dissolved; NULL for other events"
    )
    survivor_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep; NULL if it was deleted"
    )
    left_id: Mapped[int | None] = mapped_column(comment="doc_id of the left document; NULL for other events")
    right_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the right document; NULL for other events"
    )
    survivor_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the document to keep in the cluster, or that it kept if it was split or dissolved; NULL for other events"
    )
    other_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger),
        comment="Numbers of the clusters that were merged into this one or that it was split into, or its own former number; NULL for other events",
    )
    other_survivor_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger),
        comment="doc_ids of the documents to keep in those clusters, in the same order; NULL for other events",
    )
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    profile_id: Mapped[int] = mapped_column(Integer, comment="Number of the profile")
    generation_id: Mapped[int] = mapped_column(Integer, comment="The generation that was live")
    pruned: Mapped[bool] = mapped_column(
        comment="Whether this event and all earlier events of its kind and profile were deleted, so that only the number of this event remains"
    )
    verified: Mapped[bool | None] = mapped_column(
        comment="Whether the similarity was computed from the features, which is also true for documents with the same features; false if it is an estimate from the sketches (match.verify of the recipe decides); NULL for other events"
    )


class FirstPublications(OfGeneration, View):
    """Who published first: every document of a cluster except the one that was published first, together with that document, whichever of them is kept. If several have the earliest published_at, the one with the smallest doc_id is the first. A document without a date is never the first, and clusters without any date are left out."""

    __tablename__ = "first_publications"
    cluster_id: Mapped[int] = mapped_column(comment="Number of the cluster of both documents")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the later document")
    external_id: Mapped[str] = mapped_column(Text(collation="C"), comment="external_id of the later document")
    title: Mapped[str | None] = mapped_column(comment="Title of the later document; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source of the later document; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL of the later document; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When the later document was published; NULL if it has no date or an infinite one"
    )
    first_id: Mapped[int] = mapped_column(comment="doc_id of the document published first")
    first_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the document published first"
    )
    first_title: Mapped[str | None] = mapped_column(
        comment="Title of the document published first; NULL if it has none"
    )
    first_source: Mapped[str | None] = mapped_column(
        comment="Source of the document published first; NULL if it has none"
    )
    first_published_at: Mapped[datetime] = mapped_column(comment="When the first document was published")
    delay: Mapped[timedelta | None] = mapped_column(
        comment="Time from the first publication to this one; 0 if both have the same time, NULL if this document has no date"
    )
    first_elsewhere: Mapped[bool] = mapped_column(
        comment="Whether another source published it first: the delay is above 0, and both sources are known and differ"
    )


class Functions(View):
    """Functions that applications and analysts may call; all other functions are internal."""

    __tablename__ = "functions"
    name: Mapped[str] = mapped_column(Text(collation="C"), primary_key=True, comment="Name of the function")
    arguments: Mapped[str] = mapped_column(
        primary_key=True,
        comment="Arguments with types and defaults; each may be passed by name, as in profile => 'default'",
    )
    returns: Mapped[str | None] = mapped_column(
        comment="Return type; NULL for a procedure, which is run with CALL"
    )
    comment: Mapped[str] = mapped_column(Text(collation="C"), comment="What the function returns or does")


class Generations(View):
    """All builds of all profiles, in any state; the other views show only live generations."""

    __tablename__ = "generations"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    profile: Mapped[str] = mapped_column(comment="Name of the profile")
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    profile_id: Mapped[int] = mapped_column(Integer, comment="Number of the profile")
    generation_id: Mapped[int] = mapped_column(
        Integer,
        primary_key=True,
        comment="Number of the generation. If it is 100,000,000 or more, it is also the suffix of the generation's own tables, such as nearsim_index.band_100000007",
    )
    state: Mapped[str] = mapped_column(
        comment="building, catching_up, ready, live, retired, paused or abandoned"
    )
    stage: Mapped[str] = mapped_column(comment="Stage of its build: sign, bands, pairs, clusters, done")
    bands: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of bands of a sketch; NULL before they are chosen"
    )
    rows: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of sketch positions per band; NULL before they are chosen"
    )
    created_at: Mapped[datetime] = mapped_column(comment="When it was created")
    live_at: Mapped[datetime | None] = mapped_column(comment="When it last became live; NULL if it never did")
    expired_through: Mapped[datetime | None] = mapped_column(
        comment="Documents from before this time have expired ([retain] age); NULL if none have"
    )
    fingerprint: Mapped[str] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs"
    )
    figures: Mapped[dict[str, Any]] = mapped_column(comment="Counts of the build")
    recipe: Mapped[dict[str, Any]] = mapped_column(comment="The complete recipe, including defaults")
    replaces: Mapped[int | None] = mapped_column(
        Integer,
        comment="The generation that was live when this one was started; NULL for the first generation of a profile",
    )
    detached: Mapped[bool] = mapped_column(comment="Whether workers continue its build")
    dropping: Mapped[bool] = mapped_column(comment="Whether its tables are being dropped")
    ready_at: Mapped[datetime | None] = mapped_column(comment="When it became ready; NULL if it never did")
    retired_at: Mapped[datetime | None] = mapped_column(
        comment="When it was retired; NULL if it is live or was never live"
    )


class LiveGenerations(View):
    """The live generation of each profile, with the parts of its recipe that other views use."""

    __tablename__ = "live_generations"
    generation_id: Mapped[int] = mapped_column(
        Integer,
        primary_key=True,
        comment="Number of the generation. If it is 100,000,000 or more, it is also the suffix of the generation's own tables, such as nearsim_index.band_100000007",
    )
    profile_id: Mapped[int] = mapped_column(Integer, comment="Number of the profile")
    profile: Mapped[str] = mapped_column(comment="Name of the profile")
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    threshold: Mapped[float] = mapped_column(
        comment="Minimum similarity of a pair; for projection the maximum distance"
    )
    bands: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of bands of a sketch; NULL if it was not recorded"
    )
    rows: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of sketch positions per band; NULL if it was not recorded"
    )
    min_shared_bands: Mapped[int] = mapped_column(
        Integer,
        comment="Number of bands that candidates must share; 1 if the recipe has an amplification instead",
    )
    bucket_limit: Mapped[int] = mapped_column(
        Integer, comment="Maximum number of anchors of a bucket; 0 for no limit"
    )
    retained: Mapped[timedelta | None] = mapped_column(
        comment="How long documents are kept in the index; NULL for unlimited"
    )
    fingerprint: Mapped[str] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs"
    )
    recipe: Mapped[dict[str, Any]] = mapped_column(comment="The complete recipe, including defaults")
    figures: Mapped[dict[str, Any]] = mapped_column(comment="Counts of the build")
    created_at: Mapped[datetime] = mapped_column(comment="When the generation was created")
    live_at: Mapped[datetime | None] = mapped_column(
        comment="When the generation became live; NULL if it was not recorded"
    )


class Pairs(PairColumns, View):
    """Pairs of documents, including documents with the same features; the document with the smaller doc_id is on the left."""

    __tablename__ = "pairs"


class Profiles(View):
    """All profiles, with their recipe, their live generation and the counts of its build. Counts of buckets are as of buckets_counted_at; nearsim.buckets has the present ones."""

    __tablename__ = "profiles"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    profile: Mapped[str] = mapped_column(comment="Name of the profile")
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    profile_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="Number of the profile")
    generation_id: Mapped[int | None] = mapped_column(
        Integer,
        comment="The live generation, or the newest generation if none is live; NULL if the profile has no generation",
    )
    state: Mapped[str | None] = mapped_column(
        comment="State of that generation; NULL if the profile has no generation"
    )
    stage: Mapped[str | None] = mapped_column(
        comment="Stage of its build; NULL if the profile has no generation"
    )
    threshold: Mapped[float | None] = mapped_column(
        comment="Minimum similarity of a pair; for projection the maximum distance; NULL if the profile has no generation"
    )
    bands: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of bands of a sketch; NULL if the profile has no generation"
    )
    rows: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of sketch positions per band; NULL if the profile has no generation"
    )
    min_shared_bands: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of bands that candidates must share; 1 if the recipe has an amplification instead; NULL if the profile has no generation",
    )
    bucket_limit: Mapped[int | None] = mapped_column(
        Integer,
        comment="Maximum number of anchors of a bucket; 0 for no limit; NULL if the profile has no generation",
    )
    expected_recall: Mapped[float | None] = mapped_column(
        comment="Probability that two documents exactly at the threshold become candidates; it is higher for more similar documents; NULL if the profile has no generation"
    )
    documents: Mapped[int] = mapped_column(comment="Number of documents in the collection")
    buckets: Mapped[int | None] = mapped_column(
        comment="Number of buckets at buckets_counted_at; NULL before the first count"
    )
    largest_bucket: Mapped[int | None] = mapped_column(
        comment="Number of members of the largest bucket at buckets_counted_at; NULL before the first count"
    )
    buckets_over_limit: Mapped[int | None] = mapped_column(
        comment="Number of buckets over the bucket limit at buckets_counted_at; NULL before the first count"
    )
    links_left_out: Mapped[int | None] = mapped_column(
        comment="Number of pairs of members that were not compared because of the bucket limit, summed over buckets, at buckets_counted_at; NULL before the first count"
    )
    created_at: Mapped[datetime] = mapped_column(comment="When the profile was created")
    live_at: Mapped[datetime | None] = mapped_column(
        comment="When the generation became live; NULL if it never did"
    )
    figures: Mapped[dict[str, Any] | None] = mapped_column(
        comment="All counts of the build; NULL if the profile has no generation"
    )
    fingerprint: Mapped[str | None] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs; NULL if the profile has no generation"
    )
    recipe: Mapped[dict[str, Any] | None] = mapped_column(
        comment="The complete recipe, including defaults; NULL if the profile has no generation"
    )
    amplification: Mapped[str | None] = mapped_column(
        comment="The rule by which shared bands make two documents candidates, written from the outside in: or(40, and(3)) means at least one of 40 bands of 3 rows; NULL if the profile has no generation"
    )
    buckets_counted_at: Mapped[datetime | None] = mapped_column(
        comment="When the build counted the buckets, which workers do not count again; NULL before the first count"
    )


class ReviewPairs(PairColumns, View):
    """Pairs for a person to look at, with a similarity between match.review and the threshold. They connect no clusters, cause no removal, and are not counted as pairs. The columns are those of the view pairs."""

    __tablename__ = "review_pairs"


class Verdicts(View):
    """Verdicts of people on two documents, whether the documents are a pair or not. A verdict is in force while undone_at is NULL."""

    __tablename__ = "verdicts"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    collection_id: Mapped[int] = mapped_column(Integer, comment="The collection of both documents")
    verdict_id: Mapped[int] = mapped_column(
        primary_key=True, comment="Number of the verdict, ascending with time"
    )
    left_id: Mapped[int] = mapped_column(comment="doc_id of the left document, the smaller of the two")
    right_id: Mapped[int] = mapped_column(comment="doc_id of the right document, the larger of the two")
    left_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the left document; NULL if it was deleted"
    )
    right_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the right document; NULL if it was deleted"
    )
    left_title: Mapped[str | None] = mapped_column(
        comment="Title of the left document; NULL if it has none or was deleted"
    )
    right_title: Mapped[str | None] = mapped_column(
        comment="Title of the right document; NULL if it has none or was deleted"
    )
    verdict: Mapped[str] = mapped_column(
        comment="pinned: always in one cluster; vetoed: never in one cluster"
    )
    by: Mapped[str] = mapped_column(comment="Author, as stated by the caller; by default the database user")
    why: Mapped[str] = mapped_column(comment="Reason")
    at: Mapped[datetime] = mapped_column(comment="When it was set")
    undone_by: Mapped[str | None] = mapped_column(
        comment="Who undid or replaced it; NULL while it is in force"
    )
    undone_why: Mapped[str | None] = mapped_column(
        comment="Why it was undone or replaced; NULL while it is in force"
    )
    undone_at: Mapped[datetime | None] = mapped_column(
        comment="When it was undone or replaced; NULL while it is in force"
    )


__all__ = [
    "Backlog",
    "Band",
    "Base",
    "Buckets",
    "ClusterMember",
    "Clusters",
    "Collection",
    "CombinedPairs",
    "DefaultClusters",
    "DefaultDuplicates",
    "DefaultPairs",
    "Document",
    "Documents",
    "Duplicates",
    "Event",
    "Events",
    "FirstPublications",
    "Functions",
    "Generation",
    "Generations",
    "LiveGenerations",
    "Pairs",
    "Probe",
    "ProbeMatch",
    "Profile",
    "Profiles",
    "Review",
    "ReviewPairs",
    "Signature",
    "SimilarPair",
    "SurvivorPin",
    "Verdict",
    "Verdicts",
    "View",
    "include_name",
    "include_object",
    "metadata",
]

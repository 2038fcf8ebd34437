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
        primary_key=True, comment="Hash of one band of the sketch, its top byte the number of the band"
    )
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="The head whose band it is")
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    band_no: Mapped[int | None] = mapped_column(
        SmallInteger,
        Computed("((bucket_hash >> 56) & (255)::bigint)", persisted=True),
        comment="The number of the band: the top byte of bucket_hash",
    )


class ClusterMember(Base):
    """Clusters: documents connected by pairs, twins included, and the one of each cluster to keep."""

    __tablename__ = "cluster_member"
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="The document")
    cluster_id: Mapped[int] = mapped_column(comment="The cluster, identified by its smallest doc_id")
    is_survivor: Mapped[bool] = mapped_column(comment="Whether it is the document of its cluster to keep")


class Collection(Base):
    """A named set of documents that are compared with each other: a tenant, a feed, a corpus."""

    __tablename__ = "collection"
    collection_id: Mapped[int] = mapped_column(
        Integer, Identity(always=True), primary_key=True, comment="Number of the collection"
    )
    name: Mapped[str] = mapped_column(comment="Name, unique")
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was created")
    purged_at: Mapped[datetime | None] = mapped_column(
        comment="When texts were last purged from it; processes with cached texts then discard them"
    )


class Document(Base):
    """Documents under their owners' own external_id; any application may write here, and nearsim indexes the changes."""

    __tablename__ = "document"
    doc_id: Mapped[int] = mapped_column(
        Identity(always=True),
        primary_key=True,
        comment="Number of the document, above 0; ascending in order of creation",
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
        comment="If the collection has an attached table: MD5 of the text in that table (of an empty text if that is NULL)"
    )
    body_length: Mapped[int | None] = mapped_column(
        Integer,
        comment="If the collection has an attached table: length of the text in that table, in characters",
    )
    collection: Mapped["Collection"] = relationship()


class Event(Base):
    """Changes of pairs, clusters and their survivors, in commit order; deleted after some days."""

    __tablename__ = "event"
    event_id: Mapped[int] = mapped_column(
        Identity(always=True),
        primary_key=True,
        comment="Position in commit order; there are gaps, but later events always have larger numbers",
    )
    left_id: Mapped[int | None] = mapped_column(comment="doc_id of the left document of a pair")
    right_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the right document of a pair; for twins the one that is not the head"
    )
    similarity: Mapped[float | None] = mapped_column(
        comment="Similarity of a new pair, the estimate if verified is false; 1 for a twin and its head; NULL for other events"
    )
    cluster_id: Mapped[int | None] = mapped_column(
        comment="The cluster; its former number if it was split or dissolved"
    )
    survivor_id: Mapped[int | None] = mapped_column(
        comment="doc_id of the document to keep in the cluster, or formerly to keep"
    )
    at: Mapped[datetime] = mapped_column(
        server_default=text("clock_timestamp()"), comment="Time shortly before commit"
    )
    collection_id: Mapped[int] = mapped_column(Integer, comment="The collection")
    profile_id: Mapped[int] = mapped_column(Integer, comment="The profile")
    generation_id: Mapped[int] = mapped_column(Integer, comment="The generation that was live")
    verified: Mapped[bool | None] = mapped_column(
        comment="Whether the similarity was computed from the features; false for an estimate from the sketches, as match.verify of the recipe says. Documents with the same features are verified; NULL for other events"
    )
    pruned: Mapped[bool | None] = mapped_column(
        comment="True if this event and all earlier ones of its kind and profile were deleted; else NULL, which takes no space"
    )
    kind: Mapped[str] = mapped_column(
        comment="pair_found, pair_gone, cluster_formed, cluster_gone, cluster_merged, cluster_split, cluster_renamed, cluster_changed, survivor_changed, generation_live or generation_gone"
    )
    other_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger), comment="Other clusters: merged into this one, split off it, or its former number"
    )
    other_survivor_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger), comment="Survivors of those clusters, in the same order"
    )


class Generation(Base):
    """One build of a profile's index, with its complete recipe and its fingerprint."""

    __tablename__ = "generation"
    generation_id: Mapped[int] = mapped_column(
        Integer,
        Identity(always=True),
        primary_key=True,
        comment="Number of the generation. Numbers from 100,000,000 on are of large collections, and suffixes of their own tables, as in nearsim_index.band_100000007; others share tables, as nearsim_index.band_shared",
    )
    profile_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.profile.profile_id", name="generation_profile_fkey", ondelete="CASCADE"),
        comment="The profile",
    )
    state: Mapped[str] = mapped_column(
        server_default=text("'building'::text"),
        comment="building, catching_up, ready, live (answers queries), retired, paused or abandoned",
    )
    stage: Mapped[str] = mapped_column(
        server_default=text("'sign'::text"), comment="Stage of its build: sign, bands, pairs, clusters, done"
    )
    recipe: Mapped[dict[str, Any]] = mapped_column(comment="The complete recipe, including defaults")
    fingerprint: Mapped[str] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs"
    )
    figures: Mapped[dict[str, Any]] = mapped_column(
        server_default=text("'{}'::jsonb"), comment="Build statistics"
    )
    created_at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was created")
    live_at: Mapped[datetime | None] = mapped_column(comment="When it last became live")
    expired_through: Mapped[datetime | None] = mapped_column(
        comment="Date up to which documents have expired ([retain] age)"
    )
    bands: Mapped[int | None] = mapped_column(SmallInteger, comment="Number of bands of a sketch")
    rows: Mapped[int | None] = mapped_column(SmallInteger, comment="Number of sketch positions per band")
    expected_recall: Mapped[float | None] = mapped_column(
        comment="Probability that two documents exactly at the threshold become candidates; NULL if not recorded"
    )
    replaces: Mapped[int | None] = mapped_column(
        Integer,
        comment="The generation that was live when this one was started; NULL for a profile's first, which becomes live when built",
    )
    detached: Mapped[bool] = mapped_column(
        server_default=text("false"), comment="Whether workers continue its build"
    )
    distributed: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether its band rows are on the nodes of a Citus cluster; the default is set by nearsim schema init",
    )
    dropping: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether its tables are being dropped, which waits for sessions that read them",
    )
    ready_at: Mapped[datetime | None] = mapped_column(comment="When it became ready")
    retired_at: Mapped[datetime | None] = mapped_column(
        comment="When it was retired; NULL if it is live or never was"
    )
    common_shingles: Mapped[bytes | None] = mapped_column(
        comment="Ids of the shingles that it ignores because too many documents have them (match.ignore_common), eight bytes each; NULL if there are none"
    )
    frequencies: Mapped[bytes | None] = mapped_column(
        comment="In how many texts each frequent shingle is, by which shingles are weighted (sketch.weights = idf): entries of an id of eight bytes and a count of four, the first with the number of texts; NULL for other weights"
    )
    profile: Mapped["Profile"] = relationship(back_populates="generations")


class Probe(Base):
    """Lookup requests of applications; a worker answers each before its deadline and deletes it an hour later."""

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
        comment="Maximum number of documents in the answer, the first in the order of their estimates; NULL for all",
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
        comment="Id of the document that the text is of, which the answer leaves out"
    )
    purpose: Mapped[str | None] = mapped_column(
        comment="lock: the answer has bucket_hashes; insert, and locked if the caller holds the locks: it also knows all documents that were committed before; NULL: neither"
    )
    generation_id: Mapped[int | None] = mapped_column(
        Integer,
        comment="With a purpose: the generation of bucket_hashes; NULL if the collection has no index",
    )
    bucket_hashes: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger),
        comment="With a purpose: the buckets of the text, which a transaction locks before it inserts it: near-duplicates have one in common",
    )
    snapshot: Mapped[str | None] = mapped_column(
        comment="With the purpose insert: the transactions whose documents the answer knows, as pg_snapshot"
    )
    collection: Mapped["Collection"] = relationship()
    matches: Mapped[list["ProbeMatch"]] = relationship(
        order_by="(ProbeMatch.similarity.desc(), ProbeMatch.doc_id)", viewonly=True
    )


class ProbeMatch(Base):
    """Answers to lookup requests: the documents that the text would be paired with if it were added, twins expanded."""

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
        comment="Similarity, 1 / (1 + d) for a distance d; the estimate if verified is false"
    )
    estimate: Mapped[float] = mapped_column(REAL, comment="Similarity estimated from the two sketches")
    shared_bands: Mapped[int] = mapped_column(
        SmallInteger, comment="Number of equal bands of the two sketches"
    )
    intersection_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in both texts, of equal values of the sketches if verified is false; NULL if the metric does not count features",
    )
    union_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in either text, of values of a sketch if verified is false; NULL if the metric does not count features",
    )
    distance: Mapped[float | None] = mapped_column(
        comment="Distance, an estimate if verified is false; NULL if the metric is not a distance"
    )
    verified: Mapped[bool] = mapped_column(
        comment="Whether the similarity was computed from the features; false for an estimate from the sketches, as match.verify of the recipe says"
    )


class Profile(Base):
    """A named index configuration of a collection; each generation stores its recipe."""

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
    """What each reviewer was shown at the review desk, leases that have not ended, and decisions with their verdicts."""

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
        comment="The database user that was shown it; set by the database",
    )
    by: Mapped[str] = mapped_column(comment="Who was shown it, as stated; the author of the verdict")
    queue: Mapped[str] = mapped_column(
        comment="The queue that it was taken from, an argument of review_queue"
    )
    left_id: Mapped[int] = mapped_column(
        ForeignKey("nearsim.verdict.left_id", name="review_verdict_fkey", ondelete=None),
        comment="doc_id of the earlier document",
    )
    right_id: Mapped[int] = mapped_column(
        comment="doc_id of the later document; for a choice of a document to keep, left_id again"
    )
    leased_until: Mapped[datetime | None] = mapped_column(
        comment="Nobody else is shown it until then; NULL once it is decided or given back"
    )
    seen_at: Mapped[datetime] = mapped_column(
        server_default=text("clock_timestamp()"), comment="When it was shown"
    )
    answer: Mapped[str | None] = mapped_column(
        comment="same, different, unsure or skipped, kept for a choice of a document to keep; NULL if it was seen only"
    )
    why: Mapped[str | None] = mapped_column(comment="Reason, if one was given; NULL otherwise")
    decided_at: Mapped[datetime | None] = mapped_column(comment="When it was decided; NULL if it was not")
    decision_id: Mapped[int | None] = mapped_column(
        comment="Number of the decision: its smallest review_id. Rows of one decision are undone together; NULL if it was not decided"
    )
    verdict_id: Mapped[int | None] = mapped_column(comment="The verdict that it set; NULL if none")
    replaced_id: Mapped[int | None] = mapped_column(
        comment="The verdict that was replaced, which undo sets again; NULL if none"
    )
    pin_id: Mapped[int | None] = mapped_column(
        comment="The choice of a document to keep that it made; NULL if none"
    )
    undone_at: Mapped[datetime | None] = mapped_column(
        comment="When the decision was undone; NULL while it is active"
    )
    probability: Mapped[float | None] = mapped_column(
        comment="Probability with which the queue sample draws this pair; NULL in other queues"
    )


class Signature(Base):
    """Indexed documents: number and digest of features, sketch, and head (first document with identical features)."""

    __tablename__ = "signature"
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    doc_id: Mapped[int] = mapped_column(
        primary_key=True, comment="The document; a deleted document's row is removed by the next dispatch"
    )
    revision: Mapped[int] = mapped_column(comment="Revision of the document that was sketched")
    feature_count: Mapped[int] = mapped_column(
        Integer,
        comment="Number of distinct features; 0 if the text is empty or too short, so that it matches nothing",
    )
    feature_digest: Mapped[UUID | None] = mapped_column(
        comment="Digest of the fingerprint and the sorted features: equal for equal feature sets"
    )
    sketch: Mapped[bytes | None] = mapped_column(
        comment="Sketch, from which bands are hashed and similarity is estimated"
    )
    numbers_digest: Mapped[int] = mapped_column(
        comment="Sum of the hashes of the runs of digits in the text, 0 for none; equal for texts with the same numbers"
    )
    head_id: Mapped[int | None] = mapped_column(
        comment="The first document with the same features, which alone has bands and pairs; often the document itself"
    )


class SimilarPair(Base):
    """Pairs of heads, left_id < right_id; twins of a head (signature.head_id) have the same pairs."""

    __tablename__ = "similar_pair"
    left_id: Mapped[int] = mapped_column(primary_key=True, comment="The head with the smaller doc_id")
    right_id: Mapped[int] = mapped_column(primary_key=True, comment="The head with the larger doc_id")
    generation_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="The generation")
    estimate: Mapped[float] = mapped_column(REAL, comment="Similarity estimated from the two sketches")
    similarity: Mapped[float] = mapped_column(
        comment='Similarity, 1 / (1 + d) for a distance d; the estimate unless match.verify of the recipe is exact. At or above the threshold, except for pairs by their shared bands (match.verify = "bands", match.certain_shared_bands), by_passage and in_review'
    )
    intersection_size: Mapped[int | None] = mapped_column(
        Integer, comment="Number of features in both; NULL if the metric does not count features"
    )
    union_size: Mapped[int | None] = mapped_column(
        Integer, comment="Number of features in either; NULL if the metric does not count features"
    )
    verified_at: Mapped[datetime] = mapped_column(
        server_default=text("now()"), comment="When the similarity was computed"
    )
    distance: Mapped[float | None] = mapped_column(comment="Distance; NULL if the metric is not a distance")
    shared_bands: Mapped[int] = mapped_column(
        SmallInteger, comment="Number of equal bands of the two sketches"
    )
    in_review: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether the similarity is below the threshold (match.review): to be looked at by a person, and no pair otherwise",
    )
    by_passage: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether the similarity is below the threshold, and the two are a pair for a run of match.passage_words equal words: in no cluster, and no reason to remove one of them",
    )
    longest_passage: Mapped[int | None] = mapped_column(
        Integer,
        comment="Words of the longest run of equal words in both, without words that the recipe leaves out; NULL unless the metric is containment and the similarity verified",
    )


class SurvivorPin(Base):
    """Documents that a person chose to keep; of several in a cluster the newest choice counts, before the keep policy."""

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
    by: Mapped[str] = mapped_column(comment="Author as stated; by default the database user")
    why: Mapped[str] = mapped_column(comment="Reason")
    at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was chosen")
    undone_by: Mapped[str | None] = mapped_column(comment="Who undid it; NULL while it is active")
    undone_why: Mapped[str | None] = mapped_column(comment="Why it was undone; NULL while it is active")
    undone_at: Mapped[datetime | None] = mapped_column(comment="When it was undone; NULL while it is active")


class Verdict(Base):
    """Pairs that a person pinned (always in one cluster) or vetoed (never), with author, reason and undo."""

    __tablename__ = "verdict"
    verdict_id: Mapped[int] = mapped_column(
        Identity(always=True), primary_key=True, comment="Number of the verdict, ascending with time"
    )
    collection_id: Mapped[int] = mapped_column(
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="verdict_collection_fkey", ondelete="CASCADE"),
        comment="The collection of both documents",
    )
    left_id: Mapped[int] = mapped_column(comment="doc_id of the earlier document")
    right_id: Mapped[int] = mapped_column(comment="doc_id of the later document")
    verdict: Mapped[str] = mapped_column(
        comment="pinned: always in one cluster; vetoed: never in one cluster"
    )
    by: Mapped[str] = mapped_column(comment="Author as stated; by default the database user")
    why: Mapped[str] = mapped_column(comment="Reason")
    at: Mapped[datetime] = mapped_column(server_default=text("now()"), comment="When it was set")
    undone_by: Mapped[str | None] = mapped_column(comment="Who undid or replaced it; NULL while it is active")
    undone_why: Mapped[str | None] = mapped_column(
        comment="Why it was undone or replaced; NULL while it is active"
    )
    undone_at: Mapped[datetime | None] = mapped_column(
        comment="When it was undone or replaced; NULL while it is active"
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

    left_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the left document")
    right_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the right document")
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
        comment="When the left document was published; NULL if it has none"
    )
    right_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the right document was published; NULL if it has none"
    )
    similarity: Mapped[float] = mapped_column(
        comment="Similarity in the profile's metric (1 / (1 + d) for a distance d); the estimate if verified is false"
    )
    intersection_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in both, of equal values of the sketches if verified is false; NULL if the metric does not count features",
    )
    union_size: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of features in either, of values of a sketch if verified is false; NULL if the metric does not count features",
    )
    estimate: Mapped[float] = mapped_column(REAL, comment="Similarity estimated from the two sketches")
    shared_bands: Mapped[int | None] = mapped_column(
        SmallInteger,
        comment="Number of equal bands of the two sketches; NULL for documents with the same features if the metric is containment: they share all, as many as the text is long",
    )
    are_twins: Mapped[bool] = mapped_column(comment="Whether they have the same features")
    are_heads: Mapped[bool] = mapped_column(
        comment="Whether each is the first document with its features: WHERE are_heads counts every distinct text once"
    )
    numbers_differ: Mapped[bool] = mapped_column(
        comment="Whether the runs of digits in their texts differ, such as figures or dates"
    )
    verdict: Mapped[str | None] = mapped_column(comment="pinned or vetoed by a person; NULL if neither")
    verified_at: Mapped[datetime | None] = mapped_column(
        comment="When the similarity was computed; NULL for documents with the same features"
    )
    distance: Mapped[float | None] = mapped_column(
        comment="Distance, an estimate if verified is false; NULL if the metric is not a distance"
    )
    verified: Mapped[bool] = mapped_column(
        comment="Whether the similarity was computed from the features; false for an estimate from the sketches, as match.verify of the recipe says. Documents with the same features are verified"
    )
    left_in_right: Mapped[float | None] = mapped_column(
        comment="Share of the left document's features that the right one has; NULL unless the metric is containment and the similarity verified"
    )
    right_in_left: Mapped[float | None] = mapped_column(
        comment="Share of the right document's features that the left one has; NULL unless the metric is containment and the similarity verified"
    )
    longest_passage: Mapped[int | None] = mapped_column(
        Integer,
        comment="Words of the longest run of equal words in both, without words that the recipe leaves out; NULL unless the metric is containment and the similarity verified, and for documents with the same features",
    )


class Backlog(View):
    """Queued work by generation and stage, retired generations included, and captured changes not yet dispatched (stage change)."""

    __tablename__ = "backlog"
    collection: Mapped[str | None] = mapped_column(
        comment="Name of the collection; NULL for a change that concerns all of them"
    )
    profile: Mapped[str | None] = mapped_column(comment="Name of the profile; NULL for changes")
    collection_id: Mapped[int | None] = mapped_column(
        Integer, primary_key=True, comment="Number of the collection; NULL if it was deleted"
    )
    generation_id: Mapped[int | None] = mapped_column(
        Integer, primary_key=True, comment="The generation; NULL for changes"
    )
    state: Mapped[str | None] = mapped_column(comment="State of that generation; NULL for captured changes")
    stage: Mapped[str] = mapped_column(
        primary_key=True,
        comment="change (captured, not dispatched), compare (all documents), sign, search, anchor (a whole bucket), link (clusters)",
    )
    waiting: Mapped[int] = mapped_column(comment="Number of pending rows, excluding those set aside")
    due: Mapped[int] = mapped_column(
        comment="Number of rows that could start now: not leased, due, and their index is not being built"
    )
    leased: Mapped[int] = mapped_column(comment="Number of rows that a worker is processing")
    tried: Mapped[int] = mapped_column(comment="Number of rows that have failed and will be retried")
    set_aside: Mapped[int] = mapped_column(
        comment="Number of rows set aside after repeated failure; see nearsim work list --failed"
    )
    oldest_queued_at: Mapped[datetime | None] = mapped_column(
        comment="When the oldest row was queued, excluding those set aside; NULL if all are"
    )


class Buckets(OfGeneration, View):
    """Buckets with two or more members, counted from all band rows; buckets over the bucket limit are hot."""

    __tablename__ = "buckets"
    band_no: Mapped[int] = mapped_column(
        SmallInteger, comment="Number of the band, the top byte of bucket_hash"
    )
    bucket_hash: Mapped[int] = mapped_column(
        primary_key=True, comment="Hash of the band, equal for all members"
    )
    members: Mapped[int] = mapped_column(comment="Number of heads in the bucket")
    anchors: Mapped[int] = mapped_column(
        comment="Number of anchors, which every member is compared with: the first by doc_id, up to the bucket limit"
    )
    left_out: Mapped[int] = mapped_column(
        comment="Number of pairs of members that the bucket limit leaves out of this bucket; another bucket may link them"
    )
    is_hot: Mapped[bool] = mapped_column(comment="Whether it has more members than the bucket limit")


class Clusters(OfGeneration, View):
    """Clusters of documents connected by pairs: size, document to keep, first and last publication."""

    __tablename__ = "clusters"
    cluster_id: Mapped[int] = mapped_column(
        primary_key=True, comment="Number of the cluster: its smallest doc_id"
    )
    documents: Mapped[int] = mapped_column(comment="Number of documents")
    survivor_id: Mapped[int] = mapped_column(comment="doc_id of the document to keep")
    survivor_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep"
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
    sources: Mapped[int] = mapped_column(comment="Number of distinct sources")
    members: Mapped[list[str]] = mapped_column(
        ARRAY(Text(collation="C")), comment="external_ids of its documents, in the order of their doc_ids"
    )


class CombinedPairs(View):
    """Pairs of all live profiles of a collection, each once with the profiles that have it: profiles && ARRAY['headline', 'body'] selects pairs under either, profiles @> ARRAY['headline', 'body'] under both, and NOT profiles && ARRAY['headline'] pairs that are not a pair under that profile."""

    __tablename__ = "combined_pairs"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    collection_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="Number of the collection")
    left_id: Mapped[int] = mapped_column(primary_key=True, comment="The smaller doc_id")
    right_id: Mapped[int] = mapped_column(primary_key=True, comment="The larger doc_id")
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
        ARRAY(Text), comment="Names of the profiles under which they are a pair, sorted"
    )
    similarities: Mapped[dict[str, Any]] = mapped_column(
        comment="Similarity by profile name, as in similarities ->> 'headline'; 1 for documents with the same features"
    )
    highest_similarity: Mapped[float] = mapped_column(comment="The highest of these similarities")
    lowest_similarity: Mapped[float] = mapped_column(comment="The lowest of these similarities")
    verified: Mapped[bool] = mapped_column(
        comment="Whether all of these similarities are verified; false if any is an estimate"
    )


class DefaultClusters(OfGeneration, View):
    """Clusters under the default profile of each collection, with the columns of clusters: the profile named default, or the only one. A collection with several profiles and none named default has no rows."""

    __tablename__ = "default_clusters"
    cluster_id: Mapped[int] = mapped_column(
        primary_key=True, comment="Number of the cluster: its smallest doc_id"
    )
    documents: Mapped[int] = mapped_column(comment="Number of documents")
    survivor_id: Mapped[int] = mapped_column(comment="doc_id of the document to keep")
    survivor_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep"
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
    sources: Mapped[int] = mapped_column(comment="Number of distinct sources")
    members: Mapped[list[str]] = mapped_column(
        ARRAY(Text(collation="C")), comment="external_ids of its documents, in the order of their doc_ids"
    )


class DefaultDuplicates(OfGeneration, View):
    """Duplicates under the default profile of each collection, with the columns of duplicates: the profile named default, or the only one. A collection with several profiles and none named default has no rows."""

    __tablename__ = "default_duplicates"
    cluster_id: Mapped[int] = mapped_column(comment="The cluster of both")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the duplicate")
    external_id: Mapped[str] = mapped_column(Text(collation="C"), comment="external_id of the duplicate")
    title: Mapped[str | None] = mapped_column(comment="Title of the duplicate; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source of the duplicate; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL of the duplicate; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When the duplicate was published; NULL if it has none"
    )
    survivor_id: Mapped[int] = mapped_column(comment="doc_id of the document to keep")
    survivor_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep"
    )
    survivor_title: Mapped[str | None] = mapped_column(
        comment="Title of the document to keep; NULL if it has none"
    )
    survivor_source: Mapped[str | None] = mapped_column(
        comment="Source of the document to keep; NULL if it has none"
    )
    survivor_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the document to keep was published; NULL if it has none"
    )
    copy_of: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep, as survivor_external_id"
    )


class DefaultPairs(PairColumns, View):
    """Pairs under the default profile of each collection, with the columns of pairs: the profile named default, or the only one. A collection with several profiles and none named default has no rows."""

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
        Integer, primary_key=True, comment="The live generation of the profile; NULL if it has none"
    )
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="Number of the document")
    external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="The owner's id of the document, unique in its collection"
    )
    title: Mapped[str | None] = mapped_column(comment="Title; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When it was published; NULL if it has none"
    )
    created_at: Mapped[datetime] = mapped_column(comment="When it was first stored")
    updated_at: Mapped[datetime] = mapped_column(comment="When it was last changed")
    revision: Mapped[int] = mapped_column(comment="Increases with every change of the document")
    state: Mapped[str] = mapped_column(
        comment="indexed; twin (same features as head_id); no features (empty or too short, matches nothing); outdated (an older revision is indexed); waiting (not indexed yet); outside window (expired by [retain] age); not indexed (the collection has no live profile)"
    )
    feature_count: Mapped[int | None] = mapped_column(
        Integer, comment="Number of distinct features; NULL if it is not in the index"
    )
    head_id: Mapped[int | None] = mapped_column(
        comment="The first document with the same features, which alone is compared; often the document itself; NULL if it has no features or is not in the index"
    )
    cluster_id: Mapped[int | None] = mapped_column(comment="Its cluster; NULL if it is in none")
    is_survivor: Mapped[bool | None] = mapped_column(
        comment="Whether it is the document of its cluster to keep; NULL if it is in no cluster"
    )


class Duplicates(OfGeneration, View):
    """Duplicates: every document of a cluster except the one to keep, with that one."""

    __tablename__ = "duplicates"
    cluster_id: Mapped[int] = mapped_column(comment="The cluster of both")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the duplicate")
    external_id: Mapped[str] = mapped_column(Text(collation="C"), comment="external_id of the duplicate")
    title: Mapped[str | None] = mapped_column(comment="Title of the duplicate; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source of the duplicate; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL of the duplicate; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When the duplicate was published; NULL if it has none"
    )
    survivor_id: Mapped[int] = mapped_column(comment="doc_id of the document to keep")
    survivor_external_id: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep"
    )
    survivor_title: Mapped[str | None] = mapped_column(
        comment="Title of the document to keep; NULL if it has none"
    )
    survivor_source: Mapped[str | None] = mapped_column(
        comment="Source of the document to keep; NULL if it has none"
    )
    survivor_published_at: Mapped[datetime | None] = mapped_column(
        comment="When the document to keep was published; NULL if it has none"
    )
    copy_of: Mapped[str] = mapped_column(
        Text(collation="C"), comment="external_id of the document to keep, as survivor_external_id"
    )


class Events(View):
    """Changes of pairs, clusters and their survivors, in the order of event_id; new events always have larger numbers."""

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
        comment="Similarity of a new pair, the estimate if verified is false, 1 for documents with the same features; NULL for other events"
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
        comment="doc_id of the document to keep in the cluster, or formerly to keep if it was split or dissolved; NULL for other events"
    )
    other_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger),
        comment="Numbers of the clusters that were merged, or resulted from a split, or the former number; NULL for other events",
    )
    other_survivor_ids: Mapped[list[int] | None] = mapped_column(
        ARRAY(BigInteger),
        comment="doc_ids of the documents to keep of those clusters, in the same order; NULL for other events",
    )
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    profile_id: Mapped[int] = mapped_column(Integer, comment="Number of the profile")
    generation_id: Mapped[int] = mapped_column(Integer, comment="The generation that was live")
    pruned: Mapped[bool] = mapped_column(
        comment="Whether this event and all earlier ones of its kind and profile were deleted; only its number remains"
    )
    verified: Mapped[bool | None] = mapped_column(
        comment="Whether the similarity was computed from the features; false for an estimate from the sketches, as match.verify of the recipe says. Documents with the same features are verified; NULL for other events"
    )


class FirstPublications(OfGeneration, View):
    """Who published first: every document of a cluster except the one with the earliest published_at, with that one, whichever is kept; of several published at that time the first is the one with the smallest doc_id, documents without a date are never the first, and clusters without any date are left out."""

    __tablename__ = "first_publications"
    cluster_id: Mapped[int] = mapped_column(comment="The cluster of both")
    doc_id: Mapped[int] = mapped_column(primary_key=True, comment="doc_id of the later document")
    external_id: Mapped[str] = mapped_column(Text(collation="C"), comment="external_id of the later document")
    title: Mapped[str | None] = mapped_column(comment="Title of the later document; NULL if it has none")
    source: Mapped[str | None] = mapped_column(comment="Source of the later document; NULL if it has none")
    url: Mapped[str | None] = mapped_column(comment="URL of the later document; NULL if it has none")
    published_at: Mapped[datetime | None] = mapped_column(
        comment="When the later document was published; NULL if unknown or infinite"
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
        comment="Time from the first publication to this one; 0 if both are of the same time, NULL without a date"
    )
    first_elsewhere: Mapped[bool] = mapped_column(
        comment="Whether another source published it first: the delay is above 0, and both sources are known and differ"
    )


class Functions(View):
    """Functions for callers; all other functions are internal."""

    __tablename__ = "functions"
    name: Mapped[str] = mapped_column(Text(collation="C"), primary_key=True, comment="Name of the function")
    arguments: Mapped[str] = mapped_column(
        primary_key=True,
        comment="Arguments with types and defaults; each may be passed by name, as in profile => 'default'",
    )
    returns: Mapped[str | None] = mapped_column(
        comment="Return type; NULL for a procedure, which is run with CALL"
    )
    comment: Mapped[str] = mapped_column(Text(collation="C"), comment="Description")


class Generations(View):
    """All builds of all profiles in any state; the other views show live ones only."""

    __tablename__ = "generations"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    profile: Mapped[str] = mapped_column(comment="Name of the profile")
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    profile_id: Mapped[int] = mapped_column(Integer, comment="Number of the profile")
    generation_id: Mapped[int] = mapped_column(
        Integer,
        primary_key=True,
        comment="Number of the generation, and suffix of its own tables, as in nearsim_index.band_7",
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
        comment="Date up to which documents have expired ([retain] age); NULL for none"
    )
    fingerprint: Mapped[str] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs"
    )
    figures: Mapped[dict[str, Any]] = mapped_column(comment="Build statistics")
    recipe: Mapped[dict[str, Any]] = mapped_column(comment="The complete recipe, including defaults")
    replaces: Mapped[int | None] = mapped_column(
        Integer,
        comment="The generation that was live when this one was started; NULL for the first of a profile",
    )
    detached: Mapped[bool] = mapped_column(comment="Whether workers continue its build")
    dropping: Mapped[bool] = mapped_column(comment="Whether its tables are being dropped")
    ready_at: Mapped[datetime | None] = mapped_column(comment="When it became ready; NULL if it never did")
    retired_at: Mapped[datetime | None] = mapped_column(
        comment="When it was retired; NULL if it is live or never was"
    )


class LiveGenerations(View):
    """The live generation of each profile, with the parts of its recipe that other views use."""

    __tablename__ = "live_generations"
    generation_id: Mapped[int] = mapped_column(
        Integer,
        primary_key=True,
        comment="Number of the generation, and suffix of its own tables, as in nearsim_index.band_7",
    )
    profile_id: Mapped[int] = mapped_column(Integer, comment="Number of the profile")
    profile: Mapped[str] = mapped_column(comment="Name of the profile")
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    threshold: Mapped[float] = mapped_column(
        comment="Minimum similarity of a pair; for projection the maximum distance"
    )
    bands: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of bands of a sketch; NULL if unknown"
    )
    rows: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of sketch positions per band; NULL if unknown"
    )
    min_shared_bands: Mapped[int] = mapped_column(
        Integer,
        comment="Number of bands that candidates must share; 1 if the recipe has an amplification instead",
    )
    bucket_limit: Mapped[int] = mapped_column(
        Integer, comment="Maximum number of anchors of a bucket; 0 for no limit"
    )
    retained: Mapped[timedelta | None] = mapped_column(
        comment="Retention of documents in the index; NULL for unlimited"
    )
    fingerprint: Mapped[str] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs"
    )
    recipe: Mapped[dict[str, Any]] = mapped_column(comment="The complete recipe, including defaults")
    figures: Mapped[dict[str, Any]] = mapped_column(comment="Counts of the build")
    created_at: Mapped[datetime] = mapped_column(comment="When the generation was created")
    live_at: Mapped[datetime | None] = mapped_column(comment="When it became live; NULL if unknown")


class Pairs(PairColumns, View):
    """Pairs of documents, including documents with the same features; the smaller doc_id is on the left."""

    __tablename__ = "pairs"


class Profiles(View):
    """All profiles: recipe, live generation and counts of its build (buckets as of buckets_counted_at; nearsim.buckets counts them now)."""

    __tablename__ = "profiles"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    profile: Mapped[str] = mapped_column(comment="Name of the profile")
    collection_id: Mapped[int] = mapped_column(Integer, comment="Number of the collection")
    profile_id: Mapped[int] = mapped_column(Integer, primary_key=True, comment="Number of the profile")
    generation_id: Mapped[int | None] = mapped_column(
        Integer, comment="The live generation, or the newest if none is live; NULL without a generation"
    )
    state: Mapped[str | None] = mapped_column(comment="State of that generation; NULL without a generation")
    stage: Mapped[str | None] = mapped_column(comment="Stage of its build; NULL without a generation")
    threshold: Mapped[float | None] = mapped_column(
        comment="Minimum similarity of a pair; for projection the maximum distance; NULL without a generation"
    )
    bands: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of bands of a sketch; NULL without a generation"
    )
    rows: Mapped[int | None] = mapped_column(
        SmallInteger, comment="Number of sketch positions per band; NULL without a generation"
    )
    min_shared_bands: Mapped[int | None] = mapped_column(
        Integer,
        comment="Number of bands that candidates must share; 1 if the recipe has an amplification instead; NULL without a generation",
    )
    bucket_limit: Mapped[int | None] = mapped_column(
        Integer, comment="Maximum number of anchors of a bucket; 0 for no limit; NULL without a generation"
    )
    expected_recall: Mapped[float | None] = mapped_column(
        comment="Probability that two documents exactly at the threshold become candidates; higher for more similar documents; NULL without a generation"
    )
    documents: Mapped[int] = mapped_column(comment="Number of documents in the collection")
    buckets: Mapped[int | None] = mapped_column(
        comment="Number of buckets at buckets_counted_at; NULL before"
    )
    largest_bucket: Mapped[int | None] = mapped_column(
        comment="Number of members of the largest bucket at buckets_counted_at; NULL before"
    )
    buckets_over_limit: Mapped[int | None] = mapped_column(
        comment="Number of buckets over the bucket limit at buckets_counted_at; NULL before"
    )
    links_left_out: Mapped[int | None] = mapped_column(
        comment="Number of pairs of members that the bucket limit left out, summed over buckets, at buckets_counted_at; NULL before"
    )
    created_at: Mapped[datetime] = mapped_column(comment="When the profile was created")
    live_at: Mapped[datetime | None] = mapped_column(
        comment="When the generation became live; NULL if it never did"
    )
    figures: Mapped[dict[str, Any] | None] = mapped_column(
        comment="All counts of the build; NULL without a generation"
    )
    fingerprint: Mapped[str | None] = mapped_column(
        comment="SHA-256 of everything that determines sketches, bands and pairs; NULL without a generation"
    )
    recipe: Mapped[dict[str, Any] | None] = mapped_column(
        comment="The complete recipe, including defaults; NULL without a generation"
    )
    amplification: Mapped[str | None] = mapped_column(
        comment="Shared bands that make two documents candidates, from the outside in: or(40, and(3)) is any of 40 bands of 3 rows; NULL if the recipe has none"
    )
    buckets_counted_at: Mapped[datetime | None] = mapped_column(
        comment="When the build counted the buckets; workers do not count them again. NULL before"
    )


class ReviewPairs(PairColumns, View):
    """Pairs for a person to look at, with a similarity from match.review to the threshold; they are outside clusters, removal and counts. Columns are those of the view pairs."""

    __tablename__ = "review_pairs"


class Verdicts(View):
    """Manual verdicts on two documents, whether a pair or not; in force while undone_at is NULL."""

    __tablename__ = "verdicts"
    collection: Mapped[str] = mapped_column(comment="Name of the collection")
    collection_id: Mapped[int] = mapped_column(Integer, comment="The collection of both documents")
    verdict_id: Mapped[int] = mapped_column(
        primary_key=True, comment="Number of the verdict, ascending with time"
    )
    left_id: Mapped[int] = mapped_column(comment="doc_id of the earlier document")
    right_id: Mapped[int] = mapped_column(comment="doc_id of the later document")
    left_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the earlier document; NULL if it was deleted"
    )
    right_external_id: Mapped[str | None] = mapped_column(
        Text(collation="C"), comment="external_id of the later document; NULL if it was deleted"
    )
    left_title: Mapped[str | None] = mapped_column(
        comment="Title of the earlier document; NULL if it has none"
    )
    right_title: Mapped[str | None] = mapped_column(
        comment="Title of the later document; NULL if it has none"
    )
    verdict: Mapped[str] = mapped_column(
        comment="pinned: always in one cluster; vetoed: never in one cluster"
    )
    by: Mapped[str] = mapped_column(comment="Author as stated; by default the database user")
    why: Mapped[str] = mapped_column(comment="Reason")
    at: Mapped[datetime] = mapped_column(comment="When it was set")
    undone_by: Mapped[str | None] = mapped_column(comment="Who undid or replaced it; NULL while it is active")
    undone_why: Mapped[str | None] = mapped_column(
        comment="Why it was undone or replaced; NULL while it is active"
    )
    undone_at: Mapped[datetime | None] = mapped_column(
        comment="When it was undone or replaced; NULL while it is active"
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

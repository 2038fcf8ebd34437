"""What applications write: collections, documents, and the tables that collections follow."""

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    FetchedValue,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, REGCLASS

from nearsim_db.store.schema.tables.base import NOW, metadata, moment

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
    moment("created_at", "When it was made"),
    moment(
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
    moment("published_at", "When it was published; where it is NULL, created_at counts", required=False),
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
    moment("created_at", "When it was first stored"),
    Column(
        "updated_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=NOW,
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
    Column("granted_at", DateTime(timezone=True), nullable=False, server_default=NOW, comment="Since when"),
    PrimaryKeyConstraint("collection_id", "role_name", name="collection_access_pkey"),
    comment="Which roles may read which collections, where readers are kept apart (nearsim db isolation)",
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
        server_default=NOW,
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

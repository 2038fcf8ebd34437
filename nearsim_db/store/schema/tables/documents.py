"""Collections, documents, grants and attached tables."""

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

from nearsim_db.store.schema.tables.base import NOW, metadata, timestamp_column

collection = Table(
    "collection",
    metadata,
    Column(
        "collection_id", Integer, Identity(always=True), primary_key=True, comment="Number of the collection"
    ),
    Column("name", Text, nullable=False, comment="Name, unique"),
    Column(
        "temporary",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether it belongs to one run of nearsim dedupe, which deletes it at its end",
    ),
    timestamp_column("created_at", "When it was created"),
    timestamp_column(
        "purged_at",
        "When texts were last purged from it; processes with cached texts then discard them",
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
        comment="Number of the document, above 0; ascending in order of creation",
    ),
    Column(
        "collection_id",
        Integer,
        ForeignKey("nearsim.collection.collection_id", name="document_collection_fkey", ondelete="CASCADE"),
        nullable=False,
        comment="The collection",
    ),
    Column(
        "external_id",
        Text(collation="C"),
        nullable=False,
        comment="The owner's id of the document, unique in the collection; at most 1,024 bytes",
    ),
    Column("title", Text, comment="Title"),
    Column("body", Text, comment="Text"),
    Column("vector", ARRAY(REAL), comment="Vector supplied by the owner, for profiles that compare vectors"),
    Column("source", Text, comment="Source, such as an agency or a site"),
    Column("url", Text, comment="URL"),
    timestamp_column(
        "published_at",
        "When it was published; if NULL, created_at is used",
        required=False,
    ),
    Column(
        "attributes",
        JSONB,
        nullable=False,
        server_default=text("'{}'"),
        comment="Any further data of the owner, nested at most 100 levels deep",
    ),
    Column(
        "revision",
        BigInteger,
        nullable=False,
        server_default=text("nextval('nearsim.document_revision'::regclass)"),
        server_onupdate=FetchedValue(),
        comment="Increases with every change; set by a trigger",
    ),
    timestamp_column("created_at", "When it was first stored"),
    Column(
        "updated_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=NOW,
        server_onupdate=FetchedValue(),
        comment="When it was last changed; set by a trigger",
    ),
    Column(
        "body_digest",
        Uuid,
        comment=(
            "If the collection has an attached table: MD5 of the text in that table (of an empty text "
            "if that is NULL)"
        ),
    ),
    Column(
        "body_length",
        Integer,
        comment="If the collection has an attached table: length of the text in that table, in characters",
    ),
    UniqueConstraint("collection_id", "external_id", name="document_external_id_key"),
    CheckConstraint("doc_id > 0", name="document_doc_id_positive"),
    CheckConstraint("body IS NULL OR body_digest IS NULL", name="document_body_stored_or_attached"),
    CheckConstraint(
        "octet_length(external_id) >= 1 AND octet_length(external_id) <= 1024",
        name="document_external_id_length",
    ),
    CheckConstraint(
        "NOT jsonb_path_exists(attributes, 'strict $.**{101}')", name="document_attributes_at_most_100_levels"
    ),
    Index("document_collection_doc", "collection_id", "doc_id"),
    Index("document_age", "collection_id", text("coalesce(published_at, created_at)")),
    comment=(
        "Documents under their owners' own external_id; any application may write here, and "
        "nearsim indexes the changes"
    ),
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
        comment=(
            "The role, by name: its members see the collection, and so does a later role of the same name"
        ),
    ),
    Column(
        "may_write",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether the role may also write documents of the collection, if it is a nearsim_writer",
    ),
    Column(
        "granted_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=NOW,
        comment="When it was granted",
    ),
    PrimaryKeyConstraint("collection_id", "role_name", name="collection_access_pkey"),
    comment="Collections that a role may read under isolation (nearsim db isolation)",
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
    Column("relation", REGCLASS, nullable=False, comment="The table; still valid after it is renamed"),
    Column(
        "id_column", Text, nullable=False, comment="Name of the id column; its values as text are external_id"
    ),
    Column("text_column", Text, nullable=False, comment="Name of the text column"),
    Column("title_column", Text, comment="Name of the title column"),
    Column("source_column", Text, comment="Name of the source column"),
    Column("url_column", Text, comment="Name of the URL column"),
    Column("published_at_column", Text, comment="Name of the publication date column"),
    Column(
        "attached_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=NOW,
        comment="When it was attached",
    ),
    Column(
        "wanted_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=text("clock_timestamp()"),
        comment="When a sweep of the whole table was last requested",
    ),
    Column(
        "swept_at",
        DateTime(timezone=True),
        comment="Start of the last completed sweep; if earlier than wanted_at, another sweep is due",
    ),
    Column(
        "sweep_seconds", Double, nullable=False, server_default=text("0"), comment="Duration of that sweep"
    ),
    Column(
        "unusable",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Number of rows it skipped because their id is NULL, empty or longer than 1,024 bytes",
    ),
    Column(
        "detaching",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether the table is being detached: texts are copied, and changes are no longer read",
    ),
    Column("trouble", Text, comment="Why the table cannot be read; NULL if it can"),
    Column("troubled_at", DateTime(timezone=True), comment="When that was last detected"),
    PrimaryKeyConstraint("collection_id", name="attachment_pkey"),
    CheckConstraint("(trouble IS NULL) = (troubled_at IS NULL)", name="attachment_trouble_dated"),
    comment=(
        "Tables of applications that are attached to collections (nearsim attach); the texts stay "
        "in those tables"
    ),
)

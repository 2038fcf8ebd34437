"""The tables as SQLAlchemy metadata, for Alembic and for applications that share the database."""

from nearsim_db.store.schema.tables.answers import event, pending_event, probe, probe_match, verdict
from nearsim_db.store.schema.tables.base import INDEX_SCHEMA, SCHEMA, metadata
from nearsim_db.store.schema.tables.documents import attachment, collection, collection_access, document
from nearsim_db.store.schema.tables.generations import (
    band,
    cluster_member,
    generation,
    profile,
    signature,
    similar_pair,
)
from nearsim_db.store.schema.tables.schema_floor import schema_floor
from nearsim_db.store.schema.tables.work import build_slice, change, lease, work

__all__ = [
    "INDEX_SCHEMA",
    "SCHEMA",
    "attachment",
    "band",
    "build_slice",
    "change",
    "cluster_member",
    "collection",
    "collection_access",
    "document",
    "event",
    "generation",
    "is_ours",
    "lease",
    "metadata",
    "pending_event",
    "probe",
    "probe_match",
    "profile",
    "schema_floor",
    "signature",
    "similar_pair",
    "verdict",
    "work",
]


def is_ours(name: str | None, kind: str, parents: object) -> bool:
    """Limit Alembic to the schema nearsim; partitions in nearsim_index are not compared."""
    return name == SCHEMA if kind == "schema" else True

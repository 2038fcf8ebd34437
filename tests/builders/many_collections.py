"""Many collections, which are copied row by row from a collection that nearsim has indexed."""

from typing import Any, LiteralString

import psycopg

from nearsim_db import Document, Index

TEMPLATE = "tenant-00001"
_TEXT = "The council of the harbour town has voted for a new bridge over the river by a wide margin, after a debate"
DOCUMENTS = (
    Document("1", "Bridge", f"{_TEXT} of several hours."),
    Document("2", "Bridge", f"{_TEXT} of several hours on Tuesday."),
    Document("3", "Bridge", f"{_TEXT} of several hours."),
    Document(
        "4",
        "Weather",
        "Rain is expected in the north, while the south stays dry and sunny until the weekend.",
    ),
)

# Triggers are off: the copies are indexed already, and nothing is to be published.
_COPY: tuple[LiteralString, ...] = (
    "SET LOCAL session_replication_role = replica",
    """
    CREATE TEMPORARY TABLE template ON COMMIT DROP AS
    SELECT collection_id, profile_id, generation_id FROM nearsim.collection
    JOIN nearsim.profile USING (collection_id) JOIN nearsim.generation USING (profile_id)
    WHERE collection.name = %(template)s AND state = 'live'
    """,
    """
    CREATE TEMPORARY TABLE copy ON COMMIT DROP AS
    SELECT nextval('nearsim.collection_collection_id_seq')::integer AS collection_id,
        nextval('nearsim.profile_profile_id_seq')::integer AS profile_id,
        nextval('nearsim.generation_generation_id_seq')::integer AS generation_id,
        'tenant-' || to_char(number, 'FM00000') AS name
    FROM generate_series(%(first)s::integer, %(last)s::integer) AS number
    """,
    """
    CREATE TEMPORARY TABLE copied ON COMMIT DROP AS
    SELECT copy.collection_id, copy.generation_id, doc_id AS old_id,
        nextval('nearsim.document_doc_id_seq') AS doc_id
    FROM copy, (SELECT doc_id FROM nearsim.document JOIN template USING (collection_id) ORDER BY doc_id) AS known
    ORDER BY copy.collection_id, doc_id
    """,
    """
    INSERT INTO nearsim.collection (collection_id, name) OVERRIDING SYSTEM VALUE SELECT collection_id, name FROM copy
    """,
    """
    INSERT INTO nearsim.profile (profile_id, collection_id, name) OVERRIDING SYSTEM VALUE
    SELECT profile_id, collection_id, 'default' FROM copy
    """,
    """
    INSERT INTO nearsim.generation (generation_id, profile_id, state, stage, recipe, fingerprint, figures, live_at,
        bands, rows, expected_recall) OVERRIDING SYSTEM VALUE
    SELECT copy.generation_id, copy.profile_id, state, stage, recipe, fingerprint, figures, live_at,
        bands, rows, expected_recall
    FROM copy, nearsim.generation JOIN template USING (generation_id)
    """,
    """
    INSERT INTO nearsim.document (doc_id, collection_id, external_id, title, body, revision) OVERRIDING SYSTEM VALUE
    SELECT copied.doc_id, copied.collection_id, external_id, title, body, revision
    FROM copied JOIN nearsim.document ON document.doc_id = old_id
    """,
    """
    INSERT INTO nearsim.signature (generation_id, doc_id, revision, feature_count, feature_digest, sketch,
        numbers_digest, head_id)
    SELECT copied.generation_id, copied.doc_id, revision, feature_count, feature_digest, sketch,
        numbers_digest, head.doc_id
    FROM copied JOIN nearsim.signature ON signature.doc_id = copied.old_id
    JOIN template ON template.generation_id = signature.generation_id
    LEFT JOIN copied AS head ON head.generation_id = copied.generation_id AND head.old_id = signature.head_id
    """,
    """
    INSERT INTO nearsim.band (generation_id, bucket_hash, doc_id)
    SELECT copied.generation_id, bucket_hash, copied.doc_id
    FROM copied JOIN nearsim.band ON band.doc_id = copied.old_id
    JOIN template ON template.generation_id = band.generation_id
    """,
    """
    INSERT INTO nearsim.similar_pair (generation_id, left_id, right_id, shared_bands, estimate, similarity,
        intersection_size, union_size)
    SELECT copied.generation_id, copied.doc_id, other.doc_id, shared_bands, estimate, similarity,
        intersection_size, union_size
    FROM nearsim.similar_pair AS pair JOIN template USING (generation_id)
    JOIN copied ON copied.old_id = pair.left_id
    JOIN copied AS other ON other.generation_id = copied.generation_id AND other.old_id = pair.right_id
    """,
    """
    INSERT INTO nearsim.cluster_member (generation_id, doc_id, cluster_id, is_survivor)
    SELECT copied.generation_id, copied.doc_id, first.doc_id, is_survivor
    FROM nearsim.cluster_member AS member JOIN template USING (generation_id)
    JOIN copied ON copied.old_id = member.doc_id
    JOIN copied AS first ON first.generation_id = copied.generation_id AND first.old_id = member.cluster_id
    """,
)


def fill(url: str, collections: int) -> None:
    """Create indexed collections, named from tenant-00001 on, up to this number. Existing collections stay."""
    with Index.connect(url, collection=TEMPLATE) as index:
        index.add(DOCUMENTS)
    with psycopg.connect(url) as session:
        # The query is sent with parameters, so each % in it is doubled.
        (existing,) = _row(session, "SELECT count(*) FROM nearsim.collection WHERE name LIKE 'tenant-%%'")
        for statement in _COPY:
            session.execute(
                statement, {"template": TEMPLATE, "first": int(existing) + 1, "last": collections}
            )
    # VACUUM cannot run in a transaction.
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("VACUUM ANALYZE")


def _row(session: psycopg.Connection[Any], query: LiteralString) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = session.execute(query, {}).fetchone()
    assert row is not None
    return row

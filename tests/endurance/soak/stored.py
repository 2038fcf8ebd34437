"""What is stored, read in plain SQL."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearsim_db.similarity.profile import make_family
from nearsim_db.similarity.recipe import Recipe, from_mapping
from tests.endurance.soak.journal import FIELDS, Connection
from tests.endurance.soak.oracle import Pair, Row

_GENERATIONS = """
SELECT generation_id, collection_id, profile_id, state, recipe, bands, rows FROM nearsim.generation
JOIN nearsim.profile USING (profile_id) WHERE state IN ('live', 'ready', 'retired') AND NOT dropping ORDER BY 1
"""
_DOCUMENTS = """
SELECT doc_id, collection_id, external_id, title, body, CAST(vector AS float8[]), source, published_at, created_at,
    body_digest, body_length, revision
FROM nearsim.document
"""
_SIGNATURES = """
SELECT doc_id, revision, feature_count, sketch, head_id, numbers_digest FROM nearsim.signature
WHERE generation_id = %s ORDER BY doc_id
"""
_BANDS = "SELECT bucket_hash, doc_id FROM nearsim.band WHERE generation_id = %s"
_PAIRS = """
SELECT left_id, right_id, shared_bands, similarity, intersection_size, union_size FROM nearsim.similar_pair
WHERE generation_id = %s
"""
_MEMBERS = "SELECT doc_id, cluster_id, is_survivor FROM nearsim.cluster_member WHERE generation_id = %s"
_REMAINING_ROWS = """
SELECT generation_id FROM nearsim_index.signature_shared UNION SELECT generation_id FROM nearsim_index.band_shared
UNION SELECT generation_id FROM nearsim_index.similar_pair_shared
UNION SELECT generation_id FROM nearsim_index.cluster_member_shared
EXCEPT SELECT generation_id FROM nearsim.generation
"""
_REMAINING_TABLES = """
SELECT relname FROM pg_class WHERE relnamespace = 'nearsim_index'::regnamespace AND relkind = 'r'
    AND substring(relname FROM '_([0-9]+)$')::integer NOT IN (SELECT generation_id FROM nearsim.generation)
"""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation that has to be up to date."""

    generation_id: int
    collection_id: int
    profile_id: int
    state: str
    recipe: Recipe
    bands: int
    rows: int


@dataclass(frozen=True, slots=True)
class Signature:
    """A stored signature."""

    revision: int
    feature_count: int
    sketch: tuple[int, ...] | None
    head: int | None
    numbers: int


@dataclass(frozen=True, slots=True)
class Stored:
    """The rows of a generation."""

    signatures: dict[int, Signature]
    bands: list[Pair]
    pairs: dict[Pair, tuple[int, float, int | None, int | None]]
    members: dict[int, tuple[int, bool]]


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as stored."""

    values: dict[str, Any]
    created_at: Any
    body_digest: str | None
    body_length: int | None
    revision: int

    def row(self, body: str | None) -> Row:
        """The document as profiles read it, with this text."""
        values = self.values
        return Row(
            values["title"],
            body,
            None if values["vector"] is None else tuple(values["vector"]),
            values["source"],
            values["published_at"] or self.created_at,
        )


def read_generations(connection: Connection) -> list[Generation]:
    """Return all generations that answer queries, may do so next, or are kept for a rollback."""
    rows = connection.execute(_GENERATIONS).fetchall()
    return [
        Generation(number, collection, profile, state, from_mapping(recipe), bands, band_rows)
        for number, collection, profile, state, recipe, bands, band_rows in rows
    ]


def remains(connection: Connection) -> list[str]:
    """Return the generations that are gone but have tables, or rows in shared ones."""
    found = [f"generation {number} left rows" for (number,) in connection.execute(_REMAINING_ROWS)]
    return found + [f"generation of {name} left it" for (name,) in connection.execute(_REMAINING_TABLES)]


def read_documents(connection: Connection) -> dict[int, StoredDocument]:
    """Return all documents by doc_id."""
    return {
        row[0]: StoredDocument(
            dict(zip(FIELDS, row[1:8], strict=True)), row[8], row[9] and row[9].hex, row[10], row[11]
        )
        for row in connection.execute(_DOCUMENTS)
    }


def read_generation(connection: Connection, generation: Generation) -> Stored:
    """Return the rows of a generation."""
    dtype = make_family(generation.recipe, "numpy").dtype

    def rows(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query.encode(), (generation.generation_id,)).fetchall()

    return Stored(
        {
            doc_id: Signature(
                revision,
                features,
                None if sketch is None else tuple(np.frombuffer(sketch, dtype).tolist()),
                *(head, numbers),
            )
            for doc_id, revision, features, sketch, head, numbers in rows(_SIGNATURES)
        },
        sorted(rows(_BANDS)),
        {(left, right): tuple(rest) for left, right, *rest in rows(_PAIRS)},
        {doc_id: (cluster, survives) for doc_id, cluster, survives in rows(_MEMBERS)},
    )

"""The contents of an index, read in plain SQL by external ids, so that two indexes can be compared."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product

import psycopg

Names = tuple[str, str]
Text = tuple[str | None, str | None]

_DOCUMENTS = "SELECT external_id, title, body FROM nearsim.document WHERE collection_id = %s"
_HEADS = """
SELECT coalesce(document.external_id, 'doc_id ' || signature.doc_id), coalesce(head.external_id, 'doc_id ' || head_id)
FROM nearsim.signature LEFT JOIN nearsim.document USING (doc_id)
    LEFT JOIN nearsim.document AS head ON head.doc_id = signature.head_id
WHERE generation_id = %s
"""
_PAIRS = """
SELECT coalesce(l.external_id, 'doc_id ' || left_id), coalesce(r.external_id, 'doc_id ' || right_id),
    intersection_size, union_size
FROM nearsim.similar_pair LEFT JOIN nearsim.document AS l ON l.doc_id = left_id
    LEFT JOIN nearsim.document AS r ON r.doc_id = right_id
WHERE generation_id = %s
"""
_MEMBERS = """
SELECT coalesce(external_id, 'doc_id ' || member.doc_id), cluster_id, is_survivor
FROM nearsim.cluster_member AS member LEFT JOIN nearsim.document USING (doc_id) WHERE generation_id = %s
"""
_LARGE_BUCKETS = """
SELECT external_id, bucket_hash FROM nearsim.band JOIN nearsim.document USING (doc_id)
WHERE generation_id = %(generation)s AND bucket_hash IN (
    SELECT bucket_hash FROM nearsim.band WHERE generation_id = %(generation)s GROUP BY 1 HAVING count(*) > %(limit)s)
"""
_BANDS = """
SELECT coalesce(external_id, 'doc_id ' || band.doc_id), count(*)
FROM nearsim.band LEFT JOIN nearsim.document USING (doc_id) WHERE generation_id = %s GROUP BY 1
"""


def ordered(one: str, other: str) -> Names:
    """Return a pair of names, the smaller first."""
    return (one, other) if one < other else (other, one)


@dataclass(slots=True)
class Contents:
    """One index. `heads` maps each signed document to its head, "" without features; `pairs` are of heads, with
    their intersection and union; `bands` counts band rows.

    `clusters` maps members to clusters. Deleted documents are named 'doc_id N'.
    """

    texts: Mapping[str, Text] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[Names, tuple[int, int]] = field(default_factory=dict)
    clusters: Mapping[str, int] = field(default_factory=dict)
    survivors: frozenset[str] = frozenset()
    bands: Mapping[str, int] = field(default_factory=dict)

    def twins(self) -> dict[str, list[str]]:
        """Return every head with its twins, itself included."""
        groups = defaultdict(list)
        for name, head in self.heads.items():
            if head:
                groups[head].append(name)
        return groups

    def expanded(self) -> set[Names]:
        """Return all pairs, twins expanded, including twins of one head."""
        twins = self.twins()

        def walk() -> Iterator[Names]:
            for left, right in self.pairs:
                yield from product(twins.get(left, [left]), twins.get(right, [right]))
            for group in twins.values():
                yield from combinations(group, 2)

        return {ordered(*pair) for pair in walk()}

    def partition(self) -> set[frozenset[str]]:
        """Return the clusters as sets of names."""
        groups = defaultdict(set)
        for name, cluster in self.clusters.items():
            groups[cluster].add(name)
        return {frozenset(group) for group in groups.values()}


def read_contents(
    connection: "psycopg.Connection[tuple[object, ...]]", collection_id: int, generation_id: int
) -> Contents:
    """Read everything that belongs to one generation and its collection."""
    documents = connection.execute(_DOCUMENTS, (collection_id,)).fetchall()
    signatures = connection.execute(_HEADS, (generation_id,)).fetchall()
    pairs = connection.execute(_PAIRS, (generation_id,)).fetchall()
    members = connection.execute(_MEMBERS, (generation_id,)).fetchall()
    bands = connection.execute(_BANDS, (generation_id,)).fetchall()
    return Contents(
        {str(name): (_text(title), _text(body)) for name, title, body in documents},
        {str(name): str(head or "") for name, head in signatures},
        {ordered(str(left), str(right)): (int(str(i)), int(str(u))) for left, right, i, u in pairs},
        {str(name): int(str(cluster)) for name, cluster, _ in members},
        frozenset(str(name) for name, _, survivor in members if survivor),
        {str(name): int(str(count)) for name, count in bands},
    )


def read_large_buckets(
    connection: "psycopg.Connection[tuple[object, ...]]", generation_id: int, limit: int
) -> dict[str, set[int]]:
    """Return the buckets over the limit of each head; none without a limit."""
    found: dict[str, set[int]] = defaultdict(set)
    if limit:
        for name, bucket in connection.execute(_LARGE_BUCKETS, {"generation": generation_id, "limit": limit}):
            found[str(name)].add(int(str(bucket)))
    return found


def _text(value: object) -> str | None:
    return None if value is None else str(value)

"""Two generations written by hand, with random families, pairs and clusters, and their differences in plain Python."""

import random
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, product
from uuid import UUID

from psycopg import sql

from nearsim_db.records import GenerationId
from nearsim_db.store import partitions, signatures
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import Leaves

Ids = tuple[int, int]


@dataclass(frozen=True)
class Written:
    """One generation: the head of each document that has features, pairs of heads, members of clusters."""

    heads: dict[int, int]
    featureless: set[int]
    pairs: dict[Ids, float]
    clusters: dict[int, int]
    survivors: dict[int, int]

    @classmethod
    def random(cls, rng: random.Random, documents: int) -> "Written":
        """Few or many families; some documents have no features, some are missing."""
        families = rng.choice([2, 4, documents, documents * 3])
        there = [one for one in range(1, documents + 1) if rng.random() < 0.9]
        featureless = {one for one in there if rng.random() < 0.1}
        family = {one: rng.randrange(families) for one in there if one not in featureless}
        first: dict[int, int] = {}
        heads = {one: first.setdefault(own, one) for one, own in family.items()}
        likely = rng.choice([0.05, 0.3, 1.0])
        tied = {
            pair: rng.choice([0.5, 0.7, 1.0])
            for pair in combinations(sorted(set(heads.values())), 2)
            if rng.random() < likely
        }
        kinds = rng.choice([3, documents])
        kind = {one: rng.randrange(kinds) for one in heads if rng.random() < 0.8}
        label: dict[int, int] = {}
        clusters = {one: label.setdefault(own, one) for one, own in kind.items()}
        survivors = {
            cluster: rng.choice([d for d, c in clusters.items() if c == cluster])
            for cluster in clusters.values()
        }
        return cls(heads, featureless, tied, clusters, survivors)

    def write(self, connection: Connection, leaves: Leaves) -> None:
        """Fill its tables, which are created if they are its own."""
        partitions.create(connection, leaves)
        inner = connection.backend.cursor()

        def insert(table: str, columns: str, rows: list[tuple[object, ...]]) -> None:
            names = ["generation_id", *columns.split(", ")]
            command = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                leaves.table(table),
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(", ").join([sql.Placeholder()] * len(names)),
            )
            inner.executemany(command, [(leaves.generation_id, *row) for row in rows])

        insert(
            "signature",
            "doc_id, revision, feature_count, numbers_digest, feature_digest, sketch, head_id",
            [(one, 1, 5, 0, UUID(int=head), b"", head) for one, head in self.heads.items()]
            + [(one, 1, 0, 0, None, None, None) for one in self.featureless],
        )
        signatures.index_signatures(connection, leaves)
        insert(
            "similar_pair",
            "left_id, right_id, shared_bands, estimate, similarity, verified_at",
            [(*pair, 3, similarity, similarity, "now") for pair, similarity in self.pairs.items()],
        )
        insert(
            "cluster_member",
            "doc_id, cluster_id, is_survivor",
            [(one, cluster, self.survivors[cluster] == one) for one, cluster in self.clusters.items()],
        )

    def expanded(self) -> dict[Ids, float]:
        """All pairs of documents with their similarity."""
        families = self.families()
        found = {pair: 1.0 for family in families.values() for pair in combinations(family, 2)}
        for (left, right), similarity in self.pairs.items():
            for one, other in product(families[left], families[right]):
                found[min(one, other), max(one, other)] = similarity
        return found

    def families(self) -> dict[int, list[int]]:
        """Documents by their head."""
        families: dict[int, list[int]] = defaultdict(list)
        for one, head in self.heads.items():
            families[head].append(one)
        return families

    def members(self) -> dict[int, frozenset[int]]:
        """Clusters with their documents."""
        members: dict[int, set[int]] = defaultdict(set)
        for one, cluster in self.clusters.items():
            members[cluster].add(one)
        return {cluster: frozenset(those) for cluster, those in members.items()}


def leaves(number: int) -> Leaves:
    """The tables of a generation that has no row in nearsim.generation."""
    return Leaves(GenerationId(number))

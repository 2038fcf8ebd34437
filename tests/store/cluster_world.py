"""A generation whose signatures and pairs are written by hand, and what its clusters must be."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import networkx as nx
import numpy as np
from psycopg import sql
from sqlalchemy import Connection

from nearsim_db.encode import Encoder
from nearsim_db.profile import resolve
from nearsim_db.recipe import Recipe, keep_policy, override, to_mapping
from nearsim_db.steps import Context, join, relink
from nearsim_db.store import catalog, pairs, partitions, signatures
from nearsim_db.store.engine import driver

Node = tuple[int, ...]
MAY = datetime(2026, 5, 1, tzinfo=UTC)


class World:
    """One generation whose signatures and pairs are written by hand, and what is known of them."""

    def __init__(self, connection: Connection, settings: list[str]) -> None:
        profile = resolve(override(Recipe(), settings))
        self.connection, self.rules = connection, profile.recipe.cluster
        self.collection = catalog.create_collection(connection, "world")
        generation = catalog.create_profile(
            connection,
            self.collection.collection_id,
            "default",
            to_mapping(profile.recipe),
            profile.fingerprint,
            profile.bands,
            profile.rows,
        )
        self.context = Context(generation, Encoder(profile), ThreadPoolExecutor(1), 1, list[str]().append)
        partitions.create(connection, generation.leaves)
        signatures.index_signatures(connection, generation.leaves)
        pairs.finish_pairs(connection, generation.leaves)
        connection.commit()
        self.heads: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.facts: dict[int, tuple[str | None, datetime, int]] = {}
        self.pairs: set[tuple[int, int]] = set()
        self.queued: set[int] = set()

    def run(self, command: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL with the leaves' names filled in; returns the rows if there are any."""
        names = {
            parent: self.context.leaves.table(parent)
            for parent in ("signature", "similar_pair", "cluster_member")
        }
        cursor = driver(self.connection).execute(sql.SQL(command).format(**names), values)
        return cursor.fetchall() if cursor.description else []

    def family(self, head: int) -> list[int]:
        """A head and its twins."""
        return sorted(doc_id for doc_id, one in self.heads.items() if one == head)

    def write(self, doc_id: int, source: str | None, date: datetime, length: int) -> None:
        """Insert or update a document; what makes its rank is known from then on."""
        self.run(
            "INSERT INTO nearsim.document (doc_id, collection_id, external_id, source, published_at, body)"
            " OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (doc_id) DO UPDATE"
            " SET source = excluded.source, published_at = excluded.published_at, body = excluded.body",
            *(doc_id, self.collection.collection_id, f"d{doc_id}", source, date, "x" * length),
        )
        self.facts[doc_id] = (source, date, length)

    def sign(self, doc_id: int, head: int, numbers: int) -> None:
        """Give a document its first signature, under a head, or as the head of the family of a later one."""
        self.run(
            "INSERT INTO {signature} (doc_id, revision, feature_count, feature_digest, sketch, numbers_digest, head_id)"
            " VALUES (%s, 1, 1, gen_random_uuid(), '', %s, %s)",
            *(doc_id, numbers, min(doc_id, head)),
        )
        self.numbers[doc_id] = numbers
        if doc_id < head:
            self._drop_pairs(head)
            self._rename(head, doc_id)
            self._heads_changed(head, doc_id)
        elif doc_id > head:
            self.queued.add(doc_id)
        self.heads[doc_id] = min(doc_id, head)

    def remove(self, doc_id: int) -> None:
        """A signature goes, with its pairs; where it was a head the next twin is one."""
        self._drop_pairs(doc_id)
        self.run("DELETE FROM {signature} WHERE doc_id = %s", doc_id)
        self.run("DELETE FROM nearsim.document WHERE doc_id = %s", doc_id)
        del self.heads[doc_id], self.numbers[doc_id]
        self.queued.add(doc_id)
        left = self.family(doc_id)
        if left:
            self._rename(doc_id, left[0])
            self._heads_changed(doc_id, left[0])

    def renumber(self, doc_id: int, numbers: int) -> None:
        """A document's numbers change, its features do not."""
        self.run("UPDATE {signature} SET numbers_digest = %s WHERE doc_id = %s", numbers, doc_id)
        self.numbers[doc_id] = numbers
        self.queued.add(doc_id)

    def pair(self, found: set[tuple[int, int]]) -> None:
        """Store new pairs of heads and join them; what joining queued instead is taken over."""
        for left, right in found:
            self.run(
                "INSERT INTO {similar_pair}"
                " (left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size)"
                " VALUES (%s, %s, 1, 1, 1, 1, 1)",
                *(left, right),
            )
        self.pairs |= found
        join(self.connection, self.context, np.array(sorted(found), np.int64).reshape(-1, 2))
        self.queued |= {
            row[0] for row in self.run("DELETE FROM nearsim.work WHERE stage = 'link' RETURNING doc_id")
        }

    def relink(self, doc_ids: list[int]) -> None:
        """Work some of the queue off."""
        relink(self.connection, self.context, doc_ids)
        self.queued.difference_update(doc_ids)

    def stored(self) -> dict[int, tuple[int, bool]]:
        """Each member's cluster, and whether it survives."""
        rows = self.run("SELECT doc_id, cluster_id, is_survivor FROM {cluster_member}")
        return {doc_id: (cluster, survives) for doc_id, cluster, survives in rows}

    def expected(self) -> dict[int, tuple[int, bool]]:
        """The clusters by their definitions, in plain Python."""
        nodes: dict[Node, list[int]] = defaultdict(list)
        for doc_id, head in self.heads.items():
            nodes[self._node(head, self.numbers[doc_id])].append(doc_id)
        graph = nx.Graph()
        graph.add_nodes_from(nodes)
        for left, right in self.pairs:
            numbers = {node[1:] for node in nodes if node[0] in (left, right)}
            ends = [((left, *one), (right, *one)) for one in numbers]
            graph.add_edges_from((a, b) for a, b in ends if a in nodes and b in nodes)
        if self.rules.linkage == "connected":
            groups = [list(part) for part in nx.connected_components(graph)]
        else:
            groups = self._stars(graph, nodes)
        found: dict[int, tuple[int, bool]] = {}
        for group in groups:
            members = [doc_id for node in group for doc_id in nodes[node]]
            if len(members) > 1:
                survivor = min(members, key=self._rank)
                found |= {doc_id: (min(members), doc_id == survivor) for doc_id in members}
        return found

    def _stars(self, graph: Any, nodes: dict[Node, list[int]]) -> list[list[Node]]:
        stars: dict[Node, list[Node]] = {}
        for node in sorted(nodes, key=lambda one: min(self._rank(doc_id) for doc_id in nodes[one])):
            centre = next((one for one in stars if graph.has_edge(one, node)), None)
            if centre is None:
                stars[node] = [node]
            else:
                stars[centre].append(node)
        return list(stars.values())

    def _node(self, head: int, numbers: int) -> Node:
        return (head, numbers) if self.rules.numbers_differ == "keep-apart" else (head,)

    def _rank(self, doc_id: int) -> tuple[object, ...]:
        policy, sources = keep_policy(self.rules.keep)
        source, date, length = self.facts[doc_id]
        place = sources.index(source) if source in sources else len(sources)
        first = {"source": place, "longest": -length, "latest": MAY - date, "earliest": 0}[policy]
        return first, date, doc_id

    def _drop_pairs(self, head: int) -> None:
        self.run("DELETE FROM {similar_pair} WHERE left_id = %s OR right_id = %s", head, head)
        self.pairs = {pair for pair in self.pairs if head not in pair}

    def _heads_changed(self, gone: int, come: int) -> None:
        # Twins of other numbers may lose what tied them although the head that went was tied to nothing.
        self.queued |= {gone, come} if self.rules.numbers_differ == "keep-apart" else {gone}

    def _rename(self, old: int, new: int) -> None:
        self.run("UPDATE {signature} SET head_id = %s WHERE head_id = %s", new, old)
        for doc_id in self.family(old):
            self.heads[doc_id] = new

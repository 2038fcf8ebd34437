"""A generation whose signatures and pairs are written by hand, and its expected clusters."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import numpy as np
from psycopg import sql
from psycopg.types.json import Jsonb

from nearsim_db.indexing import profiles
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps import extend_clusters, update_clusters
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.access import collection_rows
from nearsim_db.store.driver import Connection
from tests.builders.plain_clusters import SCORES, Evidence, Tie

MAY = datetime(2026, 5, 1, tzinfo=UTC)


class World:
    """A generation whose signatures and pairs are written by hand, with a model of them in Python."""

    def __init__(self, connection: Connection, settings: list[str]) -> None:
        profile = resolve(override(Recipe(), settings))
        self.connection, self.rules = connection, profile.recipe.cluster
        self.collection = collection_rows.create_collection(connection, "world")
        generation = profiles.create(connection, self.collection.collection_id, "default", profile)
        self.context = Context(generation, Encoder(profile), ThreadPoolExecutor(1), 1, list[str]().append)
        generation.tables(connection).create()
        generation.tables(connection).signatures.index()
        connection.commit()
        self.heads: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.facts: dict[int, tuple[str | None, datetime, int]] = {}
        self.pairs: set[Tie] = set()
        self.verdicts: dict[Tie, str] = {}
        self.queued: set[int] = set()

    def run(self, command: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL with the names of the partitions filled in; return its rows, if any."""
        names: dict[str, sql.Composable] = {
            parent: self.context.leaves.table(parent)
            for parent in ("signature", "similar_pair", "cluster_member")
        }
        names["generation_id"] = sql.Literal(self.context.leaves.generation_id)
        cursor = self.connection.execute(sql.SQL(command).format(**names), values)
        return cursor.fetchall() if cursor.description else []

    def family(self, head: int) -> list[int]:
        """The head and the twins of a family."""
        return sorted(doc_id for doc_id, its_head in self.heads.items() if its_head == head)

    def write(self, doc_id: int, source: str | None, date: datetime, length: int) -> None:
        """Insert or update a document, and record the values that determine its rank."""
        self.run(
            "INSERT INTO nearsim.document (doc_id, collection_id, external_id, source, published_at, body, attributes)"
            " OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (doc_id) DO UPDATE"
            " SET source = excluded.source, published_at = excluded.published_at, body = excluded.body,"
            " attributes = excluded.attributes",
            *(doc_id, self.collection.collection_id, f"d{doc_id}", source, date, "x" * length),
            Jsonb({"meta": {"score": SCORES[length % len(SCORES)]}}),
        )
        self.facts[doc_id] = (source, date, length)

    def sign(self, doc_id: int, head: int, numbers: int) -> None:
        """Store the first signature of a document, under a head or as the new head of a family."""
        self.run(
            "INSERT INTO {signature} (generation_id, doc_id, revision, feature_count, feature_digest, sketch,"
            " numbers_digest, head_id) VALUES ({generation_id}, %s, 1, 1, gen_random_uuid(), '', %s, %s)",
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
        self._note_pinned(doc_id)

    def sign_featureless(self, doc_id: int) -> None:
        """Store the signature of a document without features."""
        self.run(
            "INSERT INTO {signature} (generation_id, doc_id, revision, feature_count, numbers_digest)"
            " VALUES ({generation_id}, %s, 1, 0, 0)",
            doc_id,
        )
        self.numbers[doc_id] = 0
        self._note_pinned(doc_id)

    def judge(self, function: str, left: int, right: int) -> None:
        """Pin or veto a pair, or undo its verdict, and process the captured change."""
        self.run(
            f"SELECT nearsim.{function}_by_doc_id(CAST(%s AS bigint), CAST(%s AS bigint), 'a reason', 'somebody')",
            *(left, right),
        )
        if function == "undo_verdict":
            del self.verdicts[left, right]
        else:
            self.verdicts[left, right] = {"pin_pair": "pinned", "veto_pair": "vetoed"}[function]
        noted = self.run("DELETE FROM nearsim.change WHERE stage = 'link' RETURNING doc_id")
        self.queued |= {doc_id for (doc_id,) in noted}

    def remove(self, doc_id: int) -> None:
        """Delete a signature and its pairs; the next twin of a head becomes the head."""
        self._drop_pairs(doc_id)
        self.run("DELETE FROM {signature} WHERE doc_id = %s", doc_id)
        self.run("DELETE FROM nearsim.document WHERE doc_id = %s", doc_id)
        del self.numbers[doc_id]
        self.heads.pop(doc_id, None)
        self.queued.add(doc_id)
        left = self.family(doc_id)
        if left:
            self._rename(doc_id, left[0])
            self._heads_changed(doc_id, left[0])

    def renumber(self, doc_id: int, numbers: int) -> None:
        """Change the numbers of a document but not its features."""
        self.run("UPDATE {signature} SET numbers_digest = %s WHERE doc_id = %s", numbers, doc_id)
        self.numbers[doc_id] = numbers
        self.queued.add(doc_id)

    def pair(self, pairs: set[tuple[int, int]]) -> None:
        """Store new pairs of heads and join their clusters; record the documents that were queued instead."""
        for left, right in pairs:
            self.run(
                "INSERT INTO {similar_pair}"
                " (generation_id, left_id, right_id, shared_bands, estimate, similarity, intersection_size, union_size)"
                " VALUES ({generation_id}, %s, %s, 1, 1, %s, 1, 1)",
                *(left, right, similarity(left, right)),
            )
        self.pairs |= pairs
        extend_clusters(self.connection, self.context, np.array(sorted(pairs), np.int64).reshape(-1, 2))
        self.queued |= {
            row[0] for row in self.run("DELETE FROM nearsim.work WHERE stage = 'link' RETURNING doc_id")
        }

    def relink(self, doc_ids: list[int]) -> None:
        """Process part of the queue."""
        update_clusters(self.connection, self.context, doc_ids)
        self.queued.difference_update(doc_ids)

    def stored(self) -> dict[int, tuple[int, bool]]:
        """The cluster of each member, and whether it is the survivor."""
        rows = self.run("SELECT doc_id, cluster_id, is_survivor FROM {cluster_member}")
        return {doc_id: (cluster, survives) for doc_id, cluster, survives in rows}

    def expected(self) -> dict[int, tuple[int, bool]]:
        """The clusters by definition, in plain Python."""
        pairs = {pair: similarity(*pair) for pair in self.pairs}
        threshold = self.context.encoder.profile.recipe.match.threshold
        evidence = Evidence(self.rules, self.heads, self.numbers, self.facts, pairs, self.verdicts, threshold)
        return evidence.clusters()

    def _drop_pairs(self, head: int) -> None:
        self.run("DELETE FROM {similar_pair} WHERE left_id = %s OR right_id = %s", head, head)
        self.pairs = {pair for pair in self.pairs if head not in pair}

    def _note_pinned(self, doc_id: int) -> None:
        if any(doc_id in pair and verdict == "pinned" for pair, verdict in self.verdicts.items()):
            self.queued.add(doc_id)

    def _heads_changed(self, gone: int, come: int) -> None:
        # Twins with different numbers or a veto may lose a tie even if the deleted head had none.
        is_whole = self.rules.numbers_differ == "link" and not self.verdicts
        self.queued |= {gone} if is_whole else {gone, come}

    def _rename(self, old: int, new: int) -> None:
        self.run("UPDATE {signature} SET head_id = %s WHERE head_id = %s", new, old)
        for doc_id in self.family(old):
            self.heads[doc_id] = new


def similarity(left: int, right: int) -> float:
    """The similarity of two heads. There are only four values, so many pairs are equally similar."""
    return 0.5 + (left * 7 + right * 13) % 4 / 10

"""Comparison of two generations of a profile.

Everything is counted in SQL over classes of documents, never over pairs of documents. A class is a set of documents
that have the same head in one generation and the same head in the other. Counting fills temporary tables, which last
until the end of the transaction; sampling relies on them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal
from uuid import UUID

from psycopg import sql

from nearsim_db.errors import ConflictError
from nearsim_db.store.driver import Connection, Engine
from nearsim_db.store.driver.arrays import packed_ids
from nearsim_db.store.driver.driver_errors import is_missing_table, translate_errors
from nearsim_db.store.driver.statements import GenerationStatements, StatementResult, run, statement
from nearsim_db.store.generations.tables import GenerationTables

# Similarities that differ by at most this count as equal.
_SIMILARITY_TOLERANCE = 1e-9
# A pair of heads represents as many pairs of classes as the product of the numbers of classes of the two heads. If this
# is more than the limit here, common pairs are found from the pairs of the new generation instead.
_MAX_CLASS_PAIRS = 100
_MAX_PARTS_SHOWN = 5

Side = Literal["live", "new"]
_OTHER: dict[Side, Side] = {"live": "new", "new": "live"}


@dataclass(frozen=True, slots=True)
class DocumentTotals:
    """Numbers of the documents that a generation has signed."""

    documents: int
    with_features: int
    without_features: int
    heads: int  # number of documents that have features and no earlier twin


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Numbers of pairs of documents, where each twin counts as a document of its own.

    The shares are fractions of the number of live pairs; they are None if there are no live pairs.
    """

    live: int
    new: int
    common: int
    gained: int
    lost: int
    rescored: int  # common pairs whose similarity differs between the generations
    gained_share: float | None
    lost_share: float | None
    rescored_share: float | None


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """Numbers of clusters by how they changed; docs/how-to/reindex-diff.md defines the terms.

    The shares are fractions of the number of live clusters; they are None if there are no live clusters.
    """

    live: int
    new: int
    same: int
    grown: int
    shrunk: int
    changed: int
    formed: int
    dissolved: int
    merged: int
    split: int
    survivor_changed: int
    merged_share: float | None
    split_share: float | None


@dataclass(frozen=True, slots=True)
class PairInGeneration:
    """What one generation says about two documents; if they are no pair in it, the evidence that could be computed."""

    pair: bool
    twins: bool
    similarity: float | None
    # For twins, which share all bands, this is None when read from the database.
    shared_bands: int | None
    verified: bool | None = None  # False if the similarity is an estimate


@dataclass(frozen=True, slots=True)
class DiffPair:
    """The doc_ids of two documents, which are an example of all pairs with the same heads."""

    left_id: int
    right_id: int
    pairs: int  # number of pairs that this one is an example of
    # Each is None if the documents are no pair in that generation.
    live: PairInGeneration | None = None
    new: PairInGeneration | None = None


@dataclass(frozen=True, slots=True)
class Survivor:
    """The survivor of a cluster, the document that is kept of it."""

    doc_id: int | None
    external_id: str | None  # None if the document was deleted
    title: str | None


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """A cluster of the other generation that shares documents with a cluster."""

    cluster: int
    documents: int
    shared: int  # documents in both clusters
    survivor: Survivor


@dataclass(frozen=True, slots=True)
class ChangedCluster:
    """A cluster whose documents are in several clusters of the other generation, which are called its parts."""

    cluster: int
    documents: int
    survivor: Survivor
    all_parts: int  # number of all parts
    parts: tuple[ClusterPart, ...]  # the parts that share the most documents with it


@dataclass(frozen=True, slots=True)
class DiffDocument:
    """A document and its signature in a generation."""

    doc_id: int
    exists: bool
    external_id: str | None
    title: str | None
    feature_count: int | None  # None if the document is not signed
    digest: UUID | None
    sketch: bytes | None
    waits: bool  # whether the document waits to be signed or searched


@contextmanager
def comparing(engine: Engine) -> Iterator[Connection]:
    """Yield a session that sees one snapshot of the database; its temporary tables last until the block ends."""
    with translate_errors(), engine.snapshot(read_only=None) as connection:
        run(connection, "raise_work_mem")
        try:
            yield connection
        except Exception as error:
            if is_missing_table(error):
                raise ConflictError("a generation was dropped during the comparison") from error
            raise


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """The tables of the live generation and of a new one."""

    live: GenerationTables
    new: GenerationTables

    @property
    def parts(self) -> dict[str, sql.Composable]:
        """Return what replaces `{live_signature}`, `{new_pair}` and so on in statements about both generations."""
        parents = {"signature": "signature", "pair": "similar_pair", "member": "cluster_member"}
        sides = {"live": self.live.leaves, "new": self.new.leaves}
        ends: dict[str, sql.Composable] = {f"{side}_end": leaves.ends for side, leaves in sides.items()}
        return ends | {
            f"{side}_{name}": leaves.rows(parent)
            for side, leaves in sides.items()
            for name, parent in parents.items()
        }

    def count_pairs(self) -> PairCounts:
        """Group the documents into classes, find the common pairs, and return the numbers of pairs."""
        parts, max_class_pairs = self.parts, sql.Literal(_MAX_CLASS_PAIRS)
        self._run(statement("create_diff_classes", None, **parts))
        self._run(statement("create_diff_common", None, max_class_pairs=max_class_pairs, **parts))

        live, new = (self._count_pairs(side) for side in _OTHER)
        command = statement("count_diff_common", None, tolerance=sql.Literal(_SIMILARITY_TOLERANCE))
        common, rescored = map(int, self._run(command).row())
        changed = (new - common, live - common, rescored)
        return PairCounts(live, new, common, *changed, *(_share(count, live) for count in changed))

    def _count_pairs(self, side: Side) -> int:
        parts = {"pair": self.parts[f"{side}_pair"], "heads": sql.Identifier(f"diff_{side}")}
        return int(self._run(statement("count_diff_pairs", None, **parts)).value())

    def count_clusters(self) -> ClusterCounts:
        """Find the clusters that share documents, and return the numbers of clusters."""
        self._run(statement("create_diff_overlaps", None, **self.parts))
        command = statement("count_diff_clusters", None, **self.parts)
        counts = self._run(command).row()
        live, *_, merged, split, _ = counts
        shares = [_share(merged, live), _share(split, live)]
        return ClusterCounts(*counts, *shares)

    def sample_absent(self, side: Side, amount: int) -> list[DiffPair]:
        """Return a sample of the pairs of one generation that the other one lacks.

        Call `count_pairs` first. The sample is the same at each call.
        """
        other = _OTHER[side]
        parts = {
            "pair": self.parts[f"{side}_pair"],
            "other_pair": self.parts[f"{other}_pair"],
            "other_end": self.parts[f"{other}_end"],
            "heads": sql.Identifier(f"diff_{side}"),
            "head": sql.Identifier(f"{side}_head"),
            "other_head": sql.Identifier(f"{other}_head"),
            "left": sql.Identifier(f"{side}_left"),
            "right": sql.Identifier(f"{side}_right"),
        }
        rows = self._run(statement("read_diff_absent", None, **parts), amount=amount).rows()

        absent = []
        for *evidence, pairs, doc_id, other_id in rows:
            stored: dict[str, Any] = {side: PairInGeneration(True, *evidence)}
            absent.append(DiffPair(min(doc_id, other_id), max(doc_id, other_id), int(pairs), **stored))
        return absent

    def sample_rescored(self, amount: int) -> list[DiffPair]:
        """Return a sample of the common pairs whose similarity differs between the generations.

        Call `count_pairs` first. The sample is the same at each call.
        """
        tolerance = sql.Literal(_SIMILARITY_TOLERANCE)
        command = statement("read_diff_rescored", None, tolerance=tolerance, **self.parts)
        rows = self._run(command, amount=amount).rows()
        return [
            DiffPair(
                min(row[:2]),
                max(row[:2]),
                row[2],
                PairInGeneration(True, *row[3:6]),
                PairInGeneration(True, *row[6:9]),
            )
            for row in rows
        ]

    def sample_clusters(self, whole: Side, amount: int) -> list[ChangedCluster]:
        """Return a sample of the clusters of generation `whole` that are split in the other generation.

        Call `count_clusters` first.
        """
        part = _OTHER[whole]
        names = {
            "whole": sql.Identifier(f"{whole}_cluster"),
            "part": sql.Identifier(f"{part}_cluster"),
            "whole_member": self.parts[f"{whole}_member"],
            "part_member": self.parts[f"{part}_member"],
        }
        command = statement("read_diff_clusters", None, **names)
        rows = self._run(command, amount=amount, parts=_MAX_PARTS_SHOWN).rows()

        # Each row has the columns of a cluster, and then those of one of its parts.
        changed = []
        for _, group in groupby(rows, itemgetter(0)):
            part_rows = list(group)
            cluster, documents, all_parts, *survivor = part_rows[0][:6]
            parts = tuple(ClusterPart(row[6], int(row[7]), row[8], Survivor(*row[9:12])) for row in part_rows)
            changed.append(ChangedCluster(cluster, int(documents), Survivor(*survivor), all_parts, parts))
        return changed

    def _run(self, query: sql.Composed, **parameters: object) -> StatementResult:
        return run(self.live.connection, query, **parameters)


class DiffQueries(GenerationStatements):
    """Queries on the documents of one of the two generations that are compared."""

    def count_documents(self) -> DocumentTotals:
        """Return the numbers of documents that the generation has signed."""
        documents, with_features, twins = self.run("count_diff_documents").row()
        return DocumentTotals(documents, with_features, documents - with_features, with_features - twins)

    def read_documents(self, doc_ids: Sequence[int]) -> dict[int, DiffDocument]:
        """Return the state of the given documents in the generation, by doc_id."""
        rows = self.run("read_diff_documents", doc_ids=packed_ids(sorted(set(doc_ids)))).rows()
        return {row[0]: DiffDocument(*row) for row in rows}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

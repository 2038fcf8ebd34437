"""The signatures of a generation: writing, reading and sampling them, and assigning twins to their heads."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.records import CollectionId
from nearsim_db.similarity.arrays import Hashes, Ints, Sketches
from nearsim_db.similarity.batches import SignatureRows, Signatures
from nearsim_db.similarity.recipe_warnings import FeatureTotals
from nearsim_db.similarity.sketch.family import Family
from nearsim_db.store.driver.arrays import packed, packed_ids
from nearsim_db.store.driver.codec import copy_rows, sketch_bytes, sketches_from, to_bigint
from nearsim_db.store.driver.statements import GenerationStatements, statement


@dataclass(frozen=True, slots=True)
class SignedDigest:
    """A document's signature without its sketch."""

    digest: UUID | None  # None if the document has no features
    revision: int
    head_id: int | None  # None if the document has no features


class SignatureTable(GenerationStatements):
    """The signatures of a generation."""

    def write(self, rows: SignatureRows, heads: Ints) -> None:
        """Load signature rows; `heads` are the doc_ids of their heads, int64 of shape (n,).

        The head of a document without features is ignored.
        """
        # Documents without features are loaded separately, because they have NULLs, which arrays cannot represent.
        for is_loaded, has_features in ((rows.counts > 0, True), (rows.counts == 0, False)):
            if not is_loaded.any():
                continue

            columns = [
                ("doc_id", rows.doc_ids[is_loaded]),
                ("revision", rows.revisions[is_loaded]),
                ("feature_count", rows.counts[is_loaded]),
                ("numbers_digest", to_bigint(rows.numbers[is_loaded])),
            ]
            if has_features:
                columns += [
                    ("feature_digest", rows.digests[is_loaded]),
                    ("sketch", sketch_bytes(rows.sketches[is_loaded])),
                    ("head_id", heads[is_loaded]),
                ]
            copy_rows(self, "signature", columns)

    def count_heads(self) -> int:
        """Return the number of heads."""
        return int(self.run("count_heads").value())

    def stream_head_digests(self, batch: int) -> Iterator[tuple[Ints, NDArray[np.void]]]:
        """Yield the doc_ids (int64) and digests (void of 16 bytes) of all heads in order, `batch` heads at a time."""
        after = -(2**63)
        while content := self.run("read_head_digests", "binary", after=after, batch=batch).value():
            heads = np.frombuffer(content, [("doc_id", ">i8"), ("digest", "V16")])
            doc_ids = heads["doc_id"].astype(np.int64)
            yield doc_ids, np.ascontiguousarray(heads["digest"])
            after = int(doc_ids[-1])

    def count_features(self) -> tuple[int, FeatureTotals]:
        """Return the number of heads, and totals over all documents."""
        heads, *totals = map(int, self.run("count_features").row())
        return heads, FeatureTotals(*totals)

    def index(self) -> None:
        """Assign each twin its head; if the generation has its own tables, create their indexes and triggers too."""
        if self.leaves.are_shared:
            self.run("assign_heads")
            return
        for name in ("index_signatures", "assign_heads", "copy_signatures"):
            self.run(name)

    def stream_head_sketches(
        self,
        family: Family,
        batch: int,
        doc_ids: tuple[int, int] = (-(2**63), 2**63 - 1),
    ) -> Generator[tuple[Ints, Sketches], None, None]:
        """Yield the doc_ids and sketches of heads in order, `batch` heads at a time.

        `doc_ids`: the first and the last doc_id of the range
        """
        with self.connection.backend.cursor(name="nearsim_sketches", binary=True) as cursor:
            cursor.execute(
                statement("read_head_sketches", self.leaves), {"low": doc_ids[0], "high": doc_ids[1]}
            )
            while rows := cast(list[tuple[int, bytes]], cursor.fetchmany(batch)):
                blobs = [row[1] for row in rows]
                yield np.array([row[0] for row in rows], np.int64), sketches_from(blobs, family)

    def stream_heads(self, family: Family, batch: int) -> Generator[Signatures, None, None]:
        """Yield the signatures of all heads in order, `batch` heads at a time."""
        with self.connection.backend.cursor(name="nearsim_heads", binary=True) as cursor:
            cursor.execute(statement("stream_heads", self.leaves))
            while rows := cursor.fetchmany(batch):
                yield _signatures(rows, family)

    def sample_sketches(self, family: Family, size: int) -> Signatures:
        """Return the signatures of a random sample of up to `size` heads, in the order of their digests."""
        return _signatures(self.run("sample_sketches", "binary", size=size).rows(), family)

    def sample_heads(self, size: int) -> list[int]:
        """Return the doc_ids of the sample that `sample_sketches` returns."""
        return self.run("sample_heads", size=size).values()

    def read_sketches(self, doc_ids: Sequence[int] | Ints, family: Family) -> Signatures:
        """Return the signatures of those documents that are heads."""
        rows = self.run("read_sketches", "binary", doc_ids=packed_ids(doc_ids)).rows()
        return _signatures(rows, family)

    def read_heads(self, digests: Sequence[UUID], family: Family) -> Signatures:
        """Return the signatures of the heads with these digests."""
        if not digests:
            return _signatures([], family)
        rows = self.run("read_heads", "binary", digests=list(digests)).rows()
        return _signatures(rows, family)

    def read_signed(self, doc_ids: Sequence[int]) -> dict[int, SignedDigest]:
        """Return the signatures of these documents, without sketches, by doc_id."""
        rows = self.run("read_signatures", "binary", doc_ids=packed_ids(doc_ids)).rows()
        return {doc_id: SignedDigest(*values) for doc_id, *values in rows}

    def read_first_documents(self, digests: Sequence[UUID]) -> dict[UUID, int]:
        """Return the doc_id of the first document with each of these digests, by digest."""
        return dict(self.run("read_first_documents", digests=list(digests)).rows())

    def list_deleted(self, digests: Sequence[UUID]) -> list[int]:
        """Return the doc_ids of deleted documents that still have a signature with one of these digests."""
        return self.run("list_deleted", digests=list(digests)).values() if digests else []

    def find_duplicate_heads(self, heads: Signatures) -> list[UUID]:
        """Return those digests of `heads` for which there is another head as well."""
        parameters = {"doc_ids": packed_ids(heads.doc_ids), "digests": list(heads.digests)}
        return self.run("find_duplicate_heads", **parameters).values()

    def find_retained(self, collection_id: CollectionId, doc_ids: Sequence[int]) -> dict[int, bool]:
        """Return, for each document that exists and has not expired, whether its present revision is signed."""
        parameters = {"collection_id": collection_id, "doc_ids": packed_ids(doc_ids)}
        return dict(self.run("find_retained", **parameters).rows())

    def update_revisions(self, doc_ids: Ints, revisions: Ints, numbers: Hashes) -> None:
        """Update the revisions and numbers of documents whose features did not change."""
        if not len(doc_ids):
            return
        parameters = {
            "doc_ids": packed(doc_ids),
            "revisions": packed(revisions),
            "numbers": packed(to_bigint(numbers)),
        }
        self.run("update_revisions", **parameters)

    def delete(self, doc_ids: Sequence[int]) -> None:
        """Delete signatures; a trigger deletes their pairs."""
        if len(doc_ids):
            self.run("delete_signatures", doc_ids=packed_ids(doc_ids))

    def reassign_digests(self, digests: Sequence[UUID]) -> None:
        """Make the document with the smallest doc_id the head of all documents with the same digest."""
        if digests:
            self.run("reassign_digests", digests=list(digests))


def _signatures(rows: list[tuple[Any, ...]], family: Family) -> Signatures:
    doc_ids = np.array([row[0] for row in rows], np.int64)
    return Signatures(doc_ids, sketches_from([row[1] for row in rows], family), [row[2] for row in rows])

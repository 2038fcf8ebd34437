"""Lookups: the verified pairs that a document would have if it were added. Nothing is written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps.verify import Features, read_features, verify_screened
from nearsim_db.records import Document, Match, Matches
from nearsim_db.search.live_generation import LiveIndex
from nearsim_db.search.retry import GenerationReplacedError, retry_if_replaced
from nearsim_db.similarity.batches import Signatures, VerifiedPairs
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.screening import screen
from nearsim_db.store import lookups
from nearsim_db.store.database import Database
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import digest_uuid
from nearsim_db.store.driver.engine import translate_errors

_QUERY_ID = 0  # the doc_id of the query: smaller than that of any document


@dataclass(frozen=True, slots=True)
class Query:
    """A document with features, encoded: features as `Metric` takes them, sketch (1, k), keys (1, bands) uint64."""

    features: NDArray[Any]
    digest: UUID
    sketch: NDArray[np.generic]
    keys: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Found:
    """A document that matches a query."""

    doc_id: int
    match: Match


class Lookups:
    """Looks documents up in the live generation. Threads may share one.

    The live generation is opened once, and again when a lookup finds that it was replaced.
    """

    def __init__(self, database: Database, open_index: Callable[[], LiveIndex]) -> None:
        self._database = database
        self._open_index = open_index
        self._index: LiveIndex | None = None

    def live(self) -> LiveIndex:
        """The live generation. Raises NotFoundError if there is none."""
        index = self._index
        if index is None:
            index = self._index = self._open_index()
        return index

    def find(self, document: Document) -> Matches:
        """The documents that one would be paired with, twins expanded, without the document that it would replace."""
        found = self.find_all(document)
        return Matches(without_replaced(document, found), self.live().context.encoder.metric.name)

    def find_all(self, document: Document) -> list[Found]:
        """The documents that one would be paired with, including the document that it would replace."""

        def query() -> list[Found]:
            index = self.live()
            _refuse_text(index.context, document)
            encoded = encode(index.context.encoder, document)
            if encoded is None:
                return []
            found = self._database.ask(partial(look_up, index=index, query=encoded))
            if found is None:
                raise GenerationReplacedError
            return found

        with translate_errors():
            return retry_if_replaced(query, self._close)

    def find_locked(self, connection: Connection, document: Document) -> tuple[Context, list[Match]]:
        """Return the documents that one would be paired with, on the caller's connection, and the live generation.

        Locks the document's stripes, so that no other caller adds a near-duplicate before this transaction ends.
        """

        def query() -> tuple[Context, list[Match]]:
            index = self.live()
            encoded = encode(index.context.encoder, document)
            if encoded is None:
                return index.context, []
            lookups.lock_stripes(connection, index.context.leaves, encoded.keys)
            found = look_up(connection, index, encoded)
            if found is None:
                raise GenerationReplacedError
            return index.context, without_replaced(document, found)

        def reset() -> None:
            connection.rollback()
            self._close()

        return retry_if_replaced(query, reset)

    def _close(self) -> None:
        self._index = None


def _refuse_text(context: Context, document: Document) -> None:
    """Raise InputError for a text without a vector if vectors are compared; a stored document may have its own."""
    if context.encoder.takes_vectors and document.vector is None and not document.external_id:
        raise InputError(
            f"profile {context.generation.profile!r} compares vectors, and this text has none; look up a document that "
            "is stored or has a vector, or name a profile that compares texts"
        )


def without_replaced(document: Document, found: list[Found]) -> list[Match]:
    """The matches without the document that this one would replace."""
    return [one.match for one in found if one.match.external_id != document.external_id]


def encode(encoder: Encoder, document: Document) -> Query | None:
    """Encode a document for a lookup; None if it has no features and so matches nothing."""
    features = encoder.features([encoder.content_of(document.title, document.body, document.vector)])
    if not len(features.ids):
        return None
    sketch = encoder.sketch(features)
    own = features.of(0)
    return Query(own, digest_uuid(encoder.digest(own)), sketch, encoder.band_keys(sketch))


def look_up(connection: Connection, index: LiveIndex, query: Query) -> list[Found] | None:
    """Everything a query would be paired with, the most similar first; None if the generation is no longer live.

    Documents committed before are found, unless their text is newer than their signature.
    """
    context, family = index.context, index.context.encoder.family
    candidates = lookups.look_up_anchors(
        connection,
        context.leaves,
        context.bucket_limit,
        query.digest,
        query.keys,
        family.dtype,
        family.k,
        index.purged_at,
    )
    if candidates is None:
        return None
    evidence = _verify(connection, context, query, candidates) if len(candidates.doc_ids) else {}
    if not evidence:
        return []
    evidences = list(evidence.values())
    twins = lookups.read_twins(connection, context.leaves, list(evidence))
    found = [
        Found(doc_id, Match(external_id, title, *evidences[place - 1]))
        for place, doc_id, external_id, title in twins
    ]
    return sorted(found, key=lambda one: -one.match.similarity)


# similarity, intersection, union, estimate, shared bands, distance
Evidence = tuple[float, int | None, int | None, float, int, float | None]


def _verify(
    connection: Connection, context: Context, query: Query, candidates: Signatures
) -> dict[UUID, Evidence]:
    """Return the evidence of the candidate heads that are similar enough, by digest."""
    signed = Signatures(np.array([_QUERY_ID]), query.sketch, [query.digest]).joined(candidates)
    rows = np.arange(1, len(signed.doc_ids))
    screened = screen(context.encoder, signed, np.zeros_like(rows), rows)
    read = partial(_read_features, connection, context, query, signed)
    return _evidence(verify_screened(context.encoder, signed, screened, read))


def _evidence(verified: VerifiedPairs) -> dict[UUID, Evidence]:
    unknown = [None] * len(verified.left)
    columns = (
        verified.similarity.tolist(),
        unknown if verified.intersection is None else verified.intersection.tolist(),
        unknown if verified.union is None else verified.union.tolist(),
        verified.estimate.round(6).tolist(),
        verified.shared_bands.tolist(),
        unknown if verified.distance is None else verified.distance.tolist(),
    )
    return dict(zip(verified.right_digests, zip(*columns, strict=True), strict=True))


def _read_features(
    connection: Connection, context: Context, query: Query, signed: Signatures, rows: Sequence[int]
) -> Features:
    """Features of signatures: of the query, of a document that still has the digest, or of a twin that has."""
    found = {row: query.features for row in rows if signed.digests[row] == query.digest}
    wanted = [row for row in rows if row not in found]
    found |= read_features(connection, context, signed, wanted)
    missing = {signed.digests[row]: row for row in wanted if row not in found}
    if missing:
        # The head was deleted or changed and is not signed again yet; its twins have the features that it had.
        twins = lookups.read_twins(connection, context.leaves, list(missing))
        digests = list(missing)
        doc_ids = np.array([doc_id for _, doc_id, _, _ in twins], np.int64)
        substitutes = Signatures(
            doc_ids, signed.sketches[:0], [digests[place - 1] for place, _, _, _ in twins]
        )
        for at, ids in read_features(connection, context, substitutes, range(len(twins))).items():
            found[missing[substitutes.digests[at]]] = ids
    return found

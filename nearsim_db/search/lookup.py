"""Look up the documents that a text would be paired with if it were added. Nothing is written.

`Lookups.find` opens the live index and encodes the document. `look_up` looks up the heads in the buckets of the query,
drops the heads whose sketches rule out a pair, verifies all others by their features, and ranks the matches. A head is
the first of several documents with identical features; only heads are in buckets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps.search import Features, current_features, read_features
from nearsim_db.readers.labels import label_of
from nearsim_db.readers.values import field_of
from nearsim_db.records import Direction, DocId, Document, Match, Matches
from nearsim_db.search.answers import least_share
from nearsim_db.search.live_generation import GenerationReplacedError, LiveIndex, retry_if_replaced
from nearsim_db.similarity.arrays import Ints, Keys, Mask
from nearsim_db.similarity.batches import PackedDigests, Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.field_rules import Labels
from nearsim_db.similarity.screening import Screened, evidence_values, screen, verify
from nearsim_db.store.database import Database
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import digest_uuid
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.signatures.lookups import Twin

Answer = TypeVar("Answer")

# The doc_id of the query, which is smaller than the doc_id of any document.
_QUERY_ID = 0
# With a limit, the texts of at most so many candidates are in memory together.
_MAX_BATCH_CANDIDATES = 128
# Batches grow, because if few of the first candidates match, most candidates have to be verified.
_BATCH_GROWTH = 4


@dataclass(frozen=True, slots=True)
class MatchFilter:
    """The conditions that matches of a query must meet."""

    # With a direction, this is the minimum fraction of the contained document; 0 then means the threshold.
    min_similarity: float = 0.0
    limit: int | None = None
    replaced: str = (
        ""  # external id of the document that the query would replace; it is not returned as a match
    )
    direction: Direction | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """An encoded document that has features."""

    features: NDArray[Any]  # in the form that `Metric` takes
    size: int  # number of distinct features
    digest: UUID
    signature: Signatures  # one row
    keys: Keys  # one row
    label: Labels | None  # one row, if fields decide which documents match
    is_document: bool  # whether it has an id; then dates, and values that must differ, decide too


class Lookups:
    """Looks documents up in the live generation, and opens the new one when it was replaced. Threads may share this."""

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

    def find(self, document: Document, match_filter: MatchFilter) -> Matches:
        """Return the documents that a document would be paired with, twins included; see `look_up`.

        Raises InputError for a document that the profile cannot compare, for a similarity out of range, and for a
        direction if `similar` refuses it.
        """

        def find_in_live_index() -> Matches:
            index = self.live()
            encoder = index.context.encoder
            if (reason := index.incomparable_reason(document)) is not None:
                raise InputError(reason)
            query = encode(encoder, document)
            if query is None:
                return Matches((), encoder.metric.name)

            min_share = least_share(
                index.context.generation, match_filter.direction, match_filter.min_similarity
            )
            chosen = replace(match_filter, min_similarity=min_share)
            return _of_live(self._database.ask(lambda connection: look_up(connection, index, query, chosen)))

        with translate_errors():
            return retry_if_replaced(find_in_live_index, self._close)

    def _close(self) -> None:
        self._index = None


def encode(encoder: Encoder, document: Document) -> Query | None:
    """Encode a document for a lookup; return None if it has no features, because then nothing matches it."""
    batch = encoder.features([encoder.content_of(document.title, document.body, document.vector)])
    if not len(batch.ids):
        return None

    features, sketch = batch.of(0), encoder.sketch(batch)
    digest, label = encoder.digest(features), None
    if (rules := encoder.field_rules) is not None:
        values = [field_of(name, document.source, document.attributes) for name in rules.fields]
        label_bytes = label_of(rules, values, document.published_at)
        label = np.frombuffer(label_bytes, np.uint8).reshape(1, -1)
        sketch = rules.salted(sketch, label, encoder.family)
        digest = rules.digest(digest, _QUERY_ID, label_bytes)

    signature = Signatures(np.array([_QUERY_ID], np.int64), sketch, [digest_uuid(digest)])
    keys, is_document = encoder.band_keys(sketch), bool(document.external_id)
    return Query(features, len(batch.ids), digest_uuid(digest), signature, keys, label, is_document)


def look_up(connection: Connection, index: LiveIndex, query: Query, match_filter: MatchFilter) -> Matches:
    """Return the documents that a query would be paired with, the most similar first.

    With a limit, these are the first matches in the order of their estimate, then the doc_id of their head, then their
    own doc_id; later candidates are not verified. All documents committed before the call are found, unless their text
    is newer than their signature. Raises GenerationReplacedError if the generation is no longer live.
    """
    context, encoder = index.context, index.context.encoder

    # Look up the heads in the buckets of the query.
    tables = context.tables(connection)
    heads = _of_live(
        tables.lookups.look_up_anchors(
            context.bucket_limit, query.digest, query.keys, encoder.family, index.purged_at
        )
    )
    if not len(heads.doc_ids):
        return Matches((), encoder.metric.name)

    # Drop heads whose sketches rule out a pair, and verify the others. With a limit, stop after one match more than the
    # limit, which shows that there are others.
    signed, screened = screen_heads(encoder, query, heads)
    verification = Verification(connection, context, query, match_filter, signed)
    if match_filter.limit is None:
        matches = verification.match_all(screened)
    else:
        matches = verification.match_first(screened, match_filter.limit + 1)

    # Rank.
    ranked = sorted(
        matches[: match_filter.limit], key=lambda item: (-item[1].decisive(match_filter.direction), item[0])
    )
    has_more, doc_ids = len(matches) > len(ranked), [doc_id for doc_id, _ in ranked]
    return Matches((match for _, match in ranked), encoder.metric.name, has_more=has_more, doc_ids=doc_ids)


def screen_heads(encoder: Encoder, query: Query, heads: Signatures) -> tuple[Signatures, Screened]:
    """Leave out heads whose sketches rule out a pair; the query becomes row 0 of the signatures."""
    signed = query.signature.joined(heads)
    rows = np.arange(1, len(signed.doc_ids))
    if query.label is not None and encoder.field_rules is not None:
        rules, labels = encoder.field_rules, encoder.field_rules.labels_of(heads.digests)
        # A text without an id is compared with documents of any date, and of any value of the field `match.across`.
        counts = rules.may_pair if query.is_document else rules.agree
        rows = rows[counts(labels, query.label)]
    return signed, screen(encoder, signed, np.zeros_like(rows), rows)


@dataclass(frozen=True, slots=True)
class Verification:
    """Verifies screened candidates, and returns matches with their doc_ids."""

    connection: Connection
    context: Context
    query: Query
    match_filter: MatchFilter
    signed: Signatures  # row 0 is the query, all other rows are heads

    def match_all(self, screened: Screened) -> list[tuple[int, Match]]:
        """Return all matches."""
        rows = screened.right.tolist()
        pairs = self._verify(screened, self._read_features(rows) if self.context.encoder.is_exact else {})
        return self._name(self._read_twins(list(pairs)), list(pairs.values())) if pairs else []

    def match_first(self, screened: Screened, count: int) -> list[tuple[int, Match]]:
        """Verify candidates in batches, in the order of their estimates; return the first `count` matches."""
        order = np.lexsort((self.signed.doc_ids[screened.right], -screened.estimate))

        # If a race made two heads with the same digest, verify only the first.
        digests = PackedDigests.of(self.signed.digests).array[screened.right[order]].tolist()
        first_by_digest: dict[bytes, int] = {}
        for candidate, digest in zip(order.tolist(), digests, strict=True):
            first_by_digest.setdefault(digest, candidate)
        waiting = np.array(list(first_by_digest.values()), np.int64)

        size, matches = count, list[tuple[int, Match]]()
        while len(waiting) and len(matches) < count:
            size = min(size, _MAX_BATCH_CANDIDATES)
            matches += self._match_batch(screened.take(waiting[:size]), count)
            waiting = waiting[size:]
            if len(waiting) and len(matches) < count:
                waiting = waiting[self._may_match(screened.take(waiting))]
            size *= _BATCH_GROWTH
        return matches[:count]

    def _match_batch(self, screened: Screened, count: int) -> list[tuple[int, Match]]:
        """Return the matches among candidates in their order, at most `count` twins of each, in one round trip."""
        context, rows = self.context, screened.right.tolist()
        digests, doc_ids = self.signed.digests_at(rows), self.signed.doc_ids[rows].tolist()

        # Read the texts of candidates whose features are not cached. Read one twin more than `count`, because the query
        # may replace one of them.
        features = self._cached_features(screened.right)
        reads_texts = context.encoder.is_exact and not context.encoder.takes_vectors
        ends = zip(rows, doc_ids, strict=True)
        unread = [doc_id if reads_texts and row not in features else 0 for row, doc_id in ends]
        tables = context.tables(self.connection)
        twins = _of_live(tables.lookups.read_candidates(context.collection_id, digests, unread, count + 1))
        texts = [
            StoredDocument(DocId(twin.doc_id), 0, twin.title, twin.body) for twin in twins if twin.has_text
        ]
        features |= current_features(context, self.signed, dict(zip(unread, rows, strict=True)), texts)
        if context.encoder.is_exact:
            features |= self._read_features([row for row in rows if row not in features])

        pairs = self._verify(screened, features)
        return self._name(twins, [pairs.get(digest) for digest in digests])

    def _may_match(self, screened: Screened) -> Mask:
        """Return a mask of the candidates that may match: all except those whose cached features rule it out."""
        features = self._cached_features(screened.right)
        is_cached = np.array([row in features for row in screened.right.tolist()], bool)
        pairs = self._verify(screened.take(is_cached), features)
        possible: Mask = ~is_cached
        possible |= [digest in pairs for digest in self.signed.digests_at(screened.right)]
        return possible

    def _verify(self, screened: Screened, features: Features) -> dict[UUID, Match]:
        """Return the matching heads by digest, each as a match without an id or a title."""
        encoder, query = self.context.encoder, self.query
        pairs, scores = verify(encoder, screened, lambda rows: features)
        digests = list(self.signed.digests_at(pairs.right))
        verified = [encoder.is_exact or digest == query.digest for digest in digests]

        matches: dict[UUID, Match] = {}
        for digest, values in zip(digests, evidence_values(pairs, scores, verified), strict=True):
            match = Match(*values, external_id="", title=None)
            intersection, union = match.intersection, match.union
            has_shares = encoder.metric.name == "containment" or self.match_filter.direction is not None
            if has_shares and intersection is not None and union is not None:
                match_size = intersection + union - query.size
                match = replace(
                    match,
                    left_in_right=intersection / query.size,
                    right_in_left=intersection / match_size,
                )
            if match.decisive(self.match_filter.direction) >= self.match_filter.min_similarity:
                matches[digest] = match
        return matches

    def _name(self, twins: Sequence[Twin], matches: Sequence[Match | None]) -> list[tuple[int, Match]]:
        """Return a match for each twin, except for the document that the query would replace.

        `twin.place` is the position of its head in `matches`, counted from 1; the entry of a head that does not match
        is None.
        """
        return [
            (twin.doc_id, replace(match, external_id=twin.external_id, title=twin.title))
            for twin in twins
            if twin.external_id != self.match_filter.replaced
            and (match := matches[twin.place - 1]) is not None
        ]

    def _cached_features(self, rows: Ints) -> Features:
        """Return features by row, without reading: of the query, of heads with the same digest, and of cached heads."""
        digests = list(self.signed.digests_at(rows))
        cached = self.context.cache.get_all(self.signed.doc_ids[rows].tolist(), digests)
        features = {0: self.query.features}
        for row, digest, cached_features in zip(rows.tolist(), digests, cached, strict=True):
            if digest == self.query.digest:
                features[row] = self.query.features
            elif cached_features is not None:
                features[row] = cached_features
        return features

    def _read_features(self, rows: Sequence[int]) -> Features:
        """Return features by row: of the query, and of heads, read from the text of the head or of a twin."""
        digests = dict(zip(rows, self.signed.digests_at(rows), strict=True))
        features = {0: self.query.features}
        features |= {row: self.query.features for row in rows if digests[row] == self.query.digest}
        unread = [row for row in rows if row not in features]
        features |= read_features(self.connection, self.context, self.signed, unread)

        # If the text of a head was deleted or changed, and is not signed again yet, read its features from a twin.
        missing = {digests[row]: row for row in unread if row not in features}
        if missing:
            twins = self._read_twins(list(missing))
            twin_digests = [list(missing)[twin.place - 1] for twin in twins]
            doc_ids = np.array([twin.doc_id for twin in twins], np.int64)
            signed = Signatures(doc_ids, self.signed.sketches[:0], twin_digests)
            of_twins = read_features(self.connection, self.context, signed, range(len(twins)))
            for number, twin_features in of_twins.items():
                features[missing[twin_digests[number]]] = twin_features
        return features

    def _read_twins(self, digests: Sequence[UUID]) -> list[Twin]:
        return _of_live(self.context.tables(self.connection).lookups.read_twins(digests))


def _of_live(answer: Answer | None) -> Answer:
    """Return an answer. Raises GenerationReplacedError if it is None, which means that the generation is not live."""
    if answer is None:
        raise GenerationReplacedError
    return answer

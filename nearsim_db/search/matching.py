"""Lookups: the pairs that a document would have if it were added, of its buckets, verified by their features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.errors import InputError
from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps import labelled, sign_documents
from nearsim_db.indexing.steps.search import Features, current_features, read_features, verify_screened
from nearsim_db.readers.values import field_of, value_digest
from nearsim_db.records import Direction, DocId, Document, Evidence, GenerationId, Match, Matches
from nearsim_db.search.answers import least_share
from nearsim_db.search.live_generation import GenerationReplacedError, LiveIndex, retry_if_replaced
from nearsim_db.similarity.arrays import Keys, Mask, Sketches, flat
from nearsim_db.similarity.batches import LABEL_BYTES, PackedDigests, Signatures, labels_of
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.screening import Screened, screen
from nearsim_db.store.database import Database
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import digest_uuid, to_bigint
from nearsim_db.store.driver.driver_errors import translate_errors
from nearsim_db.store.signatures.lookups import Anchors, Unsigned

_QUERY_ID = 0  # the doc_id of the query: smaller than that of any document
_MOST_AT_ONCE = 128  # under a limit: candidates whose texts are in memory together
_GROWTH = 4  # of batches: few matches among the first candidates mean that most are verified


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which matches of a query are wanted: at least as similar, at most `limit`, without one external id.

    With a `direction` the similarity is the share of what is held, by default at least the threshold.
    """

    min_similarity: float = 0.0
    limit: int | None = None
    replaced: str = ""
    direction: Direction | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A document with features, encoded: features as `Metric` takes them, sketch (1, k), keys of one row.

    `size` is the number of its distinct features.
    With a `label`, of its value of the field `match.across`, documents that have it do not match.
    """

    features: NDArray[Any]
    size: int
    digest: UUID
    sketch: Sketches
    keys: Keys
    label: bytes | None = None


class Found(NamedTuple):
    """A document that matches a query."""

    doc_id: int
    match: Match


@dataclass(frozen=True, slots=True)
class FoundAll:
    """The matches of a query, the most similar first; `has_more` if a limit left out others."""

    found: list[Found]
    has_more: bool = False


def encode(encoder: Encoder, document: Document) -> Query | None:
    """Encode a document for a lookup; None if it has no features and so matches nothing."""
    features = encoder.features([encoder.content_of(document.title, document.body, document.vector)])
    if not len(features.ids):
        return None
    sketch = encoder.sketch(features)
    own = features.of(0)
    label = None
    if encoder.across is not None and document.external_id:
        label = value_digest(field_of(encoder.across, document.source, document.attributes), LABEL_BYTES)
    return Query(
        own, len(features.ids), digest_uuid(encoder.digest(own)), sketch, encoder.band_keys(sketch), label
    )


def look_up(connection: Connection, index: LiveIndex, query: Query, wanted: Wanted) -> FoundAll | None:
    """What a query would be paired with, the most similar first; None if the generation is no longer live.

    Under a limit these are the first matches by estimate, then by the doc_id of their head, then by their own doc_id;
    candidates after them are not verified. Documents committed before are found, unless their text is newer than their
    signature.
    """
    context = index.context
    candidates = context.tables(connection).lookups.look_up_anchors(
        context.bucket_limit,
        query.digest,
        query.keys,
        context.encoder.family,
        index.purged_at,
    )
    if candidates is None:
        return None
    if not len(candidates.doc_ids):
        return FoundAll([])
    found = _Lookup(connection, context, query, wanted, candidates).find()
    kept = sorted(found[: wanted.limit], key=lambda one: (-one.match.decisive(wanted.direction), one.doc_id))
    return FoundAll(kept, len(found) > len(kept))


def look_up_unsigned(connection: Connection, context: Context, query: Query, wanted: Wanted) -> list[Found]:
    """Return matches among the documents that were added after a check and are not signed yet."""
    tables = context.tables(connection)
    unsigned = tables.lookups.list_unsigned(context.collection_id, query.keys, wanted.replaced)
    if not unsigned:
        return []

    names = {one.doc_id: one for one in unsigned}
    found: list[Found] = []
    batches = documents.stream_documents(
        connection, context.collection_id, list(names), vectors=context.encoder.takes_vectors
    )
    for batch in batches:
        rows = labelled(connection, context, sign_documents(context, batch, keep_features=True))
        rows = rows.take(rows.counts > 0)
        candidates = Anchors(rows.doc_ids, rows.sketches, rows.digests)
        found += _UnsignedLookup(connection, context, query, wanted, candidates, names).find()
    return found


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A query and its candidates.

    Screened candidates are compared as `left` and `right` rows of some signatures, of which row 0 is the query's.
    """

    connection: Connection
    context: Context
    query: Query
    wanted: Wanted
    candidates: Anchors

    def find(self) -> list[Found]:
        """Return the matches that are wanted, under a limit one more if there are others."""
        sketches = np.concatenate((self.query.sketch, self.candidates.sketches))
        doc_ids = np.append(_QUERY_ID, self.candidates.doc_ids)
        rows = np.arange(1, len(doc_ids))
        if self.query.label is not None:
            labels = labels_of(PackedDigests(self.candidates.digests))
            rows = rows[(labels != np.frombuffer(self.query.label, np.uint8)).any(axis=1)]
        encoder = self.context.encoder
        screened = screen(encoder, Signatures(doc_ids, sketches, ()), np.zeros_like(rows), rows)
        return (
            self._all(screened) if self.wanted.limit is None else self._first(screened, self.wanted.limit + 1)
        )

    def _signed(self, screened: Screened) -> tuple[Signatures, Screened]:
        """Return screened candidates with the signatures of these only; none has its sketch."""
        chosen = screened.right - 1
        doc_ids = np.append(_QUERY_ID, self.candidates.doc_ids[chosen])
        digests = [self.query.digest, *self.candidates.digests_at(chosen)]
        signed = Signatures(doc_ids, self.query.sketch[:0], digests)
        return signed, replace(screened, right=np.arange(1, len(doc_ids)))

    def _all(self, screened: Screened) -> list[Found]:
        signed, screened = self._signed(screened)
        evidence = self._verify(signed, screened, partial(self._read_features, signed))
        if not evidence:
            return []
        evidences = list(evidence.values())
        twins = self._read_twins(list(evidence))
        return [
            Found(doc_id, replace(evidences[place - 1], external_id=external_id, title=title))
            for place, doc_id, external_id, title in twins
            if external_id != self.wanted.replaced
        ]

    def _first(self, screened: Screened, most: int) -> list[Found]:
        """Return the first `most` matches, verifying candidates in the order of their estimates, in batches."""
        chosen = screened.right - 1
        order = np.lexsort((self.candidates.doc_ids[chosen], -screened.estimate))
        # Heads of one digest were made by a race; the first stands for both.
        distinct: dict[bytes, int] = {}
        digests = self.candidates.digests[chosen[order]].tolist()
        for at, digest in zip(order.tolist(), digests, strict=True):
            distinct.setdefault(digest, at)
        left, size = np.array(list(distinct.values()), np.int64), most
        found: list[Found] = []
        while len(left) and len(found) < most:
            size = min(size, _MOST_AT_ONCE)
            found += self._find_in_order(*self._signed(screened.take(left[:size])), most)
            left = left[size:]
            if len(left) and len(found) < most:
                left = left[self._may_match(*self._signed(screened.take(left)))]
            size *= _GROWTH
        return found[:most]

    def _may_match(self, signed: Signatures, screened: Screened) -> Mask:
        """Return which candidates may match, without reading: all but those whose features are known and do not."""
        features, _ = self._known_features(signed, screened)
        known = np.array([row in features for row in screened.right.tolist()], bool)
        matches = self._verify(signed, screened.take(known), lambda used: features)
        possible: Mask = ~known
        possible |= [signed.digests[row] in matches for row in screened.right.tolist()]
        return possible

    def _find_in_order(self, signed: Signatures, screened: Screened, most: int) -> list[Found]:
        """Return the matches among some candidates in their order, of each at most `most` twins, in one round trip."""
        context, digests = self.context, [signed.digests[row] for row in screened.right]
        features, unread = self._known_features(signed, screened)
        # One twin more, which the document may replace.
        twins = context.tables(self.connection).lookups.read_candidates(
            context.collection_id, digests, unread, most + 1
        )
        if twins is None:
            raise GenerationReplacedError
        texts = [StoredDocument(DocId(one.doc_id), 0, one.title, one.body) for one in twins if one.has_text]
        rows = {doc_id: row for doc_id, row in zip(unread, screened.right.tolist(), strict=True) if doc_id}
        features |= current_features(context, signed, rows, texts)

        def read(used: Sequence[int]) -> Features:
            missing = [row for row in used if row not in features]
            return features | self._read_features(signed, missing) if missing else features

        evidence = self._verify(signed, screened, read)
        evidences = [evidence.get(digest) for digest in digests]
        return [
            Found(one.doc_id, replace(known, external_id=one.external_id, title=one.title))
            for one in twins
            if one.external_id != self.wanted.replaced and (known := evidences[one.place - 1]) is not None
        ]

    def _read_twins(self, digests: list[UUID]) -> list[tuple[int, int, str, str | None]]:
        twins = self.context.tables(self.connection).lookups.read_twins(digests)
        if twins is None:
            raise GenerationReplacedError
        return twins

    def _known_features(self, signed: Signatures, screened: Screened) -> tuple[Features, list[int]]:
        """Return the known features, and the doc_ids of candidates whose texts are needed, 0 for the others."""
        rows, own = screened.right.tolist(), self.query.features
        doc_ids, digests = signed.doc_ids[screened.right].tolist(), [signed.digests[row] for row in rows]
        cached = self.context.cache.get_all(doc_ids, digests)
        features = {0: own}
        features |= {row: known for row, known in zip(rows, cached, strict=True) if known is not None}
        number = self.query.digest.int
        features |= {row: own for row, digest in zip(rows, digests, strict=True) if digest.int == number}
        reads_text = self.context.encoder.is_exact and not self.context.encoder.takes_vectors
        needed = zip(rows, doc_ids, strict=True)
        return features, [doc_id if reads_text and row not in features else 0 for row, doc_id in needed]

    def _verify(
        self, signed: Signatures, screened: Screened, read: Callable[[Sequence[int]], Features]
    ) -> dict[UUID, Match]:
        """Return heads that are pairs and similar enough, by digest, each as a match without a name."""
        encoder = self.context.encoder
        verified = verify_screened(encoder, signed, screened, read)
        matches = map(self._match, verified.evidence(is_exact=encoder.is_exact))
        wanted = self.wanted
        return {
            digest: one
            for digest, one in zip(verified.right_digests, matches, strict=True)
            if one.decisive(wanted.direction) >= wanted.min_similarity
        }

    def _match(self, evidence: Evidence) -> Match:
        """Return evidence with the shares of both sides that are in the other, if they are known."""
        known = Match(**evidence.figures(), external_id="", title=None)
        both, either = evidence.intersection, evidence.union
        if self.context.encoder.metric.name != "containment" or not evidence.verified:
            return known
        assert both is not None and either is not None
        size = self.query.size
        return replace(known, left_in_right=both / size, right_in_left=both / (both + either - size))

    def _read_features(self, signed: Signatures, rows: Sequence[int]) -> Features:
        """Features of signatures: of the query, of a document that still has the digest, or of a twin that has."""
        found = {row: self.query.features for row in rows if signed.digests[row] == self.query.digest}
        wanted = [row for row in rows if row not in found]
        found |= read_features(self.connection, self.context, signed, wanted)
        missing = {signed.digests[row]: row for row in wanted if row not in found}
        if missing:
            # The head was deleted or changed and is not signed again yet; its twins have the features that it had.
            digests = list(missing)
            twins = self._read_twins(digests)
            doc_ids = np.array([doc_id for _, doc_id, _, _ in twins], np.int64)
            held = Signatures(doc_ids, signed.sketches[:0], [digests[place - 1] for place, *_ in twins])
            for at, ids in read_features(self.connection, self.context, held, range(len(twins))).items():
                found[missing[held.digests[at]]] = ids
        return found


@dataclass(frozen=True, slots=True)
class _UnsignedLookup(_Lookup):
    """A lookup among documents that have no signature, or an older one; `names` has each of them."""

    names: Mapping[int, Unsigned]

    def _read_twins(self, digests: list[UUID]) -> list[tuple[int, int, str, str | None]]:
        places = {digest: place for place, digest in enumerate(digests, 1)}
        doc_ids = self.candidates.doc_ids
        signed = zip(doc_ids.tolist(), self.candidates.digests_at(np.arange(len(doc_ids))), strict=True)
        return [
            (places[digest], doc_id, self.names[doc_id].external_id, self.names[doc_id].title)
            for doc_id, digest in signed
            if digest in places
        ]


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

    def find(
        self,
        document: Document,
        min_similarity: float = 0.0,
        limit: int | None = None,
        direction: Direction | None = None,
    ) -> Matches:
        """The documents that one would be paired with, twins expanded, without the document that it would replace.

        With a limit the first in the order of their estimates; see `look_up`. Raises InputError for a direction under
        another metric than containment.
        """
        answer = self.find_wanted(document, Wanted(min_similarity, limit, document.external_id, direction))
        metric = self.live().context.encoder.metric.name
        return Matches((one.match for one in answer.found), metric, has_more=answer.has_more)

    def find_wanted(self, document: Document, wanted: Wanted) -> FoundAll:
        """The documents that one would be paired with."""

        def query() -> FoundAll:
            index = self.live()
            if (reason := incomparable_reason(index.context, document)) is not None:
                raise InputError(reason)
            encoded = encode(index.context.encoder, document)
            if encoded is None:
                return FoundAll([])
            least = least_share(index.context.generation, wanted.direction, wanted.min_similarity)
            chosen = replace(wanted, min_similarity=least)
            found = self._database.ask(partial(look_up, index=index, query=encoded, wanted=chosen))
            if found is None:
                raise GenerationReplacedError
            return found

        with translate_errors():
            return retry_if_replaced(query, self._close)

    def bucket_hashes(self, document: Document) -> tuple[GenerationId, list[int]]:
        """Return the live generation and the buckets that `find_locked` locks for a document, as they are stored."""
        context = self.live().context
        encoded = encode(context.encoder, document)
        hashes = [] if encoded is None else to_bigint(flat(encoded.keys)).tolist()
        return context.generation.generation_id, hashes

    def find_locked(self, connection: Connection, document: Document) -> tuple[Context, list[Match]]:
        """Return the documents that one would be a near-duplicate of, on the caller's connection, and the generation.

        These are the documents that it would be paired with, except for a passage only.

        Locks the buckets of the document, so that no other caller adds a near-duplicate before this transaction ends.
        Documents that others added so are found, whether or not they are signed.
        """

        def query() -> tuple[Context, list[Match]]:
            index = self.live()
            encoded = encode(index.context.encoder, document)
            if encoded is None:
                return index.context, []
            tables = index.context.tables(connection)
            if not tables.lookups.lock_buckets(encoded.keys, document.external_id):
                raise GenerationReplacedError

            match = index.context.encoder.profile.recipe.match
            least = 0.0 if match.passage_words is None else match.threshold
            wanted = Wanted(least, replaced=document.external_id)
            # In this order: a document that a worker signs in between is found twice, never not at all.
            unsigned = look_up_unsigned(connection, index.context, encoded, wanted)
            answer = look_up(connection, index, encoded, wanted)
            if answer is None:
                raise GenerationReplacedError

            found = {one.doc_id: one for one in [*answer.found, *unsigned]}
            ordered = sorted(found.values(), key=lambda one: (-one.match.similarity, one.doc_id))
            return index.context, [one.match for one in ordered]

        def reset() -> None:
            connection.rollback()
            self._close()

        return retry_if_replaced(query, reset)

    def _close(self) -> None:
        self._index = None


def incomparable_reason(context: Context, document: Document) -> str | None:
    """Return why a look-up cannot match, as the profile compares what the document lacks and not what it has.

    An empty document can be looked up; a document with an id may have its vector stored.
    """
    profile = context.generation.profile
    if context.encoder.takes_vectors:
        if document.vector is not None or document.external_id:
            return None
        return (
            f"profile {profile!r} compares vectors, and this text has none; look up a document that is stored or has a "
            "vector, or name a profile that compares texts"
        )

    compared = context.encoder.profile.recipe.fields
    given = [field for field, text in (("title", document.title), ("body", document.body)) if text]
    if not given or any(field in compared for field in given):
        return None
    # Both fields are compared otherwise, so one is compared and the other is given.
    return (
        f"profile {profile!r} compares the {compared[0]} only, and this document has only a {given[0]}: give its text "
        f"as {compared[0]}, or name a profile that compares the {given[0]}"
    )

"""Look a document up before it is added, under locks that keep other callers from adding near-duplicates of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from nearsim_db.indexing.context import Context
from nearsim_db.indexing.steps import labelled, sign_documents
from nearsim_db.records import Document, GenerationId, Match
from nearsim_db.search.live_generation import GenerationReplacedError, retry_if_replaced
from nearsim_db.search.lookup import Lookups, MatchFilter, Query, Verification, encode, look_up, screen_heads
from nearsim_db.similarity.arrays import flat
from nearsim_db.similarity.batches import PackedDigests, Signatures
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import to_bigint
from nearsim_db.store.signatures.lookups import Twin, Unsigned


class LockedLookups(Lookups):
    """Lookups that can also lock the buckets of a document."""

    def find_locked(self, connection: Connection, document: Document) -> tuple[Context, list[Match]]:
        """Return the context of the live generation, and the documents of which this one would be a near-duplicate.

        These are the documents that it would be paired with, except those with which it would only share a passage. The
        buckets of the document are locked, so that no other caller adds a near-duplicate before the caller's
        transaction ends. Documents that other callers added under such locks are found even if they are not signed yet.
        """

        def find_in_live_index() -> tuple[Context, list[Match]]:
            index = self.live()
            context = index.context
            query = encode(context.encoder, document)
            if query is None:
                return context, []
            if not context.tables(connection).lookups.lock_buckets(query.keys, document.external_id):
                raise GenerationReplacedError

            match = context.encoder.profile.recipe.match
            min_similarity = 0.0 if match.passage_words is None else match.threshold
            match_filter = MatchFilter(min_similarity, replaced=document.external_id)
            # This order matters: a document that a worker signs in between is found twice instead of being missed.
            unsigned = _look_up_unsigned(connection, context, query, match_filter)
            signed = look_up(connection, index, query, match_filter)

            matches = dict(zip(signed.doc_ids, signed, strict=True)) | dict(unsigned)
            ranked = sorted(matches.items(), key=lambda item: (-item[1].similarity, item[0]))
            return context, [match for _, match in ranked]

        def reset() -> None:
            connection.rollback()
            self._close()

        return retry_if_replaced(find_in_live_index, reset)

    def bucket_hashes(self, document: Document) -> tuple[GenerationId, list[int]]:
        """Return the live generation, and the stored hashes of the buckets that `find_locked` locks for a document."""
        context = self.live().context
        query = encode(context.encoder, document)
        hashes = [] if query is None else to_bigint(flat(query.keys)).tolist()
        return context.generation.generation_id, hashes


def _look_up_unsigned(
    connection: Connection, context: Context, query: Query, match_filter: MatchFilter
) -> list[tuple[int, Match]]:
    """Return matches, with their doc_ids, among documents that were checked and added but are not signed yet."""
    tables = context.tables(connection)
    unsigned = tables.lookups.list_unsigned(context.collection_id, query.keys, match_filter.replaced)
    if not unsigned:
        return []

    names = {document.doc_id: document for document in unsigned}
    matches: list[tuple[int, Match]] = []
    batches = documents.stream_documents(
        connection, context.collection_id, list(names), vectors=context.encoder.takes_vectors
    )
    for batch in batches:
        rows = labelled(connection, context, sign_documents(context, batch, keep_features=True))
        rows = rows.take(rows.counts > 0)
        heads = Signatures(rows.doc_ids, rows.sketches, PackedDigests(rows.digests))
        signed, screened = screen_heads(context.encoder, query, heads)
        matches += _UnsignedVerification(connection, context, query, match_filter, signed, names).match_all(
            screened
        )
    return matches


@dataclass(frozen=True, slots=True)
class _UnsignedVerification(Verification):
    """Verifies documents that have no signature, or only an outdated one."""

    names: Mapping[int, Unsigned]  # the documents by doc_id

    def _read_twins(self, digests: Sequence[UUID]) -> list[Twin]:
        places = {digest: place for place, digest in enumerate(digests, 1)}
        signed = zip(self.signed.doc_ids.tolist(), self.signed.digests, strict=True)
        return [
            Twin(places[digest], doc_id, self.names[doc_id].external_id, self.names[doc_id].title)
            for doc_id, digest in signed
            if digest in places and doc_id in self.names
        ]

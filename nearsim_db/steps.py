"""The steps of the road, written once: sign, store, search, verify, link. The bulk build and the batches compose them.

No step commits; who composes them does. A step's `Context` is one generation with what it takes to work on it.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from nearsim_db.batches import SignatureRows, Signatures, VerifiedPairs
from nearsim_db.cluster import connected_components
from nearsim_db.encode import Encoded, Encoder
from nearsim_db.metrics import which_reach
from nearsim_db.recipe import keep_policy
from nearsim_db.store import bands, documents, pairs, queue, signatures
from nearsim_db.store.catalog import Generation
from nearsim_db.store.documents import StoredDocument
from nearsim_db.store.statements import Leaves
from nearsim_db.verify import FeatureCache, Screened, count_overlaps, screen


@dataclass(slots=True)
class Context:
    """One generation at work. `figures` counts what the steps did; `warn` takes what its user should know;
    `stale` are documents that could not be verified because their text is another than that signed."""

    generation: Generation
    encoder: Encoder
    pool: Executor
    threads: int
    warn: Callable[[str], None]
    cache: FeatureCache = field(default_factory=FeatureCache)
    figures: dict[str, int] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)

    @property
    def leaves(self) -> Leaves:
        """The generation's own tables."""
        return self.generation.leaves

    @property
    def bucket_limit(self) -> int:
        """How many anchors a bucket has, 0 for no limit."""
        return self.encoder.profile.recipe.match.bucket_limit

    def count(self, name: str, amount: int) -> None:
        """Add to a figure."""
        self.figures[name] = self.figures.get(name, 0) + amount


def sign(context: Context, batch: Sequence[StoredDocument]) -> SignatureRows:
    """Encode documents on all cores."""
    texts = [context.encoder.text_of(one.title, one.body) for one in batch]
    step = max(1, -(-len(texts) // (context.threads * 2)))
    parts = list(
        context.pool.map(context.encoder.encode, [texts[at : at + step] for at in range(0, len(texts), step)])
    ) or [context.encoder.encode([])]
    return _signature_rows(batch, parts)


def _signature_rows(batch: Sequence[StoredDocument], parts: Sequence[Encoded]) -> SignatureRows:
    return SignatureRows(
        np.array([one.doc_id for one in batch], np.int64),
        np.array([one.revision for one in batch], np.int64),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )


def store(connection: Connection, context: Context, doc_ids: Sequence[int], rows: SignatureRows) -> None:
    """Make the index agree with these documents: `rows` are those that still are there, the others go.

    What was done for a document before is undone exactly: its band rows are found by the keys of its old sketch, its
    pairs go with its signature, and its twins get a new head. New heads, and documents that became anchors of a
    bucket over the limit, are queued for search.
    """
    leaves = context.leaves
    before = signatures.read_digests(connection, leaves, doc_ids)
    now = {int(doc_id): rows.digest(row) for row, doc_id in enumerate(rows.doc_ids)}
    same = np.array([doc_id in before and before[doc_id] == now[doc_id] for doc_id in now], bool)
    kept = rows.take(same)
    signatures.move_revisions(connection, leaves, kept.doc_ids, kept.revisions, kept.numbers)
    settled = set(kept.doc_ids.tolist())
    changed = [doc_id for doc_id in doc_ids if doc_id not in settled]
    touched = {before.get(doc_id) for doc_id in changed} | {now.get(doc_id) for doc_id in changed}
    digests = [digest for digest in touched if digest is not None]
    old_heads = _read_heads(connection, context, digests)
    signatures.delete_signatures(connection, leaves, [doc_id for doc_id in changed if doc_id in before])
    signatures.write_signatures(connection, leaves, rows.take(~same))
    signatures.choose_heads(connection, leaves, digests)
    _exchange_heads(connection, context, old_heads, _read_heads(connection, context, digests))


def _read_heads(connection: Connection, context: Context, digests: Sequence[UUID]) -> Signatures:
    family = context.encoder.family
    return signatures.read_heads(connection, context.leaves, digests, family.dtype, family.k)


def _exchange_heads(connection: Connection, context: Context, old: Signatures, new: Signatures) -> None:
    """Band rows follow the heads; what they leave behind in full buckets is queued."""
    leaves = context.leaves
    before = set(zip(old.doc_ids.tolist(), old.digests, strict=True))
    after = set(zip(new.doc_ids.tolist(), new.digests, strict=True))
    leaving = np.array(
        [key not in after for key in zip(old.doc_ids.tolist(), old.digests, strict=True)], bool
    )
    coming = np.array(
        [key not in before for key in zip(new.doc_ids.tolist(), new.digests, strict=True)], bool
    )
    gone, gone_keys = old.doc_ids[leaving], context.encoder.band_keys(old.sketches[leaving])
    anchors, full = bands.read_anchors(connection, leaves, context.bucket_limit, gone_keys)
    bands.delete_bands(connection, leaves, gone, gone_keys)
    pairs.delete_pairs_of(connection, leaves, gone.tolist())
    bands.write_bands(
        connection, leaves, new.doc_ids[coming], context.encoder.band_keys(new.sketches[coming])
    )
    anchors_now, _ = bands.read_anchors(connection, leaves, context.bucket_limit, full)
    promoted = {doc_id for _, doc_id in anchors_now - anchors}
    queue.queue_work(connection, leaves, "search", [*new.doc_ids[coming].tolist(), *promoted])


def search(connection: Connection, context: Context, doc_ids: Sequence[int]) -> NDArray[np.int64]:
    """The candidates of some documents, as (m, 2) int64 with the smaller doc_id first, sorted, each once."""
    family = context.encoder.family
    heads = signatures.read_sketches(connection, context.leaves, doc_ids, family.dtype, family.k)
    if not len(heads.doc_ids):
        return np.zeros((0, 2), np.int64)
    keys = context.encoder.band_keys(heads.sketches)
    found = bands.look_up_candidates(connection, context.leaves, context.bucket_limit, heads.doc_ids, keys)
    return np.unique(np.sort(found, axis=1), axis=0)


def verify(connection: Connection, context: Context, candidates: NDArray[np.int64]) -> VerifiedPairs:
    """The pairs among candidates: (m, 2) int64 of linked heads, the smaller first."""
    context.count("linked", len(candidates))
    family = context.encoder.family
    doc_ids = np.unique(candidates)
    signed = signatures.read_sketches(connection, context.leaves, doc_ids.tolist(), family.dtype, family.k)
    return verify_signed(connection, context, signed, candidates)


def verify_signed(
    connection: Connection, context: Context, signed: Signatures, candidates: NDArray[np.int64]
) -> VerifiedPairs:
    """The pairs among candidates whose signed are at hand; candidates without one are no heads any more."""
    if not len(signed.doc_ids):
        return _no_pairs()
    rows = np.searchsorted(signed.doc_ids, candidates).clip(max=len(signed.doc_ids) - 1)
    present = (signed.doc_ids[rows] == candidates).all(axis=1)
    screened = screen(context.encoder, signed, rows[present, 0], rows[present, 1])
    context.count("screened", len(screened.left))
    if context.encoder.profile.recipe.match.verify == "estimate":
        return _estimated_pairs(context, signed, screened)
    return _exact_pairs(connection, context, signed, screened)


def _estimated_pairs(context: Context, signed: Signatures, screened: Screened) -> VerifiedPairs:
    k = context.encoder.family.k
    equal = np.rint(screened.estimate * k).astype(np.int64)
    return _pairs(signed, screened, equal, np.full(len(equal), k, np.int64))


def _exact_pairs(
    connection: Connection, context: Context, signed: Signatures, screened: Screened
) -> VerifiedPairs:
    used = np.unique(np.concatenate((screened.left, screened.right)))
    found = _features(connection, context, signed, used.tolist())
    current = np.array([row in found for row in range(len(signed.doc_ids))], bool)
    # A document whose text is not what its signature says is being changed; it must be searched once that is over.
    context.stale.update(int(signed.doc_ids[row]) for row in used.tolist() if row not in found)
    screened = _take(screened, current[screened.left] & current[screened.right])
    order = sorted(found)
    place = np.zeros(len(signed.doc_ids), np.int64)
    place[order] = np.arange(len(order))
    intersection, union = count_overlaps(
        [found[row] for row in order], place[screened.left], place[screened.right], context.encoder.backend
    )
    kept = which_reach(intersection, union, context.encoder.profile.recipe.match.threshold)
    return _pairs(signed, _take(screened, kept), intersection[kept], union[kept])


def _features(
    connection: Connection, context: Context, signed: Signatures, rows: Iterable[int]
) -> dict[int, NDArray[np.uint64]]:
    """The features of signed' rows, from the cache or from the text, where they still have the digest."""
    found: dict[int, NDArray[np.uint64]] = {}
    missing: dict[int, int] = {}
    for row in rows:
        doc_id = int(signed.doc_ids[row])
        cached = context.cache.get(doc_id, signed.digests[row])
        if cached is None:
            missing[doc_id] = row
        else:
            found[row] = cached
    collection_id = context.generation.collection_id
    for batch in documents.stream_documents(connection, collection_id, list(missing)) if missing else ():
        features = context.encoder.features([context.encoder.text_of(one.title, one.body) for one in batch])
        for position, one in enumerate(batch):
            ids = features.of(position).copy()
            row = missing[one.doc_id]
            if context.encoder.digest(ids) == signed.digests[row].bytes:
                found[row] = ids
                context.cache.put(one.doc_id, signed.digests[row], ids)
    return found


def _take(screened: Screened, kept: NDArray[np.bool_]) -> Screened:
    return Screened(
        screened.left[kept], screened.right[kept], screened.shared_bands[kept], screened.estimate[kept]
    )


def _pairs(
    signed: Signatures, screened: Screened, intersection: NDArray[np.int64], union: NDArray[np.int64]
) -> VerifiedPairs:
    return VerifiedPairs(
        signed.doc_ids[screened.left],
        signed.doc_ids[screened.right],
        screened.shared_bands,
        screened.estimate,
        intersection / union,
        intersection,
        union,
        [signed.digests[row] for row in screened.left],
        [signed.digests[row] for row in screened.right],
    )


def _no_pairs() -> VerifiedPairs:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return VerifiedPairs(none, none, none, nothing, nothing, none, none, [], [])


def link(connection: Connection, context: Context) -> None:
    """Recompute the generation's clusters from its pairs and twins."""
    rules = context.encoder.profile.recipe.cluster
    edges = pairs.read_edges(connection, context.leaves, same_numbers=rules.numbers_differ == "keep-apart")
    members, clusters = connected_components(edges)
    policy, sources = keep_policy(rules.keep)
    pairs.store_clusters(connection, context.leaves, members, clusters, policy, sources)

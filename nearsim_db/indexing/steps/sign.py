"""The step "sign": encode documents, and replace their stored signatures and band rows.

Documents with equal features (equal digests) are twins. The one with the smallest doc_id is their head; only heads have
band rows and pairs. So a document that is added, changed or removed may also change the head of its twins.
"""

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

import numpy as np

from nearsim_db.indexing.context import Context
from nearsim_db.readers.labels import label_of
from nearsim_db.records import Document
from nearsim_db.similarity.arrays import FeatureSets, Ints, Mask
from nearsim_db.similarity.batches import SignatureRows, Signatures
from nearsim_db.similarity.encoder import Encoded
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.work.queue import Batch

Encoding = Sequence[Future[Encoded]]  # one future for each run of documents, in their order


def begin_encoding(
    context: Context, batch: Sequence[StoredDocument | Document], *, keep_features: bool = False
) -> Encoding:
    """Begin to encode documents in the threads of the pool.

    Features are kept if `keep_features` is true or if there is a spool for them. Features of HTML pages are always
    kept, because parsing a page again would take longer than all other steps.
    """
    encoder, build = context.encoder, context.build
    keep = keep_features or build.is_spooling or encoder.profile.recipe.normalise.html is not False
    contents = [encoder.content_of(document.title, document.body, document.vector) for document in batch]

    # Two runs for each thread, so that a run of long texts does not leave the others idle.
    step = max(1, -(-len(contents) // (context.threads * 2)))
    return [
        context.pool.submit(encoder.encode, contents[at : at + step], keep_features=keep)
        for at in range(0, len(contents), step)
    ]


def finish_encoding(context: Context, doc_ids: Ints, revisions: Ints, encoding: Encoding) -> SignatureRows:
    """Wait until documents are encoded, and return their signatures.

    Features that were kept go to the spool if there is one, otherwise to the cache, for the verification that follows.
    """
    parts = [run.result() for run in encoding] or [context.encoder.encode([])]
    rows = SignatureRows(
        doc_ids,
        revisions,
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.digests for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.numbers for part in parts]),
    )
    _keep(context, rows, list(chain.from_iterable(part.features for part in parts)))
    return rows


def sign_documents(
    context: Context, batch: Sequence[StoredDocument], *, keep_features: bool = False
) -> SignatureRows:
    """Return the signatures of documents, encoded by all threads."""
    doc_ids = np.array([document.doc_id for document in batch], np.int64)
    revisions = np.array([document.revision for document in batch], np.int64)
    encoding = begin_encoding(context, batch, keep_features=keep_features)
    return finish_encoding(context, doc_ids, revisions, encoding)


def labelled(connection: Connection, context: Context, rows: SignatureRows) -> SignatureRows:
    """Add the labels of documents to their signatures, if the recipe has rules about fields.

    The label of a document packs the values of these fields. It becomes part of the document's digest and changes its
    sketch. The values are read now: if they are newer than the texts, the documents are signed again later.
    """
    if (rules := context.encoder.field_rules) is None or not len(rows.doc_ids):
        return rows
    values = documents.read_values(connection, rows.doc_ids, rules.fields)
    nothing = [None] * len(rules.fields), None
    labels = [label_of(rules, *values.get(doc_id, nothing)) for doc_id in rows.doc_ids.tolist()]
    packed = np.frombuffer(b"".join(labels), np.uint8).reshape(-1, rules.label_bytes)
    return rules.labelled(rows, packed, context.encoder.family)


def _keep(context: Context, rows: SignatureRows, features: FeatureSets) -> None:
    if context.encoder.field_rules is not None:  # the labels are not part of the digests yet
        return
    if context.build.spool is not None and context.build.spool.add(rows, features):
        return
    for row, ids in enumerate(features):
        if (digest := rows.digest(row)) is not None:
            context.cache.put(int(rows.doc_ids[row]), digest, ids.copy())


@dataclass(frozen=True, slots=True)
class _Plan:
    """What happens to a batch of documents."""

    kept: SignatureRows  # documents with unchanged features: only their revision is updated
    fresh: SignatureRows  # new documents, and documents whose features changed
    heads: Ints  # the head of each document in `fresh`: int64
    removed: list[int]  # doc_ids whose signature is deleted
    changing: list[UUID]  # digests that get another head
    # A document was deleted, and inserted again with an older revision than the signed one.
    replaces_newer: bool

    @property
    def needs_exclusive_lock(self) -> bool:
        """Whether the plan is valid only if no other process adds heads at the same time."""
        return bool(self.changing) or self.replaces_newer


def store_signatures(
    connection: Connection,
    context: Context,
    doc_ids: Sequence[int],
    rows: SignatureRows,
    batch: Batch | None = None,
) -> Batch | None:
    """Make the index agree with documents: store the signatures in `rows`, and remove all other documents of `doc_ids`.

    All old rows of a document are removed: its band rows are found by the keys of its old sketch, its pairs are deleted
    together with its signature, and its twins get a new head. New heads, and documents that became anchors of a bucket
    over the limit, are queued for search; documents whose clusters may have changed are queued for link. Other
    processes may add heads to the generation at the same time, but cannot remove any.

    If a batch is passed, nothing is queued for search. Instead the batch, which must be locked, continues with the
    documents to search, and is returned.
    """
    generation_id = context.generation.generation_id
    rows = labelled(connection, context, rows)

    # Plan under the shared lock, which writers of other documents may hold at the same time. If heads change, or if
    # documents are removed, which another worker may be about to store, plan again under the exclusive lock.
    savepoint = connection.begin_nested()
    take_transaction_lock(connection, Lock.STORE, generation_id, shared=True)
    plan = _plan(connection, context, doc_ids, rows)
    if plan.needs_exclusive_lock or len(rows.doc_ids) < len(doc_ids):
        savepoint.rollback()
        take_transaction_lock(connection, Lock.STORE, generation_id)
        plan = _plan(connection, context, doc_ids, rows)
    else:
        savepoint.commit()

    return _apply(connection, context, plan, batch)


def merge_heads(connection: Connection, context: Context, digests: Sequence[UUID]) -> None:
    """Reduce digests that got several heads in a race to their first head; the others become its twins."""
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id)
    heads = _read_heads(connection, context, digests)
    lost, _ = _choose_heads(connection, context, digests, heads)

    no_heads = lost.take(np.zeros(len(lost.doc_ids), bool))
    searching = _exchange_bands(connection, context, lost, no_heads)
    work = context.tables(connection).work
    work.add("search", sorted(searching))
    work.add("link", lost.doc_ids)


def _plan(connection: Connection, context: Context, doc_ids: Sequence[int], rows: SignatureRows) -> _Plan:
    tables = context.tables(connection)
    signed = tables.signatures.read_signed(doc_ids)

    # Compare with the stored signatures. Where another process read a later revision and has stored it already, its
    # row stays.
    same, is_older = np.zeros((2, len(rows.doc_ids)), bool)
    for row, (doc_id, revision) in enumerate(
        zip(rows.doc_ids.tolist(), rows.revisions.tolist(), strict=True)
    ):
        if doc_id in signed:
            same[row] = signed[doc_id].digest == rows.digest(row)
            is_older[row] = signed[doc_id].revision > revision
    outdated = _are_outdated(connection, context, rows, is_older)
    fresh = rows.take(~same & ~outdated)

    # Remove the old signatures of all other documents.
    settled = set(rows.doc_ids[same | outdated].tolist())
    removed = [doc_id for doc_id in doc_ids if doc_id in signed and doc_id not in settled]
    orphaned = {signed[doc_id].digest for doc_id in removed if signed[doc_id].head_id == doc_id}

    # If twins of removed documents were deleted from the collection too, remove these as well. If many twins were
    # deleted, each batch would otherwise choose a head that the next batch removes.
    deleted = tables.signatures.list_deleted([digest for digest in orphaned if digest is not None])
    removed = list({*removed, *deleted})

    heads, preceded = _find_heads(connection, context, fresh, orphaned)
    changing = [digest for digest in orphaned | preceded if digest is not None]
    replaces_newer = bool((is_older & ~outdated).any())
    return _Plan(rows.take(same & ~outdated), fresh, heads, removed, changing, replaces_newer)


def _are_outdated(connection: Connection, context: Context, rows: SignatureRows, is_older: Mask) -> Mask:
    """Return a mask of the documents of which another process read a later revision, and stored it already.

    `is_older` is the mask of the documents whose stored signature has a later revision. If such a document has changed
    since this process read it, the stored signature is right. If it has not changed, it was deleted and inserted again
    with an older revision, and the stored signature is wrong.
    """
    if not is_older.any():
        return is_older
    changed = documents.find_changed(
        connection, context.leaves, context.collection_id, rows.doc_ids[is_older], rows.revisions[is_older]
    )
    return is_older & np.isin(rows.doc_ids, changed)


def _find_heads(
    connection: Connection, context: Context, fresh: SignatureRows, orphaned: Collection[UUID | None]
) -> tuple[Ints, set[UUID]]:
    """Return the head of each fresh document, and the digests whose present head a fresh document precedes.

    If a digest gets another head, its documents count as their own heads until `_choose_heads` chooses the head.
    """
    # The first document of each digest, among the stored documents and this batch.
    digests = [fresh.digest(row) for row in range(len(fresh.doc_ids))]
    first = context.tables(connection).signatures.read_first_documents(
        list({digest for digest in digests if digest is not None})
    )
    digested = [
        (doc_id, digest) for doc_id, digest in zip(fresh.doc_ids.tolist(), digests, strict=True) if digest
    ]
    preceded = {digest for doc_id, digest in digested if doc_id < first.get(digest, doc_id)}
    for doc_id, digest in sorted(digested):
        first.setdefault(digest, doc_id)

    heads = fresh.doc_ids.copy()
    for row, row_digest in enumerate(digests):
        if row_digest is not None and row_digest not in preceded and row_digest not in orphaned:
            heads[row] = first[row_digest]
    return heads, preceded


def _apply(connection: Connection, context: Context, plan: _Plan, batch: Batch | None) -> Batch | None:
    fresh, changing = plan.fresh, set(plan.changing)
    tables = context.tables(connection)

    # Write the signatures, then choose the heads of digests whose head changes.
    tables.signatures.update_revisions(plan.kept.doc_ids, plan.kept.revisions, plan.kept.numbers)
    heads_before = _read_heads(connection, context, plan.changing)
    tables.signatures.delete(plan.removed)
    tables.signatures.write(fresh, plan.heads)
    lost, gained = _choose_heads(connection, context, plan.changing, heads_before)

    # The plan decides which fresh documents of all other digests are heads. A document without features has no bands.
    is_settled = np.array([fresh.digest(row) not in changing for row in range(len(fresh.doc_ids))], bool)
    is_head = is_settled & (plan.heads == fresh.doc_ids) & (fresh.counts > 0)
    added = Signatures(fresh.doc_ids[is_head], fresh.sketches[is_head], ())
    searching = sorted(_exchange_bands(connection, context, lost, gained.joined(added)))
    if batch is None:
        tables.work.add("search", searching)
    else:
        batch = tables.work.continue_with_search(batch, searching)

    # Queue documents whose cluster may have changed. A pin ties two documents once both of them are signed.
    twins = fresh.doc_ids[~is_settled | (plan.heads != fresh.doc_ids)]
    removed = np.array(plan.removed, np.int64)
    pinned = tables.clusters.find_pinned(context.collection_id, fresh.doc_ids)
    touched = np.concatenate((removed, plan.kept.doc_ids, twins, lost.doc_ids, gained.doc_ids, pinned))
    tables.work.add("link", touched)
    return batch


def _choose_heads(
    connection: Connection, context: Context, digests: Sequence[UUID], heads_before: Signatures
) -> tuple[Signatures, Signatures]:
    """Make the smallest doc_id of each digest its head; return the heads that lost this place, and the new heads."""
    context.tables(connection).signatures.reassign_digests(digests)
    heads = _read_heads(connection, context, digests)

    before = dict.fromkeys(zip(heads_before.doc_ids.tolist(), heads_before.digests, strict=True))
    after = dict.fromkeys(zip(heads.doc_ids.tolist(), heads.digests, strict=True))
    lost = np.array([head not in after for head in before], bool)
    gained = np.array([head not in before for head in after], bool)
    return heads_before.take(lost), heads.take(gained)


def _read_heads(connection: Connection, context: Context, digests: Sequence[UUID]) -> Signatures:
    return context.tables(connection).signatures.read_heads(digests, context.encoder.family)


def _exchange_bands(
    connection: Connection,
    context: Context,
    lost: Signatures,
    gained: Signatures,
) -> set[int]:
    """Delete the band rows and pairs of `lost` heads, and write the band rows of `gained` heads.

    Returns the documents to search: the new heads, and those that became anchors of buckets over the limit.
    """
    tables, limit = context.tables(connection), context.bucket_limit
    lost_keys = context.encoder.band_keys(lost.sketches)
    anchors_before, full_buckets = tables.buckets.read_anchors(limit, lost_keys)

    tables.bands.delete(lost.doc_ids, lost_keys)
    tables.pairs.delete_of(lost.doc_ids)
    tables.bands.write(gained.doc_ids, context.encoder.band_keys(gained.sketches))

    anchors, _ = tables.buckets.read_anchors(limit, full_buckets)
    return {*gained.doc_ids.tolist(), *(doc_id for _, doc_id in anchors - anchors_before)}

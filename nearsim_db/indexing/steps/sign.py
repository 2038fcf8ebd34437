"""sign: from documents to signatures and band rows in the index, which replace earlier ones."""

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

import numpy as np

from nearsim_db.indexing.context import Context
from nearsim_db.readers.values import value_digest
from nearsim_db.records import Document
from nearsim_db.similarity.arrays import FeatureSets, Ints, Mask
from nearsim_db.similarity.batches import LABEL_BYTES, SignatureRows, Signatures, with_labels
from nearsim_db.similarity.encoder import Encoded
from nearsim_db.store.documents import documents
from nearsim_db.store.documents.documents import StoredDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, take_transaction_lock
from nearsim_db.store.work.queue import Batch

Encoding = Sequence[Future[Encoded]]  # of runs of documents, in their order


def begin_encoding(
    context: Context, batch: Sequence[StoredDocument | Document], *, keep_features: bool = False
) -> Encoding:
    """Have the threads of the pool encode documents.

    Features are kept if they are asked for, if there is a spool for them, and of HTML pages always: to parse a page
    again would take longer than the rest.
    """
    encoder, build = context.encoder, context.build
    keep = keep_features or build.is_spooling or encoder.profile.recipe.normalise.html
    contents = [encoder.content_of(one.title, one.body, one.vector) for one in batch]
    step = max(1, -(-len(contents) // (context.threads * 2)))
    return [
        context.pool.submit(encoder.encode, contents[at : at + step], keep_features=keep)
        for at in range(0, len(contents), step)
    ]


def finish_encoding(context: Context, doc_ids: Ints, revisions: Ints, encoding: Encoding) -> SignatureRows:
    """Return the signatures of documents, once they are encoded.

    Features that were kept go to the spool, if there is one, else to the cache, for the verification that follows.
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
    """Return signatures with the digests to store: of features alone, or with `match.across` of the documents.

    The values of the field are read now: if they are newer than the texts, the documents are signed again.
    """
    if (field := context.encoder.across) is None:
        return rows
    values = documents.read_values(connection, rows.doc_ids, field)
    return with_labels(
        rows, (value_digest(values.get(doc_id), LABEL_BYTES) for doc_id in rows.doc_ids.tolist())
    )


def _keep(context: Context, rows: SignatureRows, features: FeatureSets) -> None:
    if context.encoder.across is not None:  # their digests are not known yet
        return
    if context.build.spool is not None and context.build.spool.add(rows, features):
        return
    for row, ids in enumerate(features):
        if (digest := rows.digest(row)) is not None:
            context.cache.put(int(rows.doc_ids[row]), digest, ids.copy())


@dataclass(frozen=True, slots=True)
class _Plan:
    """What happens to a batch: `kept` have unchanged features, `fresh` are written with `heads`, `removed` are deleted.

    `changing` are the digests that get another head. They need the exclusive lock, and so does a document that was
    inserted again with an older revision than the signed one (`replaces_newer`).
    """

    kept: SignatureRows
    fresh: SignatureRows
    heads: Ints
    removed: list[int]
    changing: list[UUID]
    replaces_newer: bool


def store_signatures(
    connection: Connection,
    context: Context,
    doc_ids: Sequence[int],
    rows: SignatureRows,
    batch: Batch | None = None,
) -> Batch | None:
    """Make the index agree with documents: those in `rows` are written, the rest of `doc_ids` removed.

    A document's old rows are removed exactly: its band rows are found by the keys of its old sketch, its pairs are
    deleted with its signature, and its twins get a new head. New heads, and documents that became anchors of a bucket
    over the limit, are queued for search; documents whose clusters may have changed are queued for link. Other
    processes may add heads to the generation meanwhile, but not remove any. With a batch, which must be locked, nothing
    is queued for search: the batch continues with these documents, and is returned.
    """
    generation_id = context.generation.generation_id
    rows = labelled(connection, context, rows)
    savepoint = connection.begin_nested()
    take_transaction_lock(connection, Lock.STORE, generation_id, shared=True)
    plan = _plan(connection, context, doc_ids, rows)
    # Another worker may be about to store a document that is deleted.
    if plan.changing or plan.replaces_newer or len(rows.doc_ids) < len(doc_ids):
        savepoint.rollback()
        take_transaction_lock(connection, Lock.STORE, generation_id)
        plan = _plan(connection, context, doc_ids, rows)
    else:
        savepoint.commit()
    return _apply(connection, context, plan, batch)


def merge_heads(connection: Connection, context: Context, digests: Sequence[UUID]) -> None:
    """Of several heads that a digest got in a race, keep the first; the rest become its twins."""
    take_transaction_lock(connection, Lock.STORE, context.generation.generation_id)
    removed = _choose_heads(connection, context, digests, _read_heads(connection, context, digests))[0]
    searching = _exchange_bands(
        connection, context, removed, removed.take(np.zeros(len(removed.doc_ids), bool))
    )
    work = context.tables(connection).work
    work.add("search", sorted(searching))
    work.add("link", removed.doc_ids)


def _plan(connection: Connection, context: Context, doc_ids: Sequence[int], rows: SignatureRows) -> _Plan:
    tables = context.tables(connection)
    signed = tables.signatures.read_signed(doc_ids)
    same, is_older = np.zeros((2, len(rows.doc_ids)), bool)
    for row, (doc_id, revision) in enumerate(
        zip(rows.doc_ids.tolist(), rows.revisions.tolist(), strict=True)
    ):
        if doc_id in signed:
            same[row] = signed[doc_id].digest == rows.digest(row)
            is_older[row] = signed[doc_id].revision > revision
    outdated = _are_outdated(connection, context, rows, is_older)
    fresh = rows.take(~same & ~outdated)
    settled = set(rows.doc_ids[same | outdated].tolist())
    removed = [doc_id for doc_id in doc_ids if doc_id in signed and doc_id not in settled]
    orphaned = {signed[one].digest for one in removed if signed[one].head_id == one}
    # Otherwise, of many deleted twins, each batch would give those of the next batches another head.
    gone = tables.signatures.list_deleted([one for one in orphaned if one is not None])
    removed = list({*removed, *gone})
    heads, preceded = _find_heads(connection, context, fresh, orphaned)
    changing = [digest for digest in orphaned | preceded if digest is not None]
    replaces_newer = bool((is_older & ~outdated).any())
    return _Plan(rows.take(same & ~outdated), fresh, heads, removed, changing, replaces_newer)


def _are_outdated(connection: Connection, context: Context, rows: SignatureRows, is_older: Mask) -> Mask:
    """Return a mask of the documents that another process read later, and stored already.

    They are among those with a newer signature. If such a document is still as it was read, it was deleted and inserted
    again with an older revision.
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
    """Return the head of each of these documents, and the digests that one of them precedes as head.

    Where a digest gets another head, every document is its own head until heads are chosen.
    """
    digests = [fresh.digest(row) for row in range(len(fresh.doc_ids))]
    first = context.tables(connection).signatures.read_first_documents(
        list({one for one in digests if one is not None})
    )
    digested = [
        (doc_id, digest) for doc_id, digest in zip(fresh.doc_ids.tolist(), digests, strict=True) if digest
    ]
    preceded = {digest for doc_id, digest in digested if doc_id < first.get(digest, doc_id)}
    for doc_id, digest in sorted(digested):
        first.setdefault(digest, doc_id)
    heads = fresh.doc_ids.copy()
    for row, own in enumerate(digests):
        if own is not None and own not in preceded and own not in orphaned:
            heads[row] = first[own]
    return heads, preceded


def _apply(connection: Connection, context: Context, plan: _Plan, batch: Batch | None) -> Batch | None:
    fresh = plan.fresh
    tables = context.tables(connection)
    tables.signatures.update_revisions(plan.kept.doc_ids, plan.kept.revisions, plan.kept.numbers)
    old = _read_heads(connection, context, plan.changing)
    tables.signatures.delete(plan.removed)
    tables.signatures.write(fresh, plan.heads)
    lost, gained = _choose_heads(connection, context, plan.changing, old)
    unchanged = _has_other_digest(fresh, set(plan.changing))
    own = unchanged & (plan.heads == fresh.doc_ids) & (fresh.counts > 0)
    added = Signatures(fresh.doc_ids[own], fresh.sketches[own], ())
    searching = sorted(_exchange_bands(connection, context, lost, gained.joined(added)))
    if batch is None:
        tables.work.add("search", searching)
    else:
        batch = tables.work.continue_with_search(batch, searching)
    twins = fresh.doc_ids[~unchanged | (plan.heads != fresh.doc_ids)]
    removed = np.array(plan.removed, np.int64)
    # A pin becomes a tie once both of its documents are signed.
    pinned = tables.clusters.find_pinned(context.collection_id, fresh.doc_ids)
    touched = np.concatenate((removed, plan.kept.doc_ids, twins, lost.doc_ids, gained.doc_ids, pinned))
    tables.work.add("link", touched)
    return batch


def _has_other_digest(rows: SignatureRows, digests: Collection[UUID]) -> Mask:
    """Return a mask of the rows that have none of `digests`."""
    return np.array([rows.digest(row) not in digests for row in range(len(rows.doc_ids))], bool)


def _choose_heads(
    connection: Connection, context: Context, digests: Sequence[UUID], old: Signatures
) -> tuple[Signatures, Signatures]:
    """Make the smallest doc_id of each digest its head; return the heads it lost and gained."""
    context.tables(connection).signatures.reassign_digests(digests)
    new = _read_heads(connection, context, digests)
    before = set(zip(old.doc_ids.tolist(), old.digests, strict=True))
    after = set(zip(new.doc_ids.tolist(), new.digests, strict=True))
    lost = [key not in after for key in zip(old.doc_ids.tolist(), old.digests, strict=True)]
    gained = [key not in before for key in zip(new.doc_ids.tolist(), new.digests, strict=True)]
    return old.take(np.array(lost, bool)), new.take(np.array(gained, bool))


def _read_heads(connection: Connection, context: Context, digests: Sequence[UUID]) -> Signatures:
    return context.tables(connection).signatures.read_heads(digests, context.encoder.family)


def _exchange_bands(
    connection: Connection,
    context: Context,
    lost: Signatures,
    gained: Signatures,
) -> set[int]:
    """Move band rows to the new heads; return these, and documents that become anchors of full buckets, to search."""
    tables, limit = context.tables(connection), context.bucket_limit
    lost_keys = context.encoder.band_keys(lost.sketches)
    anchors, full = tables.buckets.read_anchors(limit, lost_keys)
    tables.bands.delete(lost.doc_ids, lost_keys)
    tables.pairs.delete_of(lost.doc_ids)
    tables.bands.write(gained.doc_ids, context.encoder.band_keys(gained.sketches))
    anchors_now, _ = tables.buckets.read_anchors(limit, full)
    return {*gained.doc_ids.tolist(), *(doc_id for _, doc_id in anchors_now - anchors)}

"""store: signatures and band rows into the index, and what they replace out of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import SignatureRows, Signatures
from nearsim_db.store import bands, pairs, signatures, verdicts
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.locks import Lock, hold_lock
from nearsim_db.store.work import queue


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of a batch: `kept` have the features they had, `fresh` are written with their `heads`, `removed` go.

    `changing` are the digests that get another head; only they need the generation for themselves.
    """

    kept: SignatureRows
    fresh: SignatureRows
    heads: NDArray[np.int64]
    removed: list[int]
    changing: list[UUID]


def store_signatures(
    connection: Connection,
    context: Context,
    doc_ids: Sequence[int],
    rows: SignatureRows,
) -> None:
    """Make the index agree with these documents: `rows` are those that still are there, the others go.

    What was done for a document before is undone exactly: its band rows are found by the keys of its old sketch, its
    pairs go with its signature, and its twins get a new head. New heads, and documents that became anchors of a
    bucket over the limit, are queued for search; what may have changed clusters is queued to be linked. Others may
    add heads to the generation at the same time, but not take some out.
    """
    generation_id = context.generation.generation_id
    savepoint = connection.begin_nested()
    hold_lock(connection, Lock.STORE, generation_id, shared=True)
    plan = _plan(connection, context, doc_ids, rows)
    if plan.changing:
        savepoint.rollback()
        hold_lock(connection, Lock.STORE, generation_id)
        plan = _plan(connection, context, doc_ids, rows)
    else:
        savepoint.commit()
    _carry_out(connection, context, plan)


def merge_heads(connection: Connection, context: Context, digests: Sequence[UUID]) -> None:
    """Of several heads that one digest got in a race the first stays, the others become its twins."""
    hold_lock(connection, Lock.STORE, context.generation.generation_id)
    gone = _choose_heads(connection, context, digests, _read_heads(connection, context, digests))[0]
    _exchange_bands(connection, context, gone, gone.take(np.zeros(len(gone.doc_ids), bool)))
    queue.queue_work(connection, context.leaves, "link", gone.doc_ids)


def _plan(connection: Connection, context: Context, doc_ids: Sequence[int], rows: SignatureRows) -> _Plan:
    signed = signatures.read_signed(connection, context.leaves, doc_ids)
    same, outdated = np.zeros((2, len(rows.doc_ids)), bool)
    for row, (doc_id, revision) in enumerate(
        zip(rows.doc_ids.tolist(), rows.revisions.tolist(), strict=True)
    ):
        if doc_id in signed:
            same[row] = signed[doc_id].digest == rows.digest(row)
            # Whoever read the document later may have stored it before.
            outdated[row] = signed[doc_id].revision > revision
    fresh = rows.take(~same & ~outdated)
    settled = set(rows.doc_ids[same | outdated].tolist())
    removed = [doc_id for doc_id in doc_ids if doc_id in signed and doc_id not in settled]
    left = {signed[one].digest for one in removed if signed[one].head_id == one}
    heads, overtaken = _find_heads(connection, context, fresh, left)
    changing = [digest for digest in left | overtaken if digest is not None]
    return _Plan(rows.take(same & ~outdated), fresh, heads, removed, changing)


def _find_heads(
    connection: Connection, context: Context, fresh: SignatureRows, left: Collection[UUID | None]
) -> tuple[NDArray[np.int64], set[UUID]]:
    """The head that each of these documents gets, and the digests whose head comes after one of them.

    Where the head itself is to change every document is its own head at first.
    """
    digests = [fresh.digest(row) for row in range(len(fresh.doc_ids))]
    first = signatures.read_first(
        connection, context.leaves, list({one for one in digests if one is not None})
    )
    named = [
        (doc_id, digest) for doc_id, digest in zip(fresh.doc_ids.tolist(), digests, strict=True) if digest
    ]
    overtaken = {digest for doc_id, digest in named if doc_id < first.get(digest, doc_id)}
    for doc_id, digest in sorted(named):
        first.setdefault(digest, doc_id)
    heads = fresh.doc_ids.copy()
    for row, own in enumerate(digests):
        if own is not None and own not in overtaken and own not in left:
            heads[row] = first[own]
    return heads, overtaken


def _carry_out(connection: Connection, context: Context, plan: _Plan) -> None:
    leaves, fresh = context.leaves, plan.fresh
    signatures.move_revisions(connection, leaves, plan.kept.doc_ids, plan.kept.revisions, plan.kept.numbers)
    old = _read_heads(connection, context, plan.changing)
    signatures.delete_signatures(connection, leaves, plan.removed)
    signatures.write_signatures(connection, leaves, fresh, plan.heads)
    gone, come = _choose_heads(connection, context, plan.changing, old)
    alone = _named_otherwise(fresh, set(plan.changing))
    own = alone & (plan.heads == fresh.doc_ids) & (fresh.counts > 0)
    added = Signatures(fresh.doc_ids[own], fresh.sketches[own], ())
    _exchange_bands(connection, context, gone, come.joined(added))
    twins = fresh.doc_ids[~alone | (plan.heads != fresh.doc_ids)]
    removed = np.array(plan.removed, np.int64)
    # A pin ties once both of its documents are signed.
    pinned = verdicts.find_pinned(connection, context.generation.collection_id, fresh.doc_ids)
    touched = np.concatenate((removed, plan.kept.doc_ids, twins, gone.doc_ids, come.doc_ids, pinned))
    queue.queue_work(connection, leaves, "link", touched)


def _named_otherwise(rows: SignatureRows, digests: Collection[UUID]) -> NDArray[np.bool_]:
    """Which rows have none of some digests."""
    return np.array([rows.digest(row) not in digests for row in range(len(rows.doc_ids))], bool)


def _choose_heads(
    connection: Connection, context: Context, digests: Sequence[UUID], old: Signatures
) -> tuple[Signatures, Signatures]:
    """Give digests their smallest doc_id as head; returns which heads went and which came."""
    signatures.choose_heads(connection, context.leaves, digests)
    new = _read_heads(connection, context, digests)
    before = set(zip(old.doc_ids.tolist(), old.digests, strict=True))
    after = set(zip(new.doc_ids.tolist(), new.digests, strict=True))
    gone = [key not in after for key in zip(old.doc_ids.tolist(), old.digests, strict=True)]
    come = [key not in before for key in zip(new.doc_ids.tolist(), new.digests, strict=True)]
    return old.take(np.array(gone, bool)), new.take(np.array(come, bool))


def _read_heads(connection: Connection, context: Context, digests: Sequence[UUID]) -> Signatures:
    family = context.encoder.family
    return signatures.read_heads(connection, context.leaves, digests, family.dtype, family.k)


def _exchange_bands(connection: Connection, context: Context, gone: Signatures, come: Signatures) -> None:
    """Band rows follow the heads; what they leave behind in full buckets is queued for search."""
    leaves, limit = context.leaves, context.bucket_limit
    gone_keys = context.encoder.band_keys(gone.sketches)
    anchors, full = bands.read_anchors(connection, leaves, limit, gone_keys)
    bands.delete_bands(connection, leaves, gone.doc_ids, gone_keys)
    pairs.delete_pairs_of(connection, leaves, gone.doc_ids)
    bands.write_bands(connection, leaves, come.doc_ids, context.encoder.band_keys(come.sketches))
    anchors_now, _ = bands.read_anchors(connection, leaves, limit, full)
    promoted = {doc_id for _, doc_id in anchors_now - anchors}
    queue.queue_work(connection, leaves, "search", [*come.doc_ids.tolist(), *promoted])

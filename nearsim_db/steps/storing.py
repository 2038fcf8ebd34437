"""store: signatures and band rows into the index, and what they replace out of it."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from nearsim_db.batches import SignatureRows, Signatures
from nearsim_db.steps.context import Context
from nearsim_db.store import bands, pairs, queue, signatures


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

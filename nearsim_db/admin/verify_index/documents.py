"""Check of signatures and band rows against the documents."""

from collections.abc import Sequence
from contextlib import closing
from itertools import chain

import numpy as np

from nearsim_db.admin.verify_index.findings import DocumentKind, Findings
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import SignatureRows, joined
from nearsim_db.store import documents, index_checks
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import sketch_bytes, to_bigint
from nearsim_db.store.index_checks import SignedDocument

# A possible fault, its document, and the documents whose queued work may resolve it.
Suspect = tuple[DocumentKind, list[int], set[int]]
Bytes = np.ndarray[tuple[int], np.dtype[np.void]]


def check_documents(
    connection: Connection, context: Context, findings: Findings, doc_ids: Sequence[int]
) -> None:
    """Sign some documents again and compare; deleted documents must not be signed."""
    stored = index_checks.read_signed_documents(
        connection, context.leaves, context.collection_id, doc_ids, context.retained_seconds
    )
    rows = _sign(connection, context, [one.doc_id for one in stored if one.is_inside])
    findings.checked["documents"] += sum(one.is_there for one in stored)
    findings.checked["signatures"] += sum(one.is_signed for one in stored)
    positions = {doc_id: position for position, doc_id in enumerate(rows.doc_ids.tolist())}
    sketches = sketch_bytes(rows.sketches)
    suspects: list[Suspect] = []
    stray: list[Suspect] = []
    is_sound_head = np.zeros(len(rows.doc_ids), bool)
    for one in stored:
        position = positions.get(one.doc_id)
        if one.is_there and not one.is_inside:
            continue
        if one.is_there and position is None:
            findings.changing += 1  # its text is in an attached table, and is being changed
            continue
        kind = _find_fault(one, rows, sketches, position)
        if kind is not None:
            involved = {id for id in (one.doc_id, one.head_id, one.first) if id}
            (stray if kind == "stray_signature" else suspects).append((kind, [one.doc_id], involved))
        elif position is not None and one.head_id == one.doc_id:
            is_sound_head[position] = True
    suspects += _missing_bands(connection, context, findings, rows.take(is_sound_head))
    findings.add_unless_pending(connection, suspects)
    # Searching or linking never deletes a signature.
    findings.add_unless_pending(connection, stray, ("sign", "compare"))


def _sign(connection: Connection, context: Context, doc_ids: Sequence[int]) -> SignatureRows:
    streamed = documents.stream_documents(
        connection, context.collection_id, doc_ids, vectors=context.encoder.takes_vectors
    )
    with closing(streamed) as batches:
        return joined([steps.sign_documents(context, batch) for batch in chain(batches, ([],))])


def _find_fault(
    one: SignedDocument, rows: SignatureRows, sketches: Bytes, position: int | None
) -> DocumentKind | None:
    """Compare a stored signature with the document's at `position` of the rows, None if the document was deleted."""
    if position is None:
        return "stray_signature" if one.is_signed else None
    if not one.is_signed:
        return "unsigned"
    if one.signed_revision != one.revision:
        return "outdated"
    numbers = int(to_bigint(rows.numbers[position : position + 1])[0])
    if (one.feature_count, one.digest, one.numbers) != (
        rows.counts[position],
        rows.digest(position),
        numbers,
    ):
        return "wrong_features"
    if one.digest is None:
        return None
    if one.sketch != sketches[position].tobytes():
        return "wrong_sketch"
    return None if one.head_id == one.first else "wrong_head"


def _missing_bands(
    connection: Connection, context: Context, findings: Findings, heads: SignatureRows
) -> list[Suspect]:
    findings.checked["heads"] += len(heads.doc_ids)
    if not len(heads.doc_ids):
        return []
    keys = context.encoder.band_keys(heads.sketches)
    findings.checked["band_rows"] += keys.size
    missing = index_checks.find_missing_bands(connection, context.leaves, heads.doc_ids, keys)
    return [("missing_bands", [doc_id], {doc_id}) for doc_id in missing]

"""Signatures and band rows, compared with what their documents make."""

from collections.abc import Sequence
from contextlib import closing
from itertools import chain

import numpy as np

from nearsim_db.admin.verify_index.changing import find_changing
from nearsim_db.admin.verify_index.findings import DocumentKind, Findings
from nearsim_db.indexing import steps
from nearsim_db.indexing.context import Context
from nearsim_db.similarity.batches import SignatureRows, joined
from nearsim_db.store import documents
from nearsim_db.store import verify_index as store
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import sketch_bytes, to_bigint
from nearsim_db.store.verify_index import SignedDocument

Suspect = tuple[DocumentKind, int, frozenset[int]]  # what differs, and documents of which it may come


def check_documents(
    connection: Connection, context: Context, findings: Findings, doc_ids: Sequence[int]
) -> None:
    """Sign some documents again and compare; those that are gone must not be signed."""
    signed_documents = _read(connection, context, doc_ids)
    rows = _sign(connection, context, [one.doc_id for one in signed_documents if one.is_inside])
    findings.checked["documents"] += sum(one.is_there for one in signed_documents)
    findings.checked["signatures"] += sum(one.is_signed for one in signed_documents)
    places = {doc_id: place for place, doc_id in enumerate(rows.doc_ids.tolist())}
    expected = sketch_bytes(rows.sketches)
    suspects: list[Suspect] = []
    sound = np.zeros(len(rows.doc_ids), bool)
    for one in signed_documents:
        place = places.get(one.doc_id)
        if one.is_there and not one.is_inside:
            continue
        if one.is_there and place is None:
            findings.changing += 1  # its text is elsewhere, and is being changed
            continue
        kind = _compare(one, rows, expected, place)
        if kind is not None:
            involved = {one.doc_id, one.head_id, one.first} - {None}
            suspects.append((kind, one.doc_id, frozenset(filter(None, involved))))
        elif place is not None and one.head_id == one.doc_id:
            sound[place] = True
    suspects += _missing_bands(connection, context, findings, rows.take(sound))
    _judge(connection, findings, suspects)


def _read(connection: Connection, context: Context, doc_ids: Sequence[int]) -> list[SignedDocument]:
    age = context.encoder.profile.recipe.retain.seconds
    return store.read_signed_documents(
        connection, context.leaves, context.generation.collection_id, doc_ids, age
    )


def _sign(connection: Connection, context: Context, doc_ids: Sequence[int]) -> SignatureRows:
    collection_id, vectors = context.generation.collection_id, context.encoder.takes_vectors
    with closing(documents.stream_documents(connection, collection_id, doc_ids, vectors=vectors)) as batches:
        return joined([steps.sign_documents(context, batch) for batch in chain(batches, ([],))])


def _compare(
    one: SignedDocument,
    rows: SignatureRows,
    expected: np.ndarray[tuple[int], np.dtype[np.void]],
    place: int | None,
) -> DocumentKind | None:
    """What is wrong with a signature, if anything; `place` is that of the document among rows, None if it is gone."""
    if place is None:
        return "stray_signature" if one.is_signed else None
    if not one.is_signed:
        return "unsigned"
    if one.signed_revision != one.revision:
        return "outdated"
    numbers = int(to_bigint(rows.numbers[place : place + 1])[0])
    if (one.feature_count, one.digest, one.numbers) != (rows.counts[place], rows.digest(place), numbers):
        return "wrong_features"
    if one.digest is None:
        return None
    if one.sketch != expected[place].tobytes():
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
    missing = store.find_missing_bands(connection, context.leaves, heads.doc_ids, keys)
    return [("missing_bands", doc_id, frozenset({doc_id})) for doc_id in missing]


def _judge(connection: Connection, findings: Findings, suspects: Sequence[Suspect]) -> None:
    """Faults are those of which nothing is known that would put them right."""
    changing = find_changing(
        connection, findings, {doc_id for _, _, involved in suspects for doc_id in involved}
    )
    # Searching or linking never takes a signature out.
    gone = {doc_id for kind, doc_id, _ in suspects if kind == "stray_signature"}
    leaving = find_changing(connection, findings, gone, ("sign", "compare"))
    for kind, doc_id, involved in suspects:
        if doc_id in leaving if kind == "stray_signature" else any(one in changing for one in involved):
            findings.changing += 1
        else:
            findings.add_document(kind, doc_id)

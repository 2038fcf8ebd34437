"""Questions that take more than one statement: what a text resembles, what an index holds."""

from typing import Any

import numpy as np
from sqlalchemy import Connection

from nearsim_db import steps
from nearsim_db.batches import Signatures
from nearsim_db.profile import Profile
from nearsim_db.recipe import to_mapping
from nearsim_db.records import Match
from nearsim_db.steps import Context
from nearsim_db.store import bands, catalog, pairs, partitions, queue, signatures
from nearsim_db.store.catalog import Collection, Generation
from nearsim_db.store.codec import digest_uuid

_PROBE = 0  # the doc_id of a text that is not in the index: smaller than any document's


def similar_to_text(connection: Connection, context: Context, title: str | None, body: str) -> list[Match]:
    """The documents that a text would be paired with, twins expanded, the most similar first."""
    encoder = context.encoder
    features = encoder.features([encoder.text_of(title, body)])
    ids = features.of(0)
    if not len(ids):
        return []
    sketch = encoder.family.sketch(features.ids, features.offsets)
    digest = digest_uuid(encoder.digest(ids))
    keys = encoder.band_keys(sketch)
    heads = bands.look_up_anchors(connection, context.leaves, context.bucket_limit, keys)
    found = signatures.read_sketches(
        connection, context.leaves, heads, encoder.family.dtype, encoder.family.k
    )
    everything = Signatures(
        np.concatenate(([_PROBE], found.doc_ids)),
        np.concatenate((sketch, found.sketches)),
        [digest, *found.digests],
    )
    context.cache.put(_PROBE, digest, ids)
    candidates = np.stack((np.zeros(len(found.doc_ids), np.int64), found.doc_ids), axis=1)
    verified = steps.verify_signed(connection, context, everything, candidates)
    rows = {int(head): row for row, head in enumerate(verified.right)}
    matches = []
    for head, external_id, shown_title in pairs.read_twins(connection, context.leaves, list(rows)):
        row = rows[head]
        matches.append(
            Match(
                external_id,
                shown_title,
                float(verified.similarity[row]),
                int(verified.intersection[row]),
                int(verified.union[row]),
                round(float(verified.estimate[row]), 6),
                int(verified.shared_bands[row]),
            )
        )
    return sorted(matches, key=lambda match: -match.similarity)


def stats(
    connection: Connection,
    collection: Collection,
    generation: Generation,
    profile: Profile,
    *,
    recount: bool,
) -> dict[str, Any]:
    """What a collection and one of its generations hold, in counts, bytes and probabilities.

    Buckets were counted by the build; with `recount` all band rows are read again.
    """
    documents = catalog.count_documents(connection, collection.collection_id)
    queued, set_aside = queue.count_work(connection, generation.leaves)
    found: dict[str, Any] = {
        "collection": collection.name,
        "profile": generation.profile,
        "generation": generation.generation_id,
        "state": generation.state,
        "stage": generation.stage,
        "documents": documents,
        "queued": queued,
        "set_aside": set_aside,
    }
    if generation.state == "live":
        limit = profile.recipe.match.bucket_limit
        found |= _held(connection, generation)
        found |= (
            bands.count_buckets(connection, generation.leaves, limit)
            if recount
            else {name: generation.figures.get(name) for name in bands.BUCKET_FIGURES}
        )
    return found | describe(profile)


def _held(connection: Connection, generation: Generation) -> dict[str, Any]:
    held = partitions.count(connection, generation.leaves)
    heads = held["indexed"] - held["no_features"] - held["twins"]
    linked = generation.figures.get("linked")
    index_bytes = held["signature_bytes"] + held["band_bytes"]
    return {
        **held,
        "heads": heads,
        "expected_candidates_per_document": generation.figures.get("expected_candidates_per_document"),
        "candidates_per_document": round(linked / heads, 2) if linked is not None and heads else None,
        "bytes_per_document": round(index_bytes / held["indexed"]) if held["indexed"] else None,
    }


def describe(profile: Profile) -> dict[str, Any]:
    """What a resolved profile chose, and what to expect of it."""
    return {
        "threshold": profile.recipe.match.threshold,
        "bands": profile.bands,
        "rows": profile.rows,
        "unused_rows": profile.unused_rows,
        "expected_recall": round(profile.expected_recall, 6),
        "curve": [[similarity, round(probability, 6)] for similarity, probability in profile.curve()],
        "expected_bytes_per_document": profile.bytes_per_document(),
        "fingerprint": profile.fingerprint,
        "recipe": to_mapping(profile.recipe),
    }

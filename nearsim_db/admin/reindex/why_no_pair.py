"""Why two documents are no pair in a generation: what can be told from their signatures and texts."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.reindex.diff_result import Evidence
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.store import diffs, documents
from nearsim_db.store.catalog import Generation
from nearsim_db.store.diffs import Standing
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import digest_uuid, sketches_from

_FIRST, _SECOND = np.zeros(1, np.int64), np.ones(1, np.int64)
_MEASURES = {"euclidean": "distance", "cosine": "cosine"}


class Absences:
    """What one generation says of pairs that it has not. Without an `encoder` nothing is computed."""

    def __init__(
        self,
        connection: Connection,
        generation: Generation,
        encoder: Encoder | None,
        pairs: Sequence[tuple[int, int]],
    ) -> None:
        doc_ids = sorted({doc_id for pair in pairs for doc_id in pair})
        self._generation, self._encoder = generation, encoder
        self._standings = diffs.read_standings(connection, generation.leaves, doc_ids)
        self._features = self._read_features(connection, encoder, doc_ids) if encoder else {}

    def tell(self, left_id: int, right_id: int) -> tuple[Evidence, str]:
        """What could be computed of two documents, and the reason why they are no pair."""
        left, right = self._standings[left_id], self._standings[right_id]
        for one in (left, right):
            hindrance = self._hindrance(one)
            if hindrance is not None:
                return _NOTHING, f"{name_of(one)} {hindrance}"
        if self._encoder is None:
            return _NOTHING, f"unknown: this version cannot read generation {self._generation.generation_id}"
        return self._compare(self._encoder, left, right)

    def _hindrance(self, one: Standing) -> str | None:
        """Why a document can be in no pair."""
        if not one.exists:
            return "was deleted"
        if one.waits:
            return "waits to be indexed"
        if one.feature_count is None:
            age = self._generation.recipe["retain"]["age"]
            return "is not indexed" if age == "none" else f"is outside the window of {age}"
        return None if one.feature_count else "has no features"

    def _compare(self, encoder: Encoder, left: Standing, right: Standing) -> tuple[Evidence, str]:
        family = encoder.family
        blobs = [one.sketch or b"" for one in (left, right)]
        sketches = sketches_from(blobs, family.dtype, family.k)
        shared, enough = encoder.match_bands(sketches[:1], sketches[1:])
        bands = int(shared[0])
        if encoder.profile.recipe.match.verify == "estimate":
            scores = encoder.sketch_scores(sketches[:1], sketches[1:])
        else:
            for one in (left, right):
                if one.doc_id not in self._features:
                    changed = f"the text of {name_of(one)} is no longer the one that was indexed"
                    return Evidence(False, False, None, bands), changed
            both = [self._features[one.doc_id] for one in (left, right)]
            scores = encoder.compare(both, _FIRST, _SECOND)
        evidence = Evidence(False, False, float(scores.similarity[0]), bands)
        return evidence, _reason(encoder, scores, bands, enough=bool(enough[0]))

    def _read_features(
        self, connection: Connection, encoder: Encoder, doc_ids: Sequence[int]
    ) -> dict[int, NDArray[Any]]:
        """The features of those documents whose text is the one that was signed."""
        found: dict[int, NDArray[Any]] = {}
        if not doc_ids:
            return found
        collection_id = self._generation.collection_id
        streamed = documents.stream_documents(
            connection, collection_id, doc_ids, vectors=encoder.takes_vectors
        )
        with closing(streamed) as batches:
            for batch in batches:
                contents = [encoder.content_of(one.title, one.body, one.vector) for one in batch]
                features = encoder.features(contents)
                for place, one in enumerate(batch):
                    own = features.of(place).copy()
                    if digest_uuid(encoder.digest(own)) == self._standings[one.doc_id].digest:
                        found[one.doc_id] = own
        return found


def name_of(one: Standing) -> str:
    """A document as people know it; one that is gone by its number."""
    return f"#{one.doc_id}" if one.external_id is None else repr(one.external_id)


_NOTHING = Evidence(False, False, None, None)


def _reason(encoder: Encoder, scores: Scores, bands: int, *, enough: bool) -> str:
    match, metric = encoder.profile.recipe.match, encoder.metric
    value = scores.similarity[0] if scores.distance is None else scores.distance[0]
    said = f"{_MEASURES.get(metric.name, 'similarity')} {value:.4f}"
    if match.amplification is not None:
        sharing = f"{bands} shared bands, not those that {match.amplification} asks for"
    else:
        sharing = f"{bands} of the {match.min_shared_bands} shared bands that are asked for"
    if not metric.reaches(scores, match.threshold)[0]:
        side = "below" if scores.distance is None else "above"
        missed = f"{said}, {side} the threshold of {match.threshold:g}"
        return missed if enough else f"{missed}, and {sharing}"
    if not enough:
        return (
            f"{said} reaches the threshold of {match.threshold:g}, but with {sharing}, they are no candidates"
        )
    if match.bucket_limit:
        return f"{said} reaches the threshold of {match.threshold:g}, but the bucket limit kept them apart"
    return f"{said} reaches the threshold of {match.threshold:g}; verifying the index tells what is wrong"

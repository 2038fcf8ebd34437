"""Why two documents are not a pair in a generation, as far as their signatures and texts show."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.reindex.diff_result import Evidence
from nearsim_db.search.pair_wording import missed_threshold, separated, shared_too_few, unexplained
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import are_pairs
from nearsim_db.store import diffs, documents
from nearsim_db.store.diffs import DiffDocument
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import digest_uuid, sketches_from
from nearsim_db.store.generation_rows import Generation

_FIRST, _SECOND = np.zeros(1, np.int64), np.ones(1, np.int64)
_NO_EVIDENCE = Evidence(False, False, None, None)


class MissingPairs:
    """Explains pairs that a generation does not have. Without an `encoder` nothing is computed."""

    def __init__(
        self,
        connection: Connection,
        generation: Generation,
        encoder: Encoder | None,
        pairs: Sequence[tuple[int, int]],
    ) -> None:
        doc_ids = sorted({doc_id for pair in pairs for doc_id in pair})
        self._generation, self._encoder = generation, encoder
        self._documents = diffs.read_documents(connection, generation.leaves, doc_ids)
        self._features = self._read_features(connection, encoder, doc_ids) if encoder else {}

    def explain(self, left_id: int, right_id: int) -> tuple[Evidence, str]:
        """Return what can be computed of two documents, and the reason why they are not a pair."""
        left, right = self._documents[left_id], self._documents[right_id]
        for one in (left, right):
            reason = self._why_in_no_pair(one)
            if reason is not None:
                return _NO_EVIDENCE, f"{_name(one)} {reason}"
        if self._encoder is None:
            return (
                _NO_EVIDENCE,
                f"unknown: this version cannot read generation {self._generation.generation_id}",
            )
        return self._compare(self._encoder, left, right)

    def _why_in_no_pair(self, one: DiffDocument) -> str | None:
        """Return why a document can be in no pair at all, None if it can."""
        if not one.exists:
            return "was deleted"
        if one.waits:
            return "waits to be indexed"
        if one.feature_count is None:
            age = self._generation.recipe["retain"]["age"]
            return "is not indexed" if age == "none" else f"is older than the retention of {age}"
        return None if one.feature_count else "has no features"

    def _compare(self, encoder: Encoder, left: DiffDocument, right: DiffDocument) -> tuple[Evidence, str]:
        family = encoder.family
        sketches = sketches_from([one.sketch or b"" for one in (left, right)], family.dtype, family.k)
        shared, enough = encoder.match_bands(sketches[:1], sketches[1:])
        bands = int(shared[0])
        if encoder.profile.recipe.match.verify != "exact":
            scores = encoder.sketch_scores(sketches[:1], sketches[1:])
        else:
            for one in (left, right):
                if one.doc_id not in self._features:
                    changed = f"the text of {_name(one)} has changed since it was indexed"
                    return Evidence(False, False, None, bands), changed
            features = [self._features[one.doc_id] for one in (left, right)]
            scores = encoder.compare(features, _FIRST, _SECOND)
        evidence = Evidence(False, False, float(scores.similarity[0]), bands)
        return evidence, _reason(encoder, scores, bands, enough=bool(enough[0]))

    def _read_features(
        self, connection: Connection, encoder: Encoder, doc_ids: Sequence[int]
    ) -> dict[int, NDArray[Any]]:
        """Return the features of the documents whose text is the one that was signed."""
        found: dict[int, NDArray[Any]] = {}
        if not doc_ids:
            return found
        streamed = documents.stream_documents(
            connection, self._generation.collection_id, doc_ids, vectors=encoder.takes_vectors
        )
        with closing(streamed) as batches:
            for batch in batches:
                contents = [encoder.content_of(one.title, one.body, one.vector) for one in batch]
                features = encoder.features(contents)
                for position, one in enumerate(batch):
                    own = features.of(position).copy()
                    if digest_uuid(encoder.digest(own)) == self._documents[one.doc_id].digest:
                        found[one.doc_id] = own
        return found


def _name(one: DiffDocument) -> str:
    """Return a document's external id, or its number if it was deleted."""
    return f"#{one.doc_id}" if one.external_id is None else repr(one.external_id)


def _reason(encoder: Encoder, scores: Scores, bands: int, *, enough: bool) -> str:
    profile, metric = encoder.profile, encoder.metric.name
    if not are_pairs(encoder, scores, np.array([bands]))[0]:
        missed = missed_threshold(metric, scores, profile)
        return missed if enough else f"{missed}; {shared_too_few(profile, bands)}"
    if not enough:
        return shared_too_few(profile, bands)
    return separated(profile) if profile.recipe.match.bucket_limit else unexplained(metric, scores, profile)

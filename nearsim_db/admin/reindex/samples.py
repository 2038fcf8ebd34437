"""A sample of the differences between two generations, with texts and the reasons why two are no pair."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearsim_db.admin.reindex.diff_result import SampledDocument, SampledPair, Samples
from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing.context import make_encoder
from nearsim_db.search.explain import missed_threshold, separated, shared_too_few, unexplained
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.screening import are_pairs
from nearsim_db.similarity.text.markup import strip_html
from nearsim_db.store import diffs, documents, reports
from nearsim_db.store.diffs import DiffDocument, DiffPair, GenerationTables, PairInGeneration
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import digest_uuid, sketches_from
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.reports import ReadText

_TEXT_CHARACTERS = 10_000
_FIELDS = ("title", "body")
_BEFORE_TWINS, _NOW_TWINS = "before: identical features", "now: identical features"
_OTHER_RECIPE = "the shingling or metric changed, so similarity differs"


def read_samples(
    connection: Connection, live: Generation, new: Generation, amount: int, backend: str | None
) -> Samples:
    """Draw at most `amount` of each kind, after pairs and clusters were counted in the same transaction."""
    if not amount:
        return Samples((), (), (), (), ())
    both = GenerationTables(live.leaves, new.leaves)
    return Samples(
        _absent(connection, live, new, diffs.sample_lost(connection, both, amount), backend, are_lost=True),
        _absent(
            connection, live, new, diffs.sample_gained(connection, both, amount), backend, are_lost=False
        ),
        _rescored(connection, live, new, diffs.sample_rescored(connection, both, amount)),
        tuple(diffs.sample_merged(connection, both, amount)),
        tuple(diffs.sample_split(connection, both, amount)),
    )


def _absent(
    connection: Connection,
    live: Generation,
    new: Generation,
    chosen: list[DiffPair],
    backend: str | None,
    *,
    are_lost: bool,
) -> tuple[SampledPair, ...]:
    """Complete pairs that are lost in the new generation, or gained: that the live one lacks."""
    own, other = (live, new) if are_lost else (new, live)
    texts = _SampledTexts(connection, own, (live, new), chosen)
    missing = MissingPairs(connection, other, _encoder(other, backend), _ids(chosen))
    sampled = []
    for one in chosen:
        found, reason = missing.explain(one.left_id, one.right_id)
        if are_lost:
            before, after = _evidence(one.live, live), found
            why = f"{_BEFORE_TWINS}; now: {reason}" if before.twins else f"now: {reason}"
        else:
            before, after = found, _evidence(one.new, new)
            why = f"before: {reason}; {_NOW_TWINS}" if after.twins else f"before: {reason}"
        sampled.append(SampledPair(*texts.sides(one), one.pairs, before, after, why))
    return tuple(sampled)


def _rescored(
    connection: Connection, live: Generation, new: Generation, chosen: list[DiffPair]
) -> tuple[SampledPair, ...]:
    texts = _SampledTexts(connection, new, (live, new), chosen)
    sampled = []
    for one in chosen:
        before, after = _evidence(one.live, live), _evidence(one.new, new)
        why = _BEFORE_TWINS if before.twins else _NOW_TWINS if after.twins else _OTHER_RECIPE
        sampled.append(SampledPair(*texts.sides(one), one.pairs, before, after, why))
    return tuple(sampled)


class _SampledTexts:
    """The documents of some pairs with their texts, as far as they exist."""

    def __init__(
        self,
        connection: Connection,
        generation: Generation,
        both: Sequence[Generation],
        chosen: Sequence[DiffPair],
    ) -> None:
        doc_ids = sorted({doc_id for pair in _ids(chosen) for doc_id in pair})
        recipes = [one.recipe for one in both]
        self._fields = [name for name in _FIELDS if any(name in one["fields"] for one in recipes)]
        self._html = any(one["normalise"]["html"] for one in recipes)
        self._documents = diffs.read_documents(connection, generation.leaves, doc_ids)
        self._texts = reports.read_texts(
            connection, generation.leaves, generation.collection_id, doc_ids, _TEXT_CHARACTERS
        )

    def sides(self, pair: DiffPair) -> tuple[SampledDocument, SampledDocument]:
        """Return the two documents of a pair."""
        return self._side(pair.left_id), self._side(pair.right_id)

    def _side(self, doc_id: int) -> SampledDocument:
        one, text = self._documents[doc_id], self._texts.get(doc_id)
        name = f"#{doc_id}" if one.external_id is None else one.external_id
        if text is None:
            return SampledDocument(name, doc_id, one.title, None, False, False)
        is_cut = (text.characters or 0) > _TEXT_CHARACTERS
        return SampledDocument(name, doc_id, one.title, self._content(text), is_cut, text.stale)

    def _content(self, text: ReadText) -> str:
        """Return what either recipe compares of a document."""
        values = {"title": text.title, "body": text.body}
        content = "\n\n".join(value for name in self._fields if (value := values[name]))
        return strip_html(content) if self._html else content


def _evidence(pair: PairInGeneration | None, generation: Generation) -> PairInGeneration:
    """Complete the evidence of a pair by the recipe; twins share all bands."""
    assert pair is not None
    shared = generation.bands if pair.twins else pair.shared_bands
    is_exact = generation.recipe["match"]["verify"] == "exact"
    return replace(pair, shared_bands=shared, verified=pair.twins or is_exact)


def _ids(chosen: Sequence[DiffPair]) -> list[tuple[int, int]]:
    return [(one.left_id, one.right_id) for one in chosen]


def _encoder(generation: Generation, backend: str | None) -> Encoder | None:
    """Return the encoder of a generation, None if this version would make different sketches."""
    try:
        return make_encoder(generation, backend)
    except (FingerprintError, RecipeError):
        return None


_FIRST, _SECOND = np.zeros(1, np.int64), np.ones(1, np.int64)
_NO_EVIDENCE = PairInGeneration(False, False, None, None, None)


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

    def explain(self, left_id: int, right_id: int) -> tuple[PairInGeneration, str]:
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

    def _compare(
        self, encoder: Encoder, left: DiffDocument, right: DiffDocument
    ) -> tuple[PairInGeneration, str]:
        family = encoder.family
        sketches = sketches_from([one.sketch or b"" for one in (left, right)], family.dtype, family.k)
        shared, enough = encoder.match_bands(sketches[:1], sketches[1:])
        bands = int(shared[0])
        is_exact = encoder.profile.recipe.match.verify == "exact"
        if not is_exact:
            scores = encoder.sketch_scores(sketches[:1], sketches[1:])
        else:
            for one in (left, right):
                if one.doc_id not in self._features:
                    changed = f"the text of {_name(one)} has changed since it was indexed"
                    return PairInGeneration(False, False, None, bands, None), changed
            features = [self._features[one.doc_id] for one in (left, right)]
            scores = encoder.compare(features, _FIRST, _SECOND)
        evidence = PairInGeneration(False, False, float(scores.similarity[0]), bands, is_exact)
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
        missed = missed_threshold(metric, scores, profile, bands)
        return missed if enough else f"{missed}; {shared_too_few(profile, bands)}"
    if not enough:
        return shared_too_few(profile, bands)
    if profile.recipe.match.bucket_limit:
        return separated(profile)
    return unexplained(metric, scores, profile, bands)

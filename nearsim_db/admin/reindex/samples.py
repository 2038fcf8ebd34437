"""A sample of the differences between two generations, with texts, and the reason why one of them lacks a pair."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from nearsim_db.errors import FingerprintError, RecipeError
from nearsim_db.indexing.context import make_encoder
from nearsim_db.search.pair_figures import (
    PairFigures,
    read_contents,
    separated,
    shared_too_few,
)
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.text.pages import shown_text
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import sketches_from
from nearsim_db.store.generations.diffs import (
    ChangedCluster,
    ComparedTables,
    DiffDocument,
    DiffPair,
    PairInGeneration,
)
from nearsim_db.store.generations.generation_rows import Generation

_MAX_TEXT_CHARACTERS = 10_000
_BEFORE_TWINS, _NOW_TWINS = "before: identical features", "now: identical features"
_OTHER_RECIPE = "the shingling or metric changed, so similarity differs"
_NO_EVIDENCE = PairInGeneration(False, False, None, None, None)


@dataclass(frozen=True, slots=True)
class SampledDocument:
    """A document of a sampled pair."""

    id: str  # the external id, or #doc_id if the document was deleted
    doc_id: int
    title: str | None
    text: str | None  # the fields that either recipe compares, None if they cannot be read
    is_cut: bool  # whether `text` is only the beginning of the text
    stale: bool  # whether the text has changed since it was compared


@dataclass(frozen=True, slots=True)
class SampledPair:
    """A pair that differs between two generations."""

    left: SampledDocument
    right: SampledDocument
    pairs: int  # how many pairs this one represents: pairs of documents with the same features as these two
    live: PairInGeneration
    new: PairInGeneration
    why: str  # the reason why the generations differ


@dataclass(frozen=True, slots=True)
class Samples:
    """A random sample of the differences; for the same two generations it is always the same."""

    lost: tuple[SampledPair, ...]
    gained: tuple[SampledPair, ...]
    rescored: tuple[SampledPair, ...]
    merged: tuple[ChangedCluster, ...]
    split: tuple[ChangedCluster, ...]


def read_samples(
    connection: Connection, live: Generation, new: Generation, count: int, backend: str | None
) -> Samples:
    """Draw at most `count` differences of each kind, after they were counted in the same transaction."""
    if not count:
        return Samples((), (), (), (), ())
    both = ComparedTables(live.tables(connection), new.tables(connection))

    def completed(chosen: list[DiffPair]) -> tuple[SampledPair, ...]:
        return tuple(_complete(connection, live, new, chosen, backend)) if chosen else ()

    return Samples(
        completed(both.sample_absent("live", count)),
        completed(both.sample_absent("new", count)),
        completed(both.sample_rescored(count)),
        tuple(both.sample_clusters("new", count)),
        tuple(both.sample_clusters("live", count)),
    )


def _complete(
    connection: Connection, live: Generation, new: Generation, chosen: list[DiffPair], backend: str | None
) -> Iterator[SampledPair]:
    """Complete pairs of one kind with their texts, and with figures and a reason if a generation lacks them."""
    # All pairs are of the same kind, so look at the first.
    are_lost, are_gained = chosen[0].new is None, chosen[0].live is None
    texts = _SampledTexts(connection, live if are_lost else new, (live, new), chosen)
    missing = None
    if are_lost or are_gained:
        missing = _MissingPairs(connection, new if are_lost else live, backend, chosen)

    for pair in chosen:
        computed, reason = (_NO_EVIDENCE, "") if missing is None else missing.explain(pair)
        before, after = _evidence(pair.live, live, computed), _evidence(pair.new, new, computed)
        if are_lost:
            why = f"{_BEFORE_TWINS}; now: {reason}" if before.twins else f"now: {reason}"
        elif are_gained:
            why = f"before: {reason}; {_NOW_TWINS}" if after.twins else f"before: {reason}"
        else:
            why = _BEFORE_TWINS if before.twins else _NOW_TWINS if after.twins else _OTHER_RECIPE
        left, right = texts.side(pair.left_id), texts.side(pair.right_id)
        yield SampledPair(left, right, pair.pairs, before, after, why)


def _evidence(
    pair: PairInGeneration | None, generation: Generation, computed: PairInGeneration
) -> PairInGeneration:
    """Return the evidence of a stored pair, or the computed evidence if there is no stored pair.

    Two things are not stored, because they follow from the recipe: the number of bands that twins share, and whether
    the similarity is exact.
    """
    if pair is None:
        return computed
    shared = generation.bands if pair.twins else pair.shared_bands
    is_exact = generation.recipe["match"]["verify"] == "exact"
    return replace(pair, shared_bands=shared, verified=pair.twins or is_exact)


class _SampledTexts:
    """The documents of sampled pairs, with their texts; deleted documents have no text."""

    def __init__(
        self,
        connection: Connection,
        generation: Generation,
        both: Sequence[Generation],
        chosen: Sequence[DiffPair],
    ) -> None:
        """Read the documents of pairs from `generation`, which is the one of `both` that has the pairs.

        Texts have the fields that either recipe compares.
        """
        doc_ids, recipes = _doc_ids(chosen), [generation.recipe for generation in both]
        self._fields = [
            name for name in ("title", "body") if any(name in recipe["fields"] for recipe in recipes)
        ]
        self._html = any(recipe["normalise"]["html"] for recipe in recipes)
        tables = generation.tables(connection)
        self._documents = tables.diff.read_documents(doc_ids)
        self._texts = tables.report.read_texts(generation.collection_id, doc_ids, _MAX_TEXT_CHARACTERS)

    def side(self, doc_id: int) -> SampledDocument:
        """Return a document of a pair, with the text that either recipe compares."""
        document, text = self._documents[doc_id], self._texts.get(doc_id)
        name = f"#{doc_id}" if document.external_id is None else document.external_id
        if text is None:
            return SampledDocument(name, doc_id, document.title, None, False, False)
        content = shown_text({"title": text.title, "body": text.body}, self._fields, html=self._html)
        is_cut = (text.characters or 0) > _MAX_TEXT_CHARACTERS
        return SampledDocument(name, doc_id, document.title, content, is_cut, text.stale)


def _doc_ids(chosen: Sequence[DiffPair]) -> list[int]:
    return sorted({doc_id for pair in chosen for doc_id in (pair.left_id, pair.right_id)})


class _MissingPairs:
    """Explains why a generation does not have certain pairs.

    If this version would make different sketches for the generation, nothing is computed.
    """

    def __init__(
        self, connection: Connection, generation: Generation, backend: str | None, pairs: Sequence[DiffPair]
    ) -> None:
        self._generation = generation
        self._documents = generation.tables(connection).diff.read_documents(_doc_ids(pairs))
        self._encoder: Encoder | None = None
        with suppress(FingerprintError, RecipeError):
            self._encoder = make_encoder(generation, backend)
        self._features: dict[int, NDArray[Any]] = {}
        if self._encoder is None:
            return

        doc_ids = list(self._documents)
        contents = read_contents(connection, generation.collection_id, self._encoder, doc_ids)
        features = self._encoder.features(list(contents.values()))
        for position, doc_id in enumerate(contents):
            # Skip texts that have changed since they were signed: their features would not explain anything.
            document_features = features.of(position)
            digest = self._documents[doc_id].digest
            if digest is not None and self._encoder.is_digest(digest, document_features, doc_id):
                self._features[doc_id] = document_features

    def explain(self, pair: DiffPair) -> tuple[PairInGeneration, str]:
        """Return the computed evidence of two documents, and the reason why they are not a pair."""
        both = [self._documents[doc_id] for doc_id in (pair.left_id, pair.right_id)]
        for document in both:
            reason = self._why_in_no_pair(document)
            if reason is not None:
                return _NO_EVIDENCE, f"{_name(document)} {reason}"
        if self._encoder is None:
            return (
                _NO_EVIDENCE,
                f"unknown: this version cannot read generation {self._generation.generation_id}",
            )

        features = [self._features[document.doc_id] for document in both if document.doc_id in self._features]
        sketches = sketches_from([document.sketch or b"" for document in both], self._encoder.family)
        figures = PairFigures.of(self._encoder, sketches, features if len(features) == len(both) else None)
        if self._encoder.is_exact and figures.scores is None:
            changed = next(_name(document) for document in both if document.doc_id not in self._features)
            evidence = PairInGeneration(False, False, None, figures.shared_bands, None)
            return evidence, f"the text of {changed} has changed since it was indexed"

        similarity = float(figures.decisive.similarity[0])
        evidence = PairInGeneration(False, False, similarity, figures.shared_bands, self._encoder.is_exact)
        if (rules := self._encoder.field_rules) is not None:
            labels = rules.labels_of([document.digest for document in both if document.digest is not None])
            if (excluded := rules.exclusion(labels[:1], labels[1:])) is not None:
                return evidence, excluded[1]
        return evidence, _reason(figures)

    def _why_in_no_pair(self, document: DiffDocument) -> str | None:
        """Return why a document cannot be in any pair; None if it can be."""
        if not document.exists:
            return "was deleted"
        if document.waits:
            return "waits to be indexed"
        if document.feature_count is None:
            age = self._generation.recipe["retain"]["age"]
            return "is not indexed" if age == "none" else f"is older than the retention of {age}"
        return None if document.feature_count else "has no features"


def _name(document: DiffDocument) -> str:
    """Return a document's external id, or its number if it was deleted."""
    return f"#{document.doc_id}" if document.external_id is None else repr(document.external_id)


def _reason(figures: PairFigures) -> str:
    profile = figures.encoder.profile
    reasons = [] if figures.reaches else [figures.missed_threshold()]
    reasons += [] if figures.unequal_sizes is None else [figures.unequal_sizes]
    reasons += [] if figures.enough else [shared_too_few(profile, figures.shared_bands)]
    if reasons:
        return "; ".join(reasons)
    return separated(profile) if profile.recipe.match.bucket_limit else figures.unexplained()

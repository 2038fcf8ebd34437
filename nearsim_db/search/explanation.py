"""The explanation of two documents, their exact figures, and a recipe under which they would be a pair."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.similarity.encoder import Content, Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import override
from nearsim_db.similarity.screening import are_certain
from nearsim_db.store import documents
from nearsim_db.store.driver import Connection
from nearsim_db.store.generation_rows import Generation
from nearsim_db.store.query_rows import SharedBucket

ReasonKind = Literal[
    "vetoed",
    "pinned",
    "twins",
    "pair",
    "not_indexed",
    "no_features",
    "below_threshold",
    "too_few_shared_bands",
    "bucket_limit",
    "unexplained",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why two documents are a pair, or are not, as a word for programs and as a sentence."""

    kind: ReasonKind
    text: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A changed recipe, computed on the texts of the two documents.

    `settings` are `key=value`, as for `--set`; `bands`, `rows` and `shared_bands` are those under the changed recipe,
    and `probability` is that of becoming candidates at this similarity. `sufficient`: the two would be candidates.
    """

    settings: tuple[str, ...]
    bands: int
    rows: int
    shared_bands: int
    probability: float
    sufficient: bool


@dataclass(frozen=True, slots=True)
class ExplainedDocument:
    """One of two documents: `text` is what the profile compares, `only_here` the numbers that the other lacks.

    `only_here` is None while a text is newer than the index.
    """

    id: str
    title: str | None
    text: str
    only_here: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The evidence for two documents as a pair in a live generation.

    `similarity`, `intersection`, `union` and `distance` are computed from the present texts, also of two documents
    that are no pair; None if a document has no features, its text cannot be read, or this version would make
    different sketches. `stored_similarity` is that of the stored pair, an estimate unless `verified`. `probability`
    is that of two documents of this similarity becoming candidates. `estimate`, `shared_bands` and `buckets` are
    from the stored sketches. `bands` of `rows` values are those of the index, of which `required` must be shared.
    `remedy` is a recipe under which they would be a pair.
    """

    left: ExplainedDocument
    right: ExplainedDocument
    collection: str
    profile: str
    generation: int
    metric: str
    is_pair: bool
    are_twins: bool
    same_cluster: bool
    similarity: float | None
    intersection: int | None
    union: int | None
    distance: float | None
    stored_similarity: float | None
    estimate: float | None
    threshold: float
    shared_bands: int | None
    required: str
    bands: int
    rows: int
    bucket_limit: int
    buckets: tuple[SharedBucket, ...]
    probability: float | None
    numbers_differ: bool | None
    verified_at: datetime | None
    verdict: str | None
    verdict_by: str | None
    verdict_why: str | None
    reasons: tuple[Reason, ...]
    remedy: Remedy | None
    verified: bool | None

    @property
    def signature_similarity(self) -> float | None:
        """The share of equal values among the distinct ones of two MinHash signatures, m / (2 k - m) for m of k equal.

        None for other metrics than Jaccard. The estimate is m / k.
        """
        if self.estimate is None or self.metric != "jaccard":
            return None
        return round(self.estimate / (2 - self.estimate), 6)


_FIRST, _SECOND = np.zeros(1, np.int64), np.ones(1, np.int64)
_RECALLS = (0.99, 0.999, 0.9999, 0.99999, 0.999999)
_DIGITS = 4  # of a proposed threshold


@dataclass(frozen=True, slots=True)
class PairFigures:
    """Exact scores of one pair; `contents` are what was compared.

    `decisive` are the scores that the recipe compares with its threshold: the exact ones, or those of the sketches.
    `is_certain`: as candidates they are a pair at any similarity, by the bands that they share.
    """

    encoder: Encoder
    contents: tuple[Content, Content]
    scores: Scores
    decisive: Scores
    is_certain: bool

    @property
    def reaches(self) -> bool:
        """Whether the two as candidates are a pair: they reach the threshold, or share enough bands."""
        return self.is_certain or self.would_reach(self.encoder.profile.recipe.match.threshold)

    def would_reach(self, threshold: float) -> bool:
        """Whether the two reach a threshold."""
        return bool(self.encoder.metric.reaches(self.decisive, threshold)[0])

    @property
    def similarity(self) -> float:
        """The exact similarity."""
        return float(self.scores.similarity[0])

    @property
    def probability(self) -> float:
        """The probability that a pair of this similarity becomes a candidate under the profile."""
        return self.encoder.profile.match_probability(self.similarity)


def measure(
    connection: Connection, generation: Generation, encoder: Encoder, doc_ids: tuple[int, int]
) -> PairFigures | None:
    """Compare the present texts or vectors of two documents.

    None if one has no features, or its text in an attached table is not the recorded one.
    """
    contents = _read_contents(connection, generation, encoder, doc_ids)
    if contents is None:
        return None
    features = encoder.features(contents)
    own = [features.of(0), features.of(1)]
    if not (len(own[0]) and len(own[1])):
        return None
    scores = decisive = encoder.compare(own, _FIRST, _SECOND)
    match, sketches = encoder.profile.recipe.match, encoder.sketch(features)
    if match.verify != "exact":
        decisive = encoder.sketch_scores(sketches[:1], sketches[1:])
    shared, _ = encoder.match_bands(sketches[:1], sketches[1:])
    return PairFigures(encoder, contents, scores, decisive, bool(are_certain(match, shared)[0]))


def _read_contents(
    connection: Connection, generation: Generation, encoder: Encoder, doc_ids: tuple[int, int]
) -> tuple[Content, Content] | None:
    found: dict[int, Content] = {}
    streamed = documents.stream_documents(
        connection, generation.collection_id, doc_ids, vectors=encoder.takes_vectors
    )
    with closing(streamed) as batches:
        for one in (one for batch in batches for one in batch):
            found[one.doc_id] = encoder.content_of(one.title, one.body, one.vector)
    if len(found) < len(doc_ids):
        return None
    return found[doc_ids[0]], found[doc_ids[1]]


def find_remedy(figures: PairFigures, needed_limit: int | None) -> Remedy | None:
    """Return a small change of the recipe under which two documents would be a pair, as far as one is known.

    A threshold that they miss is moved to their similarity; if they then share too few bands, bands for a higher recall
    are tried, up to 0.999999. `needed_limit` is a bucket limit that would link them, None if none is needed; buckets of
    other bands are not known. None if their similarity is 0 or no bands suit the threshold.
    """
    settings: tuple[str, ...] = ()
    if not figures.reaches:
        threshold = next((one for one in _thresholds(figures) if figures.would_reach(one)), None)
        if threshold is None:
            return None
        settings = (f"match.threshold={threshold!r}",)
    elif needed_limit is not None:
        settings = (f"match.bucket_limit={needed_limit}",)
    remedy = None
    for more in ((), *((f"bands.recall={one!r}",) for one in _higher_recalls(figures.encoder.profile))):
        changed = _under(figures, (*settings, *more))
        if changed is None:
            return remedy
        remedy = changed
        if remedy.sufficient:
            break
    return remedy


def _higher_recalls(profile: Profile) -> list[float]:
    """Return recalls to try; a recipe with fixed bands has none, and each would replace its bands."""
    return [one for one in _RECALLS if one > (profile.recipe.bands.recall or 0)]


def _under(figures: PairFigures, settings: tuple[str, ...]) -> Remedy | None:
    """Return what the two documents share under a changed recipe; None if no bands suit it."""
    try:
        profile = resolve(override(figures.encoder.profile.recipe, settings))
    except RecipeError:
        return None
    encoder = Encoder(profile, figures.encoder.backend)
    sketches = encoder.sketch(encoder.features(figures.contents))
    shared, enough = encoder.match_bands(sketches[:1], sketches[1:])
    probability = profile.match_probability(figures.similarity)
    return Remedy(settings, profile.bands, profile.rows, int(shared[0]), probability, bool(enough[0]))


def _thresholds(figures: PairFigures) -> Iterator[float]:
    """Yield the strictest thresholds of few digits that the two may reach, strictest first."""
    scores = figures.decisive
    if scores.distance is None:
        scale = 10**_DIGITS
        at = math.floor(scores.similarity[0] * scale)
        yield from (one / scale for one in range(at, max(at - 2, 0), -1))
    elif 0 < (distance := float(scores.distance[0])) < math.inf:
        places = _DIGITS - 1 - math.floor(math.log10(distance))
        at = math.ceil(distance * 10.0**places)
        yield from (one / 10.0**places for one in (at, at + 1))


def required_bands(profile: Profile) -> str:
    """Return how many shared bands make a candidate: a number, or the recipe's amplification."""
    minimum = profile.amplification.min_shared_bands
    return str(profile.amplification) if minimum is None else str(minimum)

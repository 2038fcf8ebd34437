"""Measure what two documents share under a profile, describe it, and find a recipe under which they would be a pair."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from nearsim_db.errors import RecipeError
from nearsim_db.messages import count_of
from nearsim_db.records import CollectionId
from nearsim_db.similarity.arrays import FeatureSets, Sketches
from nearsim_db.similarity.encoder import Content, Encoder
from nearsim_db.similarity.metrics import Scores
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import override
from nearsim_db.similarity.recipe.sections import METRIC_OF_FAMILY
from nearsim_db.similarity.runs import longest_runs
from nearsim_db.similarity.screening import are_certain, are_pairs
from nearsim_db.similarity.sketch.winnow import run_probability, windows_of
from nearsim_db.store.documents import documents
from nearsim_db.store.driver import Connection

_FIRST, _SECOND = np.zeros(1, np.int64), np.ones(1, np.int64)
_RECALLS = (0.99, 0.999, 0.9999, 0.99999, 0.999999)
_THRESHOLD_DIGITS = 4  # significant digits of a proposed threshold
_MEASURES = {"euclidean": "distance", "cosine": "cosine"}


def read_contents(
    connection: Connection, collection_id: CollectionId, encoder: Encoder, doc_ids: Sequence[int]
) -> dict[int, Content]:
    """Return the present texts or vectors of documents, except for texts that changed in an attached table."""
    streamed = documents.stream_documents(connection, collection_id, doc_ids, vectors=encoder.takes_vectors)
    with closing(streamed) as batches:
        return {
            document.doc_id: encoder.content_of(document.title, document.body, document.vector)
            for batch in batches
            for document in batch
        }


@dataclass(frozen=True, slots=True)
class PairFigures:
    """What two documents with features share."""

    encoder: Encoder
    scores: Scores | None  # scores of the features, None if only the sketches are available
    sketch_scores: Scores
    shared_bands: int
    enough: bool  # whether the shared bands satisfy the recipe
    run: int | None = None  # under winnow, the length of the longest run of shingles that both documents have
    window: int | None = None  # under winnow, the larger of their windows, in shingles
    sizes: tuple[int, int] | None = (
        None  # numbers of distinct features, None if only the sketches are available
    )

    @classmethod
    def of(cls, encoder: Encoder, sketches: Sketches, features: FeatureSets | None) -> "PairFigures":
        """Compare two documents by their sketches, (2, k), and their features."""
        shared, enough = encoder.match_bands(sketches[:1], sketches[1:])
        scores = None if features is None else encoder.compare(features, _FIRST, _SECOND)
        estimated = encoder.sketch_scores(sketches[:1], sketches[1:])
        run = window = None
        if features is not None and encoder.family.ordered:
            run = int(longest_runs(features, _FIRST, _SECOND, encoder.backend)[0])
            window = int(windows_of(sketches).max())
        sizes = None
        if features is not None:
            left, right = encoder.sizes(features).tolist()
            sizes = left, right
        return cls(encoder, scores, estimated, int(shared[0]), bool(enough[0]), run, window, sizes)

    @property
    def decisive(self) -> Scores:
        """The scores that the recipe compares with its threshold: scores of the features, or of the sketches."""
        if not self.encoder.is_exact:
            return self.sketch_scores
        assert self.scores is not None
        return self.scores

    @property
    def reaches(self) -> bool:
        """Whether the two documents would be a pair if they were candidates.

        They would if they reach the threshold or share enough bands.
        """
        return bool(are_pairs(self.encoder, self.decisive, np.array([self.shared_bands]))[0])

    @property
    def unequal_sizes(self) -> str | None:
        """Return why the numbers of features are too different for a pair, or None if they are not."""
        ratio = self.encoder.profile.recipe.match.length_ratio
        if self.sizes is None or not ratio or min(self.sizes) / max(self.sizes) >= ratio:
            return None
        smaller, larger = min(self.sizes), max(self.sizes)
        return (
            f"they have {smaller:,} and {larger:,} features, a ratio of {smaller / larger:.4f}, which is below "
            f"match.length_ratio = {ratio:g}"
        )

    def would_reach(self, threshold: float) -> bool:
        """Whether the two documents reach a threshold."""
        return bool(self.encoder.metric.reaches(self.decisive, threshold)[0])

    @property
    def similarity(self) -> float:
        """The exact similarity."""
        assert self.scores is not None
        return float(self.scores.similarity[0])

    @property
    def probability(self) -> float:
        """The probability that two documents of this similarity become candidates under the profile.

        Under winnow, it is the probability that two texts with such a longest common run share a fingerprint of it.
        """
        if self.window is not None and self.run is not None:
            return run_probability(self.run, self.window)
        return self.encoder.profile.match_probability(self.similarity)

    @property
    def chance(self) -> str:
        """Return a sentence about the probability that such documents become candidates."""
        subject = "pairs of this similarity"
        if self.run is not None:
            subject = "texts whose longest common run has this length"
        return f"{subject} become candidates with probability {self.probability:.4f}"

    def _measured(self) -> str:
        """Return the name and the value of the similarity or distance that decides."""
        scores = self.decisive
        values = scores.similarity if scores.distance is None else scores.distance
        value = value_of(self.encoder.profile, float(values[0]))
        return value if self.encoder.is_exact else f"the estimated {value}"

    def missed_threshold(self) -> str:
        """Return a sentence saying that the two miss the threshold, and share too few bands to be a pair without it."""
        profile, shared = self.encoder.profile, count_of(self.shared_bands, "band")
        side = "above" if self.encoder.metric.name == "euclidean" else "below"
        missed = f"{self._measured()} is {side} {threshold_of(profile)}"

        certain, words = profile.recipe.match.certain_shared_bands, profile.recipe.match.passage_words
        if words is not None:
            return f"{missed}, and they share no run of match.passage_words = {words} equal words"
        if not certain:
            return missed
        return f"{missed}, and they share {shared}, fewer than match.certain_shared_bands = {certain}"

    def unexplained(self) -> str:
        """Return a sentence saying that nothing explains why the two documents are not a pair."""
        profile = self.encoder.profile
        if are_certain(profile.recipe.match, np.array([self.shared_bands]))[0]:
            enough = f"they share {count_of(self.shared_bands, 'band')}"
        elif self.decisive.by_passage is not None and self.decisive.by_passage[0]:
            enough = (
                f"they share a run of match.passage_words = {profile.recipe.match.passage_words} equal words"
            )
        else:
            enough = f"{self._measured()} reaches {threshold_of(profile)}"
        return f"{enough}, but the pair is not stored; check the index with: nearsim verify-index"


def value_of(profile: Profile, value: float) -> str:
    """Return a similarity or distance with its name, such as "similarity 0.8125"."""
    metric = METRIC_OF_FAMILY[profile.recipe.sketch.family]
    return f"{_MEASURES.get(metric, 'similarity')} {value:.4f}"


def threshold_of(profile: Profile) -> str:
    """Return the words for a profile's threshold, such as "the threshold of 0.8"."""
    return f"the threshold of {profile.recipe.match.threshold:g}"


def shared_too_few(profile: Profile, shared: int) -> str:
    """Return a sentence saying that two documents share too few bands to be candidates."""
    required = required_bands(profile)
    is_winnow = profile.recipe.window is not None
    if not shared:
        return (
            "they share no fingerprint"
            if is_winnow
            else f"they share none of {count_of(profile.bands, 'band')}"
        )
    if required.isdigit():
        shared_count = count_of(shared, "fingerprint" if is_winnow else "band")
        return f"they share {shared_count}, and {required} are required"
    return f"they share {count_of(shared, 'band')}, and not those that {required} requires"


def separated(profile: Profile) -> str:
    """Return a sentence saying that the bucket limit keeps two documents from being compared."""
    limit = profile.recipe.match.bucket_limit
    return f"the bucket limit separates them: neither is among the first {limit} of a bucket that they share"


def required_bands(profile: Profile) -> str:
    """Return the shared bands that make a candidate: their number, or the recipe's amplification."""
    minimum = profile.amplification.min_shared_bands
    return str(profile.amplification) if minimum is None else str(minimum)


@dataclass(frozen=True, slots=True)
class Remedy:
    """A changed recipe, and what the two documents share under it."""

    settings: tuple[str, ...]  # key=value, as for `--set`
    bands: int
    rows: int
    shared_bands: int
    probability: float  # probability that two documents of this similarity become candidates
    sufficient: bool  # whether the two documents would be candidates


def find_remedy(figures: PairFigures, contents: Sequence[Content], needed_limit: int | None) -> Remedy | None:
    """Return a small change of the recipe that would make two documents a pair, or comes closest to that.

    `contents` are their texts or vectors. If they miss the threshold, it is moved to their similarity. If they then
    share too few bands, bands for a higher recall are tried, up to a recall of 0.999999. `needed_limit` is a bucket
    limit that would link them, None if the limit need not change; for other bands, the needed limit is not known.
    Returns None if their similarity is 0, or if no bands suit the threshold.
    """
    settings: tuple[str, ...] = ()
    if not figures.reaches:
        threshold = next((value for value in _thresholds(figures) if figures.would_reach(value)), None)
        if threshold is None:
            return None
        settings = (f"match.threshold={threshold!r}",)
    elif needed_limit is not None:
        settings = (f"match.bucket_limit={needed_limit}",)

    # A recipe with fixed bands has no recall, so any of these recalls replaces its bands.
    recall = figures.encoder.profile.recipe.bands.recall or 0
    attempts = [settings]
    attempts += [(*settings, f"bands.recall={higher!r}") for higher in _RECALLS if higher > recall]
    remedy = None
    for attempt in attempts:
        changed = _under(figures, contents, attempt)
        if changed is None:
            return remedy
        remedy = changed
        if remedy.sufficient:
            break
    return remedy


def _under(figures: PairFigures, contents: Sequence[Content], settings: tuple[str, ...]) -> Remedy | None:
    """Return what two documents share under a changed recipe; None if no bands suit it."""
    try:
        profile = resolve(override(figures.encoder.profile.recipe, settings))
    except RecipeError:
        return None

    encoder = Encoder(profile, figures.encoder.backend)
    encoder.freeze(figures.encoder.frequencies)
    features = encoder.features(contents)
    changed = PairFigures.of(encoder, encoder.sketch(features), [features.of(0), features.of(1)])
    return Remedy(
        settings, profile.bands, profile.rows, changed.shared_bands, changed.probability, changed.enough
    )


def _thresholds(figures: PairFigures) -> Iterator[float]:
    """Yield the strictest rounded thresholds that the two documents may reach, the strictest first."""
    scores = figures.decisive
    if scores.distance is None:
        scale = 10**_THRESHOLD_DIGITS
        largest = math.floor(scores.similarity[0] * scale)
        yield from (scaled / scale for scaled in range(largest, max(largest - 2, 0), -1))
    elif 0 < (distance := float(scores.distance[0])) < math.inf:
        places = _THRESHOLD_DIGITS - 1 - math.floor(math.log10(distance))
        smallest = math.ceil(distance * 10.0**places)
        yield from (scaled / 10.0**places for scaled in (smallest, smallest + 1))

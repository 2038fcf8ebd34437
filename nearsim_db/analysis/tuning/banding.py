"""What a profile will find on the corpus, and what that will cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nearsim_db.analysis.tuning.distinct import DistinctSets, Floats, Ints
from nearsim_db.analysis.tuning.pair_sample import PairSample
from nearsim_db.errors import RecipeError
from nearsim_db.similarity.candidate_forecast import MANY_CANDIDATES
from nearsim_db.similarity.encoder import Encoder, Features
from nearsim_db.similarity.profile import Profile, make_family, resolve
from nearsim_db.similarity.recipe import Recipe, override

RECALLS = (0.9, 0.95, 0.99, 0.999)
SKETCHES = (64, 128, 256)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_LARGER = (128, 256, 512, 1024)
_POINTS = 200
_SKETCHED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of a banding. Recalls are in 0..1; `pairs` of different texts are at the threshold or above.

    `recall_at` is that of a pair right at the threshold, `recall` that of all pairs from there on: the S-curve over the
    histogram. `candidates` are candidate pairs per document of a text of its own, without a bucket limit.
    """

    threshold: float
    k: int
    wanted_recall: float | None
    bands: int
    rows: int
    recall_at: float
    recall: float
    pairs: float
    candidates: float
    bytes_per_document: int


@dataclass(frozen=True)
class Corpus:
    """The sets of a sample, its pairs, and how much larger the corpus is: `documents` of it, `sampled` here."""

    sets: DistinctSets
    pairs: PairSample
    documents: int
    sampled: int

    @cached_property
    def grown(self) -> Floats:
        """How many texts of the corpus stand behind each of the sample: one in how many such texts gets into it.

        A text that came once is taken to be there once, one that came more often that much more often than it came: it
        had that many more chances.
        """
        share, members = self.sampled / self.documents, self.sets.members
        if share == 1:
            return np.ones(len(members))
        chances = np.where(members == 1, 1.0, members / share)
        return np.asarray(1 / (1 - (1 - share) ** chances), np.float64)

    @cached_property
    def weight(self) -> Floats:
        """How many pairs of texts of the corpus stand behind each pair of the sample."""
        return self.pairs.weight * self.grown[self.pairs.left] * self.grown[self.pairs.right]

    @property
    def identical_pairs(self) -> float:
        """How many pairs of documents of the corpus have the same features."""
        size = self.sampled
        return self.sets.twin_pairs * self.documents * (self.documents - 1) / (size * (size - 1))

    def forecast(self, profile: Profile) -> Forecast:
        """What the profile will find and cost."""
        probability = _probabilities(profile, self.pairs.similarity)
        weight, threshold = self.weight, profile.recipe.match.threshold
        similar = self.pairs.similarity >= threshold - 1e-12
        wanted = float(weight[similar].sum())
        recall = float((weight * probability)[similar].sum()) / wanted if wanted else profile.expected_recall
        candidates = float((weight * probability).sum()) / max(float(self.grown.sum()), 1.0)
        return Forecast(
            threshold,
            profile.recipe.sketch.k,
            profile.recipe.bands.recall,
            profile.bands,
            profile.rows,
            profile.expected_recall,
            recall,
            wanted,
            candidates,
            profile.bytes_per_document(),
        )

    def kept_by_limit(self, profile: Profile) -> float:
        """The share of the pairs found that the bucket limit leaves linked, counted on the pairs of the sample.

        A document's place in its bucket is taken to grow with the corpus.
        """
        limit = profile.recipe.match.bucket_limit * self.sampled / self.documents
        similar = self.pairs.similarity >= profile.recipe.match.threshold - 1e-12
        left, right = self.pairs.left[similar], self.pairs.right[similar]
        if not limit or not len(left):
            return 1.0
        found, linked = _linked(_keys(profile, self.sets), left, right, max(limit, 1.0))
        weight = self.pairs.weight[similar]
        total = float(weight[found].sum())
        return float(weight[linked].sum()) / total if total else 1.0


def _probabilities(profile: Profile, similarity: Floats) -> Floats:
    """The S-curve at each similarity, between points that lie denser towards 0, where most pairs are."""
    points = (np.arange(_POINTS + 1) / _POINTS) ** 2
    family = make_family(profile.recipe, "numpy")
    curve = [
        profile.amplification.probability(family.collision_probability(point)) for point in points.tolist()
    ]
    return np.asarray(np.interp(similarity, points, curve), np.float64)


def _keys(profile: Profile, sets: DistinctSets) -> NDArray[np.uint64]:
    encoder = Encoder(profile)
    keys = []
    for begin in range(0, len(sets), _SKETCHED_AT_ONCE):
        offsets = sets.offsets[begin : begin + _SKETCHED_AT_ONCE + 1]
        ids = sets.ids[offsets[0] : offsets[-1]]
        features = Features(ids, offsets - offsets[0], np.zeros(len(offsets) - 1, np.uint64))
        keys.append(encoder.band_keys(encoder.sketch(features)))
    return np.concatenate(keys)


def _linked(
    keys: NDArray[np.uint64], left: Ints, right: Ints, limit: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which pairs share a bucket, and which one where either is among the first of it."""
    found = np.zeros(len(left), bool)
    linked = np.zeros(len(left), bool)
    for band in range(keys.shape[1]):
        own = keys[:, band]
        order = np.argsort(own, kind="stable")
        places = np.arange(len(own))
        fresh = np.concatenate(([True], own[order][1:] != own[order][:-1]))
        place_in_bucket = np.empty(len(own), np.int64)
        place_in_bucket[order] = places - np.maximum.accumulate(np.where(fresh, places, 0))
        shared = own[left] == own[right]
        found |= shared
        linked |= shared & (np.minimum(place_in_bucket[left], place_in_bucket[right]) < limit)
    return found, linked


def with_threshold(recipe: Recipe, threshold: float, recall: float, k: int | None = None) -> Recipe:
    """The recipe with another threshold and recall, and perhaps size of sketch; bands are then chosen for them."""
    settings = [f"match.threshold={threshold!r}", f"bands.recall={recall!r}"]
    return override(recipe, settings if k is None else [*settings, f"sketch.k={k}"])


def choose_sketch(corpus: Corpus, recipe: Recipe, threshold: float, recall: float) -> tuple[Profile, str]:
    """The recipe's own sketch, or a larger one where it cannot reach the recall or would have many candidates.

    Raises RecipeError where no sketch reaches the recall.
    """
    own = recipe.sketch.k
    best: tuple[float, Profile] | None = None
    refused: RecipeError | None = None
    for k in (own, *(larger for larger in _LARGER if larger > own)):
        try:
            profile = resolve(with_threshold(recipe, threshold, recall, k))
        except RecipeError as error:
            refused = error
            continue
        expected = corpus.forecast(profile).candidates
        if best is None or expected < 0.8 * best[0]:
            best = expected, profile
        if best[0] <= MANY_CANDIDATES:
            break
    if best is None:
        assert refused is not None
        raise refused
    return best[1], _why_sketch(best[1].recipe.sketch.k, own, best[0])


def _why_sketch(k: int, own: int, expected: float) -> str:
    if k == own:
        few = f"as the recipe had it; about {expected:,.2f} candidate pairs per document are few enough"
        return (
            few
            if expected <= MANY_CANDIDATES
            else "as the recipe had it; more would hardly lessen the candidates"
        )
    return f"{own} would have more candidate pairs per document, or not reach the recall"


def alternatives(corpus: Corpus, recipe: Recipe, threshold: float) -> Iterator[Forecast]:
    """Other recalls and other sizes of sketch; those that cannot be are left out."""
    sizes = sorted({*SKETCHES, recipe.sketch.k})
    for k in sizes:
        for recall in RECALLS:
            yield from _forecasts(corpus, [with_threshold(recipe, threshold, recall, k)])


def thresholds(corpus: Corpus, recipe: Recipe, recall: float, chosen: float) -> Iterator[Forecast]:
    """Other thresholds beside the chosen one."""
    wanted = sorted({*THRESHOLDS, chosen})
    yield from _forecasts(corpus, [with_threshold(recipe, one, recall) for one in wanted])


def _forecasts(corpus: Corpus, recipes: Sequence[Recipe]) -> Iterator[Forecast]:
    for recipe in recipes:
        try:
            yield corpus.forecast(resolve(recipe))
        except RecipeError:
            continue

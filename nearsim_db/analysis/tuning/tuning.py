"""From a sample of documents to a proposed recipe, with everything that speaks for it."""

import math
from dataclasses import dataclass, field

import numpy as np

from nearsim_db.analysis.tuning import banding, findings, labels, shingling
from nearsim_db.analysis.tuning.banding import Corpus, Forecast
from nearsim_db.analysis.tuning.checks import Check, Units
from nearsim_db.analysis.tuning.distinct import DistinctSets, distinct_sets
from nearsim_db.analysis.tuning.histogram import Histogram, histogram, valley
from nearsim_db.analysis.tuning.labels import Labels, Point, Told
from nearsim_db.analysis.tuning.pair_sample import sample_pairs
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.shingling import Shingling
from nearsim_db.errors import InputError, RecipeError
from nearsim_db.records import Progress, silent
from nearsim_db.similarity import presets, recipe_warnings
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe

RECALL = 0.99
LEAST_THRESHOLD, MOST_THRESHOLD = 0.5, 0.95
LEAST_LABELLED = 0.1
_WEB_PAGES = f"--preset web-pages ({presets.load('web-pages').match.threshold:g})"
_STEPS = 20  # thresholds are proposed in steps of 0.05


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is not left to the corpus: the recall, perhaps the threshold, and which shingle keys (scheme, k) stay."""

    recall: float = RECALL
    threshold: float | None = None
    seed: int = 1
    kept: frozenset[str] = frozenset()


@dataclass(slots=True)
class Proposal:
    """A profile, and what to expect of it; `reasons` go by the keys of its recipe."""

    profile: Profile
    forecast: Forecast
    kept_by_limit: float
    reasons: dict[str, str]

    @property
    def promised_recall(self) -> float:
        """Of all pairs at the threshold or above, the bucket limit taken into account."""
        return self.forecast.recall * self.kept_by_limit


@dataclass(slots=True)
class Tuning:
    """What was found of a corpus, and the proposal that rests on it: or, where `refusal` says why, none."""

    sample: Sample
    shinglings: list[Shingling]
    shingling: Shingling
    near_pairs: int
    twins: int
    sets: int
    histogram: Histogram
    valley: float | None
    threshold: float
    proposed: Proposal | None
    refusal: str
    checks: list[Check]
    alternatives: list[Forecast]
    thresholds: list[Forecast]
    labels: Labels | None = None
    told: Told | None = None

    def required(self) -> Proposal:
        """The proposal. Raises RecipeError where there is none."""
        if self.proposed is None:
            raise RecipeError(f"no recipe is proposed: {self.refusal}")
        return self.proposed


@dataclass(slots=True)
class _Run:
    """What the steps share."""

    sample: Sample
    recipe: Recipe
    wishes: Wishes
    threads: int
    progress: Progress
    units: dict[str, Units] = field(default_factory=dict)
    unspaced: float = 0.0


def tune(
    sample: Sample,
    recipe: Recipe,
    wishes: Wishes = Wishes(),
    given: Labels | None = None,
    threads: int = 1,
    progress: Progress = silent,
) -> Tuning:
    """Propose shingles, threshold and bands for the documents that a sample was drawn from.

    `recipe` is the starting point, of which all else is kept. Where no bands reach the recall there is no proposal.
    Raises RecipeError for a recipe that does not compare by Jaccard, and InputError where there is too little to
    compare.
    """
    _check(sample, recipe)
    run = _Run(sample, recipe, wishes, threads, progress)
    looked_at = shingling.texts_looked_at(sample.texts, wishes.seed)
    scripts = recipe_warnings.TextSample()
    scripts.add(looked_at)
    run.unspaced = scripts.unspaced / max(scripts.texts, 1)
    told = _known_labels(sample, given)
    ways = shingling.candidates(recipe, wishes.kept)
    run.units = {
        unit: shingling.units(recipe, unit, looked_at)
        for unit in {shingling.unit_of(scheme) for scheme, _ in ways}
    }
    tests = shingling.find_test_pairs(
        recipe, sample.texts, run.unspaced >= 0.5, wishes.seed, threads, progress
    )
    judged = list(shingling.judge(recipe, ways, tests, run.units, threads, progress))
    if told is not None:
        judged = [shingling.with_f1(one, _told(run, told, one).best.f1) for one in judged]
    chosen, why = shingling.choose(
        judged, tests.near_pairs, run.unspaced, (recipe.shingle.scheme, recipe.shingle.k)
    )
    return _propose(run, judged, chosen, why, tests.near_pairs, told)


def _check(sample: Sample, recipe: Recipe) -> None:
    encoder = Encoder(resolve(recipe))
    if encoder.metric.name != "jaccard":
        raise RecipeError(
            f"tune proposes shingles and thresholds for Jaccard similarity; sketch.family {recipe.sketch.family} "
            f"estimates {encoder.metric.name}: see nearsim curve for its bands"
        )
    if recipe.match.amplification is not None:
        raise RecipeError(
            "tune chooses bands for a recall, or counts and rows; leave match.amplification out, and draw it with "
            "nearsim curve"
        )
    if len(sample.texts) < 2:
        raise InputError(
            f"{len(sample.texts)} of {sample.documents + sample.rejected} documents can be used; tune compares pairs: "
            "give at least two"
        )


def _known_labels(sample: Sample, given: Labels | None) -> Labels | None:
    if given is None:
        return None
    given.keep_known(sample.wanted)
    positive = sum(duplicate for _, _, duplicate in given.pairs)
    if positive == 0 or positive == len(given.pairs):
        raise InputError(
            f"{positive:,} of the {len(given.pairs):,} labelled pairs that can be used are duplicates; tune needs both "
            f"duplicates and others ({given.bad:,} lines cannot be used, {given.unknown:,} pairs name documents that "
            "are not there)"
        )
    return given


def _told(run: _Run, given: Labels, one: Shingling) -> Told:
    """Precision and recall of labelled pairs under a way to cut."""
    rows = {name: row for row, name in enumerate(run.sample.wanted)}
    encoder = Encoder(resolve(one.apply(run.recipe)))
    sets = distinct_sets(encoder, list(run.sample.wanted.values()), run.threads)
    left = np.array([rows[pair[0]] for pair in given.pairs], np.int64)
    right = np.array([rows[pair[1]] for pair in given.pairs], np.int64)
    duplicate = np.array([pair[2] for pair in given.pairs], bool)
    points = labels.precision_recall(shingling.similarities(sets, left, right), duplicate)
    positive = int(duplicate.sum())
    best = labels.best(points) or Point(1.0, 0.0, 0.0, 0.0)
    return Told(positive, len(duplicate) - positive, points, best)


def _propose(
    run: _Run, judged: list[Shingling], chosen: Shingling, why: str, near_pairs: int, given: Labels | None
) -> Tuning:
    sample, wishes = run.sample, run.wishes
    recipe = chosen.apply(run.recipe)
    sets = distinct_sets(Encoder(resolve(recipe)), sample.texts, run.threads, run.progress)
    _check_features(sample, sets)
    run.progress("compare", 0, None)
    pairs = sample_pairs(sets, wishes.seed)
    corpus = Corpus(sets, pairs, sample.documents, len(sample.texts))
    spread = histogram(pairs, corpus.weight, corpus.identical_pairs)
    told = None if given is None else _told(run, given, chosen)
    lowest = valley(spread)
    threshold, why_threshold = _threshold(wishes, told, lowest, recipe.match.threshold)
    reasons = {"shingle.scheme": f"{chosen.name}: {why}", "match.threshold": why_threshold}
    found = [
        *findings.of_shingles(corpus, chosen, recipe.hash.base),
        *findings.of_texts(corpus, chosen, run.unspaced),
        *(() if told is None else (findings.of_labels(told),)),
    ]
    proposed, refusal = None, ""
    try:
        proposed = _with_bands(corpus, recipe, threshold, wishes.recall, reasons)
        found += findings.of_cost(proposed.forecast, proposed.profile, proposed.kept_by_limit)
    except RecipeError as error:
        refusal = str(error)
        found.append(Check("bands", "problem", refusal))
    start = recipe if proposed is None else proposed.profile.recipe
    others = list(banding.alternatives(corpus, start, threshold))
    levels = list(banding.thresholds(corpus, start, wishes.recall, threshold))
    return Tuning(
        sample, judged, chosen, near_pairs, sets.twins, len(sets), spread, lowest, threshold, proposed, refusal, found,
        others, levels, given, told,
    )  # fmt: skip


def _check_features(sample: Sample, sets: DistinctSets) -> None:
    some = len(sample.texts) - sets.featureless
    if some < 2:
        raise InputError(
            f"{some} of the {len(sample.texts):,} documents looked at have features; tune compares pairs of texts: see "
            "which fields hold the text (--body-field), and whether the texts are there; for vectors see nearsim curve"
        )


def _with_bands(
    corpus: Corpus, recipe: Recipe, threshold: float, recall: float, reasons: dict[str, str]
) -> Proposal:
    """Bands for a threshold, with their reasons added. Raises RecipeError where none reach the recall."""
    profile, why_sketch = banding.choose_sketch(corpus, recipe, threshold, recall)
    forecast = corpus.forecast(profile)
    kept = corpus.kept_by_limit(profile)
    chosen = {"sketch.k": why_sketch, "bands.recall": _why_bands(forecast, kept)}
    return Proposal(profile, forecast, kept, reasons | chosen)


def _threshold(wishes: Wishes, told: Told | None, lowest: float | None, own: float) -> tuple[float, str]:
    if wishes.threshold is not None:
        return wishes.threshold, "as it was given"
    if told is not None and told.best.f1 > 0:
        value = labels.separating(told.points, told.best)
        why = f"the best F1 of the labelled pairs, {told.best.f1:.3f}"
        if value >= LEAST_LABELLED:
            return value, why
        return LEAST_LABELLED, (
            f"{why}, is at {value:g}, which is not taken: below {LEAST_LABELLED} bands seldom reach the recall, and "
            "cost most; --threshold takes a lower one"
        )
    if lowest is None:
        return own, (
            "as the recipe had it, for there is no clear valley between near and random pairs; look at the histogram, "
            "and at some pairs above and below"
        )
    value = math.floor(lowest * _STEPS + 0.5) / _STEPS
    if value < own < LEAST_THRESHOLD:
        return (
            own,
            f"as the recipe had it; near and random pairs part at {lowest:.2f}: --threshold takes a lower one",
        )
    if value < LEAST_THRESHOLD <= own:
        return LEAST_THRESHOLD, (
            f"near and random pairs part at {lowest:.2f}, but texts that share less than half of their shingles are "
            f"seldom meant, and cost more; for pages with menus and comments around the text take {_WEB_PAGES}, or "
            "give --threshold"
        )
    value = min(value, MOST_THRESHOLD)
    return value, f"the valley between near and random pairs, around {lowest:.2f}"


def _why_bands(forecast: Forecast, kept: float) -> str:
    return (
        f"{forecast.bands} bands of {forecast.rows} rows: {forecast.recall_at:.4f} of the pairs right at the threshold "
        f"and {forecast.recall * kept:.4f} of all above it are found, for about {forecast.candidates:,.2f} candidate "
        f"pairs and {forecast.bytes_per_document:,} bytes a document"
    )

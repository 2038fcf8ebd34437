"""The proposal: choice of threshold, sketch size and bands, and the recipe as TOML with its reasons."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from nearsim_db.analysis.tuning import labels
from nearsim_db.analysis.tuning.checks import Check
from nearsim_db.analysis.tuning.corpus import Corpus, Forecast
from nearsim_db.analysis.tuning.labels import Labels, LabelScores
from nearsim_db.analysis.tuning.pair_sample import Histogram
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.shingling import Shingling
from nearsim_db.errors import NearsimError, RecipeError
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, override, to_toml
from nearsim_db.similarity.recipe_warnings import MANY_CANDIDATES

RECALLS = (0.9, 0.95, 0.99, 0.995, 0.999)
SKETCHES = (64, 128, 256)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_LARGER = (128, 256, 512, 1024)
LEAST_THRESHOLD, MOST_THRESHOLD = 0.5, 0.95
LEAST_LABELLED = 0.1
_STEPS = 20  # thresholds are proposed in steps of 0.05
RECALL = 0.995
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """Recall to reach, an optional fixed threshold, the seed, and the shingle keys (scheme, k) to keep.

    `precision` is that which labelled pairs must have from the threshold on; None: the threshold of the best F1.
    """

    recall: float = RECALL
    threshold: float | None = None
    seed: int = 1
    kept: frozenset[str] = frozenset()
    precision: float | None = None


@dataclass(slots=True)
class Proposal:
    """A proposed profile with its forecast; `reasons` are by recipe key."""

    profile: Profile
    forecast: Forecast
    kept_by_limit: float
    reasons: dict[str, str]

    @property
    def promised_recall(self) -> float:
        """Expected recall of the pairs at or above the threshold, including losses to the bucket limit."""
        return self.forecast.recall * self.kept_by_limit


@dataclass(slots=True)
class Tuning:
    """Measurements of a corpus and the proposal based on them; without one, `refusal` is the reason."""

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
    label_scores: LabelScores | None = None

    def required(self) -> Proposal:
        """Return the proposal. Raises NearsimError if there is none."""
        if self.proposed is None:
            raise NearsimError(f"no recipe is proposed: {self.refusal}")
        return self.proposed


def choose_threshold(
    options: TuningOptions, label_scores: LabelScores | None, lowest: float | None, own: float
) -> tuple[float, str]:
    """Return the threshold and the reason; `lowest` is the valley, `own` the threshold of the recipe."""
    if options.threshold is not None:
        return options.threshold, "given"
    if label_scores is not None and label_scores.best.f1 > 0 and label_scores.separate:
        value, point = labels.separating(label_scores.points, label_scores.best), label_scores.best
        why = (
            f"the best F1 of the labelled pairs, {point.f1:.3f}"
            if options.precision is None
            else f"a precision of {point.precision:.3f} on the labelled pairs, at a recall of {point.recall:.3f}"
        )
        if value >= LEAST_LABELLED:
            return value, why
        return LEAST_LABELLED, (
            f"{why}, is at {value:g}, which is too low: below {LEAST_LABELLED} bands rarely reach the recall, and at "
            "high cost; set a lower threshold with --threshold"
        )
    if lowest is None:
        return own, (
            "the recipe's own, as there is no clear valley between near and random pairs; inspect the histogram and "
            "some pairs above and below it"
        )
    value = math.floor(lowest * _STEPS + 0.5) / _STEPS
    if value < own < LEAST_THRESHOLD:
        return (
            own,
            f"the recipe's own; near and random pairs separate at {lowest:.2f}: set that threshold with --threshold",
        )
    if value < LEAST_THRESHOLD <= own:
        return LEAST_THRESHOLD, (
            f"near and random pairs separate at {lowest:.2f}, but texts that share less than half of their shingles "
            "are rarely near-duplicates, and cost more; for extracts of the same pages with different menus or "
            "comments use --preset web-pages, or set --threshold"
        )
    value = min(value, MOST_THRESHOLD)
    return value, f"the valley between near and random pairs, at about {lowest:.2f}"


def with_threshold(recipe: Recipe, threshold: float, recall: float, k: int | None = None) -> Recipe:
    """Return the recipe with a threshold, a recall and optionally a sketch size, for which bands are chosen."""
    settings = [f"match.threshold={threshold!r}", f"bands.recall={recall!r}"]
    return override(recipe, settings if k is None else [*settings, f"sketch.k={k}"])


def choose_sketch(corpus: Corpus, recipe: Recipe, threshold: float, recall: float) -> tuple[Profile, str]:
    """Return the profile with the recipe's own sketch size, or a larger one to reach the recall or reduce candidates.

    Also returns the reason. Raises RecipeError if no sketch size reaches the recall.
    """
    own = recipe.sketch.k
    best: tuple[float, Profile] | None = None
    refused: RecipeError | None = None
    for k in _sketch_sizes(recipe, [own, *(larger for larger in _LARGER if larger > own)]):
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


def _sketch_sizes(recipe: Recipe, sizes: Sequence[int]) -> Sequence[int]:
    """Return the sizes that a sketch may have: its own only if the recipe lists its hash functions."""
    return sizes if recipe.sketch.coefficients is None else [recipe.sketch.k]


def _why_sketch(k: int, own: int, expected: float) -> str:
    if k != own:
        return f"{own} would give more candidate pairs per document, or not reach the recall"
    if expected <= MANY_CANDIDATES:
        return f"the recipe's own; about {expected:,.2f} candidate pairs per document are few enough"
    return "the recipe's own; a larger one would hardly reduce the candidates"


def alternatives(corpus: Corpus, recipe: Recipe, threshold: float) -> list[Forecast]:
    """Return forecasts for other recalls and sketch sizes; infeasible ones are omitted."""
    sizes = _sketch_sizes(recipe, sorted({*SKETCHES, recipe.sketch.k}))
    return _forecasts(
        corpus, (with_threshold(recipe, threshold, recall, k) for k in sizes for recall in RECALLS)
    )


def thresholds(corpus: Corpus, recipe: Recipe, recall: float, chosen: float) -> list[Forecast]:
    """Return forecasts for other thresholds and the chosen one."""
    return _forecasts(corpus, (with_threshold(recipe, one, recall) for one in sorted({*THRESHOLDS, chosen})))


def _forecasts(corpus: Corpus, recipes: Iterable[Recipe]) -> list[Forecast]:
    found = []
    for recipe in recipes:
        with suppress(RecipeError):
            found.append(corpus.forecast(resolve(recipe)))
    return found


def commented(recipe: Recipe, heading: str, reasons: Mapping[str, str]) -> str:
    """Return the recipe as TOML; `reasons`, by key path such as match.threshold, become comments above the keys."""
    lines = [*_comment(heading), ""]
    section = ""
    for line in to_toml(recipe).splitlines():
        if line.startswith("["):
            section = line.strip("[]") + "."
        reason = reasons.get(section + line.partition(" = ")[0])
        lines += [*(_comment(reason) if reason else ()), line]
    return "\n".join([*lines, ""])


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )

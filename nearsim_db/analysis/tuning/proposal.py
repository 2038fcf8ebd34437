"""Proposals: sketch size and bands for a threshold, and the recipe as TOML with the reasons as comments."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from nearsim_db.analysis.tuning.corpus import Forecast, SampledCorpus
from nearsim_db.errors import RecipeError
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, override, to_toml
from nearsim_db.similarity.recipe_warnings import MAX_CANDIDATES_PER_DOCUMENT

RECALLS = (0.9, 0.95, 0.99, 0.995, 0.999)
SKETCHES = (64, 128, 256)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_LARGER_SKETCHES = (128, 256, 512, 1024)
# A larger sketch is worth its size if it reduces the candidates to at most this fraction.
_MAX_SHARE_OF_CANDIDATES = 0.8
RECALL = 0.995
_COMMENT_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class TuningOptions:
    """Options of a tuning that the user sets."""

    recall: float = RECALL  # fraction of the pairs at the threshold that should be found
    threshold: float | None = None  # the threshold, None to choose one
    seed: int = 1
    # Keys, without their sections, that stay as in the recipe: scheme, k, linkage, passage, passage_gap.
    kept: frozenset[str] = frozenset()
    # The precision that labelled pairs should reach, None to maximise their F1
    precision: float | None = None
    is_across: bool = False  # whether a pair counts only if the values of its two documents differ

    @property
    def fixes_shingles(self) -> bool:
        """Whether both the scheme and the size of the shingles are fixed."""
        return {"scheme", "k"} <= self.kept


@dataclass(slots=True)
class Proposal:
    """A proposed profile with its forecast."""

    profile: Profile
    forecast: Forecast
    kept_by_limit: float  # fraction of the pairs sharing a bucket that the bucket limit keeps
    reasons: dict[str, str]  # by recipe key

    @property
    def promised_recall(self) -> float:
        """Expected recall of the pairs at or above the threshold, including losses to the bucket limit."""
        return self.forecast.recall * self.kept_by_limit


def propose(
    corpus: SampledCorpus, recipe: Recipe, threshold: float, recall: float, reasons: Mapping[str, str]
) -> Proposal:
    """Choose sketch size and bands for a threshold, with the reasons. Raises RecipeError if none reach the recall."""
    profile, sketch_reason = choose_sketch(corpus, recipe, threshold, recall)
    forecast = corpus.forecast(profile)
    kept = corpus.kept_by_limit(profile)
    share = forecast.recall * kept
    cost = f"about {forecast.candidates:,.2f} candidate pairs and {forecast.bytes_per_document:,} bytes per document"
    bands_reason = (
        f"{forecast.bands} bands of {forecast.rows} rows: {forecast.recall_at:.4f} of the pairs at the threshold and "
        f"{share:.4f} of all pairs from there on are found, for {cost}"
    )
    if recipe.sketch.family == "rare":
        sketch_reason = (
            f"the recipe's own; {share:.4f} of the pairs from the threshold on are found, for {cost}"
        )
    reasons = {**reasons, "sketch.k": sketch_reason, "bands.recall": bands_reason}
    return Proposal(profile, forecast, kept, reasons)


def with_threshold(recipe: Recipe, threshold: float, recall: float, k: int | None = None) -> Recipe:
    """Return the recipe with another threshold and recall, and optionally another sketch size.

    Resolving the recipe chooses the bands for these values.
    """
    settings = [f"match.threshold={threshold!r}"]
    # The family rare has no bands to choose: each of its ids is a key.
    if recipe.sketch.family != "rare":
        settings.append(f"bands.recall={recall!r}")
    return override(recipe, settings if k is None else [*settings, f"sketch.k={k}"])


def choose_sketch(
    corpus: SampledCorpus, recipe: Recipe, threshold: float, recall: float
) -> tuple[Profile, str]:
    """Return a profile and the reason for its sketch size.

    This is the recipe's size, or a larger size if that is needed to reach the recall or to reduce the candidates.
    Raises RecipeError if no sketch size reaches the recall.
    """
    recipe_k = recipe.sketch.k
    best: tuple[float, Profile] | None = None
    refused: RecipeError | None = None

    for k in _sketch_sizes(recipe, [recipe_k, *(k for k in _LARGER_SKETCHES if k > recipe_k)]):
        try:
            profile = resolve(with_threshold(recipe, threshold, recall, k))
        except RecipeError as error:
            refused = error
            continue
        candidates = corpus.forecast(profile).candidates
        if best is None or candidates < _MAX_SHARE_OF_CANDIDATES * best[0]:
            best = candidates, profile
        if best[0] <= MAX_CANDIDATES_PER_DOCUMENT:
            break

    if best is None:
        assert refused is not None
        raise refused
    candidates, profile = best
    return profile, _sketch_reason(profile.recipe.sketch.k, recipe_k, candidates)


def _sketch_sizes(recipe: Recipe, sizes: Sequence[int]) -> Sequence[int]:
    """Return the sizes that the sketch may have.

    If the recipe lists the hash functions, or the family is rare, the size stays as in the recipe.
    """
    is_fixed = recipe.sketch.coefficients is not None or recipe.sketch.family == "rare"
    return [recipe.sketch.k] if is_fixed else sizes


def _sketch_reason(k: int, recipe_k: int, candidates: float) -> str:
    if k != recipe_k:
        return f"{recipe_k} would give more candidate pairs per document, or not reach the recall"
    if candidates <= MAX_CANDIDATES_PER_DOCUMENT:
        return f"the recipe's own; about {candidates:,.2f} candidate pairs per document are few enough"
    return "the recipe's own; a larger one would hardly reduce the candidates"


def alternatives(corpus: SampledCorpus, recipe: Recipe, threshold: float) -> list[Forecast]:
    """Return forecasts for other recalls and sketch sizes, without combinations for which there are no bands.

    The list is empty for the family rare, whose bands are not chosen by a recall.
    """
    if recipe.sketch.family == "rare":
        return []
    sizes = _sketch_sizes(recipe, sorted({*SKETCHES, recipe.sketch.k}))
    return _forecasts(
        corpus, (with_threshold(recipe, threshold, recall, k) for k in sizes for recall in RECALLS)
    )


def thresholds(corpus: SampledCorpus, recipe: Recipe, recall: float, chosen: float) -> list[Forecast]:
    """Return forecasts for the chosen threshold and for other thresholds."""
    return _forecasts(
        corpus,
        (with_threshold(recipe, threshold, recall) for threshold in sorted({*THRESHOLDS, chosen})),
    )


def _forecasts(corpus: SampledCorpus, recipes: Iterable[Recipe]) -> list[Forecast]:
    forecasts = []
    for recipe in recipes:
        with suppress(RecipeError):
            forecasts.append(corpus.forecast(resolve(recipe)))
    return forecasts


def commented(recipe: Recipe, heading: str, reasons: Mapping[str, str]) -> str:
    """Return the recipe as TOML, with a comment above each key that has a reason.

    `reasons` are by key path, such as match.threshold.
    """
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
        _COMMENT_CHARACTERS,
        initial_indent="# ",
        subsequent_indent="# ",
        break_long_words=False,
        break_on_hyphens=False,
    )

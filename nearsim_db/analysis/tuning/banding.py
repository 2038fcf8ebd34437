"""Choice of sketch size and bands for a threshold and a recall, with the alternatives."""

from collections.abc import Iterator, Sequence

from nearsim_db.analysis.tuning.corpus import Corpus, Forecast
from nearsim_db.errors import RecipeError
from nearsim_db.similarity.candidate_forecast import MANY_CANDIDATES
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, override

RECALLS = (0.9, 0.95, 0.99, 0.995, 0.999)
SKETCHES = (64, 128, 256)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_LARGER = (128, 256, 512, 1024)


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
        few = f"the recipe's own; about {expected:,.2f} candidate pairs per document are few enough"
        return (
            few
            if expected <= MANY_CANDIDATES
            else "the recipe's own; a larger one would hardly reduce the candidates"
        )
    return f"{own} would give more candidate pairs per document, or not reach the recall"


def alternatives(corpus: Corpus, recipe: Recipe, threshold: float) -> Iterator[Forecast]:
    """Yield forecasts for other recalls and sketch sizes; infeasible ones are omitted."""
    sizes = sorted({*SKETCHES, recipe.sketch.k})
    for k in sizes:
        for recall in RECALLS:
            yield from _forecasts(corpus, [with_threshold(recipe, threshold, recall, k)])


def thresholds(corpus: Corpus, recipe: Recipe, recall: float, chosen: float) -> Iterator[Forecast]:
    """Yield forecasts for other thresholds and the chosen one."""
    wanted = sorted({*THRESHOLDS, chosen})
    yield from _forecasts(corpus, [with_threshold(recipe, one, recall) for one in wanted])


def _forecasts(corpus: Corpus, recipes: Sequence[Recipe]) -> Iterator[Forecast]:
    for recipe in recipes:
        try:
            yield corpus.forecast(resolve(recipe))
        except RecipeError:
            continue

"""The command `nearsim curve`: draw the S-curves of bands and recipes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options, recipes
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import NotFoundError, RecipeError

if TYPE_CHECKING:
    from nearsim_db.analysis.curves import Curve
    from nearsim_db.similarity.amplification import Sensitivity

# More curves could not be distinguished in one plot.
_MAX_CURVES = 50


def curve(
    *,
    constructions: Annotated[
        list[str] | None,
        options.argument(
            "CURVE",
            'Bands x rows, such as 25x2; 25x2@3 requires 3 shared bands. Or an amplification, "or(4, and(4))".',
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="SIMILARITY",
            help="Threshold at which to measure false negatives and false positives. "
            "(default: the threshold of the profile or recipe)",
        ),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            metavar="DISTANCE",
            help="With --far: show the least probability of pairs at this distance (1 - similarity, or degrees) or "
            "nearer.",
        ),
    ] = None,
    far: Annotated[
        float | None,
        typer.Option(
            metavar="DISTANCE",
            help="With --near: show the greatest probability of pairs at this distance or farther.",
        ),
    ] = None,
    near_probability: Annotated[
        float | None,
        typer.Option(
            metavar="PROBABILITY",
            help="With --near, --far and --far-probability: also draw the smallest construction with at least this "
            "probability at --near, in the metric of the first curve.",
        ),
    ] = None,
    far_probability: Annotated[
        float | None,
        typer.Option(
            metavar="PROBABILITY",
            help="With --near-probability: the largest probability at --far of the drawn construction.",
        ),
    ] = None,
    min_shared_bands: Annotated[
        int, typer.Option(min=1, metavar="M", help="Number of shared bands to require of curves without @M.")
    ] = 1,
    profile: Annotated[
        str | None, options.profile_option("Profile whose curve to draw.", envvar=None)
    ] = None,
    collection: options.Collection = None,
    recipe_options: recipes.RecipeOptions,
    output: Annotated[Path | None, options.output_option("Image file to write, .svg or .png.")] = None,
    result: options.Result,
) -> None:
    """Draw the probability of becoming candidates by similarity.

    An amplification is written from the outside in: "or(4, and(4))" means any of 4 bands of 4 rows. If only --near and
    --far are given, they apply to the default recipe.
    """
    from nearsim_db.analysis import curves
    from nearsim_db.cli.output import plots

    if output is not None and output.suffix.lower() not in curves.SUFFIXES:
        raise UsageError(
            f"the suffix of {output} is no image format: end it in {' or '.join(curves.SUFFIXES)}"
        )

    drawn = [curves.of_text(text, min_shared_bands) for text in constructions or ()]
    if profile is not None:
        drawn.append(_of_stored(collection, profile))

    wanted = _wanted_sensitivity(near, far, near_probability, far_probability)
    chosen = recipe_options.chosen_if_any()

    # Two distances without a curve apply to the default recipe.
    if chosen is None and near is not None and not drawn and wanted is None:
        chosen = recipe_options.chosen()

    if chosen is not None:
        from nearsim_db.similarity.profile import resolve

        file, changed = recipe_options.recipe, "recipe" if recipe_options.settings else "default"
        name = file.stem if file is not None else recipe_options.preset or changed
        drawn.append(curves.of_profile(name, resolve(chosen)))

    # Bands are designed over the axis of the first curve, by default Jaccard similarity.
    if wanted is not None:
        drawn.append((drawn[0] if drawn else curves.of_text("1x1")).design(wanted))

    threshold = _chosen_threshold(drawn, threshold)
    sensitivities = _sensitivities(drawn, near, far)
    measures = [curves.measure(curve, threshold) for curve in drawn]
    if output is not None:
        curves.draw(drawn, measures, threshold, sensitivities, output)

    figures = plots.figures(drawn, measures, threshold, sensitivities)
    result.show(figures, lambda: plots.print_curves(drawn, measures, threshold, sensitivities))


def _of_stored(collection: str | None, name: str) -> "Curve":
    from nearsim_db.analysis import curves
    from nearsim_db.search.answers import list_newest, profile_of

    with options.Scope(collection).answers() as answers:
        for generation in list_newest(answers.database, answers.collection):
            if generation.profile == name:
                return curves.of_profile(name, profile_of(generation))
    raise NotFoundError(f"collection {answers.collection!r} has no profile {name!r}")


def _wanted_sensitivity(
    near: float | None, far: float | None, near_probability: float | None, far_probability: float | None
) -> "Sensitivity | None":
    """Return the distances and probabilities for which to design bands, None if no probabilities are given.

    Raises UsageError if some of the four options are missing.
    """
    from nearsim_db.similarity.amplification import Sensitivity

    if (near is None) != (far is None):
        raise UsageError("a sensitivity is that of two distances; give both --near and --far")
    if near_probability is None and far_probability is None:
        return None
    if near is None or far is None or near_probability is None or far_probability is None:
        raise UsageError("a design takes all of --near, --far, --near-probability and --far-probability")
    return Sensitivity(near, far, near_probability, far_probability)


def _sensitivities(drawn: "list[Curve]", near: float | None, far: float | None) -> "list[Sensitivity] | None":
    if near is None or far is None:
        return None
    try:
        return [curve.sensitivity(near, far) for curve in drawn]
    except RecipeError as error:
        raise UsageError(f"--near and --far: {error}") from error


def _chosen_threshold(drawn: "list[Curve]", wanted: float | None) -> float | None:
    """Return --threshold, otherwise the threshold that all drawn profiles and recipes share, if they share one."""
    if not 1 <= len(drawn) <= _MAX_CURVES:
        raise UsageError(
            "no curve given: name bands x rows such as 25x2, an amplification, --profile, --recipe or --preset"
            if not drawn
            else f"{len(drawn)} curves given; at most {_MAX_CURVES} can be drawn"
        )

    metrics = {curve.metric for curve in drawn}
    if len(metrics) > 1:
        raise UsageError(
            f"{' and '.join(sorted(metrics))} have no common axis; draw them one at a time "
            "(bands and amplifications are drawn over Jaccard similarity)"
        )

    thresholds = {curve.threshold for curve in drawn if curve.threshold is not None}
    if wanted is None:
        return thresholds.pop() if len(thresholds) == 1 else None

    low, high = min(curve.low for curve in drawn), max(curve.high for curve in drawn)
    if not low <= wanted <= high:
        raise UsageError(f"--threshold {wanted:g} is outside the axis, {low:g} to {high:g}")
    return wanted

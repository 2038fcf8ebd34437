"""The command `nearsim curve`: draw the S-curves of bands and recipes."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import completion, formats, options, recipes
from nearsim_db.cli.failures import UsageError
from nearsim_db.cli.formats import Format
from nearsim_db.errors import NotFoundError, RecipeError

if TYPE_CHECKING:
    from nearsim_db.analysis.curves import Curve, Measures
    from nearsim_db.similarity.lsh import Sensitivity

_MOST = 50  # curves that can be distinguished in one plot
_POINTS = 100


def curve(
    *,
    constructions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CURVE",
            help='Bands x rows, e.g. 25x2; 25x2@3 requires 3 shared bands; or an amplification, "or(4, and(4))".',
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="SIMILARITY",
            help="Threshold at which to measure false negatives and false positives. "
            "(default: that of the profile or recipe)",
            show_default=False,
        ),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            metavar="DISTANCE",
            help="With --far: show the least probability of pairs at this distance or nearer. Jaccard distances are "
            "1 - similarity, those of cosines are degrees.",
            show_default=False,
        ),
    ] = None,
    far: Annotated[
        float | None,
        typer.Option(
            metavar="DISTANCE",
            help="With --near: show the greatest probability of pairs at this distance or farther.",
            show_default=False,
        ),
    ] = None,
    near_probability: Annotated[
        float | None,
        typer.Option(
            metavar="PROBABILITY",
            help="With --near, --far and --far-probability: also draw the fewest bands, and their rows, with at least "
            "this probability at --near.",
            show_default=False,
        ),
    ] = None,
    far_probability: Annotated[
        float | None,
        typer.Option(
            metavar="PROBABILITY", help="At most this probability at --far, see above.", show_default=False
        ),
    ] = None,
    min_shared_bands: Annotated[
        int,
        typer.Option(
            "--min-shared-bands",
            min=1,
            metavar="M",
            help="Shared bands to require without @M.",
        ),
    ] = 1,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            "-p",
            metavar="NAME",
            autocompletion=completion.profiles,
            help="Profile whose curve to draw.",
        ),
    ] = None,
    collection: options.Collection = options.DEFAULT,
    recipe_options: recipes.RecipeOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            parser=formats.path,
            help="Image file to write, .svg or .png.",
        ),
    ] = None,
    format: formats.ResultFormat = Format.TABLE,
) -> None:
    """Draw S-curves: the probability that two documents become candidates, by their similarity.

    An amplification is written from the outside in: "or(4, and(4))" means any of 4 bands of 4 rows. --near and --far
    alone are of the default recipe.
    """
    from nearsim_db.analysis import curves

    if output is not None and output.suffix.lower() not in curves.SUFFIXES:
        raise UsageError(
            f"the suffix of {output} is no image format: end it in {' or '.join(curves.SUFFIXES)}"
        )
    drawn = [_of_text(one, min_shared_bands) for one in constructions or ()]
    if profile is not None:
        drawn.append(_of_stored(collection, profile))
    designed = _designed(near, far, near_probability, far_probability)
    chosen = recipe_options.chosen_if_any()
    if chosen is None and near is not None and not (drawn or designed):
        chosen = recipe_options.chosen()
    if chosen is not None:
        from nearsim_db.similarity.profile import resolve

        file = recipe_options.recipe
        name = (
            file.stem
            if file is not None
            else recipe_options.preset or ("recipe" if recipe_options.settings else "default")
        )
        drawn.append(curves.of_profile(name, resolve(chosen)))
    drawn += designed
    threshold = _chosen_threshold(drawn, threshold)
    sensitivities = _sensitivities(drawn, near, far)
    measures = [curves.measure(one, threshold) for one in drawn]
    if output is not None:
        curves.draw(drawn, measures, threshold, output)
    if format.is_machine:
        _print_figures(format, drawn, measures, threshold, sensitivities)
    else:
        _print(drawn, measures, threshold)
        _print_sensitivities(sensitivities)


def _of_text(text: str, min_shared_bands: int) -> "Curve":
    """Return the curve of an argument. Raises UsageError if it is invalid."""
    from nearsim_db.analysis import curves

    try:
        return curves.of_text(text, min_shared_bands)
    except RecipeError as error:
        raise UsageError(str(error)) from error


def _of_stored(collection: str, name: str) -> "Curve":
    from nearsim_db.analysis import curves
    from nearsim_db.index import Index

    with Index.connect(collection=collection) as index:
        for generation, profile in index.profiles():
            if generation.profile == name:
                return curves.of_profile(name, profile)
    raise NotFoundError(f"collection {collection!r} has no profile {name!r}")


def _designed(
    near: float | None, far: float | None, near_probability: float | None, far_probability: float | None
) -> "list[Curve]":
    """Return the bands designed for the distances and probabilities, if there are any.

    Raises UsageError if options are missing or no bands suffice.
    """
    from nearsim_db.analysis import curves
    from nearsim_db.similarity import lsh

    if (near is None) != (far is None):
        raise UsageError("a sensitivity is that of two distances; give both --near and --far")
    if near_probability is None and far_probability is None:
        return []
    if near is None or far is None or near_probability is None or far_probability is None:
        raise UsageError("a design takes all of --near, --far, --near-probability and --far-probability")
    try:
        found = lsh.design_bands(lsh.Sensitivity(near, far, near_probability, far_probability))
    except RecipeError as error:
        raise UsageError(str(error)) from error
    return [curves.of_text(f"{found.bands}x{found.rows}")]


def _sensitivities(drawn: "list[Curve]", near: float | None, far: float | None) -> "list[Sensitivity] | None":
    if near is None or far is None:
        return None
    try:
        return [one.sensitivity(near, far) for one in drawn]
    except RecipeError as error:
        raise UsageError(f"--near and --far: {error}") from error


def _chosen_threshold(drawn: "list[Curve]", wanted: float | None) -> float | None:
    """Return --threshold, otherwise the threshold that all profiles and recipes share, if any."""
    if not 1 <= len(drawn) <= _MOST:
        raise UsageError(
            "no curve given: name bands x rows such as 25x2, an amplification, --profile, --recipe or --preset"
            if not drawn
            else f"{len(drawn)} curves given; at most {_MOST} can be drawn"
        )
    metrics = {one.metric for one in drawn}
    if len(metrics) > 1:
        raise UsageError(
            f"{' and '.join(sorted(metrics))} have no common axis; draw them one at a time "
            "(bands and amplifications are drawn over Jaccard similarity)"
        )
    thresholds = {one.threshold for one in drawn if one.threshold is not None}
    if wanted is None:
        return thresholds.pop() if len(thresholds) == 1 else None
    low, high = min(one.low for one in drawn), max(one.high for one in drawn)
    if not low <= wanted <= high:
        raise UsageError(f"--threshold {wanted:g} is outside the axis, {low:g} to {high:g}")
    return wanted


def _print(drawn: "list[Curve]", measures: "list[Measures]", threshold: float | None) -> None:
    from nearsim_db.analysis.curves import AXES
    from nearsim_db.cli.output import plots, tables, terminal

    low, high = min(one.low for one in drawn), max(one.high for one in drawn)
    plots.draw([one.probability for one in drawn], low, high, threshold, sys.stdout)
    terminal.print_line()
    if drawn[0].metric != "jaccard":
        terminal.print_line(f"The axis is the {AXES[drawn[0].metric]}.")
    for number, one in enumerate(drawn):
        terminal.print_line(f"{plots.mark(number)} {one.label}, {one.amplification.functions:,} functions")
    terminal.print_line()
    tables.print_table(
        ("", "steepest at", "(1/b)^(1/r)", "fixed point"),
        [
            (plots.mark(number), measured.steepest, measured.approximate_steepest, measured.fixed_point)
            for number, measured in enumerate(measures)
        ],
    )
    if threshold is None:
        return
    terminal.print_line()
    terminal.print_line(f"At the threshold {threshold:g}, with the error areas in units of the axis:")
    tables.print_table(
        ("", "probability", "false negatives", "false positives"),
        [
            (
                plots.mark(number),
                measured.found,
                measured.areas.false_negatives,
                measured.areas.false_positives,
            )
            for number, measured in enumerate(measures)
            if measured.areas is not None
        ],
    )


def _print_sensitivities(found: "list[Sensitivity] | None") -> None:
    from nearsim_db.cli.output import plots, tables, terminal

    if found is None:
        return
    near, far = found[0].near_distance, found[0].far_distance
    terminal.print_line()
    terminal.print_line(f"At distances of at most d1 = {near:g} and of at least d2 = {far:g}:")
    tables.print_table(
        ("", "p1: at least", "p2: at most"),
        [
            (plots.mark(number), _below_one(one.near_probability), f"{one.far_probability:.7g}")
            for number, one in enumerate(found)
        ],
    )


def _below_one(probability: float) -> str:
    """Format a lower bound; one below 1 is not rounded to 1."""
    shown = f"{probability:.7g}"
    return "0.9999999" if shown == "1" and probability < 1 else shown


def _print_figures(
    format: Format,
    drawn: "list[Curve]",
    measures: "list[Measures]",
    threshold: float | None,
    sensitivities: "list[Sensitivity] | None",
) -> None:
    from nearsim_db.cli.output.documents import print_document

    print_document(
        format,
        {
            "metric": drawn[0].metric,
            "threshold": threshold,
            "curves": [
                _described(one, measured, None if sensitivities is None else sensitivities[number])
                for number, (one, measured) in enumerate(zip(drawn, measures, strict=True))
            ],
        },
    )


def _described(one: "Curve", measured: "Measures", sensitivity: "Sensitivity | None") -> dict[str, object]:
    construction = one.amplification
    steps = (one.low + (one.high - one.low) * step / _POINTS for step in range(_POINTS + 1))
    return {
        "name": one.name,
        "amplification": str(construction),
        "functions": construction.functions,
        "bands": construction.bands,
        "rows": construction.rows,
        "steepest_point": measured.steepest,
        "approximate_steepest_point": measured.approximate_steepest,
        "fixed_point": measured.fixed_point,
        "probability_at_threshold": measured.found,
        "false_negative_area": measured.areas.false_negatives if measured.areas else None,
        "false_positive_area": measured.areas.false_positives if measured.areas else None,
        "sensitivity": None if sensitivity is None else asdict(sensitivity),
        "points": [[round(at, 10), one.probability(at)] for at in steps],
    }

"""The command curve."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearsim_db.cli import options
from nearsim_db.cli.failures import UsageError
from nearsim_db.errors import NotFoundError, RecipeError

if TYPE_CHECKING:
    from nearsim_db.analysis.curves import Curve, Figures

_MOST = 8  # curves that can be told apart
_POINTS = 100


def curve(
    constructions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CURVE",
            help='Bands x rows, as 25x2; 25x2@3: at least 3 bands; or an amplification, as "or(4, and(4))".',
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            help="Also what a curve gets wrong there: false negatives and positives. "
            "(default: that of the profile or recipe)",
            show_default=False,
        ),
    ] = None,
    min_shared_bands: Annotated[
        int, typer.Option("--min-shared-bands", min=1, metavar="M", help="Of bands x rows without @M.")
    ] = 1,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", metavar="NAME", help="Also what this profile does.")
    ] = None,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    recipe: options.RecipeFile = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="Draw a picture there: .svg or .png."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw S-curves: how probable it is that two documents become candidates, by their similarity.

    An amplification is written from the outside in: "or(4, and(4))" is any of 4 bands of 4 rows.
    """
    from nearsim_db.analysis import curves

    if output is not None and output.suffix.lower() not in curves.SUFFIXES:
        raise UsageError(f"the ending of {output} tells no format: end it in {' or '.join(curves.SUFFIXES)}")
    drawn = [_of_text(one, min_shared_bands) for one in constructions or ()]
    if profile is not None:
        drawn.append(_of_stored(collection, profile))
    if recipe is not None or preset is not None or settings:
        from nearsim_db.similarity.profile import resolve

        chosen = options.chosen_recipe(recipe, preset, settings)
        drawn.append(curves.of_profile(recipe.stem if recipe else preset or "recipe", resolve(chosen)))
    threshold = _chosen_threshold(drawn, threshold)
    figures = [curves.measure(one, threshold) for one in drawn]
    if output is not None:
        curves.draw(drawn, figures, threshold, output)
    if as_json:
        _print_json(drawn, figures, threshold)
    else:
        _print(drawn, figures, threshold)


def _of_text(text: str, min_shared_bands: int) -> "Curve":
    """An argument that is no curve is wrong usage, as an option that cannot be is."""
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


def _chosen_threshold(drawn: "list[Curve]", given: float | None) -> float | None:
    """The threshold that is asked for, else the one that all profiles among the curves have."""
    if not 1 <= len(drawn) <= _MOST:
        raise UsageError(
            "name what to draw: bands x rows such as 25x2, an amplification, --profile, --recipe or --preset"
            if not drawn
            else f"these are {len(drawn)} curves; at most {_MOST} can be told apart"
        )
    metrics = {one.metric for one in drawn}
    if len(metrics) > 1:
        raise UsageError(
            f"{' and '.join(sorted(metrics))} have no common axis; draw them one by one "
            "(constructions as such are drawn over Jaccard similarity)"
        )
    known = {one.threshold for one in drawn if one.threshold is not None}
    if given is None:
        return known.pop() if len(known) == 1 else None
    low, high = min(one.low for one in drawn), max(one.high for one in drawn)
    if not low <= given <= high:
        raise UsageError(f"--threshold {given:g} is outside of what is drawn, {low:g} to {high:g}")
    return given


def _print(drawn: "list[Curve]", figures: "list[Figures]", threshold: float | None) -> None:
    from nearsim_db.analysis.curves import AXES
    from nearsim_db.cli.output import plots, tables, terminal

    low, high = min(one.low for one in drawn), max(one.high for one in drawn)
    plots.draw([one.probability for one in drawn], low, high, threshold, sys.stdout)
    terminal.print_line()
    if drawn[0].metric != "jaccard":
        terminal.print_line(f"The axis is the {AXES[drawn[0].metric]}.")
    for number, one in enumerate(drawn):
        written = str(one.amplification)
        name = one.name if one.name == written else f"{one.name}: {written}"
        terminal.print_line(f"{plots.mark(number)} {name}, {one.amplification.functions:,} functions")
    terminal.print_line()
    tables.print_table(
        ("", "steepest at", "(1/b)^(1/r)", "fixed point"),
        [
            (plots.mark(number), known.steepest, known.approximate_steepest, known.fixed_point)
            for number, known in enumerate(figures)
        ],
    )
    if threshold is None:
        return
    terminal.print_line()
    terminal.print_line(
        f"At the threshold {threshold:g}; areas between a curve and a step, in units of the axis:"
    )
    tables.print_table(
        ("", "probability", "false negatives", "false positives"),
        [
            (plots.mark(number), known.found, known.areas.false_negatives, known.areas.false_positives)
            for number, known in enumerate(figures)
            if known.areas is not None
        ],
    )


def _print_json(drawn: "list[Curve]", figures: "list[Figures]", threshold: float | None) -> None:
    from nearsim_db.cli.output import terminal

    terminal.print_json(
        {
            "metric": drawn[0].metric,
            "threshold": threshold,
            "curves": [_described(one, known) for one, known in zip(drawn, figures, strict=True)],
        }
    )


def _described(one: "Curve", known: "Figures") -> dict[str, object]:
    construction = one.amplification
    steps = (one.low + (one.high - one.low) * step / _POINTS for step in range(_POINTS + 1))
    return {
        "name": one.name,
        "amplification": str(construction),
        "functions": construction.functions,
        "bands": construction.bands,
        "rows": construction.rows,
        "steepest_point": known.steepest,
        "approximate_steepest_point": known.approximate_steepest,
        "fixed_point": known.fixed_point,
        "probability_at_threshold": known.found,
        "false_negative_area": known.areas.false_negatives if known.areas else None,
        "false_positive_area": known.areas.false_positives if known.areas else None,
        "points": [[round(at, 10), one.probability(at)] for at in steps],
    }

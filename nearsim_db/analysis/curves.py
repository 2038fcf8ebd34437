"""S-curves: the probability that a pair becomes a candidate, by its similarity or distance.

A curve is that of a number of bands and rows, of an amplification, or of a profile. `measure` returns its steepest
point and its errors at a threshold; `draw` writes an image.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearsim_db.errors import NearsimError, RecipeError
from nearsim_db.messages import count_of
from nearsim_db.readers.output import open_output
from nearsim_db.similarity import lsh
from nearsim_db.similarity.amplification import Amplification, Sensitivity, banding, parse
from nearsim_db.similarity.lsh import Bin
from nearsim_db.similarity.profile import Profile, make_family
from nearsim_db.similarity.sensitivity_design import design
from nearsim_db.similarity.sketch.winnow import run_probability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_BANDS = re.compile(r"\s*([0-9]{1,5})\s*[xX×]\s*([0-9]{1,5})\s*(?:@\s*([0-9]{1,5})\s*)?")
# Distances have no upper bound, so a distance axis ends at this multiple of the threshold.
_MAX_THRESHOLDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Curve:
    """The probability that a pair becomes a candidate, by its similarity or distance from `low` to `high`.

    The axis of a profile's curve depends on its metric: the distance for euclidean, the number of equal words in a row
    for containment, the similarity for all others. The axis of bands or an amplification without a profile is the
    probability that one hash function agrees; for minhash this is the Jaccard similarity.
    """

    name: str
    amplification: Amplification
    probability: Callable[[float], float]  # of becoming a candidate, at a point of the axis
    metric: str = "jaccard"  # jaccard, weighted_jaccard, cosine, euclidean or containment
    low: float = 0.0
    high: float = 1.0
    # The profile's threshold, on the axis. For containment, a shared run of this length always gives a candidate.
    threshold: float | None = None
    windows: str | None = None  # description of the windows of winnow, None for other families
    # The probability that one hash function agrees, at a point of the axis.
    agreement: Callable[[float], float] = lambda similarity: similarity

    @property
    def label(self) -> str:
        """The name, followed by the amplification or the windows unless the name says the same."""
        construction = self.windows or str(self.amplification)
        return construction if self.name == construction else f"{self.name}: {construction}"

    @property
    def is_falling(self) -> bool:
        """Whether the axis is a distance."""
        return self.metric == "euclidean"

    def sensitivity(self, near: float, far: float) -> Sensitivity:
        """Return the sensitivity at two distances: 1 - Jaccard similarity, an angle in degrees, or Euclidean.

        Raises RecipeError if a distance is out of the metric's range, or `near` is not smaller than `far`.
        """
        self._check_distances(near, far)
        return Sensitivity.of(near, far, lambda distance: self.probability(self.place_of(distance)))

    def design(self, wanted: Sensitivity) -> "Curve":
        """Return a curve over the same axis whose construction reaches the wanted sensitivity.

        The construction is the smallest banding or, if no banding suffices, nested bandings of few functions. Raises
        RecipeError for the same distances as `sensitivity`, and if nested bandings do not suffice either.
        """
        self._check_distances(wanted.near_distance, wanted.far_distance)
        designed = design(wanted, lambda distance: self.agreement(self.place_of(distance)))
        is_banding = designed.min_shared_bands is not None
        return replace(
            self,
            name=f"{designed.bands}x{designed.rows}" if is_banding else str(designed),
            amplification=designed,
            probability=lambda place: designed.probability(self.agreement(place)),
            threshold=None,
        )

    def place_of(self, distance: float) -> float:
        """Return the point of the axis that is at a distance."""
        match self.metric:
            case "euclidean":
                return distance
            case "cosine":
                return math.cos(math.radians(distance))
            case _:
                return 1 - distance

    def _check_distances(self, near: float, far: float) -> None:
        if self.windows:
            raise RecipeError(
                f"{self.name} has a curve over the length of runs of equal words, which is not a distance"
            )
        max_distance = {"cosine": 180.0, "euclidean": math.inf}.get(self.metric, 1.0)
        if not (0 <= near < far <= max_distance and math.isfinite(far)):
            raise RecipeError(
                f"distances of {near:g} and {far:g} are out of range; choose them in 0..{max_distance:g}, the near one "
                "smaller than the far one"
            )


def of_text(text: str, min_shared_bands: int = 1) -> Curve:
    """Parse bands x rows such as 25x2, the same with a number of required bands such as 25x2@3, or an amplification.

    `min_shared_bands` applies to bands x rows without @. Raises RecipeError for any other text.
    """
    banded = _BANDS.fullmatch(text)
    if banded is not None:
        bands, rows, minimum = int(banded[1]), int(banded[2]), int(banded[3] or min_shared_bands)
        if not (1 <= minimum <= bands and rows >= 1):
            raise RecipeError(
                f"{text}: at least {minimum} of {count_of(bands, 'band')} of {count_of(rows, 'row')} is out of range; "
                "give at least 1 row, and require at most as many bands as there are"
            )
        construction = banding(bands, rows, minimum)
    elif text.lstrip()[:1].isdigit():
        raise RecipeError(
            f"{text!r} is not a curve; give bands x rows such as 25x2, 25x2@3 to require 3 shared bands, or an "
            'amplification such as "or(4, and(4))"'
        )
    else:
        construction = parse(text)

    return Curve(" ".join(text.split()), construction, construction.probability)


def of_profile(name: str, profile: Profile) -> Curve:
    """Return the curve of a profile over the similarity or distance of its metric."""
    if profile.recipe.window is not None:
        return _of_runs(name, profile, profile.recipe.window)

    family, threshold = make_family(profile.recipe, "numpy"), profile.recipe.match.threshold
    curve = Curve(name, profile.amplification, profile.match_probability, family.metric, threshold=threshold)
    match family.metric:
        case "euclidean":
            return replace(
                curve,
                high=_MAX_THRESHOLDS_SHOWN * threshold,
                probability=lambda distance: profile.match_probability(1 / (1 + distance)),
                agreement=lambda distance: family.collision_probability(1 / (1 + distance)),
            )
        case "cosine":
            low = -1.0 if profile.recipe.sketch.input == "vector" else 0.0
            return replace(curve, low=low, agreement=family.collision_probability)
        case _:
            return curve


def _of_runs(name: str, profile: Profile, window: int) -> Curve:
    """Return the probability of a shared fingerprint by the length of a run of equal words or characters."""
    passage = profile.recipe.match.passage
    assert passage is not None, "winnow has a passage"

    # The longest run that is too short for a shingle. A run of n units has n - shorter shingles.
    shorter = passage - window
    unit = "character" if profile.recipe.shingle.scheme == "char" else "word"

    return Curve(
        name,
        profile.amplification,
        lambda run: run_probability(run - shorter, window),
        "containment",
        float(shorter),
        float(passage + window),
        float(passage),
        f"windows of {window} shingles of {count_of(shorter + 1, unit)}",
    )


# After this many halvings, the interval is smaller than the precision of a double.
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Measures:
    """The steepest point of a curve, and its errors at a threshold."""

    steepest_point: float
    # (1/b)^(1/r) for b bands of r rows, None for other constructions
    approximate_steepest_point: float | None
    # Where the construction leaves the probability of agreement unchanged, None if there is no such point.
    fixed_point: float | None
    probability_at_threshold: float | None  # None without a threshold
    false_negative_area: float | None  # None without a threshold
    false_positive_area: float | None  # None without a threshold


def measure(curve: Curve, threshold: float | None) -> Measures:
    """Measure a curve. Points and areas are in the unit of the curve's axis."""
    construction = curve.amplification
    is_banding = construction.min_shared_bands == 1
    is_plain = curve.threshold is None and is_banding
    bands, rows = construction.bands, construction.rows

    negatives = positives = None
    if threshold is not None:
        whole = [Bin(curve.low, curve.high, curve.high - curve.low)]
        areas = lsh.error_areas(lambda at: _rising(curve, at), threshold, whole)
        # On a distance axis, the pairs that should be found are left of the threshold.
        negatives, positives = areas.false_negatives, areas.false_positives
        if curve.is_falling:
            negatives, positives = positives, negatives

    steepest = (
        lsh.steepest_point(bands, rows)
        if is_plain
        else lsh.steepest(lambda at: _rising(curve, at), curve.low, curve.high)
    )
    return Measures(
        steepest,
        lsh.approximate_steepest_point(bands, rows) if is_banding and curve.metric == "jaccard" else None,
        _fixed_point(curve),
        None if threshold is None else curve.probability(threshold),
        negatives,
        positives,
    )


def _rising(curve: Curve, at: float) -> float:
    """Return the probability at a point of the axis, or 1 minus the probability if the curve falls."""
    probability = curve.probability(at)
    return 1 - probability if curve.is_falling else probability


def _fixed_point(curve: Curve) -> float | None:
    """Return the point at which the construction leaves the probability of agreement unchanged."""
    agreement = None if curve.windows else lsh.fixed_point(curve.amplification)
    if agreement is None or curve.metric in ("jaccard", "weighted_jaccard"):
        return agreement

    # On other axes a point is not a probability of agreement: find the point where the curve is this high by bisection.
    height = 1 - agreement if curve.is_falling else agreement
    low, high = curve.low, curve.high
    if not _rising(curve, low) <= height <= _rising(curve, high):
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _rising(curve, middle) < height else (low, middle)
    return (low + high) / 2


SUFFIXES = (".svg", ".png")
AXES = {
    "jaccard": "similarity",
    "weighted_jaccard": "weighted Jaccard similarity",
    "cosine": "cosine",
    "euclidean": "distance",
    "containment": "number of equal words or characters in a row",
}

_COLOURS = ("#0b62a4", "#d9480f", "#2b8a3e", "#862e9c", "#a67c00", "#c2255c", "#0c8599", "#495057")
_FALSE_NEGATIVE, _FALSE_POSITIVE = "#0b62a4", "#2b8a3e"
_STYLES = ("-", "--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 4)), (0, (8, 4)))
_CURVE_POINTS = 201
_LEGEND_LINE_CHARACTERS = 130
_LEGEND_LINE_INCHES = 0.17


def draw(
    curves: Sequence[Curve],
    measures: Sequence[Measures],
    threshold: float | None,
    sensitivities: Sequence[Sensitivity] | None,
    path: Path,
) -> None:
    """Draw curves over the same axis to an .svg or .png file.

    With a threshold, the areas of false negatives and false positives are shaded. With sensitivities, lines labelled
    d1, d2, p1 and p2 show their distances and probabilities. Raises NearsimError if matplotlib is not installed or the
    file cannot be written.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NearsimError(
            "images require matplotlib: pip install 'nearsim-db[report]', or omit --output"
        ) from error

    # Letters are stored as text instead of outlines, and a fixed salt makes equal curves give equal files.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "nearsim", "font.size": 10}):
        picture = Figure(figsize=(8, 5.4), layout="constrained")
        FigureCanvasAgg(picture)
        axes = picture.add_subplot()

        low, high = min(curve.low for curve in curves), max(curve.high for curve in curves)
        for place, (curve, measured) in enumerate(zip(curves, measures, strict=True)):
            _draw_curve(axes, curve, measured, threshold, place, len(curves) == 1)
        _label(axes, curves, low, high, threshold)
        if sensitivities is not None:
            _draw_sensitivities(axes, curves, sensitivities, low)

        # The legend is below the axes, where it covers no curve.
        longest = max(len(line) for text in axes.get_legend_handles_labels()[1] for line in text.split("\n"))
        columns = max(1, min(4, _LEGEND_LINE_CHARACTERS // (longest + 8)))
        if len(curves) > len(_COLOURS):
            lines = 1 if threshold is None else 2
            picture.set_figheight(5.4 + len(curves) / columns * lines * _LEGEND_LINE_INCHES)
        picture.legend(loc="outside lower center", ncols=columns, fontsize=9, frameon=False)

        with open_output(path) as stream:
            metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
            picture.savefig(stream, format=path.suffix[1:].lower(), dpi=150, metadata=metadata)


def _draw_curve(
    axes: "Axes", curve: Curve, measured: Measures, threshold: float | None, place: int, is_single: bool
) -> None:
    points = np.linspace(curve.low, curve.high, _CURVE_POINTS)
    points = points if threshold is None else np.union1d(points, [threshold])
    values = np.array([curve.probability(point) for point in points.tolist()])
    colour = _COLOURS[place % len(_COLOURS)]
    label = curve.label

    # The error areas of a single curve have their own colours and labels. With several curves the figures are in the
    # curve's label, and the areas have the curve's colour.
    negatives, positives = measured.false_negative_area, measured.false_positive_area
    if threshold is not None:
        near, far = points >= threshold, points <= threshold
        near, far = (far, near) if curve.is_falling else (near, far)
        if not is_single:
            label = f"{label}\nfalse neg. {negatives:.4f}, false pos. {positives:.4f}"
        for kind, size, low, high, where, error_colour in (
            ("negatives", negatives, values, np.ones_like(values), near, _FALSE_NEGATIVE),
            ("positives", positives, np.zeros_like(values), values, far, _FALSE_POSITIVE),
        ):
            name, tint = (f"false {kind}: {size:.4f}", error_colour) if is_single else (None, colour)
            axes.fill_between(points, low, high, where, color=tint, alpha=0.2, lw=0, label=name)

    style = _STYLES[place // len(_COLOURS) % len(_STYLES)]
    axes.plot(points, values, color=colour, ls=style, lw=1.8, label=label)


def _draw_sensitivities(
    axes: "Axes", curves: Sequence[Curve], sensitivities: Sequence[Sensitivity], low: float
) -> None:
    """Draw lines from the axis up to each curve at d1 and d2, and from there to the left at p1 and p2."""
    for number, (curve, bounds) in enumerate(zip(curves, sensitivities, strict=True)):
        colour = _COLOURS[number % len(_COLOURS)]
        for which, distance, probability in (
            (1, bounds.near_distance, bounds.near_probability),
            (2, bounds.far_distance, bounds.far_probability),
        ):
            place = curve.place_of(distance)

            axes.plot(
                [place, place, low], [0, probability, probability], color=colour, lw=0.9, ls=(0, (1, 2))
            )
            axes.annotate(
                f"p{which}", (low, probability), (4, 2), textcoords="offset points", fontsize=8, color=colour
            )

            # All curves have the same two distances.
            if number == 0:
                axes.annotate(
                    f"d{which} = {distance:g}", (place, 0), (3, 3), textcoords="offset points", fontsize=8
                )


def _label(axes: "Axes", curves: Sequence[Curve], low: float, high: float, threshold: float | None) -> None:
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1.01)
    axes.set_xlabel(AXES[curves[0].metric])
    axes.set_ylabel("probability of becoming a candidate")
    axes.set_yticks(np.linspace(0, 1, 11))
    if (low, high) == (0, 1):
        axes.set_xticks(np.linspace(0, 1, 11))

    axes.grid(color="#d0d0d0", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if threshold is not None:
        axes.axvline(threshold, color="#333333", lw=1, ls=(0, (4, 3)), label=f"threshold {threshold:g}")

"""Curves drawn as SVG or PNG, by matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearsim_db.analysis.curves.curve import Curve, Measures
from nearsim_db.errors import NearsimError
from nearsim_db.readers.output import open_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".svg", ".png")
AXES = {
    "jaccard": "similarity",
    "weighted_jaccard": "weighted Jaccard similarity",
    "cosine": "cosine",
    "euclidean": "distance",
}

_COLOURS = ("#0b62a4", "#d9480f", "#2b8a3e", "#862e9c", "#a67c00", "#c2255c", "#0c8599", "#495057")
_FALSE_NEGATIVE, _FALSE_POSITIVE = "#0b62a4", "#2b8a3e"
_STYLES = ("-", "--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)), (0, (1, 4)), (0, (8, 4)))
_POINTS = 201
_LEGEND_CHARACTERS = 130  # per line of the legend
_LEGEND_LINE_INCHES = 0.17


def draw(curves: Sequence[Curve], measures: Sequence[Measures], threshold: float | None, path: Path) -> None:
    """Write curves that share an axis to an .svg or .png file.

    With a threshold, the areas of false negatives and false positives are shaded. Raises NearsimError if matplotlib is
    not installed or the file cannot be written.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NearsimError(
            "images require matplotlib: pip install 'nearsim-db[report]', or omit --output"
        ) from error
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "nearsim", "font.size": 10}):
        picture = Figure(figsize=(8, 5.4), layout="constrained")
        FigureCanvasAgg(picture)
        axes = picture.add_subplot()
        low, high = min(one.low for one in curves), max(one.high for one in curves)
        for place, (curve, measured) in enumerate(zip(curves, measures, strict=True)):
            _draw_curve(axes, curve, measured, threshold, place, len(curves) == 1)
        _label(axes, curves, low, high, threshold)
        # Below the axes, so that it covers no curve.
        longest = max(len(line) for text in axes.get_legend_handles_labels()[1] for line in text.split("\n"))
        columns = max(1, min(4, _LEGEND_CHARACTERS // (longest + 8)))
        if len(curves) > len(_COLOURS):
            lines = 1 if threshold is None else 2
            picture.set_figheight(5.4 + len(curves) / columns * lines * _LEGEND_LINE_INCHES)
        picture.legend(loc="outside lower center", ncols=columns, fontsize=9, frameon=False)
        with open_output(path) as stream:
            plain = {"Date": None} if path.suffix.lower() == ".svg" else {}
            picture.savefig(stream, format=path.suffix[1:].lower(), dpi=150, metadata=plain)


def _draw_curve(
    axes: "Axes", curve: Curve, measured: Measures, threshold: float | None, place: int, is_single: bool
) -> None:
    points = np.linspace(curve.low, curve.high, _POINTS)
    points = points if threshold is None else np.union1d(points, [threshold])
    values = np.array([curve.probability(point) for point in points.tolist()])
    colour = _COLOURS[place % len(_COLOURS)]
    if threshold is not None and measured.areas is not None:
        negative, positive = (_FALSE_NEGATIVE, _FALSE_POSITIVE) if is_single else (colour, colour)
        near, far = points >= threshold, points <= threshold
        near, far = (far, near) if curve.is_falling else (near, far)
        sizes = measured.areas.false_negatives, measured.areas.false_positives
        names = [
            f"false {kind}: {size:.4f}" for kind, size in zip(("negatives", "positives"), sizes, strict=True)
        ]
        axes.fill_between(
            points, values, 1, near, color=negative, alpha=0.2, lw=0, label=names[0] if is_single else None
        )
        axes.fill_between(
            points, 0, values, far, color=positive, alpha=0.2, lw=0, label=names[1] if is_single else None
        )
    style = _STYLES[place // len(_COLOURS) % len(_STYLES)]
    axes.plot(points, values, color=colour, ls=style, lw=1.8, label=_legend(curve, measured, is_single))


def _legend(curve: Curve, measured: Measures, is_single: bool) -> str:
    written = str(curve.amplification)
    name = curve.name if curve.name == written else f"{curve.name}: {written}"
    if measured.areas is None or is_single:
        return name
    return f"{name}\nfalse neg. {measured.areas.false_negatives:.4f}, false pos. {measured.areas.false_positives:.4f}"


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

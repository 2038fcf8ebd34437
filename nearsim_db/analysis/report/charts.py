"""Charts as inline SVG, drawn by matplotlib and coloured by the page's style."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from nearsim_db.analysis.report.contents import Similarities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Placeholders for the colours of the page, which has a light and a dark theme.
_INK, _MUTED, _LINE, _FIRST, _SECOND, _THIRD, _FOURTH, _SHADE = (f"#00000{number}" for number in range(1, 9))
_COLOURS = {
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _LINE: "var(--line)",
    _FIRST: "var(--first)",
    _SECOND: "var(--second)",
    _THIRD: "var(--third)",
    _FOURTH: "var(--fourth)",
    _SHADE: "var(--shade)",
}
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_DOTS_AN_INCH = 72
_FONT = 12
_TALL_RATIO = 60
_WIDTHS = {"wide": 980, "narrow": 350}
AXES = {
    "jaccard": "Jaccard similarity",
    "weighted_jaccard": "weighted Jaccard similarity",
    "cosine": "cosine similarity",
    "euclidean": "1 / (1 + Euclidean distance)",
}


@dataclass(frozen=True, slots=True)
class Caption:
    """The name of a chart for element ids, and its title and description for screen readers."""

    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as SVG elements for wide and for narrow screens, and whether its bars are logarithmic."""

    wide: str
    narrow: str
    logarithmic: bool


def draw_similarities(found: Similarities, name: str = "similarities") -> Chart:
    """Draw the pairs by similarity as bars, with the probability of becoming a candidate as a curve."""
    description = (
        f"{found.pairs:,} stored pairs by {AXES[found.metric]}, from {found.least:.3g} to 1; the threshold is "
        f"{found.threshold:.3g}; "
        f"{found.renumbered:,} of them differ in their numbers; {found.twins:,} twins at 1. The curve rises from "
        f"{found.curve[0][1]:.4f} at {found.curve[0][0]:.3g} to {found.curve[-1][1]:.4f} at 1."
    )
    caption = Caption(name, "Pairs by similarity", description)
    counts = [*_totals(found), found.twins]
    return _chart(caption, 330, counts, lambda axes, wide: _plot_similarities(axes, found, wide=wide))


def _totals(found: Similarities) -> list[int]:
    return [one.same_numbers + one.other_numbers for one in found.steps]


def _plot_similarities(axes: "Axes", found: Similarities, *, wide: bool) -> None:
    starts = [one.similarity for one in found.steps]
    totals = _totals(found)
    others = [one.other_numbers for one in found.steps]
    is_uneven = _are_uneven([*totals, found.twins])
    if is_uneven:
        axes.set_yscale("log")
        axes.set_ylim(0.7, max(*totals, found.twins) * 2)
    width = found.step * 0.9
    axes.bar(starts, totals, width, align="edge", linewidth=0, color=_FIRST, label="pairs")
    axes.bar(starts, others, width, align="edge", linewidth=0, color=_SECOND, label="of them, numbers differ")
    if found.twins:
        axes.bar([1], [found.twins], width, align="edge", linewidth=0, color=_FOURTH, label="twins")
    axes.set_xlim(found.curve[0][0], 1 + (found.step if found.twins else 0))
    axes.axvspan(found.curve[0][0], found.threshold, color=_SHADE, linewidth=0, zorder=0)
    axes.axvline(found.threshold, color=_MUTED, linewidth=1, dashes=(4, 3))
    axes.set_xlabel(AXES[found.metric])
    axes.set_ylabel("pairs, logarithmic" if is_uneven else "pairs")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    probability = axes.twinx()
    _plain(probability)
    probability.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    probability.plot(
        *zip(*found.curve, strict=True),
        color=_THIRD,
        linewidth=2,
        label="probability of becoming a candidate",
    )
    probability.set_ylim(0, 1.05)
    probability.set_ylabel("probability")
    handles = [*axes.get_legend_handles_labels()[0], *probability.get_legend_handles_labels()[0]]
    axes.figure.legend(
        handles=handles,
        loc="outside upper left",
        frameon=False,
        labelcolor=_INK,
        ncols=4 if wide else 1,
    )


def draw_sizes(sizes: Sequence[tuple[int, int]], name: str = "sizes") -> Chart:
    """Draw the clusters by number of members, in doubling steps."""
    bars = _doubling(sizes)
    counts = ", ".join(f"{label}: {clusters:,}" for label, clusters in bars)
    caption = Caption(name, "Clusters by size", f"Clusters by members: {counts}.")
    axis = 40 if _are_uneven([count for _, count in bars]) else 0
    return _chart(
        caption,
        40 + axis + 34 * len(bars),
        [count for _, count in bars],
        lambda axes, wide: _plot_sizes(axes, bars),
    )


def _doubling(sizes: Sequence[tuple[int, int]]) -> list[tuple[str, int]]:
    """Return the numbers of clusters of 2, 3, 4, 5 to 8, 9 to 16 and so on, up to the largest."""
    bars: list[tuple[str, int]] = []
    low, high = 2, 2
    largest = max((size for size, _ in sizes), default=0)
    while low <= largest:
        clusters = sum(count for size, count in sizes if low <= size <= high)
        bars.append((f"{low:,}" if low == high else f"{low:,}–{high:,}", clusters))
        low, high = high + 1, high + 1 if high < 4 else high * 2
    return bars


def _plot_sizes(axes: "Axes", bars: Sequence[tuple[str, int]]) -> None:
    """Plot labelled bars; a logarithmic scale has an axis that says so."""
    labels, counts = [label for label, _ in bars], [count for _, count in bars]
    places = range(len(bars))
    drawn = axes.barh(places, counts, color=_FIRST, linewidth=0, height=0.7)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.bar_label(drawn, [f"{count:,}" for count in counts], padding=4, color=_INK, fontsize=_FONT)
    is_uneven = _are_uneven(counts)
    if is_uneven:
        axes.set_xscale("log")
        axes.set_xlim(0.7, max(counts) * 4)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("clusters, logarithmic")
        axes.grid(visible=True, axis="x", which="major", color=_LINE, linewidth=1)
    else:
        axes.set_xlim(0, max(counts, default=1) * 1.15)
    axes.xaxis.set_visible(is_uneven)
    axes.set_ylabel("members")


def _are_uneven(counts: Sequence[int]) -> bool:
    """Whether the median bar would be invisible beside the longest on a linear scale."""
    kept = sorted(count for count in counts if count)
    return bool(kept) and kept[-1] > _TALL_RATIO * kept[(len(kept) - 1) // 2]


def _chart(
    caption: Caption, height: int, counts: Sequence[int], plot: "Callable[[Axes, bool], None]"
) -> Chart:
    wide, narrow = (_draw(caption, kind, height, plot) for kind in _WIDTHS)
    return Chart(wide, narrow, _are_uneven(counts))


def _draw(caption: Caption, kind: str, height: int, plot: "Callable[[Axes, bool], None]") -> str:
    import matplotlib
    from matplotlib.figure import Figure

    settings: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": caption.name,
        "font.size": _FONT,
        "font.family": "DejaVu Sans",
    }
    with matplotlib.rc_context(settings), io.StringIO() as stream:
        size = (_WIDTHS[kind] / _DOTS_AN_INCH, height / _DOTS_AN_INCH)
        figure = Figure(size, _DOTS_AN_INCH, layout="constrained")
        axes = figure.add_subplot()
        _plain(axes)
        axes.grid(color=_LINE, linewidth=1, axis="y")
        axes.set_axisbelow(True)
        plot(axes, kind == "wide")
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(stream, format="svg", transparent=True, metadata=no_metadata)
        return _for_the_page(stream.getvalue(), caption, f"{caption.name}-{kind}")


def _plain(axes: "Axes") -> None:
    """Remove the frame of the axes and set the page's text colours."""
    from matplotlib.ticker import MaxNLocator

    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(which="both", colors=_MUTED, length=0, pad=6)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.label.set_color(_MUTED)
    axes.yaxis.label.set_color(_MUTED)


def _for_the_page(drawn: str, caption: Caption, name: str) -> str:
    """Return an SVG element without inline styles, which the page's policy forbids, with a title for screen readers."""
    root = ElementTree.fromstring(drawn)
    for element in list(root.iter()):
        for child in [one for one in element if one.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style")]:
            element.remove(child)
        _unstyle(element)
        if "id" in element.attrib:
            element.set("id", f"{name}-{element.get('id')}")
        for attribute, value in element.items():
            if attribute != _LINK and value.startswith("url(#"):
                element.set(attribute, f"url(#{name}-{value[5:]}")
        link = element.attrib.pop(_LINK, None)
        if link is not None:
            element.set("href", f"#{name}-{link[1:]}")
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    for place, (tag, text) in enumerate((("title", caption.title), ("desc", caption.description))):
        label = ElementTree.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{tag}"})
        label.text = text
        root.insert(place, label)
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title {name}-desc"}
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode")


def _unstyle(element: ElementTree.Element) -> None:
    """Convert a style attribute to presentation attributes, which a Content-Security-Policy allows."""
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font-family":
            continue  # the font of the page applies
        if name == "font":
            size = re.search(r"([\d.]+)px", value)
            name, value = "font-size", size[1] if size else str(_FONT)
        element.set(name, value)
    for name, value in element.items():
        if value in _COLOURS:
            element.set(name, _COLOURS[value])

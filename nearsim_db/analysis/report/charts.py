"""Charts of a report: their bars, scales and labels. The templates draw them as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from nearsim_db.analysis.report.contents import Similarities
from nearsim_db.messages import count_of
from nearsim_db.store.clusters.reports import OverTime

_MAX_LABELS, _MAX_TICKS = 6, 4
# The scale begins below the lowest similarity, by this fraction of the range from the lowest similarity to 1.
_MARGIN = 0.1
AXES = {
    "jaccard": "Jaccard similarity",
    "weighted_jaccard": "weighted Jaccard similarity",
    "cosine": "cosine similarity",
    "euclidean": "1 / (1 + Euclidean distance)",
    "containment": "containment",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart."""

    label: str  # tooltip of the bar
    whole: int  # height of the bar
    part: int  # height of its lower part, which is drawn in another colour


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars of equal width side by side. Horizontal positions are percentages of the chart's width."""

    description: str
    bars: Sequence[Bar]
    labels: Sequence[tuple[float, str]]  # position and text of the labels below the bars
    offset: float = 0.0  # position where the first bar begins
    mark: float | None = None  # position of a vertical line, None without a line

    @property
    def ticks(self) -> Sequence[int]:
        """Ticks of the vertical axis, at multiples of 1, 2 or 5 times a power of 10.

        The first tick is 0, and the last one is not below the highest bar.
        """
        highest = max((bar.whole for bar in self.bars), default=1)
        steps = (factor * 10**power for power in count() for factor in (1, 2, 5))
        step = next(step for step in steps if step * _MAX_TICKS >= highest)
        return range(0, -(-highest // step) * step + 1, step)


def draw_similarities(similarities: Similarities) -> BarChart:
    """Return a chart of the stored pairs by similarity, with a line at the threshold."""
    least = similarities.least
    begin = least - (1 - least) * _MARGIN

    def place(similarity: float) -> float:
        return round(100 * (similarity - begin) / (1 - begin), 2)

    bars = [
        Bar(
            f"from {step.similarity:.3g}: {step.pairs:,} pairs, numbers differ in {step.other_numbers:,}",
            step.pairs,
            step.other_numbers,
        )
        for step in similarities.steps
    ]

    width = next(width for width in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if (1 - least) / width <= _MAX_LABELS)
    labelled = (number * width for number in range(round(least / width), round(1 / width) + 1))
    return BarChart(
        f"{similarities.pairs:,} stored pairs by {AXES[similarities.metric]}, from {least:.3g} to 1; the threshold is "
        f"{similarities.threshold:.3g}; {similarities.renumbered:,} of them differ in their numbers.",
        bars,
        [(place(similarity), f"{similarity:.2g}") for similarity in labelled if similarity > begin],
        place(least),
        place(similarities.threshold),
    )


def draw_over_time(over_time: OverTime) -> BarChart:
    """Return a chart of the documents by their publication time, with copies in another colour."""
    documents = sum(step.documents for step in over_time.steps)
    copies = sum(step.copies for step in over_time.steps)
    begins, end = [step.begin for step in over_time.steps], over_time.end

    # Label several days by dates. Label one day by its date and two times, as three dates with times do not fit a
    # narrow screen.
    is_one_day = begins[0][:-6] == end[:-6]
    first, later = (slice(None), slice(-5, None)) if is_one_day else (slice(-6), slice(-6))
    return BarChart(
        f"{count_of(documents, 'document')} with a date by the time of publication, from {begins[0]} to {end}; "
        f"{copies:,} of them came after the first of their cluster.",
        [
            Bar(
                f"from {step.begin}: {count_of(step.documents, 'document')}, {step.copies:,} copied",
                step.documents,
                step.copies,
            )
            for step in over_time.steps
        ],
        [(0.0, begins[0][first]), (50.0, begins[len(begins) // 2][later]), (100.0, end[later])],
    )


def doubling(sizes: Sequence[tuple[int, int]]) -> list[tuple[str, int]]:
    """Count clusters of 2, 3, 4, 5 to 8, 9 to 16 documents and so on, up to the size of the largest cluster.

    `sizes` lists each size with the number of clusters of that size. Returns a label and a count for each range.
    """
    bars: list[tuple[str, int]] = []
    low, high = 2, 2
    largest = max((size for size, _ in sizes), default=0)
    while low <= largest:
        clusters = sum(count for size, count in sizes if low <= size <= high)
        bars.append((f"{low:,}" if low == high else f"{low:,}–{high:,}", clusters))
        low, high = high + 1, high + 1 if high < 4 else high * 2
    return bars

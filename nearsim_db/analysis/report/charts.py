"""Charts of the report: bars, scales and labels, which the templates draw as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from nearsim_db.analysis.report.contents import Similarities
from nearsim_db.errors import count_of
from nearsim_db.store.clusters.reports import OverTime

_MOST_LABELS, _MOST_TICKS = 6, 4
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
    """A bar: its height, that of the part which is drawn in another colour, and what it is."""

    label: str
    whole: int
    part: int


@dataclass(frozen=True, slots=True)
class Columns:
    """Bars of equal width side by side, and labels of the axis below them as (percent of the width, text).

    The first bar begins at `offset` percent of the width; `mark` is the place of a line, if there is one.
    """

    description: str
    bars: Sequence[Bar]
    labels: Sequence[tuple[float, str]]
    offset: float = 0.0
    mark: float | None = None

    @property
    def ticks(self) -> Sequence[int]:
        """Multiples of 1, 2 or 5 times a power of 10, from 0 to above the highest bar."""
        highest = max((bar.whole for bar in self.bars), default=1)
        steps = (factor * 10**power for power in count() for factor in (1, 2, 5))
        step = next(one for one in steps if one * _MOST_TICKS >= highest)
        return range(0, -(-highest // step) * step + 1, step)


def draw_similarities(found: Similarities) -> Columns:
    """Return the stored pairs by similarity, from a tenth of the range below the threshold on."""
    begin = found.least - (1 - found.least) * _MARGIN

    def place(similarity: float) -> float:
        return round(100 * (similarity - begin) / (1 - begin), 2)

    bars = [
        Bar(
            f"from {step.similarity:.3g}: {step.pairs:,} pairs, numbers differ in {step.other_numbers:,}",
            step.pairs,
            step.other_numbers,
        )
        for step in found.steps
    ]
    width = next(one for one in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if (1 - found.least) / one <= _MOST_LABELS)
    multiples = range(round(found.least / width), round(1 / width) + 1)
    return Columns(
        f"{found.pairs:,} stored pairs by {AXES[found.metric]}, from {found.least:.3g} to 1; the threshold is "
        f"{found.threshold:.3g}; {found.renumbered:,} of them differ in their numbers.",
        bars,
        [(place(one * width), f"{one * width:.2g}") for one in multiples if one * width > begin],
        place(found.least),
        place(found.threshold),
    )


def draw_over_time(found: OverTime) -> Columns:
    """Return the documents by the time of their publication, and those of them that are copies."""
    documents, copies = (sum(getattr(one, name) for one in found.steps) for name in ("documents", "copies"))
    begins = [one.begin for one in found.steps]
    # Of several days the dates alone; of one day the date once, as three moments do not fit a narrow screen.
    is_one_day = begins[0][:-6] == found.end[:-6]
    first, later = (slice(None), slice(-5, None)) if is_one_day else (slice(-6), slice(-6))
    return Columns(
        f"{count_of(documents, 'document')} with a date by the time of publication, from {begins[0]} to {found.end}; "
        f"{copies:,} of them came after the first of their cluster.",
        [
            Bar(
                f"from {one.begin}: {count_of(one.documents, 'document')}, {one.copies:,} copied",
                one.documents,
                one.copies,
            )
            for one in found.steps
        ],
        [(0.0, begins[0][first]), (50.0, begins[len(begins) // 2][later]), (100.0, found.end[later])],
    )


def doubling(sizes: Sequence[tuple[int, int]]) -> list[tuple[str, int]]:
    """Return the numbers of clusters of 2, 3, 4, 5 to 8, 9 to 16 and so on, up to the largest."""
    bars: list[tuple[str, int]] = []
    low, high = 2, 2
    largest = max((size for size, _ in sizes), default=0)
    while low <= largest:
        clusters = sum(count for size, count in sizes if low <= size <= high)
        bars.append((f"{low:,}" if low == high else f"{low:,}–{high:,}", clusters))
        low, high = high + 1, high + 1 if high < 4 else high * 2
    return bars

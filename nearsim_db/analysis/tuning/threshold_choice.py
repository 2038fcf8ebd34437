"""Choice of the threshold: given, by labelled pairs, or at the valley of the histogram."""

import math

from nearsim_db.analysis.tuning import labels
from nearsim_db.analysis.tuning.labels import LabelScores
from nearsim_db.analysis.tuning.proposal import TuningOptions
from nearsim_db.similarity import presets

LEAST_THRESHOLD, MOST_THRESHOLD = 0.5, 0.95
LEAST_LABELLED = 0.1
_WEB_PAGES = f"--preset web-pages ({presets.load('web-pages').match.threshold:g})"
_STEPS = 20  # thresholds are proposed in steps of 0.05


def choose_threshold(
    options: TuningOptions, label_scores: LabelScores | None, lowest: float | None, own: float
) -> tuple[float, str]:
    """Return the threshold and the reason; `lowest` is the valley, `own` the threshold of the recipe."""
    if options.threshold is not None:
        return options.threshold, "given"
    if label_scores is not None and label_scores.best.f1 > 0:
        value = labels.separating(label_scores.points, label_scores.best)
        why = f"the best F1 of the labelled pairs, {label_scores.best.f1:.3f}"
        if value >= LEAST_LABELLED:
            return value, why
        return LEAST_LABELLED, (
            f"{why}, is at {value:g}, which is too low: below {LEAST_LABELLED} bands rarely reach the recall, and at "
            "high cost; set a lower threshold with --threshold"
        )
    if lowest is None:
        return own, (
            "the recipe's own, as there is no clear valley between near and random pairs; inspect the histogram and "
            "some pairs above and below it"
        )
    value = math.floor(lowest * _STEPS + 0.5) / _STEPS
    if value < own < LEAST_THRESHOLD:
        return (
            own,
            f"the recipe's own; near and random pairs separate at {lowest:.2f}: set that threshold with --threshold",
        )
    if value < LEAST_THRESHOLD <= own:
        return LEAST_THRESHOLD, (
            f"near and random pairs separate at {lowest:.2f}, but texts that share less than half of their shingles "
            f"are rarely near-duplicates, and cost more; for web pages with menus and comments use {_WEB_PAGES}, or "
            "set --threshold"
        )
    value = min(value, MOST_THRESHOLD)
    return value, f"the valley between near and random pairs, at about {lowest:.2f}"

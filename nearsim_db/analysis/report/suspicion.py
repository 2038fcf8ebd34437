"""Suspicion score of a cluster: how likely it is to need review."""

import math

from nearsim_db.store.reports import ClusterFacts

# Weights of the signs; they add up to 1.
WEIGHTS = {"chained": 0.35, "dissimilar": 0.20, "numbers_differ": 0.20, "sources": 0.10, "span": 0.15}
_SPAN_HALF_SECONDS = 30 * 86_400.0


def signs(facts: ClusterFacts, threshold: float) -> dict[str, float]:
    """Return the signs of a cluster, each in 0..1, by the names of `WEIGHTS`.

    chained: share of members never paired with the survivor. dissimilar: distance from the survivor on the scale from 1
    down to the threshold, the mean of average and worst; chained members count as at the threshold. numbers_differ:
    share of members whose numbers differ from the survivor's. sources: 1 - 1 / sources. span: time between the first
    and the last date, 0.5 at 30 days.
    """
    others = facts.members - 1
    range_ = max(1.0 - threshold, 1e-9)
    paired = others - facts.chained
    total = (facts.mean if facts.mean is not None else threshold) * paired + threshold * facts.chained
    worst = threshold if facts.chained or facts.least is None else facts.least
    span = facts.span_seconds or 0.0
    found = {
        "chained": facts.chained / others,
        "dissimilar": (1.0 - (total / others + worst) / 2) / range_,
        "numbers_differ": facts.renumbered / others,
        "sources": 1 - 1 / max(facts.sources, 1),
        "span": span / (span + _SPAN_HALF_SECONDS),
    }
    return {name: min(max(value, 0.0), 1.0) for name, value in found.items()}


def suspicion(facts: ClusterFacts, threshold: float) -> float:
    """Return a score from 0 to 100: the weighted signs times log2(members) / (log2(members) + 2).

    `threshold` is the lowest similarity of a pair in the profile's metric.
    """
    size = math.log2(facts.members) / (math.log2(facts.members) + 2)
    found = signs(facts, threshold)
    return 100 * size * sum(weight * found[name] for name, weight in WEIGHTS.items())

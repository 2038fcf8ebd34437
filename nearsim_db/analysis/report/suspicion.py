"""How suspicious a cluster is: one number that puts those first that a person should look at."""

import math

from nearsim_db.store.reports import ClusterFacts

# What each sign counts for; together 1.
WEIGHTS = {"chained": 0.35, "unlike": 0.20, "renumbered": 0.20, "sources": 0.10, "span": 0.15}
_SPAN_HALF_SECONDS = 30 * 86_400.0


def signs(facts: ClusterFacts, threshold: float) -> dict[str, float]:
    """The signs of a cluster, each in 0..1, by the names of `WEIGHTS`.

    chained: the share of the others that were never found alike with the survivor. unlike: how far the others are from
    the survivor on the way from 1 down to the threshold, the mean of the average and the worst; who is chained counts
    as at the threshold. renumbered: the share of the others with other numbers than the survivor. sources: 1 - 1 /
    sources. span: the time between the first and the last date, 30 days being 0.5.
    """
    others = facts.members - 1
    range_ = max(1.0 - threshold, 1e-9)
    met = others - facts.chained
    total = (facts.mean if facts.mean is not None else threshold) * met + threshold * facts.chained
    worst = threshold if facts.chained or facts.least is None else facts.least
    span = facts.span_seconds or 0.0
    found = {
        "chained": facts.chained / others,
        "unlike": (1.0 - (total / others + worst) / 2) / range_,
        "renumbered": facts.renumbered / others,
        "sources": 1 - 1 / max(facts.sources, 1),
        "span": span / (span + _SPAN_HALF_SECONDS),
    }
    return {name: min(max(value, 0.0), 1.0) for name, value in found.items()}


def suspicion(facts: ClusterFacts, threshold: float) -> float:
    """A score from 0 to 100: the weighted signs, times log2(members) / (log2(members) + 2) as large ones matter more.

    `threshold` is the least similarity of a pair in the profile's metric.
    """
    size = math.log2(facts.members) / (math.log2(facts.members) + 2)
    found = signs(facts, threshold)
    return 100 * size * sum(weight * found[name] for name, weight in WEIGHTS.items())

"""The findings at the top of a report, in sentences, and the suspicion score of a cluster."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from nearsim_db.analysis.report import contents
from nearsim_db.analysis.report.contents import IndexContents, Report
from nearsim_db.errors import count_of
from nearsim_db.store.reports import ClusterFacts

_MANY_CANDIDATES = 100
_SUSPICIOUS = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence and the id of its section; `look` needs manual review, `note` does not."""

    level: Literal["note", "look"]
    text: str
    section: str


def find(report: Report) -> list[Finding]:
    """Return the findings, those that need review first."""
    found = [*_pending(report)]
    if report.stats is not None and report.index is not None:
        found += [*_in_clusters(report.index), *_left_out(report.stats, report.index)]
    return sorted(found, key=lambda one: one.level == "note")


def _pending(report: Report) -> Iterator[Finding]:
    stats = report.stats or {}
    if report.missing is not None:
        yield Finding("look", f"No live index: {report.missing}.", "index")
    waiting = (stats.get("changes_waiting") or 0) + (stats.get("queued") or 0)
    if waiting:
        yield Finding(
            "look", f"{count_of(waiting, 'change')} not indexed yet: the figures will change.", "left-out"
        )
    if stats.get("set_aside"):
        yield Finding(
            "look", f"{count_of(stats['set_aside'], 'piece')} of work failed and was set aside.", "left-out"
        )
    if report.rejects is not None and report.rejects.records:
        yield Finding("look", f"{count_of(report.rejects.records, 'record')} rejected at ingest.", "rejects")


def _in_clusters(index: IndexContents) -> Iterator[Finding]:
    pairs, renumbered = index.similarities.pairs, index.similarities.renumbered
    if renumbered:
        share = contents.share(renumbered, pairs)
        yield Finding(
            "look",
            f"{renumbered:,} of {count_of(pairs, 'stored pair')} ({share}) differ in their numbers: templates, "
            "corrections, or results of different days.",
            "pairs",
        )
    suspicious = [one for one in index.clusters.suspicious if one.suspicion >= _SUSPICIOUS]
    if suspicious:
        worst = suspicious[0]
        yield Finding(
            "look",
            f"The most suspicious cluster has {count_of(worst.facts.members, 'member')} and scores "
            f"{worst.suspicion:.0f} of 100.",
            "suspicious",
        )


def _left_out(stats: dict[str, Any], index: IndexContents) -> Iterator[Finding]:
    buckets = index.buckets
    if buckets.over_limit:
        yield Finding(
            "look",
            f"{count_of(buckets.over_limit, 'bucket')} over the limit: {count_of(buckets.left_out, 'link')} left out.",
            "buckets",
        )
    what = {"outside_window": "outside the retention window", "no_features": "without features match nothing"}
    for key in filter(stats.get, what):
        yield Finding("note", f"{count_of(stats[key], 'document')} {what[key]}.", "left-out")
    candidates = stats.get("candidates_per_document") or 0
    if candidates > _MANY_CANDIDATES:
        yield Finding(
            "look",
            f"{candidates:,.0f} candidates per document is high; reduce them with more rows, a larger k or "
            "longer shingles.",
            "index",
        )


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

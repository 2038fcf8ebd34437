"""The findings at the top of a report, in sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from nearsim_db.analysis.report import formats
from nearsim_db.analysis.report.contents import IndexContents, Report
from nearsim_db.errors import count_of

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
        share = formats.share(renumbered, pairs)
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
    if stats.get("outside_window"):
        yield Finding(
            "note",
            f"{count_of(stats['outside_window'], 'document')} outside the retention window.",
            "left-out",
        )
    if stats.get("no_features"):
        yield Finding(
            "note",
            f"{count_of(stats['no_features'], 'document')} without features match nothing.",
            "left-out",
        )
    candidates = stats.get("candidates_per_document") or 0
    if candidates > _MANY_CANDIDATES:
        yield Finding(
            "look",
            f"{candidates:,.0f} candidates per document is high; reduce them with more rows, a larger k or "
            "longer shingles.",
            "index",
        )

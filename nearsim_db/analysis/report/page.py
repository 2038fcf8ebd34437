"""Render reports as self-contained HTML pages that make no requests, each with its findings in sentences."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from nearsim_db.admin.reindex import Difference
from nearsim_db.analysis.report import charts, contents
from nearsim_db.analysis.report.comparisons import WEIGHTS
from nearsim_db.analysis.report.contents import IndexContents, Report
from nearsim_db.analysis.text_diff import compare
from nearsim_db.errors import NearsimError, count_of

if TYPE_CHECKING:
    from jinja2 import Environment

_ASSETS = ("page.css", "sort.js", "page.js")


def render(report: Report) -> bytes:
    """Return the report as an HTML page in UTF-8. Raises NearsimError if the extra `report` is not installed."""
    return _render(
        "page.html",
        report=report,
        charts=_draw(report.index),
        axes=charts.AXES,
        findings=find(report),
        weights=WEIGHTS,
    )


def render_difference(found: Difference) -> bytes:
    """Return a comparison of two generations as an HTML page. Raises as `render` does."""
    samples = {kind: getattr(found.samples, kind) for kind in ("lost", "gained", "rescored")}
    return _render(
        "difference.html",
        found=found,
        version=version("nearsim-db"),
        compared={
            kind: [(one, compare(one.left.text or "", one.right.text or "")) for one in pairs]
            for kind, pairs in samples.items()
        },
    )


def _render(template: str, /, **values: object) -> bytes:
    """Render a template with some values."""
    try:
        page = environment("nearsim_db.analysis.report")
    except ImportError as error:
        raise NearsimError(
            "the report requires jinja2, which is not installed; run: pip install 'nearsim-db[report]', or print the "
            "figures with --json"
        ) from error
    style, *scripts = map(asset, _ASSETS)
    rendered = page.get_template(template).render(
        values, style=style, scripts=scripts, policy=content_policy(style, scripts)
    )
    return rendered.encode("utf-8", "replace")


def asset(name: str, package: str = "nearsim_db.analysis.report") -> str:
    """Return a style sheet or a script of a page."""
    return (files(package) / "assets" / name).read_text("utf-8")


@cache
def environment(*packages: str) -> "Environment":
    """Return the environment of the templates of some packages, with the filters of the report."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        finalize=contents.visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= contents.FILTERS
    return made


def _draw(index: IndexContents | None) -> dict[str, object]:
    if index is None:
        return {}
    drawn: dict[str, object] = {"sizes": charts.doubling(index.clusters.sizes)}
    if index.similarities.pairs:
        drawn["similarities"] = charts.draw_similarities(index.similarities)
    if index.over_time is not None:
        drawn["over_time"] = charts.draw_over_time(index.over_time)
    return drawn


def content_policy(style: str, scripts: list[str], forms: str = "'none'") -> str:
    """Return a Content-Security-Policy that allows only the inline style and scripts, and no requests but of forms."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(map(_hash, scripts))}",
            "base-uri 'none'",
            f"form-action {forms}",
        )
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


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

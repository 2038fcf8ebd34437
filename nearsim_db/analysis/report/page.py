"""HTML pages of reports: self-contained pages that make no requests.

A page begins with findings, which are sentences about what needs review.
"""

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
from nearsim_db.errors import NearsimError
from nearsim_db.messages import count_of

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


def render_difference(difference: Difference) -> bytes:
    """Return a comparison of two generations as an HTML page in UTF-8. Raises NearsimError as `render` does."""
    samples = {kind: getattr(difference.samples, kind) for kind in ("lost", "gained", "rescored")}
    return _render(
        "difference.html",
        found=difference,
        version=version("nearsim-db"),
        compared={
            kind: [(pair, compare(pair.left.text or "", pair.right.text or "")) for pair in pairs]
            for kind, pairs in samples.items()
        },
    )


def _render(template: str, /, **values: object) -> bytes:
    """Render a template with its values, the style sheet and the scripts."""
    check_requirements()
    templates = environment("nearsim_db.analysis.report")
    style, *scripts = map(asset, _ASSETS)
    rendered = templates.get_template(template).render(
        values, style=style, scripts=scripts, policy=content_policy(style, scripts)
    )
    return rendered.encode("utf-8", "replace")


def check_requirements() -> None:
    """Raise NearsimError if the extra `report` is not installed."""
    try:
        environment("nearsim_db.analysis.report")
    except ImportError as error:
        raise NearsimError(
            "the report requires jinja2, which is not installed; run: pip install 'nearsim-db[report]', or write its "
            "figures as JSON"
        ) from error


def asset(name: str, package: str = "nearsim_db.analysis.report") -> str:
    """Return the text of a style sheet or script in the folder `assets` of a package."""
    return (files(package) / "assets" / name).read_text("utf-8")


@cache
def environment(*packages: str) -> "Environment":
    """Return a Jinja environment with the templates of `packages` and the report's filters.

    If several packages have a template of the same name, the first package's template is used.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        finalize=contents.visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= contents.FILTERS
    return templates


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
    """Return a Content-Security-Policy that allows an inline style and inline scripts, and forms sent to `forms`."""
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


_MAX_CANDIDATES_PER_DOCUMENT = 100
_MIN_SUSPICION_SCORE = 50


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """A sentence at the top of a report, about a section of the report."""

    level: Literal["note", "look"]  # `look` needs review by a person, `note` does not
    text: str
    section: str  # id of the section in the page


def find(report: Report) -> list[ReportFinding]:
    """Return the findings of a report. Findings that need review come first."""
    findings = [*_find_pending(report)]
    if report.stats is not None and report.index is not None:
        findings += [*_find_in_clusters(report.index), *_find_left_out(report.stats, report.index)]
    return sorted(findings, key=lambda finding: finding.level == "note")


def _find_pending(report: Report) -> Iterator[ReportFinding]:
    stats = report.stats or {}
    if report.missing is not None:
        yield ReportFinding("look", f"No live index: {report.missing}.", "index")

    waiting = (stats.get("changes_waiting") or 0) + (stats.get("queued") or 0)
    if waiting:
        yield ReportFinding(
            "look", f"{count_of(waiting, 'change')} not indexed yet: the figures will change.", "left-out"
        )
    if stats.get("set_aside"):
        yield ReportFinding(
            "look", f"{count_of(stats['set_aside'], 'piece')} of work failed and was set aside.", "left-out"
        )
    if report.rejects is not None and report.rejects.records:
        yield ReportFinding(
            "look", f"{count_of(report.rejects.records, 'record')} rejected at ingest.", "rejects"
        )


def _find_in_clusters(index: IndexContents) -> Iterator[ReportFinding]:
    pairs, renumbered = index.similarities.pairs, index.similarities.renumbered
    if renumbered:
        share = contents.share(renumbered, pairs)
        yield ReportFinding(
            "look",
            f"{renumbered:,} of {count_of(pairs, 'stored pair')} ({share}) differ in their numbers: templates, "
            "corrections, or results of different days.",
            "pairs",
        )

    suspicious = [
        cluster for cluster in index.clusters.suspicious if cluster.suspicion >= _MIN_SUSPICION_SCORE
    ]
    if suspicious:
        worst = suspicious[0]
        yield ReportFinding(
            "look",
            f"The most suspicious cluster has {count_of(worst.facts.members, 'member')} and scores "
            f"{worst.suspicion:.0f} of 100.",
            "suspicious",
        )


def _find_left_out(stats: dict[str, Any], index: IndexContents) -> Iterator[ReportFinding]:
    buckets = index.buckets
    if buckets.over_limit:
        yield ReportFinding(
            "look",
            f"{count_of(buckets.over_limit, 'bucket')} over the limit: {count_of(buckets.left_out, 'link')} left out.",
            "buckets",
        )

    left_out = {
        "outside_window": "outside the retention window",
        "no_features": "without features match nothing",
    }
    for key in filter(stats.get, left_out):
        yield ReportFinding("note", f"{count_of(stats[key], 'document')} {left_out[key]}.", "left-out")

    candidates = stats.get("candidates_per_document") or 0
    if candidates > _MAX_CANDIDATES_PER_DOCUMENT:
        yield ReportFinding(
            "look",
            f"{candidates:,.0f} candidates per document is high; reduce them with more rows, a larger k or "
            "longer shingles.",
            "index",
        )

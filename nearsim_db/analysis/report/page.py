"""Render reports as self-contained HTML pages that make no requests."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from nearsim_db.admin.reindex import Difference
from nearsim_db.admin.reindex.diff_result import SampledPair
from nearsim_db.analysis.report import charts, contents
from nearsim_db.analysis.report.charts import Chart
from nearsim_db.analysis.report.contents import Report
from nearsim_db.analysis.report.findings import WEIGHTS, find
from nearsim_db.analysis.text_diff import Diff, compare
from nearsim_db.errors import NearsimError

if TYPE_CHECKING:
    from jinja2 import Environment

_ASSETS = ("page.css", "sort.js", "page.js")


def render(report: Report) -> bytes:
    """Return the report as an HTML page in UTF-8. Raises NearsimError if the extra `report` is not installed."""
    return _render(
        "page.html",
        lambda: {
            "report": report,
            "charts": _draw(report),
            "axes": charts.AXES,
            "findings": find(report),
            "weights": WEIGHTS,
        },
    )


def render_difference(found: Difference) -> bytes:
    """Return a comparison of two generations as an HTML page. Raises as `render` does."""
    samples = {kind: getattr(found.samples, kind) for kind in ("lost", "gained", "rescored")}
    return _render(
        "difference.html",
        lambda: {
            "found": found,
            "version": version("nearsim-db"),
            "compared": {kind: _with_diffs(pairs) for kind, pairs in samples.items()},
        },
    )


def _render(template: str, values: Callable[[], dict[str, Any]]) -> bytes:
    """Render a template with some values, which are made once jinja2 is known to be installed."""
    try:
        environment = _environment()
        made = values()
    except ImportError as error:
        raise NearsimError(
            f"the report requires jinja2 and matplotlib, and {error.name or 'one'} is not installed; run: "
            "pip install 'nearsim-db[report]', or print the figures with --json"
        ) from error
    style, *scripts = (
        (files("nearsim_db.analysis.report") / "assets" / name).read_text("utf-8") for name in _ASSETS
    )
    page = environment.get_template(template).render(
        made, style=style, scripts=scripts, policy=_policy(style, scripts)
    )
    return page.encode("utf-8", "replace")


def _with_diffs(pairs: Sequence[SampledPair]) -> list[tuple[SampledPair, Diff]]:
    return [(one, compare(one.left.text or "", one.right.text or "")) for one in pairs]


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nearsim_db.analysis.report"),
        autoescape=True,
        finalize=contents.visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= contents.FILTERS
    return environment


def _draw(report: Report) -> dict[str, Chart]:
    index = report.index
    if index is None:
        return {}
    found = index.similarities
    drawn = {"similarities": charts.draw_similarities(found)} if found.pairs or found.twins else {}
    return drawn | ({"sizes": charts.draw_sizes(index.clusters.sizes)} if index.clusters.sizes else {})


def _policy(style: str, scripts: list[str]) -> str:
    """Return a Content-Security-Policy that allows only the inline style and scripts, and no requests."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(map(_hash, scripts))}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

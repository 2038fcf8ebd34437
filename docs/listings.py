"""Render the tables of presets and metrics, from the comments of presets and the help texts of metrics."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from docs.page_parts import table
from nearsim_db.similarity import presets
from nearsim_db.store.work.backlog import Backlog
from nearsim_db.worker.metrics import Monitor

PRESETS = Path(__file__).parent / "reference" / "presets"


def preset_table() -> str:
    """Return a row for each preset, with a link if it has a page."""
    return table(("preset", "for"), ((_linked(name), presets.purpose(name)) for name in presets.names()))


def _linked(name: str) -> str:
    return f"[{name}]({name}.md)" if (PRESETS / f"{name}.md").exists() else name


def metric_table() -> str:
    """Return a row for each metric of a worker."""
    monitor = Monitor()
    monitor.count_batch("sign", 1, {})
    with monitor.batch("sign"):
        monitor.session_began(lambda: Backlog({"sign": 0}, 0, 0.0, 0, 0, 0, 0, 0, ()))
    return table(("metric", "meaning"), _metrics(monitor.exposition().decode()))


def _metrics(exposition: str) -> Iterator[tuple[str, str]]:
    for family in text_string_to_metric_families(exposition):
        suffix = "_total" if family.type == "counter" else ""
        labels = sorted({name for sample in family.samples for name in sample.labels} - {"le"})
        shown = f"{{{', '.join(labels)}}}" if labels else ""
        if not family.name.endswith("_created"):
            yield f"`{family.name}{suffix}{shown}`", f"{family.documentation}"

"""Output of `nearsim delete --purge`."""

from dataclasses import asdict
from typing import Any

from nearsim_db.cli.output import tables, terminal
from nearsim_db.errors import count_of
from nearsim_db.indexing.purge import Purged


def purge_document(purged: Purged) -> dict[str, Any]:
    """Return the places that a purge erased documents from, with the number of rows or lines."""
    return {
        "document": len(purged.deleted),
        "generations": [
            {
                "profile": generation.profile,
                "generation": generation.generation_id,
                "state": generation.state,
                **asdict(traces),
            }
            for generation, traces in purged.generations
        ],
        "later": [
            {"profile": generation.profile, "generation": generation.generation_id, "state": generation.state}
            for generation in purged.later
        ],
        "work": purged.work,
        "changes": purged.changes,
        "probes": purged.probes,
        "events": purged.events,
        "verdicts": purged.verdicts,
        "rejects": [{"path": str(path), "lines": lines} for path, lines in purged.rejects],
        "caches": f"emptied at {purged.caches_emptied_at.isoformat()}",
    }


def print_purge(purged: Purged) -> None:
    """Print the places that a purge erased documents from."""
    terminal.print_line()
    tables.print_facts(
        {
            "documents": len(purged.deleted),
            **{
                f"profile {generation.profile}, generation {generation.generation_id} ({generation.state})": (
                    f"{count_of(traces.signatures, 'signature')}, {count_of(traces.bands, 'band')}, "
                    f"{count_of(traces.pairs, 'pair')}, {count_of(traces.cluster_rows, 'cluster row')}"
                )
                for generation, traces in purged.generations
            },
            **{
                f"profile {generation.profile}, generation {generation.generation_id} ({generation.state})": (
                    "is still being built, and drops the documents once caught up; to drop it "
                    f"now: {generation.advice('reindex abandon')}, then {generation.advice('reindex drop')}"
                )
                for generation in purged.later
            },
            "work": purged.work,
            "changes": purged.changes,
            "probes": purged.probes,
            "events": purged.events,
            "verdicts": purged.verdicts,
            **{f"rejects in {path}": count_of(lines, "line") for path, lines in purged.rejects},
            "caches": f"emptied at {purged.caches_emptied_at.isoformat(sep=' ', timespec='seconds')}",
        }
    )

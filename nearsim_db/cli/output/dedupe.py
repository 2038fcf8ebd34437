"""Output of `nearsim dedupe`."""

from pathlib import Path
from typing import TextIO

from nearsim_db.analysis.dedupe_files import DedupeSummary
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output import tables
from nearsim_db.cli.output.documents import print_document
from nearsim_db.cli.output.ingest import print_rejects
from nearsim_db.records import STANDARD_OUTPUT


def print_summary_document(format: Format, summary: DedupeSummary, output: Path, stream: TextIO) -> None:
    """Print the counts for programs."""
    ingest, profile = summary.ingest, summary.profile
    print_document(
        format,
        {
            "read": ingest.read,
            "unique": summary.unique,
            "duplicates": summary.duplicates,
            "rejected": ingest.rejected,
            "unreadable_dates": ingest.unreadable_dates,
            "replaced_characters": ingest.replaced_characters,
            "pairs": summary.pairs,
            "clusters": summary.clusters,
            "threshold": profile.recipe.match.threshold,
            "bands": profile.bands,
            "rows": profile.rows,
            "output": str(output),
        },
        stream,
    )


def print_summary(summary: DedupeSummary, output: Path, rejects: Path | None, stream: TextIO) -> None:
    """Print counts, and the first rejects with their reasons."""
    place = "standard output" if output == STANDARD_OUTPUT else output
    ingest, profile = summary.ingest, summary.profile
    tables.print_facts(
        {
            "read": ingest.read,
            "unique": f"{summary.unique:,} written to {place}",
            "duplicates": summary.duplicates,
            "rejected": ingest.rejected,
            "replaced characters": ingest.replaced_characters,
            **({"unreadable dates": ingest.unreadable_dates} if ingest.unreadable_dates else {}),
            "clusters": summary.clusters,
            "bands x rows": f"{profile.bands} x {profile.rows}",
        },
        stream,
    )
    print_rejects(ingest, rejects, stream)

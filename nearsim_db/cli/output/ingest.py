"""Output of `nearsim ingest` and `nearsim dedupe`."""

from pathlib import Path
from typing import Any, TextIO

from nearsim_db.analysis.dedupe_files import DedupeSummary
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.documents import print_document
from nearsim_db.cli.output.profiles import outline, print_profiles
from nearsim_db.errors import NearsimError
from nearsim_db.readers.rejects import place_of
from nearsim_db.records import STANDARD_OUTPUT, IngestSummary, OnDuplicate


def print_summary_document(
    format: Format,
    summary: IngestSummary,
    profiles: list[dict[str, Any]],
    *,
    dry_run: bool,
    error: NearsimError | None,
    on_duplicate: OnDuplicate | None,
) -> None:
    """Print it for programs; `error` is null unless the ingest ended early."""
    print_document(
        format,
        {
            "read": summary.read,
            "inserted": summary.inserted,
            "updated": summary.updated,
            "unchanged": summary.unchanged,
            "rejected": summary.rejected,
            "replaced": summary.replaced,
            "unreadable_dates": summary.unreadable_dates,
            "replaced_characters": summary.replaced_characters,
            **({} if on_duplicate is None else _duplicates(summary)),
            "dry_run": dry_run,
            "error": None if error is None else str(error),
            "first_rejects": [
                {"file": one.file, "line": one.line, "id": one.external_id, "reason": one.reason}
                for one in summary.first_rejects
            ],
            "profiles": [outline(one) for one in profiles],
        },
    )


def print_summary(
    summary: IngestSummary,
    profiles: list[dict[str, Any]],
    *,
    dry_run: bool,
    rejects: Path | None,
    on_duplicate: OnDuplicate | None,
) -> None:
    """Print counts, the first rejects with their reasons, and the profiles."""
    if dry_run:
        terminal.print_line("Dry run: nothing was written.")
    tables.print_facts(
        {
            "read": summary.read,
            "inserted": summary.inserted,
            "updated": summary.updated,
            "unchanged": summary.unchanged,
            "rejected": summary.rejected,
            "replaced characters": summary.replaced_characters,
        }
        | ({"replaced within this call": summary.replaced} if summary.replaced else {})
        | ({"unreadable dates": summary.unreadable_dates} if summary.unreadable_dates else {})
        | (
            {}
            if on_duplicate is None
            else {"duplicates": len(summary.duplicates), "skipped": summary.skipped}
        )
    )
    print_rejects(summary, rejects)
    if profiles:
        terminal.print_line()
        print_profiles(profiles)


def _duplicates(summary: IngestSummary) -> dict[str, object]:
    return {
        "skipped": summary.skipped,
        "duplicates": [
            {
                "id": one.external_id,
                "duplicate_of": one.matches[0].external_id,
                "similarity": one.matches[0].similarity,
                "matches": len(one.matches),
                "verified": one.matches[0].verified,
            }
            for one in summary.duplicates
        ],
    }


def print_rejects(summary: IngestSummary, rejects: Path | None, stream: TextIO | None = None) -> None:
    """Print the first rejects with their reasons, and the path of the reject file."""
    if not summary.rejected:
        return
    terminal.print_line(stream=stream)
    for one in summary.first_rejects:
        terminal.print_line(f"rejected: {place_of(one)}: {one.reason}", stream)
    more = summary.rejected - len(summary.first_rejects)
    if more:
        terminal.print_line(f"... and {more:,} more", stream)
    if rejects is not None:
        terminal.print_line(f"all rejects are in {rejects}", stream)
    elif more:
        terminal.print_line("write all rejects to a file with --rejects PATH", stream)


def print_dedupe_document(format: Format, summary: DedupeSummary, output: Path, stream: TextIO) -> None:
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


def print_dedupe_summary(summary: DedupeSummary, output: Path, rejects: Path | None, stream: TextIO) -> None:
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

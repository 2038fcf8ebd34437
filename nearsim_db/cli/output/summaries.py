"""What an ingest, a build or a profile came to, for people and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from nearsim_db.analysis.dedupe_files import DedupeSummary
from nearsim_db.cli.output import render
from nearsim_db.errors import NearsimError
from nearsim_db.index import Index
from nearsim_db.indexing.purge import Purged
from nearsim_db.records import STANDARD_OUTPUT, IngestSummary, OnDuplicate, Reject

_OUTLINE = ("profile", "state", "documents", "pairs", "clusters", "bands", "rows", "candidates_per_document")


def profile_stats(index: Index) -> list[dict[str, Any]]:
    """The statistics of every profile that answers."""
    return [
        index.stats(generation.profile) for generation, _ in index.profiles() if generation.state == "live"
    ]


def outline(stats: dict[str, Any]) -> dict[str, Any]:
    """The few figures of a profile that a summary shows."""
    return {name: stats[name] for name in _OUTLINE}


def print_ingest_document(
    summary: IngestSummary,
    profiles: list[dict[str, Any]],
    *,
    dry_run: bool,
    error: NearsimError | None,
    on_duplicate: OnDuplicate | None,
) -> None:
    """One JSON document; `error` is null unless it ended early."""
    render.document(
        {
            "read": summary.read,
            "inserted": summary.inserted,
            "updated": summary.updated,
            "unchanged": summary.unchanged,
            "rejected": summary.rejected,
            "replaced_characters": summary.replaced_characters,
            **({} if on_duplicate is None else _duplicates(summary)),
            "dry_run": dry_run,
            "error": None if error is None else str(error),
            "first_rejects": [
                {"file": one.file, "line": one.line, "id": one.external_id, "reason": one.reason}
                for one in summary.first_rejects
            ],
            "profiles": [outline(one) for one in profiles],
        }
    )


def print_ingest(
    summary: IngestSummary,
    profiles: list[dict[str, Any]],
    *,
    dry_run: bool,
    rejects: Path | None,
    on_duplicate: OnDuplicate | None,
) -> None:
    """Counts, the first rejects with their reasons, and a line for each profile."""
    if dry_run:
        render.line("Nothing was written; this is what would happen.")
    render.facts(
        {
            "read": summary.read,
            "inserted": summary.inserted,
            "updated": summary.updated,
            "unchanged": summary.unchanged,
            "rejected": summary.rejected,
            "replaced characters": summary.replaced_characters,
        }
        | (
            {}
            if on_duplicate is None
            else {"duplicates": len(summary.duplicates), "skipped": summary.skipped}
        )
    )
    print_rejects(summary, rejects)
    if profiles:
        render.line()
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
            }
            for one in summary.duplicates
        ],
    }


def print_rejects(summary: IngestSummary, rejects: Path | None, stream: TextIO | None = None) -> None:
    """The first rejects with their reasons, and where all of them are."""
    if not summary.rejected:
        return
    render.line(stream=stream)
    for one in summary.first_rejects:
        render.line(f"rejected: {_place(one)}: {one.reason}", stream)
    more = summary.rejected - len(summary.first_rejects)
    if more:
        render.line(f"... and {more:,} more", stream)
    if rejects is not None:
        render.line(f"all of them are in {rejects}", stream)
    elif more:
        render.line("with --rejects PATH all of them are written there", stream)


def _place(reject: Reject) -> str:
    return f"{reject.file}, line {reject.line:,}" if reject.line else reject.file


def print_profiles(profiles: Sequence[dict[str, Any]]) -> None:
    """A line for each profile."""
    if not profiles:
        return
    render.table(
        ("profile", "documents", "pairs", "clusters", "bands x rows", "candidates per document"),
        [
            (
                one["profile"],
                one["documents"],
                one["pairs"],
                one["clusters"],
                f"{one['bands']} x {one['rows']}",
                one["candidates_per_document"],
            )
            for one in profiles
        ],
        decimals={"candidates per document": 2},
    )


def purged_places(purged: Purged) -> dict[str, Any]:
    """Every place that a purge removed something from, with how many rows or lines that were."""
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


def print_purged(purged: Purged) -> None:
    """The same for people."""
    render.line()
    render.facts(
        {
            "documents": len(purged.deleted),
            **{
                f"profile {generation.profile}, generation {generation.generation_id} ({generation.state})": (
                    f"{traces.signatures:,} signatures, {traces.bands:,} bands, {traces.pairs:,} pairs, "
                    f"{traces.cluster_rows:,} cluster rows"
                )
                for generation, traces in purged.generations
            },
            **{
                f"profile {generation.profile}, generation {generation.generation_id} ({generation.state})": (
                    "is being built right now, and loses it when it has caught up with the documents; to be rid of it "
                    f"now: {generation.advice('reindex abandon')}, then {generation.advice('reindex drop')}"
                )
                for generation in purged.later
            },
            "work": purged.work,
            "changes": purged.changes,
            "probes": purged.probes,
            "events": purged.events,
            "verdicts": purged.verdicts,
            **{f"rejects in {path}": f"{lines:,} lines" for path, lines in purged.rejects},
            "caches": f"emptied at {purged.caches_emptied_at.isoformat(sep=' ', timespec='seconds')}",
        }
    )


def print_warnings(warnings: Iterable[str]) -> None:
    """What the index found worth knowing."""
    for warning in warnings:
        render.warn(warning)


def print_dedupe_document(summary: DedupeSummary, output: Path, stream: TextIO) -> None:
    """One JSON document."""
    ingest, stats = summary.ingest, summary.stats
    render.document(
        {
            "read": ingest.read,
            "unique": summary.unique,
            "duplicates": summary.duplicates,
            "rejected": ingest.rejected,
            "replaced_characters": ingest.replaced_characters,
            **{name: stats[name] for name in ("pairs", "clusters", "threshold", "bands", "rows")},
            "output": str(output),
        },
        stream,
    )


def print_dedupe(summary: DedupeSummary, output: Path, rejects: Path | None, stream: TextIO) -> None:
    """Counts, and the first rejects with their reasons."""
    place = "standard output" if output == STANDARD_OUTPUT else output
    ingest, stats = summary.ingest, summary.stats
    render.facts(
        {
            "read": ingest.read,
            "unique": f"{summary.unique:,} written to {place}",
            "duplicates": summary.duplicates,
            "rejected": ingest.rejected,
            "replaced characters": ingest.replaced_characters,
            "clusters": stats["clusters"],
            "bands x rows": f"{stats['bands']} x {stats['rows']}",
        },
        stream,
    )
    print_rejects(ingest, rejects, stream)


def print_choice(description: dict[str, Any], name: str, state: str) -> None:
    """What a profile chose and what to expect of it."""
    render.facts(
        {
            "profile": name,
            "state": state,
            "fingerprint": description["fingerprint"],
            "threshold": f"{description['threshold']:g}",
            "window": _window(description["recipe"]["retain"]["age"]),
            "bands x rows": f"{description['bands']} x {description['rows']}",
            "unused rows": description["unused_rows"],
            "amplification": description["amplification"],
            "expected recall": f"{description['expected_recall']:.4f} at the threshold",
            "expected bytes per document": description["expected_bytes_per_document"],
        }
    )
    print_curve(description)


def _window(age: str) -> str:
    return "all documents" if age == "none" else f"documents of the last {age}"


def print_curve(description: dict[str, Any]) -> None:
    """The probability of becoming a candidate, by similarity; under projection by distance, too."""
    curve = description["curve"]
    render.line()
    if description["recipe"]["sketch"]["family"] != "projection":
        render.line("The probability that a pair of a similarity becomes a candidate:")
        render.table(("similarity", "probability"), [(f"{s:.2f}", f"{p:.4f}") for s, p in curve])
        return
    render.line(
        "The probability that a pair at a distance becomes a candidate; its similarity is 1 / (1 + distance):"
    )
    rows = [(f"{1 / s - 1:.4g}" if s else "-", f"{s:.2f}", f"{p:.4f}") for s, p in curve]
    render.table(("distance", "similarity", "probability"), rows)

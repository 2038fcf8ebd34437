"""Summaries of what commands did (ingest, dedupe, cut and purge), and the figures of profiles."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.terminal import values_of
from nearsim_db.errors import NearsimError
from nearsim_db.messages import count_of
from nearsim_db.records import STANDARD_OUTPUT, IngestSummary, OnDuplicate

if TYPE_CHECKING:
    from nearsim_db.deduplication.files import CutCounts, DedupeSummary
    from nearsim_db.index import Index
    from nearsim_db.indexing.purge import Purged
    from nearsim_db.similarity.recipe import Recipe
    from nearsim_db.store.generations.generation_rows import Generation

_OUTLINE = (
    *("profile", "state", "documents", "pairs", "clusters", "bands", "rows"),
    *("linked_pairs_per_document", "candidates_per_document", "review_pairs", "hints"),
)

BANDING = "bands x rows"
_DRY_RUN = "Dry run: nothing was written."


def live_profile_stats(index: "Index") -> list[dict[str, Any]]:
    """Return the statistics of every profile that has a live index."""
    return [index.stats(row.profile) for row in index.profiles() if row.state == "live"]


def outlines(profiles: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return those figures of each profile that a summary shows."""
    return [{name: profile[name] for name in _OUTLINE} for profile in profiles]


def print_profiles(profiles: Sequence[dict[str, Any]]) -> None:
    """Print a row of figures for each profile, and hints. Linked pairs are shown if they differ from candidates."""
    if not profiles:
        return
    # The columns are profile, documents, pairs and clusters, and the two figures per document.
    counts, ratios = [*_OUTLINE[:1], *_OUTLINE[2:5]], list(_OUTLINE[7:9])
    if any(profile["review_pairs"] for profile in profiles):
        counts.append("review_pairs")
    if all(profile[ratios[0]] == profile[ratios[1]] for profile in profiles):
        del ratios[0]

    headings = [name.replace("_", " ") for name in ratios]
    rows = [
        [
            *map(profile.get, counts),
            banding_cell(_recipe_of(profile), profile["bands"], profile["rows"]),
            *map(profile.get, ratios),
        ]
        for profile in profiles
    ]
    shown = [name.replace("_", " ") for name in counts]
    tables.print_table((*shown, BANDING, *headings), rows, decimals=dict.fromkeys(headings, 2))

    for profile in profiles:
        print_hints(profile)


def print_hints(figures: dict[str, Any]) -> None:
    """Print the hints of a profile's index."""
    for hint in figures["hints"]:
        terminal.print_line(f"hint: profile {figures['profile']}: {hint['message']}")


def print_profile(description: dict[str, Any], name: str, state: str) -> None:
    """Print the properties of a profile: its bands, expected recall and size, and the S-curve."""
    age = description["recipe"]["retain"]["age"]
    tables.print_facts(
        {
            "profile": name,
            "state": state,
            "fingerprint": description["fingerprint"],
            "threshold": f"{description['threshold']:g}",
            "window": "all documents" if age == "none" else f"documents of the last {age}",
            **_banding(description),
            "expected bytes per document": description["expected_bytes_per_document"],
        }
    )
    print_curve(description)


def print_statistics(statistics: dict[str, Any]) -> None:
    """Print the statistics of an index, its bands (for winnow the run that is never missed), the S-curve and hints."""
    banding = ("bands", "rows", "unused_rows", "amplification", "expected_recall", "never_missed")
    facts = {
        name: value
        for name, value in statistics.items()
        if not isinstance(value, list | dict) and name not in banding
    }
    tables.print_named({**facts, **_banding(statistics)})
    print_curve(statistics)
    print_hints(statistics)


def banding_cell(recipe: "Recipe", bands: int, rows: int) -> str:
    """Return a cell that says what makes candidates: bands x rows or, for winnow, the run that is never missed."""
    ((name, value),) = _banding_of(recipe, bands, rows).items()
    return value if name == BANDING else f"{name}: {value}"


def _banding_of(recipe: "Recipe", bands: int, rows: int) -> dict[str, str]:
    """Return what makes candidates: bands, or for winnow the length of the runs that are never missed."""
    if recipe.never_missed is None:
        return {BANDING: f"{bands} x {rows}"}
    return {"never missed": f"{recipe.never_missed} equal {_unit(recipe.shingle.scheme)} in a row"}


def _banding(description: dict[str, Any]) -> dict[str, str]:
    """Return what makes candidates, and for bands also the expected recall."""
    banding = _banding_of(_recipe_of(description), description["bands"], description["rows"])
    if BANDING not in banding:
        return banding
    recall = f"{description['expected_recall']:.4f} at the threshold"
    details = {"unused rows": f"{description['unused_rows']}", "amplification": description["amplification"]}
    return banding | details | {"expected recall": recall}


def _recipe_of(description: dict[str, Any]) -> "Recipe":
    from nearsim_db.similarity.recipe import from_mapping

    return from_mapping(description["recipe"])


def _unit(scheme: str) -> str:
    return "characters" if scheme == "char" else "words"


def print_curve(description: dict[str, Any]) -> None:
    """Print the probability of becoming a candidate by similarity, distance or, for winnow, equal words in a row."""
    curve, family = description["curve"], description["recipe"]["sketch"]["family"]
    terminal.print_line()

    if family == "winnow":
        unit = _unit(description["recipe"]["shingle"]["scheme"])
        terminal.print_line(
            f"Probability that a pair shares a fingerprint, by its most equal {unit} in a row:"
        )
        tables.print_table((unit, "probability"), [(f"{run:g}", f"{p:.4f}") for run, p in curve])
        return

    if family != "projection":
        terminal.print_line("Probability that a pair becomes a candidate, by similarity:")
        tables.print_table(("similarity", "probability"), [(f"{s:.2f}", f"{p:.4f}") for s, p in curve])
        return
    terminal.print_line(
        "Probability that a pair becomes a candidate, by distance; similarity is 1 / (1 + distance):"
    )
    # A similarity of 0 is an infinite distance.
    rows = [(f"{1 / s - 1:.4g}" if s else "-", f"{s:.2f}", f"{p:.4f}") for s, p in curve]
    tables.print_table(("distance", "similarity", "probability"), rows)


@dataclass(frozen=True, slots=True)
class Written:
    """What an ingest wrote."""

    summary: IngestSummary
    profiles: list[dict[str, Any]]
    dry_run: bool
    on_duplicate: OnDuplicate | None

    def document(self, error: NearsimError | None) -> dict[str, object]:
        """Return the summary for programs; `error` is None unless an error ended the ingest."""
        summary = self.summary
        return {
            **values_of(summary, "read", "inserted", "updated", "unchanged", "rejected", "replaced"),
            **values_of(summary, "unreadable_dates", "replaced_characters"),
            **({} if self.on_duplicate is None else _duplicates(summary)),
            "dry_run": self.dry_run,
            "error": None if error is None else str(error),
            "first_rejects": [
                {**values_of(reject, "file", "line"), "id": reject.external_id, "reason": reject.reason}
                for reject in summary.first_rejects
            ],
            "profiles": outlines(self.profiles),
        }

    def print(self, rejects: Path | None, damage: NearsimError | None) -> None:
        """Print counts, the first rejects with their reasons, and the profiles.

        Prints nothing if the file is damaged and no record could be read.
        """
        summary = self.summary
        if damage is not None and not summary.read:
            return
        if self.dry_run:
            terminal.print_line(_DRY_RUN)

        facts = values_of(
            summary, "read", "inserted", "updated", "unchanged", "rejected", "replaced_characters"
        )
        if summary.replaced:
            facts["replaced within this call"] = summary.replaced
        if summary.unreadable_dates:
            facts["unreadable_dates"] = summary.unreadable_dates
        if self.on_duplicate is not None:
            facts |= {"duplicates": len(summary.duplicates), "skipped": summary.skipped}
        tables.print_named(facts)

        print_rejects(summary, rejects)
        if self.profiles:
            terminal.print_line()
            print_profiles(self.profiles)


def _duplicates(summary: IngestSummary) -> dict[str, object]:
    return {
        "skipped": summary.skipped,
        "duplicates": [
            {
                "id": duplicate.external_id,
                "duplicate_of": duplicate.matches[0].external_id,
                "similarity": duplicate.matches[0].similarity,
                "matches": len(duplicate.matches),
                "verified": duplicate.matches[0].verified,
            }
            for duplicate in summary.duplicates
        ],
    }


def print_rejects(summary: IngestSummary, rejects: Path | None, stream: TextIO | None = None) -> None:
    """Print the first rejects with their reasons, and the path of the reject file."""
    if not summary.rejected:
        return
    from nearsim_db.readers.rejects import place_of

    terminal.print_line(stream=stream)
    for reject in summary.first_rejects:
        terminal.print_line(f"rejected: {place_of(reject)}: {reject.reason}", stream)

    unlisted = summary.rejected - len(summary.first_rejects)
    if unlisted:
        terminal.print_line(f"... and {unlisted:,} more", stream)
    if rejects is not None:
        place = "on standard output" if rejects == STANDARD_OUTPUT else f"in {rejects}"
        terminal.print_line(f"all rejects are {place}", stream)
    elif unlisted:
        terminal.print_line("write all rejects to a file with --rejects PATH", stream)


def dedupe_document(summary: "DedupeSummary", output: Path | None) -> dict[str, object]:
    """Return the summary of `dedupe` or `cut` for programs."""
    ingest, profile = summary.ingest, summary.profile

    return {
        "read": ingest.read,
        **values_of(summary, "unique", "duplicates"),
        **values_of(ingest, "rejected", "unreadable_dates", "replaced_characters"),
        **values_of(summary, "pairs", "review_pairs", "clusters"),
        "threshold": profile.recipe.match.threshold,
        **values_of(profile, "bands", "rows"),
        "against": values_of(summary.against, "read", "rejected", "duplicates"),
        **(
            {}
            if summary.cut is None
            else {"cut": values_of(summary.cut, "changed", "passages", "characters")}
        ),
        **({} if summary.marked is None else {"marked": summary.marked}),
        **({} if summary.untouched_clusters is None else {"untouched_clusters": summary.untouched_clusters}),
        "output": None if output is None else str(output),
        "dry_run": output is None,
    }


def print_dedupe_summary(
    summary: "DedupeSummary", output: Path | None, rejects: Path | None, stream: TextIO
) -> None:
    """Print the counts of `dedupe` or `cut`, and the first rejects with their reasons."""
    place = "standard output" if output == STANDARD_OUTPUT else output
    written = "" if output is None else f" written to {place}"
    if output is None:
        terminal.print_line(_DRY_RUN, stream)

    ingest, profile = summary.ingest, summary.profile
    tables.print_facts(
        {
            "read": ingest.read,
            **(
                {"unique": f"{summary.unique:,}{written}"}
                if summary.marked is None
                else {"marked": f"{summary.marked:,}{written}", "unique": summary.unique}
            ),
            "duplicates": summary.duplicates,
            **({"pairs to review": summary.review_pairs} if summary.review_pairs else {}),
            "rejected": ingest.rejected,
            "replaced characters": ingest.replaced_characters,
            **({"unreadable dates": ingest.unreadable_dates} if ingest.unreadable_dates else {}),
            **(
                _of_cuts(summary.cut)
                if summary.cut
                else _of_against(summary) | _banding_of(profile.recipe, profile.bands, profile.rows)
            ),
        },
        stream,
    )

    print_rejects(ingest, rejects, stream)


def _of_cuts(cut: "CutCounts") -> dict[str, object]:
    return {
        "changed": cut.changed,
        "cut": f"{count_of(cut.passages, 'passage')}, {cut.characters:,} characters",
    }


def _of_against(summary: "DedupeSummary") -> dict[str, object]:
    against = summary.against
    if not against.read:
        untouched = summary.untouched_clusters
        of_others = "" if untouched is None else f", {untouched:,} of them with nothing to remove"
        return {"clusters": f"{summary.clusters:,}{of_others}"}
    rejected = f", {against.rejected:,} of them rejected" if against.rejected else ""
    return {"against": f"{against.read:,} read{rejected}", "found in these": against.duplicates}


def purge_document(purged: "Purged") -> dict[str, Any]:
    """Return the places from which a purge erased documents, with the numbers of rows or lines."""

    def named(generation: "Generation") -> dict[str, object]:
        return {
            "profile": generation.profile,
            "generation": generation.generation_id,
            "state": generation.state,
        }

    return {
        "document": len(purged.deleted),
        "generations": [named(generation) | asdict(traces) for generation, traces in purged.generations],
        "later": [named(generation) for generation in purged.later],
        **values_of(purged, "work", "changes", "probes", "events", "verdicts"),
        "rejects": [{"path": str(path), "lines": lines} for path, lines in purged.rejects],
        "caches": f"emptied at {purged.caches_emptied_at.isoformat()}",
    }


def print_purge(purged: "Purged") -> None:
    """Print the places from which a purge erased documents, with the numbers of rows or lines."""

    def named(generation: "Generation") -> str:
        return f"profile {generation.profile}, generation {generation.generation_id} ({generation.state})"

    facts: dict[str, object] = {"documents": len(purged.deleted)}
    for generation, traces in purged.generations:
        facts[named(generation)] = (
            f"{count_of(traces.signatures, 'signature')}, {count_of(traces.bands, 'band')}, "
            f"{count_of(traces.pairs, 'pair')}, {count_of(traces.cluster_rows, 'cluster row')}"
        )

    for generation in purged.later:
        facts[named(generation)] = (
            "is still being built, and drops the documents once caught up; to drop it "
            f"now: {generation.advice('reindex abandon')}, then {generation.advice('reindex drop')}"
        )

    facts |= values_of(purged, "work", "changes", "probes", "events", "verdicts")
    facts |= {f"rejects in {path}": count_of(lines, "line") for path, lines in purged.rejects}
    facts["caches"] = f"emptied at {purged.caches_emptied_at.isoformat(sep=' ', timespec='seconds')}"

    terminal.print_line()
    tables.print_facts(facts)

"""Output of profiles: what a recipe resolves to, and the figures of an index."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nearsim_db.cli.output import tables, terminal

if TYPE_CHECKING:
    from nearsim_db.index import Index

_OUTLINE = (
    "profile",
    "state",
    "documents",
    "pairs",
    "clusters",
    "bands",
    "rows",
    "linked_pairs_per_document",
    "candidates_per_document",
)


def live_profile_stats(index: "Index") -> list[dict[str, Any]]:
    """Return the statistics of every profile that has a live index."""
    return [
        index.stats(generation.profile) for generation, _ in index.profiles() if generation.state == "live"
    ]


def outline(stats: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a profile that a summary shows."""
    return {name: stats[name] for name in _OUTLINE}


def print_profiles(profiles: Sequence[dict[str, Any]]) -> None:
    """Print the figures of the profiles, one per row; linked pairs if they are not the same as candidates."""
    if not profiles:
        return
    ratios = ["linked_pairs_per_document", "candidates_per_document"]
    if all(one[ratios[0]] == one[ratios[1]] for one in profiles):
        del ratios[0]
    headings = [name.replace("_", " ") for name in ratios]
    tables.print_table(
        ("profile", "documents", "pairs", "clusters", "bands x rows", *headings),
        [
            (
                one["profile"],
                one["documents"],
                one["pairs"],
                one["clusters"],
                f"{one['bands']} x {one['rows']}",
                *(one[name] for name in ratios),
            )
            for one in profiles
        ],
        decimals=dict.fromkeys(headings, 2),
    )


def print_profile(description: dict[str, Any], name: str, state: str) -> None:
    """Print what a profile resolves to: bands, expected recall and size, and the S-curve."""
    tables.print_facts(
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
    """Print the probability of becoming a candidate by similarity and, for projection, by distance."""
    curve = description["curve"]
    terminal.print_line()
    if description["recipe"]["sketch"]["family"] != "projection":
        terminal.print_line("Probability that a pair becomes a candidate, by similarity:")
        tables.print_table(("similarity", "probability"), [(f"{s:.2f}", f"{p:.4f}") for s, p in curve])
        return
    terminal.print_line(
        "Probability that a pair becomes a candidate, by distance; similarity is 1 / (1 + distance):"
    )
    rows = [(f"{1 / s - 1:.4g}" if s else "-", f"{s:.2f}", f"{p:.4f}") for s, p in curve]
    tables.print_table(("distance", "similarity", "probability"), rows)

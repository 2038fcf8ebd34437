"""Output of `nearsim reindex diff`."""

from pathlib import Path
from typing import Any

from nearsim_db.admin.reindex import Difference
from nearsim_db.cli.output import tables, terminal
from nearsim_db.messages import count_of, suggested_command
from nearsim_db.records import STANDARD_OUTPUT
from nearsim_db.store.generations.diffs import ChangedCluster, PairInGeneration

_SHOWN = 5


def print_difference(found: Difference, page: Path | None) -> None:
    """Print the recipe changes, counts and shares, a few samples, the limits, and the next steps.

    Nothing if the page is on standard output.
    """
    if page == STANDARD_OUTPUT:
        return
    terminal.print_line(
        f"generation {found.new.generation} ({found.new.state}) of profile {found.profile}, compared with the live "
        f"generation {found.live.generation}"
    )
    _print_recipe(found)
    _print_counts(found)
    _print_samples(found)
    if found.limits:
        terminal.print_line()
        rows = []
        for one in found.limits:
            counted = f"{one.found:,} ({_percent(one.found_share)})"
            rows.append([one.limit, one.allowed, counted, "exceeded" if one.exceeded else "kept"])
        tables.print_table(["limit", "allowed", "found", "result"], rows)
    terminal.print_line()
    if page is not None:
        terminal.print_line(f"wrote the page with texts side by side to {page}")
    for line in _next(found):
        terminal.print_line(line)


def _columns(found: Difference) -> list[str]:
    """Name the columns; the compared generation may be older than the live one."""
    return ["live", f"generation {found.new.generation}"]


def _print_recipe(found: Difference) -> None:
    terminal.print_line()
    if found.recipe:
        tables.print_table(
            ["recipe", *_columns(found)],
            [[key, *map(terminal.visible, both)] for key, both in found.recipe.items()],
        )
    else:
        same = found.live.fingerprint == found.new.fingerprint
        terminal.print_line("same recipe" + ("" if same else ", built by another version of its schemes"))


def _print_counts(found: Difference) -> None:
    pairs, clusters, documents = found.pairs, found.clusters, found.documents
    rows: list[list[object]] = [
        ["documents", documents.live.documents, documents.new.documents],
        ["without features", documents.live.without_features, documents.new.without_features],
        ["pairs", pairs.live, pairs.new],
        ["clusters", clusters.live, clusters.new],
    ]
    terminal.print_line()
    tables.print_table(["", *_columns(found)], rows)
    changes: list[list[object]] = [
        ["pairs lost", pairs.lost, _percent(pairs.lost_share)],
        ["pairs gained", pairs.gained, _percent(pairs.gained_share)],
        ["pairs re-scored", pairs.rescored, _percent(pairs.rescored_share)],
        ["clusters merged", clusters.merged, _percent(clusters.merged_share)],
        ["clusters split", clusters.split, _percent(clusters.split_share)],
        *([f"clusters {name}", getattr(clusters, name), ""] for name in _QUIET),
        ["survivors changed", clusters.survivor_changed, ""],
    ]
    terminal.print_line()
    tables.print_table(["change", "count", "share of live"], changes)


_QUIET = ("same", "grown", "shrunk", "changed", "formed", "dissolved")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.4g} %"


def _print_samples(found: Difference) -> None:
    samples = found.samples
    named = (("lost", samples.lost), ("gained", samples.gained), ("re-scored", samples.rescored))
    pairs = [
        [kind, one.left.id, one.right.id, _evidence(one.live), _evidence(one.new), one.why]
        for kind, sampled in named
        for one in sampled[:_SHOWN]
    ]
    if pairs:
        columns = ["pair", "left", "right", *_columns(found), "why"]
        terminal.print_line()
        tables.print_table(columns, pairs, shorten=["left", "right"], wrap=["why"])
    clusters = [
        _cluster_row(kind, one)
        for kind, sampled in (("merged", samples.merged), ("split", samples.split))
        for one in sampled[:_SHOWN]
    ]
    if clusters:
        terminal.print_line()
        tables.print_table(
            ["cluster", "survivor", "documents", "parts", "sizes"], clusters, shorten=["survivor"]
        )


def _evidence(evidence: PairInGeneration) -> str:
    if evidence.twins:
        return "twins"
    value = "-" if evidence.similarity is None else f"{evidence.similarity:.4f}"
    value += " estimated" if evidence.verified is False else ""
    return value if evidence.pair else f"({value})"


def _cluster_row(kind: str, one: ChangedCluster) -> list[Any]:
    sizes = " + ".join(f"{part.shared:,} of {part.documents:,}" for part in one.parts)
    more = " ..." if len(one.parts) < one.all_parts else ""
    name = one.survivor.external_id or f"#{one.survivor.doc_id}"
    return [kind, name, one.documents, one.all_parts, f"{sizes}{more}"]


def _next(found: Difference) -> list[str]:
    """Return pending work that may explain a difference, and the next commands."""

    def advised(command: str, *more: str) -> str:
        return suggested_command(f"reindex {command}", found.collection, found.profile, *more)

    waiting, lines = found.waiting, []
    if waiting.anything:
        lines.append(
            "pending work may explain part of it: "
            f"{count_of(waiting.live, 'document')} queued for the live generation, "
            f"{waiting.new:,} for the new one, {waiting.live_set_aside + waiting.new_set_aside:,} set aside, "
            f"{count_of(waiting.changes, 'change')} not dispatched yet"
        )
    if found.exceeded:
        lines.append(f"a limit is exceeded; to abandon the new generation: {advised('abandon')}")
    elif found.new.state == "retired":
        lines.append(f"to promote it: {advised('promote', '--generation', str(found.new.generation))}")
    elif found.new.state == "ready":
        lines.append(f"to promote it: {advised('promote')}; to abandon it: {advised('abandon')}")
    else:
        lines.append(f"it cannot be promoted before it is ready: {advised('status')}")
    return lines

"""Output of `nearsim reindex diff`: the differences between two generations, and the next commands."""

from pathlib import Path
from typing import Any

from nearsim_db.admin.reindex import Difference
from nearsim_db.cli.output import tables, terminal
from nearsim_db.messages import count_of, suggested_command
from nearsim_db.records import STANDARD_OUTPUT
from nearsim_db.store.generations.diffs import ChangedCluster, PairInGeneration

_SHOWN = 5


def print_difference(difference: Difference, page: Path | None) -> None:
    """Print the changes of the recipe, counts and shares, a few samples, the limits, and the next steps.

    Prints nothing if the HTML page is written to standard output.
    """
    if page == STANDARD_OUTPUT:
        return
    terminal.print_line(
        f"generation {difference.new.generation} ({difference.new.state}) of profile {difference.profile}, "
        f"compared with the live generation {difference.live.generation}"
    )

    _print_recipe(difference)
    _print_counts(difference)
    _print_samples(difference)
    if difference.limits:
        terminal.print_line()
        rows = []
        for limit in difference.limits:
            counted = f"{limit.found:,} ({_percent(limit.found_share)})"
            rows.append([limit.limit, limit.allowed, counted, "exceeded" if limit.exceeded else "kept"])
        tables.print_table(["limit", "allowed", "found", "result"], rows)
    terminal.print_line()
    if page is not None:
        terminal.print_line(f"wrote the page with texts side by side to {page}")
    for line in _next(difference):
        terminal.print_line(line)


def _columns(difference: Difference) -> list[str]:
    """Return the names of the columns. They do not say new and old, because either generation may be the older one."""
    return ["live", f"generation {difference.new.generation}"]


def _print_recipe(difference: Difference) -> None:
    terminal.print_line()
    if difference.recipe:
        tables.print_table(
            ["recipe", *_columns(difference)],
            [[key, *map(terminal.visible, both)] for key, both in difference.recipe.items()],
        )
    else:
        same = difference.live.fingerprint == difference.new.fingerprint
        terminal.print_line("same recipe" + ("" if same else ", built by another version of its schemes"))


def _print_counts(difference: Difference) -> None:
    pairs, clusters, documents = difference.pairs, difference.clusters, difference.documents
    rows: list[list[object]] = [
        ["documents", documents.live.documents, documents.new.documents],
        ["without features", documents.live.without_features, documents.new.without_features],
        ["pairs", pairs.live, pairs.new],
        ["clusters", clusters.live, clusters.new],
    ]
    terminal.print_line()
    tables.print_table(["", *_columns(difference)], rows)

    changes: list[list[object]] = [
        ["pairs lost", pairs.lost, _percent(pairs.lost_share)],
        ["pairs gained", pairs.gained, _percent(pairs.gained_share)],
        ["pairs re-scored", pairs.rescored, _percent(pairs.rescored_share)],
        ["clusters merged", clusters.merged, _percent(clusters.merged_share)],
        ["clusters split", clusters.split, _percent(clusters.split_share)],
        *([f"clusters {name}", getattr(clusters, name), ""] for name in _CHANGES_WITHOUT_SHARE),
        ["survivors changed", clusters.survivor_changed, ""],
    ]
    terminal.print_line()
    tables.print_table(["change", "count", "share of live"], changes)


# Kinds of changes of clusters for which no share is shown and no limit exists.
_CHANGES_WITHOUT_SHARE = ("same", "grown", "shrunk", "changed", "formed", "dissolved")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.4g} %"


def _print_samples(difference: Difference) -> None:
    samples = difference.samples
    named = (("lost", samples.lost), ("gained", samples.gained), ("re-scored", samples.rescored))
    pairs = [
        [kind, pair.left.id, pair.right.id, _evidence(pair.live), _evidence(pair.new), pair.why]
        for kind, sampled in named
        for pair in sampled[:_SHOWN]
    ]
    if pairs:
        columns = ["pair", "left", "right", *_columns(difference), "why"]
        terminal.print_line()
        tables.print_table(columns, pairs, shorten=["left", "right"], wrap=["why"])

    clusters = [
        _cluster_row(kind, cluster)
        for kind, sampled in (("merged", samples.merged), ("split", samples.split))
        for cluster in sampled[:_SHOWN]
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


def _cluster_row(kind: str, cluster: ChangedCluster) -> list[Any]:
    sizes = " + ".join(f"{part.shared:,} of {part.documents:,}" for part in cluster.parts)
    ellipsis = " ..." if len(cluster.parts) < cluster.all_parts else ""
    survivor = cluster.survivor
    name = survivor.external_id or (None if survivor.doc_id is None else f"#{survivor.doc_id}")
    return [kind, name, cluster.documents, cluster.all_parts, f"{sizes}{ellipsis}"]


def _next(difference: Difference) -> list[str]:
    """Return lines about pending work that may explain differences, and about the next commands."""

    def advised(command: str, *words: str) -> str:
        return suggested_command(f"reindex {command}", difference.collection, difference.profile, *words)

    waiting, lines = difference.waiting, []
    if waiting.anything:
        lines.append(
            "pending work may explain part of it: "
            f"{count_of(waiting.live, 'document')} queued for the live generation, "
            f"{waiting.new:,} for the new one, {waiting.live_set_aside + waiting.new_set_aside:,} set aside, "
            f"{count_of(waiting.changes, 'change')} not dispatched yet"
        )
    if difference.exceeded:
        lines.append(f"a limit is exceeded; to abandon the new generation: {advised('abandon')}")
    elif difference.new.state == "retired":
        lines.append(f"to promote it: {advised('promote', '--generation', str(difference.new.generation))}")
    elif difference.new.state == "ready":
        lines.append(f"to promote it: {advised('promote')}; to abandon it: {advised('abandon')}")
    else:
        lines.append(f"it cannot be promoted before it is ready: {advised('status')}")
    return lines

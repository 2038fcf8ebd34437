"""Output of `nearsim tune`: the findings as tables or as JSON, and the recipe file."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any, TextIO

from nearsim_db.analysis.tuning.checks import magnitude
from nearsim_db.analysis.tuning.corpus import Forecast
from nearsim_db.analysis.tuning.labels import LabelScores, thin_out
from nearsim_db.analysis.tuning.passages import PassageTuning
from nearsim_db.analysis.tuning.proposal import Proposal, commented
from nearsim_db.analysis.tuning.sampling import Sample
from nearsim_db.analysis.tuning.shingling import Shingling
from nearsim_db.analysis.tuning.tuning import Tuning
from nearsim_db.cli.options import Outcome
from nearsim_db.cli.output import tables, terminal
from nearsim_db.cli.output.terminal import values_of
from nearsim_db.messages import count_of
from nearsim_db.readers.output import open_output
from nearsim_db.readers.rejects import place_of
from nearsim_db.records import STANDARD_OUTPUT
from nearsim_db.similarity.recipe import Recipe, to_mapping

_WIDEST_BAR, _BESIDE_BARS = 60, 46
_WIDTH = 80  # if the output is not a terminal


def _write(sample: Sample, recipe: Recipe, reasons: Mapping[str, str], output: Path | None) -> None:
    """Write a proposed recipe as a commented TOML file."""
    if output is None:
        return
    heading = (
        f"Proposed by nearsim tune from {len(sample.texts):,} of {sample.documents:,} documents. Keys without a "
        "comment are those of the starting recipe. Use it with: nearsim profile create NAME --recipe FILE"
    )
    with open_output(output) as stream:
        stream.write(commented(recipe, heading, reasons).encode())


def _passages_document(found: PassageTuning) -> dict[str, Any]:
    return {
        "documents": found.sample.documents,
        "sampled": len(found.sample.texts),
        **values_of(found.sample, "characters", "rejected"),
        **values_of(found, "lengths", "reasons"),
        "gaps": [{"gap": gap, "covered": share} for gap, share in found.gaps],
        "labels": _labels_document(found),
        "recipe": to_mapping(found.recipe),
    }


def _print_passages(found: PassageTuning, output: Path | None, stream: TextIO) -> None:
    match = found.recipe.match
    _print_sample(found.sample, stream)
    terminal.print_line(stream=stream)
    rows = [[">" if one.passage == match.passage else " ", *astuple(one)] for one in found.lengths]
    decimals = {"documents": 4, "continued": 3, "fingerprints": 1}
    tables.print_table(("", "passage", *decimals), rows, decimals=decimals, stream=stream)
    terminal.print_line(stream=stream)
    gaps = [[">" if gap == match.passage_gap else " ", gap, share] for gap, share in found.gaps]
    tables.print_table(("", "gap", "covered"), gaps, decimals={"covered": 3}, stream=stream)
    _print_labels(found, stream)
    terminal.print_line(stream=stream)
    values = {"passage": match.passage, "passage_gap": match.passage_gap, "threshold": match.threshold}
    facts = {f"match.{key}": f"{value}: {found.reasons[f'match.{key}']}" for key, value in values.items()}
    tables.print_facts(facts, stream, terminal.width_of(stream) if stream.isatty() else _WIDTH)
    terminal.print_line(stream=stream)
    terminal.print_line(_next_step(output), stream)


def show(outcome: Outcome, found: Tuning | PassageTuning, output: Path | None) -> None:
    """Write the proposed recipe, if any, and print the findings, on standard error if it goes to standard output.

    Raises RecipeError if there is no proposal.
    """
    stream = sys.stderr if output == STANDARD_OUTPUT else sys.stdout
    if isinstance(found, PassageTuning):
        _write(found.sample, found.recipe, found.reasons, output)
        document = _passages_document(found) | {"output": None if output is None else str(output)}
        outcome.show(document, lambda: _print_passages(found, output, stream), stream)
        return
    made = found.proposed
    if made is not None:
        _write(found.sample, made.profile.recipe, made.reasons, output)
    written = None if output is None or made is None else str(output)
    outcome.show(_document(found) | {"output": written}, lambda: _print(found, output, stream), stream)
    found.required()


def _print(found: Tuning, output: Path | None, stream: TextIO) -> None:
    """Print the findings, the proposal last."""
    width = terminal.width_of(stream) if stream.isatty() else _WIDTH

    def headline(text: str) -> None:
        terminal.print_line(stream=stream)
        terminal.print_line(text, stream)

    _print_sample(found.sample, stream)
    headline(f"Estimated pairs by similarity, shingled by {found.shingling.name}; bars are logarithmic")
    for text in _bars(found, width):
        terminal.print_line(text, stream)
    headline("Checks")
    checks = ((one.verdict, one.name, one.finding, one.advice) for one in found.checks)
    tables.print_checks(checks, stream, width)
    headline(
        "Shingles: near is the lower quartile of near pairs, random the 99.9th percentile of random pairs"
    )
    _print_shinglings(found, stream)
    _print_labels(found, stream)
    headline("Thresholds: recall of pairs at the threshold, and of all pairs from there on")
    _print_forecasts(found.thresholds, found, ("at", "pairs"), stream)
    if found.clusters:
        headline(_clusters_headline(found))
        _print_clusters(found, stream)
    if found.alternatives:
        headline(f"Sketch sizes and requested recalls at the threshold {found.threshold:g}")
        _print_forecasts(found.alternatives, found, ("k", "requested"), stream)
    if found.proposed is not None:
        headline("Proposal")
        tables.print_facts(_proposal(found, found.proposed), stream, width)
        headline(_next_step(output))


def _print_sample(sample: Sample, stream: TextIO) -> None:
    rejected = f"; {count_of(sample.rejected, 'record')} rejected" if sample.rejected else ""
    drawn = f"{len(sample.texts):,} of {sample.documents:,} documents, {sample.characters:,} characters"
    terminal.print_line(f"Sampled {drawn}{rejected}", stream)
    for reject in sample.first_rejects:
        terminal.print_line(f"rejected: {place_of(reject)}: {reject.reason}", stream)


def _bars(found: Tuning, width: int) -> Iterator[str]:
    spread = found.histogram
    longest = max(10, min(_WIDEST_BAR, width - _BESIDE_BARS))
    full = math.log1p(max(float(spread.pairs.max()), spread.identical, 1.0))
    sign = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    rows = [(f"{at / 20:.2f} to {(at + 1) / 20:.2f}", float(count)) for at, count in enumerate(spread.pairs)]
    threshold = found.threshold
    for at, (name, count) in enumerate([*rows, ("identical", spread.identical)]):
        bar = sign * round(longest * math.log1p(count) / full)
        mark = " < threshold" if at < 20 and at / 20 - 1e-9 <= threshold < (at + 1) / 20 - 1e-9 else ""
        yield f"{name:12} {count:>15,.0f}  {bar}{mark}".rstrip()


def _print_shinglings(found: Tuning, stream: TextIO) -> None:
    labelled = found.label_scores is not None
    columns = [
        "",
        "shingle",
        "near",
        "random",
        "gap",
        "per document",
        "k rule",
        *(["F1"] if labelled else []),
    ]
    rows = [
        [
            ">" if one is found.shingling else " ",
            one.name,
            one.near,
            one.random,
            one.gap,
            round(one.shingles),
            f"{magnitude(one.rule.ratio)} {'' if one.rule.verdict == 'ok' else one.rule.verdict}".rstrip(),
            *([one.weighted_f1] if labelled else []),
        ]
        for one in found.shinglings
    ]
    tables.print_table(columns, rows, decimals={"near": 2, "random": 2, "gap": 2, "F1": 3}, stream=stream)


def _print_labels(found: Tuning | PassageTuning, stream: TextIO) -> None:
    if found.labels is None or found.label_scores is None:
        return
    scores, labelled = found.label_scores, found.labels
    terminal.print_line(stream=stream)
    terminal.print_line(
        f"Labels: {scores.duplicates:,} duplicate and {scores.distinct:,} distinct pairs; "
        f"{count_of(labelled.unknown, 'pair')} of unknown documents, {count_of(labelled.bad, 'invalid line')}",
        stream,
    )
    for reason in labelled.reasons:
        terminal.print_line(f"ignored: {reason}", stream)
    rows = [
        [">" if one == scores.best else " ", one.threshold, one.precision, one.recall, one.f1]
        for one in thin_out(scores.points, scores.best)
    ]
    places = {"precision": 3, "recall": 3, "F1": 3}
    if scores.at is not None and scores.at.recall != scores.best.recall:
        rows.append(["=", scores.at.threshold, scores.at.precision, scores.at.recall, scores.at.f1])
    tables.print_table(
        ("", "similarity from", "precision", "recall", "F1"), rows, decimals=places, stream=stream
    )
    print_separation(scores, stream)


def print_separation(scores: LabelScores, stream: TextIO) -> None:
    """Print how well similarities tell labels apart: the area under the curve, and the duplicates by similarity."""
    everything = scores.accept_all
    terminal.print_line(
        f"Area under the curve: {scores.auc:.3f}; accepting every pair has precision {everything.precision:.3f} and F1 "
        f"{everything.f1:.3f}{'' if scores.separate else '; labels do not separate'}",
        stream,
    )
    rows = [[f"{one.low:.1f} to {one.high:.1f}", one.pairs, one.precision] for one in scores.bands]
    tables.print_table(("similarity", "pairs", "duplicates"), rows, decimals={"duplicates": 3}, stream=stream)


def _print_forecasts(
    forecasts: Sequence[Forecast], found: Tuning, varied: Sequence[str], stream: TextIO
) -> None:
    rows = []
    for one in forecasts:
        values = {"at": one.threshold, "pairs": round(one.pairs), "k": one.k, "requested": one.wanted_recall}
        rows.append(
            [
                ">" if found.proposed is not None and one == found.proposed.forecast else " ",
                *(values[name] for name in varied),
                f"{one.bands} x {one.rows}",
                one.recall_at,
                one.recall,
                one.candidates,
                one.bytes_per_document,
            ]
        )
    columns = ("", *varied, "bands", "recall at", "recall", "candidates", "bytes")
    tables.print_table(columns, rows, decimals={"at": 2, "requested": 3, "candidates": 1}, stream=stream)


def _clusters_headline(found: Tuning) -> str:
    sample = max(row.documents for row in found.clusters)
    return f"Clusters of {sample:,} documents: share removed, and share in the largest cluster"


def _print_clusters(found: Tuning, stream: TextIO) -> None:
    with_labels = found.label_scores is not None
    rows = [
        [
            ">" if row.threshold == found.threshold else " ",
            row.threshold,
            row.documents,
            row.removed,
            row.largest_cluster,
            *([row.precision, row.recall] if with_labels else []),
        ]
        for row in found.clusters
    ]
    columns = ["", "at", "documents", "removed", "largest", *(["precision", "recall"] if with_labels else [])]
    decimals = {"at": 2, "removed": 4, "largest": 4, "precision": 3, "recall": 3}
    tables.print_table(columns, rows, decimals=decimals, stream=stream)


def _proposal(found: Tuning, made: Proposal) -> dict[str, object]:
    forecast, reasons = made.forecast, made.reasons
    return {
        "shingles": reasons["shingle.scheme"],
        "threshold": f"{forecast.threshold:g}: {reasons['match.threshold']}",
        "sketch": f"k = {forecast.k}: {reasons['sketch.k']}",
        "bands": f"{forecast.bands} x {forecast.rows}",
        "expected recall": f"{forecast.recall_at:.4f} of pairs at the threshold, {made.promised_recall:.4f} of "
        "all pairs from there on",
        "expected pairs": f"{forecast.pairs:,.0f} of different texts, {found.histogram.identical:,.0f} identical",
        **_expected_clusters(found),
        "candidates": f"about {forecast.candidates:,.2f} pairs per document",
        "bytes": f"about {forecast.bytes_per_document:,} per document",
    }


def _expected_clusters(found: Tuning) -> dict[str, object]:
    clusters, linkage = found.clusters_at_threshold, found.required().profile.recipe.cluster.linkage
    if clusters is None:
        return {"linkage": linkage}
    expected: dict[str, object] = {
        "linkage": linkage,
        "removed": f"{clusters.removed:.1%} of {clusters.documents:,} documents",
        "largest cluster": f"{clusters.largest_cluster:.2%} of them",
    }
    if clusters.precision is not None:
        expected["precision"] = f"about {clusters.precision:.3f} of the pairs of the corpus, by the labels"
    return expected


def _next_step(output: Path | None) -> str:
    if output is None:
        return "write the recipe to a file with --output recipe.toml"
    if output == STANDARD_OUTPUT:
        return "use the recipe with: nearsim profile create NAME --recipe FILE"
    return f"wrote {output}; use it with: nearsim profile create NAME --recipe {output}"


def _document(found: Tuning) -> dict[str, Any]:
    sample, spread = found.sample, found.histogram
    bins = len(spread.pairs)
    return {
        "documents": sample.documents,
        "sampled": len(sample.texts),
        **values_of(sample, "characters", "rejected"),
        "identical": found.twins,
        "different_texts": found.sets,
        "histogram": {
            "bins": [[at / bins, (at + 1) / bins, float(spread.pairs[at])] for at in range(bins)],
            "identical_pairs": spread.identical,
            "valley": found.valley,
        },
        "clusters": found.clusters,
        "checks": found.checks,
        "shingles": [_shingling_row(one) for one in found.shinglings],
        "proposal": _proposal_document(found),
        "refusal": found.refusal or None,
        **values_of(found, "alternatives", "thresholds"),
        "labels": _labels_document(found),
        "recipe": None if found.proposed is None else to_mapping(found.proposed.profile.recipe),
    }


def _proposal_document(found: Tuning) -> dict[str, Any] | None:
    made = found.proposed
    if made is None:
        return None
    clusters = found.clusters_at_threshold
    return asdict(made.forecast) | {
        "linkage": made.profile.recipe.cluster.linkage,
        "removed": None if clusters is None else clusters.removed,
        "largest_cluster": None if clusters is None else clusters.largest_cluster,
        "precision": None if clusters is None else clusters.precision,
        "shingles": found.shingling.name,
        "promised_recall": made.promised_recall,
        "kept_by_bucket_limit": made.kept_by_limit,
        "reasons": made.reasons,
    }


def _shingling_row(one: Shingling) -> dict[str, Any]:
    return {
        **values_of(one, "scheme", "k", "near", "random", "gap"),
        "shingles_per_document": one.shingles,
        "k_rule": {"c": one.rule.alphabet, "l": one.rule.length, "ratio": one.rule.ratio}
        | {"verdict": one.rule.verdict},
        **values_of(one, "short", "best_f1", "weighted_f1"),
    }


def _labels_document(found: Tuning | PassageTuning) -> dict[str, Any] | None:
    if found.labels is None or found.label_scores is None:
        return None
    return {
        **values_of(found.label_scores, "duplicates", "distinct"),
        "bad_lines": found.labels.bad,
        "unknown_pairs": found.labels.unknown,
        "first_reasons": found.labels.reasons,
        **values_of(found.label_scores, "best", "points", "auc", "accept_all", "bands", "at", "separate"),
    }

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

# The number of characters of the longest bar, and of the text beside the bars.
_WIDEST_BAR, _BESIDE_BARS = 60, 46
# The width if the output is not a terminal.
_DEFAULT_WIDTH = 80


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


def _passages_document(tuning: PassageTuning) -> dict[str, Any]:
    return {
        "documents": tuning.sample.documents,
        "sampled": len(tuning.sample.texts),
        **values_of(tuning.sample, "characters", "rejected"),
        **values_of(tuning, "lengths", "reasons"),
        "gaps": [{"gap": gap, "covered": share} for gap, share in tuning.gaps],
        "labels": _labels_document(tuning),
        "recipe": to_mapping(tuning.recipe),
    }


def _print_passages(tuning: PassageTuning, output: Path | None, stream: TextIO) -> None:
    match = tuning.recipe.match
    _print_sample(tuning.sample, stream)
    terminal.print_line(stream=stream)

    rows = [[">" if length.passage == match.passage else " ", *astuple(length)] for length in tuning.lengths]
    decimals = {"documents": 4, "continued": 3, "fingerprints": 1}
    tables.print_table(("", "passage", *decimals), rows, decimals=decimals, stream=stream)
    terminal.print_line(stream=stream)

    gaps = [[">" if gap == match.passage_gap else " ", gap, share] for gap, share in tuning.gaps]
    tables.print_table(("", "gap", "covered"), gaps, decimals={"covered": 3}, stream=stream)

    _print_labels(tuning, stream)
    terminal.print_line(stream=stream)

    values = {"passage": match.passage, "passage_gap": match.passage_gap, "threshold": match.threshold}
    facts = {f"match.{key}": f"{value}: {tuning.reasons[f'match.{key}']}" for key, value in values.items()}
    tables.print_facts(facts, stream, terminal.width_of(stream) if stream.isatty() else _DEFAULT_WIDTH)
    terminal.print_line(stream=stream)
    terminal.print_line(_next_step(output), stream)


def show(outcome: Outcome, tuning: Tuning | PassageTuning, output: Path | None, nearest_command: str) -> None:
    """Write the proposed recipe, if there is one, and print the findings.

    If the recipe is written to standard output, the findings go to standard error. `nearest_command` finds the nearest
    record of the other source. Raises RecipeError, after printing the findings, if there is no proposal.
    """
    stream = sys.stderr if output == STANDARD_OUTPUT else sys.stdout
    if isinstance(tuning, PassageTuning):
        _write(tuning.sample, tuning.recipe, tuning.reasons, output)
        document = _passages_document(tuning) | {"output": None if output is None else str(output)}
        outcome.show(document, lambda: _print_passages(tuning, output, stream), stream)
        return

    proposal = tuning.proposed
    if proposal is not None:
        _write(tuning.sample, proposal.profile.recipe, proposal.reasons, output)
    written = None if output is None or proposal is None else str(output)
    document = _document(tuning, nearest_command) | {"output": written}
    outcome.show(document, lambda: _print(tuning, output, nearest_command, stream), stream)

    # Raise the error last, so that the findings are printed even without a proposal.
    tuning.required()


def _print(tuning: Tuning, output: Path | None, nearest_command: str, stream: TextIO) -> None:
    """Print the findings, and the proposal at the end."""
    width = terminal.width_of(stream) if stream.isatty() else _DEFAULT_WIDTH

    def headline(text: str) -> None:
        terminal.print_line(stream=stream)
        terminal.print_line(text, stream)

    _print_sample(tuning.sample, stream)
    headline(f"Estimated pairs by similarity, shingled by {tuning.shingling.name}; bars are logarithmic")
    for text in _bars(tuning, width):
        terminal.print_line(text, stream)

    headline("Checks")
    checks = ((check.verdict, check.name, check.finding, check.advice) for check in tuning.checks)
    tables.print_checks(checks, stream, width)
    headline(
        "Shingles: near is the lower quartile of near pairs, random the 99.9th percentile of random pairs"
    )
    _print_shinglings(tuning, stream)

    _print_labels(tuning, stream)
    headline("Thresholds: recall of pairs at the threshold, and of all pairs from there on")
    _print_forecasts(tuning.thresholds, tuning, ("at", "pairs"), stream)

    if tuning.clusters:
        headline(_clusters_headline(tuning))
        _print_clusters(tuning, stream)

    if tuning.alternatives:
        headline(f"Sketch sizes and requested recalls at the threshold {tuning.threshold:g}")
        _print_forecasts(tuning.alternatives, tuning, ("k", "requested"), stream)

    if tuning.questions:
        headline("Questions, compared by the labels: pairs of each answer, precision and recall as estimated")
        _print_questions(tuning, stream)

    if tuning.proposed is not None:
        headline("Proposal")
        tables.print_facts(_proposal(tuning, tuning.proposed), stream, width)
        headline(_next_step(output))
    if any(question.is_best and question.name == "nearest" for question in tuning.questions):
        terminal.print_line(f"better than any recipe: {nearest_command}", stream)


def _print_sample(sample: Sample, stream: TextIO) -> None:
    rejected = f"; {count_of(sample.rejected, 'record')} rejected" if sample.rejected else ""
    drawn = f"{len(sample.texts):,} of {sample.documents:,} documents, {sample.characters:,} characters"
    terminal.print_line(f"Sampled {drawn}{rejected}", stream)
    for reject in sample.first_rejects:
        terminal.print_line(f"rejected: {place_of(reject)}: {reject.reason}", stream)


def _bars(tuning: Tuning, width: int) -> Iterator[str]:
    spread = tuning.histogram
    longest = max(10, min(_WIDEST_BAR, width - _BESIDE_BARS))
    full = math.log1p(max(float(spread.pairs.max()), spread.identical, 1.0))
    sign = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"

    rows = [(f"{at / 20:.2f} to {(at + 1) / 20:.2f}", float(count)) for at, count in enumerate(spread.pairs)]
    threshold = tuning.threshold
    for at, (name, count) in enumerate([*rows, ("identical", spread.identical)]):
        bar = sign * round(longest * math.log1p(count) / full)
        # The margin assigns a threshold on the border of two bins to the upper bin, despite rounding errors.
        mark = " < threshold" if at < 20 and at / 20 - 1e-9 <= threshold < (at + 1) / 20 - 1e-9 else ""
        yield f"{name:12} {count:>15,.0f}  {bar}{mark}".rstrip()


def _print_shinglings(tuning: Tuning, stream: TextIO) -> None:
    labelled = tuning.label_scores is not None
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

    def k_rule(shingling: Shingling) -> str:
        rule = shingling.rule
        return f"{magnitude(rule.ratio)} {'' if rule.verdict == 'ok' else rule.verdict}".rstrip()

    rows = [
        [
            ">" if shingling is tuning.shingling else " ",
            shingling.name,
            shingling.near,
            shingling.random,
            shingling.gap,
            round(shingling.shingles),
            k_rule(shingling),
            *([shingling.weighted_f1] if labelled else []),
        ]
        for shingling in tuning.shinglings
    ]
    tables.print_table(columns, rows, decimals={"near": 2, "random": 2, "gap": 2, "F1": 3}, stream=stream)


def _print_labels(tuning: Tuning | PassageTuning, stream: TextIO) -> None:
    if tuning.labels is None or tuning.label_scores is None:
        return
    scores, labelled = tuning.label_scores, tuning.labels

    terminal.print_line(stream=stream)
    terminal.print_line(
        f"Labels: {scores.duplicates:,} duplicate and {scores.distinct:,} distinct pairs; "
        f"{count_of(labelled.unknown, 'pair')} of unknown documents, {count_of(labelled.bad, 'invalid line')}",
        stream,
    )
    for reason in labelled.reasons:
        terminal.print_line(f"ignored: {reason}", stream)

    rows = [
        [">" if point == scores.best else " ", point.threshold, point.precision, point.recall, point.f1]
        for point in thin_out(scores.points, scores.best)
    ]
    places = {"precision": 3, "recall": 3, "F1": 3}
    # Mark the proposed threshold with = if it accepts other pairs than the best threshold.
    if scores.at is not None and scores.at.recall != scores.best.recall:
        rows.append(["=", scores.at.threshold, scores.at.precision, scores.at.recall, scores.at.f1])

    tables.print_table(
        ("", "similarity from", "precision", "recall", "F1"), rows, decimals=places, stream=stream
    )
    print_separation(scores, stream)


def print_separation(scores: LabelScores, stream: TextIO) -> None:
    """Print how well the similarity separates the labels: the area under the curve, and duplicates by similarity."""
    everything = scores.accept_all
    terminal.print_line(
        f"Area under the curve: {scores.auc:.3f}; accepting every pair has precision {everything.precision:.3f} and F1 "
        f"{everything.f1:.3f}{'' if scores.separate else '; labels do not separate'}",
        stream,
    )
    rows = [[f"{band.low:.1f} to {band.high:.1f}", band.pairs, band.precision] for band in scores.bands]
    tables.print_table(("similarity", "pairs", "duplicates"), rows, decimals={"duplicates": 3}, stream=stream)


def _print_forecasts(
    forecasts: Sequence[Forecast], tuning: Tuning, varied: Sequence[str], stream: TextIO
) -> None:
    rows = []
    for forecast in forecasts:
        values = {
            "at": forecast.threshold,
            "pairs": round(forecast.pairs),
            "k": forecast.k,
            "requested": forecast.wanted_recall,
        }

        rows.append(
            [
                ">" if tuning.proposed is not None and forecast == tuning.proposed.forecast else " ",
                *(values[name] for name in varied),
                f"{forecast.bands} x {forecast.rows}",
                forecast.recall_at,
                forecast.recall,
                forecast.candidates,
                forecast.bytes_per_document,
            ]
        )

    columns = ("", *varied, "bands", "recall at", "recall", "candidates", "bytes")
    tables.print_table(columns, rows, decimals={"at": 2, "requested": 3, "candidates": 1}, stream=stream)


def _clusters_headline(tuning: Tuning) -> str:
    sample = max(row.documents for row in tuning.clusters)
    return f"Clusters of {sample:,} documents: share removed, and share in the largest cluster"


def _print_clusters(tuning: Tuning, stream: TextIO) -> None:
    with_labels = tuning.label_scores is not None
    rows = [
        [
            ">" if row.threshold == tuning.threshold else " ",
            row.threshold,
            row.documents,
            row.removed,
            row.largest_cluster,
            *([row.precision, row.recall, row.f1] if with_labels else []),
        ]
        for row in tuning.clusters
    ]

    of_labels = ["precision", "recall", "cluster F1"] if with_labels else []
    columns = ["", "at", "documents", "removed", "largest", *of_labels]
    decimals = {"at": 2, "removed": 4, "largest": 4, "precision": 3, "recall": 3, "cluster F1": 3}
    tables.print_table(columns, rows, decimals=decimals, stream=stream)


def _print_questions(tuning: Tuning, stream: TextIO) -> None:
    rows = [
        [">" if question.is_best else " ", question.name, question.pairs, *astuple(question)[2:5]]
        for question in tuning.questions
    ]
    decimals = {"precision": 3, "recall": 3, "F1": 3}
    tables.print_table(("", "question", "pairs", *decimals), rows, decimals=decimals, stream=stream)


def _proposal(tuning: Tuning, proposal: Proposal) -> dict[str, object]:
    forecast, reasons = proposal.forecast, proposal.reasons

    return {
        **({"recipe": reasons["sketch.family"]} if "sketch.family" in reasons else {}),
        "shingles": reasons["shingle.scheme"],
        "threshold": f"{forecast.threshold:g}: {reasons['match.threshold']}",
        "sketch": f"k = {forecast.k}: {reasons['sketch.k']}",
        "bands": f"{forecast.bands} x {forecast.rows}",
        "expected recall": f"{forecast.recall_at:.4f} of pairs at the threshold, {proposal.promised_recall:.4f} of "
        "all pairs from there on",
        "expected pairs": f"{forecast.pairs:,.0f} of different texts, {tuning.histogram.identical:,.0f} identical",
        **_expected_clusters(tuning),
        "candidates": f"about {forecast.candidates:,.2f} pairs per document",
        "bytes": f"about {forecast.bytes_per_document:,} per document",
    }


def _expected_clusters(tuning: Tuning) -> dict[str, object]:
    clusters, linkage = tuning.clusters_at_threshold, tuning.required().profile.recipe.cluster.linkage
    if clusters is None:
        return {"linkage": linkage}
    expected: dict[str, object] = {
        "linkage": linkage,
        "removed": f"{clusters.removed:.1%} of {clusters.documents:,} documents; {clusters.remaining:,} remain",
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


def _document(tuning: Tuning, nearest_command: str) -> dict[str, Any]:
    sample, spread = tuning.sample, tuning.histogram
    bins = len(spread.pairs)

    return {
        "documents": sample.documents,
        "sampled": len(sample.texts),
        **values_of(sample, "characters", "rejected"),
        "identical": tuning.twins,
        "different_texts": tuning.sets,
        "histogram": {
            "bins": [[at / bins, (at + 1) / bins, float(spread.pairs[at])] for at in range(bins)],
            "identical_pairs": spread.identical,
            "valley": tuning.valley,
        },
        "clusters": tuning.clusters,
        "checks": tuning.checks,
        "shingles": [_shingling_row(shingling) for shingling in tuning.shinglings],
        "proposal": _proposal_document(tuning),
        "refusal": tuning.refusal or None,
        **values_of(tuning, "alternatives", "thresholds"),
        "labels": _labels_document(tuning),
        "questions": [
            asdict(question) | {"command": nearest_command if question.name == "nearest" else None}
            for question in tuning.questions
        ],
        "recipe": None if tuning.proposed is None else to_mapping(tuning.proposed.profile.recipe),
    }


def _proposal_document(tuning: Tuning) -> dict[str, Any] | None:
    proposal = tuning.proposed
    if proposal is None:
        return None

    clusters = tuning.clusters_at_threshold
    return asdict(proposal.forecast) | {
        "linkage": proposal.profile.recipe.cluster.linkage,
        "removed": None if clusters is None else clusters.removed,
        "largest_cluster": None if clusters is None else clusters.largest_cluster,
        "remaining": None if clusters is None else clusters.remaining,
        "precision": None if clusters is None else clusters.precision,
        "shingles": tuning.shingling.name,
        "promised_recall": proposal.promised_recall,
        "kept_by_bucket_limit": proposal.kept_by_limit,
        "reasons": proposal.reasons,
    }


def _shingling_row(shingling: Shingling) -> dict[str, Any]:
    return {
        **values_of(shingling, "scheme", "k", "near", "random", "gap"),
        "shingles_per_document": shingling.shingles,
        "k_rule": {"c": shingling.rule.alphabet, "l": shingling.rule.length, "ratio": shingling.rule.ratio}
        | {"verdict": shingling.rule.verdict},
        **values_of(shingling, "short", "best_f1", "weighted_f1"),
    }


def _labels_document(tuning: Tuning | PassageTuning) -> dict[str, Any] | None:
    if tuning.labels is None or tuning.label_scores is None:
        return None
    return {
        **values_of(tuning.label_scores, "duplicates", "distinct"),
        "bad_lines": tuning.labels.bad,
        "unknown_pairs": tuning.labels.unknown,
        "first_reasons": tuning.labels.reasons,
        **values_of(tuning.label_scores, "best", "points", "auc", "accept_all", "bands", "at", "separate"),
    }

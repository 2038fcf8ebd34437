"""Output of `nearsim tune --json`."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nearsim_db.analysis.tuning import Tuning
from nearsim_db.analysis.tuning.shingling import Shingling
from nearsim_db.cli.formats import Format
from nearsim_db.cli.output.documents import print_document
from nearsim_db.records import STANDARD_OUTPUT
from nearsim_db.similarity.recipe import to_mapping


def print_figures(format: Format, found: Tuning, output: Path | None) -> None:
    """Print the figures for programs, on standard error where the recipe is on standard output."""
    stream = sys.stderr if output == STANDARD_OUTPUT else sys.stdout
    written = output if found.proposed else None
    print_document(format, _document(found) | {"output": None if written is None else str(written)}, stream)


def _document(found: Tuning) -> dict[str, Any]:
    sample, spread = found.sample, found.histogram
    bins = len(spread.pairs)
    return {
        "documents": sample.documents,
        "sampled": len(sample.texts),
        "characters": sample.characters,
        "rejected": sample.rejected,
        "identical": found.twins,
        "different_texts": found.sets,
        "histogram": {
            "bins": [[at / bins, (at + 1) / bins, float(spread.pairs[at])] for at in range(bins)],
            "identical_pairs": spread.identical,
            "valley": found.valley,
        },
        "checks": [asdict(check) for check in found.checks],
        "shingles": [_shingling_row(one) for one in found.shinglings],
        "proposal": _proposal_document(found),
        "refusal": found.refusal or None,
        "alternatives": [asdict(one) for one in found.alternatives],
        "thresholds": [asdict(one) for one in found.thresholds],
        "labels": _labels_document(found),
        "recipe": None if found.proposed is None else to_mapping(found.proposed.profile.recipe),
    }


def _proposal_document(found: Tuning) -> dict[str, Any] | None:
    made = found.proposed
    if made is None:
        return None
    return asdict(made.forecast) | {
        "shingles": found.shingling.name,
        "promised_recall": made.promised_recall,
        "kept_by_bucket_limit": made.kept_by_limit,
        "reasons": made.reasons,
    }


def _shingling_row(one: Shingling) -> dict[str, Any]:
    return {
        "scheme": one.scheme,
        "k": one.k,
        "near": one.near,
        "random": one.random,
        "gap": one.gap,
        "shingles_per_document": one.shingles,
        "k_rule": {"c": one.rule.alphabet, "l": one.rule.length, "ratio": one.rule.ratio}
        | {"verdict": one.rule.verdict},
        "short": one.short,
        "best_f1": one.best_f1,
    }


def _labels_document(found: Tuning) -> dict[str, Any] | None:
    if found.labels is None or found.label_scores is None:
        return None
    return {
        "duplicates": found.label_scores.duplicates,
        "distinct": found.label_scores.distinct,
        "bad_lines": found.labels.bad,
        "unknown_pairs": found.labels.unknown,
        "first_reasons": found.labels.reasons,
        "best": asdict(found.label_scores.best),
        "points": [asdict(one) for one in found.label_scores.points],
    }

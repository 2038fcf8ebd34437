"""What presets find in a corpus: recall and cost against all pairs found without sketches, in memory.

Example: python -m benchmarks.presets --documents stories.jsonl.gz --preset articles headlines
For presets that estimate Jaccard similarity from positions; benchmarks.families measures the others through PostgreSQL.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.exact import exact_pairs
from benchmarks.in_memory import Overlaps, find_pairs, read_features, sketch_heads
from benchmarks.measure import describe_machine, machine
from benchmarks.truth import read_documents
from nearsim_db import presets
from nearsim_db.encode import Encoder
from nearsim_db.profile import resolve
from nearsim_db.recipe import override
from nearsim_db.records import Document


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one preset did with one corpus; twins are counted once, as their head is."""

    preset: str
    threshold: float
    bands: int
    rows: int
    expected_recall: float
    documents: int
    without_features: int
    heads: int
    pairs: int
    found: int
    candidates_per_document: float
    bytes_per_document: int


def measure(documents: Sequence[Document], preset: str, settings: Sequence[str] = ()) -> Outcome:
    """Build the preset in memory and compare its pairs with all there are."""
    profile = resolve(override(presets.load(preset), settings))
    encoder = Encoder(profile)
    features = read_features(encoder, documents)
    exact = exact_pairs(features.sets, profile.recipe.match.threshold)
    found = find_pairs(
        encoder, features, sketch_heads(encoder, features), Overlaps(features, encoder.backend)
    )
    wanted = set(zip(features.heads[exact.left].tolist(), features.heads[exact.right].tolist(), strict=True))
    reported = set(zip(found.left.tolist(), found.right.tolist(), strict=True))
    if not reported <= wanted:
        raise AssertionError(f"{len(reported - wanted)} pairs are none")
    return Outcome(
        preset,
        profile.recipe.match.threshold,
        profile.bands,
        profile.rows,
        profile.expected_recall,
        len(documents),
        int(np.count_nonzero(features.head_of < 0)),
        len(features.heads),
        len(wanted),
        len(reported),
        found.linked / max(len(features.heads), 1),
        profile.bytes_per_document(),
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as text, a line each."""
    lines = [
        f"{'preset':<27} at     bands   expected  documents  empty   heads    pairs   recall  candidates  bytes"
    ]
    for one in outcomes:
        recall = one.found / one.pairs if one.pairs else 1.0
        lines.append(
            f"{one.preset:<27} {one.threshold:<6} {f'{one.bands}x{one.rows}':<7} {one.expected_recall:<9.4f} "
            f"{one.documents:<10} {one.without_features:<7} {one.heads:<8} {one.pairs:<7} {recall:.4f}  "
            f"{one.candidates_per_document:<11.2f} {one.bytes_per_document}"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--documents", type=Path, required=True, metavar="FILE.jsonl.gz")
    parser.add_argument("--preset", nargs="+", required=True, metavar="NAME")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    options = parser.parse_args()
    documents = read_documents(options.documents)
    outcomes = [measure(documents, name, options.settings) for name in options.preset]
    print(f"{options.documents.name}\n{table(outcomes)}\n{describe_machine(machine())}")


if __name__ == "__main__":
    main()

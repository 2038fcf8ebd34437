"""Recall and cost of presets on a corpus, against all pairs found without sketches, in memory.

    python -m benchmarks.presets --documents stories.jsonl.gz --preset articles headlines

For presets that estimate Jaccard similarity from positions; benchmarks.families measures other ones, in
PostgreSQL. `--same KEY` prints for several thresholds the share of all pairs with an equal attribute, such as
their page, and the share of documents with an equal attribute that are pairs; this uses no sketches.
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
from nearsim_db.records import Document
from nearsim_db.similarity import presets
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import reach_mask
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import override

THRESHOLDS = (0.2, 0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one preset on one corpus; twins are counted once, by their head."""

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
    linked_pairs_per_document: float
    candidates_per_document: float
    bytes_per_document: int


def measure(documents: Sequence[Document], preset: str, settings: Sequence[str] = ()) -> Outcome:
    """Build the preset in memory and compare its pairs with all true ones."""
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
        found.candidates / max(len(features.heads), 1),
        profile.bytes_per_document(),
    )


def table(outcomes: Sequence[Outcome]) -> str:
    """Format the outcomes as text, one per line."""
    lines = [
        f"{'preset':<27} at     bands   expected  documents  empty   heads    pairs   recall  linked   "
        "candidates  bytes"
    ]
    for one in outcomes:
        recall = one.found / one.pairs if one.pairs else 1.0
        lines.append(
            f"{one.preset:<27} {one.threshold:<6} {f'{one.bands}x{one.rows}':<7} {one.expected_recall:<9.4f} "
            f"{one.documents:<10} {one.without_features:<7} {one.heads:<8} {one.pairs:<7} {recall:.4f}  "
            f"{one.linked_pairs_per_document:<8.2f} {one.candidates_per_document:<11.2f} {one.bytes_per_document}"
        )
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of all pairs of heads at or above a threshold, those with an equal value, and all with an equal
    value.
    """

    threshold: float
    pairs: int
    same: int
    wanted: int


def agreements(
    documents: Sequence[Document],
    preset: str,
    key: str,
    settings: Sequence[str] = (),
    thresholds: Sequence[float] = THRESHOLDS,
) -> list[Agreement]:
    """Measure on exact pairs of heads how well similarity predicts an equal value; heads without one are excluded."""
    profile = resolve(override(presets.load(preset), settings))
    features = read_features(Encoder(profile), documents)
    said = [documents[row].attributes.get(key) for row in features.heads.tolist()]
    kept = [place for place, value in enumerate(said) if value is not None]
    numbers = {
        value: number for number, value in enumerate(dict.fromkeys(str(said[place]) for place in kept))
    }
    values = np.array([numbers[str(said[place])] for place in kept], np.int64)
    sizes = np.bincount(values)
    exact = exact_pairs([features.sets[place] for place in kept], min(thresholds))
    same = values[exact.left] == values[exact.right]
    found = []
    for threshold in thresholds:
        reached = reach_mask(exact.intersection, exact.union, threshold)
        alike = int((reached & same).sum())
        found.append(Agreement(threshold, int(reached.sum()), alike, int((sizes * (sizes - 1) // 2).sum())))
    return found


def agreement_table(key: str, found: Sequence[Agreement]) -> str:
    """Format the agreements as text, one per line."""
    lines = [f"at     pairs    of one {key}  of all of one {key}"]
    for one in found:
        right = one.same / one.pairs if one.pairs else 1.0
        reached = one.same / one.wanted if one.wanted else 1.0
        lines.append(f"{one.threshold:<6} {one.pairs:<8} {right:<{8 + len(key)}.4f} {reached:.4f}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--documents", type=Path, required=True, metavar="FILE.jsonl.gz")
    parser.add_argument("--preset", nargs="+", required=True, metavar="NAME")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument(
        "--same", metavar="KEY", help="an attribute of the documents; recall and cost are left out"
    )
    options = parser.parse_args()
    documents = read_documents(options.documents)
    if options.same is not None:
        for name in options.preset:
            print(
                f"{name}\n{agreement_table(options.same, agreements(documents, name, options.same, options.settings))}"
            )
        return
    outcomes = [measure(documents, name, options.settings) for name in options.preset]
    print(f"{options.documents.name}\n{table(outcomes)}\n{describe_machine(machine())}")


if __name__ == "__main__":
    main()

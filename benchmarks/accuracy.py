"""Recall and precision against exact truth, over many seeds in memory and for one seed in the database.

    python benchmarks/accuracy.py --documents F.jsonl.gz --truth T.csv.gz --recipe benchmarks/recipes/w3.toml

The truth lists all pairs at 0.3 or more: id_a, id_b, inter, union. Thresholds are decided on integers. Twins
(pairs of equal feature sets, found by their digest under any seed) are reported separately. A reported pair
counts as precise only if the truth has it with the same intersection and union. For the first seed the same
recipe is built in a database (--database URL, else NEARSIM_DATABASE_URL, else the embedded server), whose pairs
must be equal.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.in_memory import (
    FeatureSets,
    FoundPairs,
    Overlaps,
    expand_twins,
    find_pairs,
    read_features,
    sketch_heads,
)
from benchmarks.measure import describe_machine, machine
from benchmarks.truth import LEAST_SIMILARITY, Flags, Truth, read_documents, read_truth, wilson_interval
from nearsim_db.index import Index
from nearsim_db.indexing.collections import temporary_collection
from nearsim_db.records import Document
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.metrics import reach_mask
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, load, override
from nearsim_db.store.database import Database

THRESHOLDS = (0.5, 0.7, 0.8, 0.9)
SEEDS = 20


@dataclass(slots=True)
class Score:
    """Counts for one threshold and bucket limit, summed over seeds; a reported pair is right if the truth has it
    with equal counts.
    """

    threshold: float
    bucket_limit: int
    bands: int
    rows: int
    expected_recall: float
    seeds: int = 0
    found: int = 0
    wanted: int = 0
    found_twins: int = 0
    wanted_twins: int = 0
    right: int = 0
    reported: int = 0
    linked: int = 0
    candidates: int = 0
    screened: int = 0
    heads: int = 0
    lowest_recall: float = 1.0

    @property
    def recall(self) -> float:
        """Recall of pairs other than twins; 1 if there are none."""
        return self.found / self.wanted if self.wanted else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of `recall`, trials pooled over seeds."""
        return wilson_interval(self.found, self.wanted)

    @property
    def recall_of_all(self) -> float:
        """Recall of all pairs, including twins."""
        wanted = self.wanted + self.wanted_twins
        return (self.found + self.found_twins) / wanted if wanted else 1.0

    @property
    def precision(self) -> float:
        """The share of reported pairs that are right."""
        return self.right / self.reported if self.reported else 1.0


def add_seed(score: Score, features: FeatureSets, truth: Truth, found: FoundPairs) -> None:
    """Add one seed's pairs to a score; `truth` is the whole truth, down to LEAST_SIMILARITY."""
    twins = truth.intersection == truth.union
    wanted = reach_mask(truth.intersection, truth.union, score.threshold)
    found_twins = twins & (features.head_of[truth.left] == features.head_of[truth.right])
    hit, same = _look_up(features, truth, found)
    groups = features.group_sizes()
    score.seeds += 1
    score.found += int((hit & wanted & ~twins).sum())
    score.wanted += int((wanted & ~twins).sum())
    score.found_twins += int(found_twins.sum())
    score.wanted_twins += int(twins.sum())
    score.right += int((same & wanted).sum()) + int(found_twins.sum())
    score.reported += int((groups[found.left] * groups[found.right]).sum())
    score.reported += int((groups * (groups - 1) // 2).sum())
    score.linked += found.linked
    score.candidates += found.candidates
    score.screened += found.screened
    score.heads += len(features.heads)
    if (wanted & ~twins).any():
        score.lowest_recall = min(score.lowest_recall, float(hit[wanted & ~twins].mean()))


def _look_up(features: FeatureSets, truth: Truth, found: FoundPairs) -> tuple[Flags, Flags]:
    """Return which pairs of the truth were found, and which of those with the truth's intersection and union."""
    size = len(features.head_of)
    ends = np.sort(np.stack((features.head_of[truth.left], features.head_of[truth.right])), axis=0)
    asked = ends[0] * size + ends[1]
    # Found pairs are sorted; what is past their end, or is no pair, meets a last one that equals nothing.
    reported = np.append(found.left * size + found.right, -1)
    places = np.searchsorted(reported[:-1], asked)
    hit = reported[places] == asked
    intersection, union = np.append(found.intersection, -1)[places], np.append(found.union, -1)[places]
    return hit, hit & (intersection == truth.intersection) & (union == truth.union)


def measure(
    documents: Sequence[Document],
    truth: Truth,
    recipe: Recipe,
    thresholds: Sequence[float] = THRESHOLDS,
    limits: Sequence[int] = (64, 0),
    seeds: int = SEEDS,
) -> list[Score]:
    """Compute scores for every threshold and bucket limit, in memory; features are computed once, sketches once
    per seed.
    """
    encoder = Encoder(resolve(recipe))
    features = read_features(encoder, documents)
    overlaps = Overlaps(features, encoder.backend)
    scores = [_new_score(recipe, threshold, limit) for threshold in thresholds for limit in limits]
    for seed in range(1, seeds + 1):
        sketches = sketch_heads(Encoder(resolve(with_settings(recipe, seed=seed))), features)
        for score in scores:
            settings = with_settings(recipe, seed, score.threshold, score.bucket_limit)
            found = find_pairs(Encoder(resolve(settings)), features, sketches, overlaps)
            add_seed(score, features, truth, found)
    return scores


def with_settings(
    recipe: Recipe, seed: int = 1, threshold: float | None = None, bucket_limit: int | None = None
) -> Recipe:
    """Return the recipe with another seed and, if given, threshold and limit."""
    settings = {"sketch.seed": seed, "match.threshold": threshold, "match.bucket_limit": bucket_limit}
    return override(recipe, [f"{key}={value}" for key, value in settings.items() if value is not None])


def _new_score(recipe: Recipe, threshold: float, limit: int) -> Score:
    if threshold < LEAST_SIMILARITY:
        raise ValueError(f"the truth ends at {LEAST_SIMILARITY}; {threshold} cannot be judged by it")
    profile = resolve(with_settings(recipe, threshold=threshold))
    return Score(threshold, limit, profile.bands, profile.rows, profile.expected_recall)


def pairs_of_database(
    database: Database, documents: Sequence[Document], recipe: Recipe
) -> set[tuple[int, int, int, int]]:
    """Return the pairs of an index of the documents: (left row, right row, intersection, union), left < right."""
    rows = {document.external_id: row for row, document in enumerate(documents)}
    name = f"accuracy-{os.getpid()}"
    with temporary_collection(database, name), Index(database, name) as index:
        index.create_profile("accuracy", recipe)
        index.add(documents)
        return {
            (*sorted((rows[pair.left], rows[pair.right])), pair.intersection, pair.union)  # type: ignore[misc]
            for pair in index.pairs()
        }


def compare_with_database(
    database: Database, documents: Sequence[Document], recipe: Recipe
) -> tuple[int, int, int]:
    """Count pairs found by both, only by the database, only in memory; the last two should be 0."""
    encoder = Encoder(resolve(recipe))
    features = read_features(encoder, documents)
    found = find_pairs(
        encoder, features, sketch_heads(encoder, features), Overlaps(features, encoder.backend)
    )
    in_memory = expand_twins(features, found)
    stored = pairs_of_database(database, documents, recipe)
    return len(stored & in_memory), len(stored - in_memory), len(in_memory - stored)


def table(scores: Sequence[Score]) -> str:
    """Format the scores as text, one per line."""
    lines = [
        "at    limit  bands  expected  recall  95 % interval     lowest  twins   all     precision  candidates  pairs"
    ]
    for one in scores:
        low, high = one.interval
        twins = one.found_twins / one.wanted_twins if one.wanted_twins else 1.0
        wanted = (one.wanted + one.wanted_twins) // max(one.seeds, 1)
        lines.append(
            f"{one.threshold:<5} {one.bucket_limit or 'none':<6} {f'{one.bands}x{one.rows}':<6} "
            f"{one.expected_recall:<9.4f} {one.recall:.4f}  {low:.4f} to {high:.4f}  {one.lowest_recall:.4f}  "
            f"{twins:.4f}  {one.recall_of_all:.4f}  {one.precision:.6f}   "
            f"{one.candidates / max(one.heads, 1):<11.2f} {wanted}"
        )
    return "\n".join(lines)


def as_json(scores: Sequence[Score]) -> list[dict[str, object]]:
    """Return the scores with derived figures."""
    return [
        asdict(one)
        | {"recall": one.recall, "interval": one.interval, "recall_of_all": one.recall_of_all}
        | {"precision": one.precision}
        for one in scores
    ]


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--documents", type=Path, required=True, metavar="FILE.jsonl.gz")
    parser.add_argument("--truth", type=Path, required=True, metavar="TRUTH.csv.gz")
    parser.add_argument("--recipe", type=Path, required=True, metavar="RECIPE.toml")
    parser.add_argument("--threshold", type=float, nargs="+", default=THRESHOLDS, help="default: %(default)s")
    parser.add_argument("--bucket-limit", type=int, nargs="+", default=(64, 0), help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="default: %(default)s")
    parser.add_argument("--database", metavar="URL", help="where to compare one seed")
    parser.add_argument("--no-database", action="store_true", help="do not compare")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, compare, print; exit code 1 if the database and the memory differ."""
    options = read_options()
    documents = read_documents(options.documents)
    truth = read_truth(options.truth, documents)
    recipe = load(options.recipe)
    scores = measure(documents, truth, recipe, options.threshold, options.bucket_limit, options.seeds)
    compared: dict[str, tuple[int, int, int]] = {}
    if not options.no_database:
        with Database.connect(options.database) as database:
            for threshold in options.threshold:
                settings = with_settings(recipe, threshold=threshold)
                compared[str(threshold)] = compare_with_database(database, documents, settings)
    facts = machine()
    if options.json:
        print(json.dumps({"machine": facts, "scores": as_json(scores), "database": compared}, indent=2))
    else:
        print(f"{options.documents.name}, {options.recipe.stem}, {options.seeds} seeds\n{table(scores)}")
        for threshold, (both, only_database, only_memory) in compared.items():
            print(
                f"at {threshold} the database has {both} of the same pairs, {only_database} more, {only_memory} fewer"
            )
        print(describe_machine(facts))
    if any(extra or missing for _, extra, missing in compared.values()):
        sys.exit("the pairs in the database are not those found in memory")


if __name__ == "__main__":
    main()

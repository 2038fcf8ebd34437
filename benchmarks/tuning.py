"""The forecasts of `nearsim tune` on a corpus, and what its profile then achieves.

    python -m benchmarks.tuning --documents F.jsonl.gz

Tunes on a sample, builds the proposed profile in memory on all documents, finds by brute force every pair of
different texts that reaches its threshold, and compares expected with actual recall, and forecast with actual
candidates.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.exact import exact_pairs
from benchmarks.in_memory import Overlaps, find_pairs, linked_pairs, read_features, sketch_heads
from benchmarks.measure import describe_machine, machine
from benchmarks.truth import read_documents
from nearsim_db.analysis.tuning import Proposal, TuningOptions, draw, tune
from nearsim_db.analysis.tuning.proposal import RECALL
from nearsim_db.analysis.tuning.sampling import MOST_DOCUMENTS
from nearsim_db.readers import Source
from nearsim_db.similarity import presets
from nearsim_db.similarity.batches import Signatures
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, load, override
from nearsim_db.similarity.screening import screen
from nearsim_db.store.settings import from_environment


@dataclass(frozen=True, slots=True)
class Kept:
    """Forecast and actual figures for one corpus and seed.

    Candidates are pairs per distinct text, without a bucket limit.
    """

    corpus: str
    documents: int
    sampled: int
    seconds: float
    processor_seconds: float
    shingles: str
    threshold: float
    bands: int
    rows: int
    promised_recall: float
    recall: float
    pairs: int
    forecast_pairs: float
    candidates: float
    forecast_candidates: float


def measure(path: Path, recipe: Recipe, size: int, wishes: TuningOptions) -> Kept:
    """Tune on a file, then compare with brute force over all of it."""
    began, used = time.perf_counter(), time.process_time()
    text_of = Encoder(resolve(recipe)).text_of
    sample = draw(Source([path]), text_of, size, wishes.seed)
    found = tune(sample, recipe, wishes, threads=from_environment().threads)
    seconds, processor_seconds = time.perf_counter() - began, time.process_time() - used
    made = found.required()
    recall, pairs, candidates = keep(path, made)
    return Kept(
        path.name.partition(".")[0],
        sample.documents,
        len(sample.texts),
        seconds,
        processor_seconds,
        found.shingling.name,
        made.forecast.threshold,
        made.forecast.bands,
        made.forecast.rows,
        made.promised_recall,
        recall,
        pairs,
        made.forecast.pairs,
        candidates,
        made.forecast.candidates,
    )


def keep(path: Path, made: Proposal) -> tuple[float, int, float]:
    """Return recall of the proposed profile on all documents, the number of true pairs, candidate pairs per
    document.
    """
    encoder = Encoder(made.profile)
    features = read_features(encoder, read_documents(path))
    sketches = sketch_heads(encoder, features)
    pairs = find_pairs(encoder, features, sketches, Overlaps(features, encoder.backend))
    truth = exact_pairs(features.sets, made.forecast.threshold)
    size = len(features.head_of)
    wanted = features.heads[truth.left] * size + features.heads[truth.right]
    hit = np.isin(wanted, pairs.left * size + pairs.right)
    linked = linked_pairs(encoder.band_keys(sketches), 0)
    screened = screen(encoder, Signatures(features.heads, sketches, []), linked[:, 0], linked[:, 1])
    recall = float(hit.mean()) if len(hit) else 1.0
    return recall, len(hit), screened.candidates / max(len(features.heads), 1)


def table(rows: Sequence[Kept]) -> str:
    """Format the figures as Markdown, a line per corpus and seed."""
    lines = [
        "| corpus | documents | looked at | seconds (of processor) | proposed | pairs (forecast) | recall (promised) "
        "| candidates (forecast) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        bands = f"{one.bands} x {one.rows}"
        cells = (
            one.corpus,
            f"{one.documents:,}",
            f"{one.sampled:,}",
            f"{one.seconds:.1f} ({one.processor_seconds:.1f})",
            f"{one.shingles} at {one.threshold:g}, {bands}",
            f"{one.pairs:,} ({one.forecast_pairs:,.0f})",
            f"{one.recall:.4f} ({one.promised_recall:.4f})",
            f"{one.candidates:.2f} ({one.forecast_candidates:.2f})",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--documents", type=Path, required=True, nargs="+", metavar="FILE.jsonl.gz")
    parser.add_argument("--recipe", type=Path, metavar="RECIPE.toml", help="where to start from")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="changes of the recipe")
    parser.add_argument("--sample", type=int, default=MOST_DOCUMENTS, help="default: %(default)s")
    parser.add_argument("--seeds", type=int, default=1, help="repeat with so many seeds")
    parser.add_argument("--recall", type=float, nargs="+", default=[RECALL], help="default: %(default)s")
    parser.add_argument("--threshold", type=float, help="keep to this threshold")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    return parser.parse_args(arguments)


def main() -> None:
    """Tune, build, compare, print."""
    options = read_options()
    start = presets.load(presets.DEFAULT) if options.recipe is None else load(options.recipe)
    recipe = override(start, options.set)
    rows = [
        measure(path, recipe, options.sample, TuningOptions(recall, options.threshold, seed))
        for path in options.documents
        for recall in options.recall
        for seed in range(1, options.seeds + 1)
    ]
    facts = machine()
    if options.json:
        print(json.dumps({"machine": facts, "corpora": [asdict(one) for one in rows]}, indent=2))
    else:
        print(f"{table(rows)}\n\n{describe_machine(facts)}")


if __name__ == "__main__":
    main()

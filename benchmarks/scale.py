"""The effect of bucket_limit on recall and on the build.

    python benchmarks/scale.py corpus [--sizes 10000 100000] [--bucket-limit 64 0]
    python benchmarks/scale.py templates [--family 2000] [--others 20000] [--bucket-limit 8 64 0]

Each corpus is generated (see corpus.py and templates.py) and built in a separate process for each limit: file
to stored pairs and clusters, with the seconds of each step and the peak memory. Starting the server and loading
numba's kernels come before the clock starts. The index is then compared with the exact pairs of the corpus.
Recall of pairs covers pairs of documents with different features; recall of merges is the share of the joins
that form the true clusters from single documents that the index's clusters make too, twins included.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.corpus import Corpus, generator, write_corpus
from benchmarks.exact import ExactPairs, exact_pairs
from benchmarks.in_memory import FeatureSets, distinct, read_features
from benchmarks.measure import StepTimes, describe_machine, machine
from benchmarks.templates import with_family
from benchmarks.truth import Ints, read_documents
from nearsim_db.index import Index
from nearsim_db.indexing.collections import temporary_collection
from nearsim_db.readers import Source
from nearsim_db.similarity.clustering import connected_components
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, load, override
from nearsim_db.store.database import Database

RECIPE = Path(__file__).parent / "recipes" / "w3.toml"
FIGURES = (
    "documents",
    "heads",
    "pairs",
    "clusters",
    "candidates_per_document",
    "largest_bucket",
    "links_left_out",
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A perfect index of a corpus: pairs of heads, and the true cluster of each document.

    `rows` maps external ids to rows; `clusters` is int64 of n, a document in no cluster having its own.
    """

    rows: Mapping[str, int]
    features: FeatureSets
    pairs: ExactPairs
    clusters: Ints

    def codes(self) -> Ints:
        """Each true pair of heads as one number, ascending."""
        heads = self.features.heads
        return np.sort(heads[self.pairs.left] * len(self.rows) + heads[self.pairs.right])


def make_reference(documents: Path, recipe: Recipe) -> Reference:
    """Read a corpus and find its exact pairs."""
    known = read_documents(documents)
    features = read_features(Encoder(resolve(recipe)), known)
    pairs = exact_pairs(features.sets, recipe.match.threshold)
    edges = [np.stack((features.heads[pairs.left], features.heads[pairs.right]), axis=1)]
    twins = np.flatnonzero((features.head_of >= 0) & (features.head_of != np.arange(len(known))))
    edges.append(np.stack((features.head_of[twins], twins), axis=1))
    clusters = np.arange(len(known))
    members, roots = connected_components(np.concatenate(edges))
    clusters[members] = roots
    rows = {document.external_id: row for row, document in enumerate(known)}
    return Reference(rows, features, pairs, clusters)


def merge_recall(true_clusters: Ints, clusters: Ints) -> float:
    """Return the share of the n - 1 joins of each true cluster of n documents that `clusters` makes too.

    Both are int64, one label per document; `clusters` never joins documents of different true clusters.
    """
    documents, wanted = len(true_clusters), len(distinct(true_clusters))
    parts = len(distinct(true_clusters * documents + clusters))
    return (documents - parts) / (documents - wanted) if documents > wanted else 1.0


def compare(index: Index, reference: Reference) -> dict[str, float]:
    """Return how much of the reference an index has, and whether it has anything else."""
    head_of, size = reference.features.head_of, len(reference.rows)
    stored = []
    for pair in index.pairs():
        left, right = sorted((reference.rows[pair.left], reference.rows[pair.right]))
        if head_of[left] == left and head_of[right] == right:
            stored.append(left * size + right)
    clusters = np.arange(size)
    for cluster in index.clusters():
        members = [reference.rows[name] for name in cluster.members]
        clusters[members] = min(members)
    true = reference.codes()
    right_ones = int(np.isin(np.array(stored, np.int64), true).sum())
    return {
        "true_pairs": len(true),
        "recall_of_pairs": right_ones / len(true) if len(true) else 1.0,
        "precision": right_ones / len(stored) if stored else 1.0,
        "recall_of_merges": merge_recall(reference.clusters, clusters),
    }


def build_alone(documents: Path, collection: str, recipe: Recipe, url: str | None) -> dict[str, object]:
    """Build one index and return its cost. Called in a process of its own, whose memory is measured."""
    steps = StepTimes()
    with Index.connect(url, collection=collection, progress=steps) as index:
        warmed = time.perf_counter()
        Encoder(resolve(recipe), index.database.settings.backend).encode(["the kernels are loaded"])
        started = time.perf_counter()
        steps.start()
        index.create_profile("benchmark", recipe)
        index.ingest(Source([documents]))
        seconds = time.perf_counter() - started
        steps.finish()
        peak, stats = _peak_megabytes(), index.stats(recount=True)
    return {
        "seconds": round(seconds, 2),
        "seconds_to_load_kernels": round(started - warmed, 2),
        "seconds_by_step": {name: round(value, 2) for name, value in steps.seconds.items()},
        "peak_megabytes": peak,
        **{name: stats[name] for name in FIGURES if name in stats},
    }


def _peak_megabytes() -> int:
    """Return the peak memory of this process, in MB.

    On Linux getrusage's figure is inherited from the parent process, so the process's own table is read if
    available.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    (peak,) = (line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(peak) // 1024


def run_case(
    database: Database, url: str | None, documents: Path, reference: Reference, recipe: Recipe
) -> dict[str, object]:
    """Build a corpus in a separate process, and compare."""
    name = f"scale-{os.getpid()}"
    settings = [
        f"match.bucket_limit={recipe.match.bucket_limit}",
        f"match.threshold={recipe.match.threshold}",
    ]
    command = [
        sys.executable,
        __file__,
        "one",
        "--documents",
        str(documents),
        "--collection",
        name,
        *settings,
    ]
    with temporary_collection(database, name):
        done = subprocess.run(
            command + (["--database", url] if url else []), stdout=subprocess.PIPE, text=True, check=True
        )
        index = Index(database, name)
        compared = compare(index, reference)
    results: dict[str, object] = json.loads(done.stdout)
    return {"bucket_limit": recipe.match.bucket_limit} | results | compared


def run_corpora(corpora: Iterable[tuple[str, Path]], options: argparse.Namespace) -> list[dict[str, object]]:
    """Run every corpus under every limit."""
    results = []
    with Database.connect(options.database) as database:
        for name, documents in corpora:
            recipe = override(load(RECIPE), [f"match.threshold={options.threshold}"])
            reference = make_reference(documents, recipe)
            for limit in options.bucket_limit:
                limited = override(recipe, [f"match.bucket_limit={limit}"])
                case = run_case(database, options.database, documents, reference, limited)
                results.append({"corpus": name} | case)
                print(f"{name}, limit {limit}: {case['seconds']} s", file=sys.stderr)
    return results


def write_corpora(sizes: Sequence[int], seed: int, folder: Path) -> Iterable[tuple[str, Path]]:
    """Write a synthetic corpus of each size."""
    for size in sizes:
        path = folder / f"corpus-{size}.jsonl.gz"
        write_corpus(Corpus(size, seed).documents(), path, None)
        yield f"{size} documents", path


def write_family(family: int, others: int, seed: int, folder: Path) -> Iterable[tuple[str, Path]]:
    """Write a template family among other documents."""
    path = folder / "templates.jsonl.gz"
    rng = generator(np.random.SeedSequence([seed, family]))
    write_corpus(with_family(Corpus(others, seed), family, rng), path, None)
    yield f"{family} of one template among {others}", path


def read_options() -> argparse.Namespace:
    """Parse the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    commands = parser.add_subparsers(dest="command", required=True)
    corpus = commands.add_parser("corpus", help="synthetic corpora")
    corpus.add_argument(
        "--sizes", type=int, nargs="+", default=(10_000, 100_000), help="default: %(default)s"
    )
    templates = commands.add_parser("templates", help="a family of one template among other documents")
    templates.add_argument("--family", type=int, default=2_000, help="members (default: %(default)s)")
    templates.add_argument(
        "--others", type=int, default=20_000, help="other documents (default: %(default)s)"
    )
    for command, limits in ((corpus, (64, 0)), (templates, (8, 64, 0))):
        command.add_argument(
            "--bucket-limit", type=int, nargs="+", default=limits, help="default: %(default)s"
        )
        command.add_argument("--threshold", type=float, default=0.7, help="default: %(default)s")
        command.add_argument("--seed", type=int, default=1, help="of the corpus (default: %(default)s)")
    one = commands.add_parser(
        "one", help="what the other commands start: build one file in a process of its own"
    )
    one.add_argument("--documents", type=Path, required=True)
    one.add_argument("--collection", required=True)
    one.add_argument("settings", nargs="*")
    for command in (corpus, templates, one):
        command.add_argument("--database", metavar="URL", help="default: NEARSIM_DATABASE_URL or embedded")
    return parser.parse_args()


def main() -> None:
    """Generate, build, compare; print one JSON document."""
    options = read_options()
    if options.command == "one":
        recipe = override(load(RECIPE), options.settings)
        print(json.dumps(build_alone(options.documents, options.collection, recipe, options.database)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.command == "corpus":
            corpora = write_corpora(options.sizes, options.seed, folder)
        else:
            corpora = write_family(options.family, options.others, options.seed, folder)
        results = run_corpora(corpora, options)
    print(json.dumps({"results": results, "machine": machine()}, indent=2))
    print(describe_machine(machine()), file=sys.stderr)


if __name__ == "__main__":
    main()

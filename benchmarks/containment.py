"""Partial copies: which pairs nearsim and LSH Ensemble find, compared with brute force, and the cost of such an index.

    .venv/bin/uv pip install --python .venv/bin/python datasketch xxhash
    python -m benchmarks containment --corpus F.jsonl.gz [--documents 3000] [--seed 1]
    python -m benchmarks containment-index [--documents 100000] [--rounds 3] [--calls 1000]

`containment` makes a set of stories with a partial copy of each (see `partial_copies`), and finds all pairs by brute
force over runs of words. It runs `nearsim dedupe` and datasketch's LSH Ensemble on the set, each in its own process.

`containment-index` ingests the synthetic corpus with the default recipe and with winnow, in turns. Then it takes
paragraphs of 50 words from documents, and looks up the documents that contain them. It prints seconds on the clock, and
processor seconds of client and server, which are valid on a busy machine too.
"""

import json
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from typer import Option

from benchmarks.corpus import Corpus, write_corpus
from benchmarks.growth import ingest
from benchmarks.lookups import time_each
from benchmarks.measure import ratio, spread
from benchmarks.options import RECIPE, Documents, Major, Rounds, Seed
from benchmarks.own_server import own_server
from benchmarks.partial_copies import (
    RUN,
    Pairs,
    containments,
    make_copies,
    pairs_with_runs,
    read_stories,
    write_texts,
)
from benchmarks.processes import Cost, run_measured
from benchmarks.truth import read_documents
from nearsim_db import Index
from nearsim_db.similarity.recipe import from_mapping, to_toml

WINNOW = from_mapping({"sketch": {"family": "winnow"}})
_PARAGRAPH_WORDS = 50
_THRESHOLDS = (0.5, 0.7)


def read_pairs(path: Path) -> Pairs:
    """Return the pairs of names in a file; the names of a pair are in alphabetical order."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return {(min(pair["left"], pair["right"]), max(pair["left"], pair["right"])) for pair in lines}


def main(
    corpus: Annotated[Path, Option(metavar="FILE", help="Stories.")],
    documents: Annotated[int, Option(help="Number of stories; as many copies are made.")] = 3_000,
    seed: Seed = 1,
) -> str:
    """Compare the pairs that tools find with the pairs of brute force."""
    texts = dict(make_copies(read_stories(corpus, documents), seed))
    shares, with_runs = containments(texts), pairs_with_runs(texts, RUN)
    lines = ["| pairs | tool | true | recall | precision | CPU, s | memory, MB |", "|---" * 7 + "|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, pairs_file = folder / "texts.jsonl", folder / "pairs.jsonl"
        write_texts(texts, source)
        dedupe = [
            sys.executable,
            "-m",
            "nearsim_db",
            "dedupe",
            str(source),
            "--set",
            "sketch.family=winnow",
            "--quiet",
        ]
        dedupe += ["--output", str(folder / "unique.jsonl"), "--pairs", str(pairs_file)]
        ensemble = [sys.executable, "-m", "benchmarks.peers.with_ensemble", str(source), str(pairs_file)]

        # Pairs by containment.
        for threshold in _THRESHOLDS:
            truth, rule = reaching(shares, threshold), f"containment from {threshold}"
            for tool, command in (
                ("nearsim", [*dedupe, "--threshold", str(threshold)]),
                ("LSH Ensemble", [*ensemble, str(threshold)]),
            ):
                cost, _ = run_measured(command, {})
                lines.append(line(rule, tool, truth, read_pairs(pairs_file), cost))

        # Pairs by runs of words, with and without pairs by containment.
        cost, _ = run_measured([*dedupe, "--set", f"match.passage_words={RUN}"], {})
        rule, truth = f"{RUN} equal words in a row", reaching(shares, WINNOW.match.threshold)
        reported = read_pairs(pairs_file)
        lines.append(line(f"{rule}, or containment from 0.5", "nearsim", truth | with_runs, reported, cost))
        # Pairs by containment alone are right too, so do not count them as wrong.
        lines.append(line(rule, "nearsim", with_runs, reported - (truth - with_runs), cost))
    return "\n".join(lines)


def reaching(shares: Mapping[tuple[str, str], float], threshold: float) -> Pairs:
    """Return the pairs whose containment reaches a threshold."""
    return {pair for pair, share in shares.items() if share >= threshold}


def line(rule: str, tool: str, truth: Pairs, reported: Pairs, cost: Cost) -> str:
    """Return a row of the table."""
    right = len(truth & reported)
    shares = f"{right / len(truth):.4f} | {right / max(len(reported), 1):.4f}"
    return f"| {rule} | {tool} | {len(truth):,} | {shares} | {cost.client:.1f} | {cost.megabytes:.0f} |"


def index(
    documents: Documents = 100_000,
    rounds: Rounds = 3,
    calls: Annotated[int, Option(help="Number of paragraphs to look up.")] = 1_000,
    major: Major = 18,
) -> dict[str, object]:
    """Ingest with both recipes in turns, and look up paragraphs."""
    costs: dict[str, list[Cost]] = {"default": [], "winnow": []}
    with tempfile.TemporaryDirectory() as name, own_server(major) as cluster:
        file, recipe = Path(name) / "corpus.jsonl.gz", Path(name) / "winnow.toml"
        write_corpus(Corpus(documents, seed=1).documents(), file, None)
        recipe.write_text(to_toml(WINNOW))
        for number in range(rounds):
            for kind, recipe_file in (("default", RECIPE), ("winnow", recipe)):
                costs[kind].append(ingest(cluster, file, f"{kind}-{number}", recipe_file)[0])
                print(f"{kind}: {costs[kind][-1].wall:.1f} s", file=sys.stderr)
        used = {kind: [cost.client + cost.server for cost in ingests] for kind, ingests in costs.items()}
        walls = {kind: [cost.wall for cost in ingests] for kind, ingests in costs.items()}

        with Index.connect(cluster.dsn(), collection="winnow-0") as opened:
            figures = opened.stats()
            times = look_up(cluster.dsn(), opened, paragraphs(file, calls))
    return {
        "documents": documents,
        "seconds": {kind: str(spread(seconds)) for kind, seconds in walls.items()},
        "processor seconds": {kind: str(spread(seconds)) for kind, seconds in used.items()},
        "winnow takes, times": str(ratio(walls["winnow"], walls["default"])),
        "by processor": str(ratio(used["winnow"], used["default"])),
        "index": {name: figures[name] for name in ("bytes_per_document", "expected_bytes_per_document")},
        "milliseconds": times,
    }


def paragraphs(file: Path, count: int) -> list[str]:
    """Return a run of 50 words from each of `count` random documents of a file that are long enough."""
    rng = random.Random(1)
    texts = [
        words
        for document in read_documents(file)
        if len(words := (document.body or "").split()) >= _PARAGRAPH_WORDS
    ]
    chosen = []
    for words in rng.sample(texts, count):
        begin = rng.randrange(len(words) - _PARAGRAPH_WORDS + 1)
        chosen.append(" ".join(words[begin : begin + _PARAGRAPH_WORDS]))
    return chosen


def look_up(url: str, opened: Index, texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the times of looking up the documents that contain each text; a first round is not counted."""

    def call(at: int) -> object:
        return opened.similar_to_text(texts[at], limit=20, direction="contained_in")

    for at in range(len(texts)):
        call(at)
    return time_each(url, call, len(texts))

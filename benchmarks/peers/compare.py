"""Compare nearsim with rensa, datasketch (in memory and on Redis), text-dedup, dedup-pg and pg_trgm in one run.

    .venv/bin/uv pip install --python .venv/bin/python -e '.[peers]'
    python -m benchmarks peers [--documents 100000] [--rounds 3] [--peers rensa --peers datasketch]
    python -m benchmarks peers --corpus F.jsonl.gz
    python -m benchmarks peer-lookups [--documents 100000] [--lookups 500]

`peers`: each tool reads a file of JSON lines and writes a file of the survivors, with word 3-shingles and the threshold
0.7. Every tool is a separate process, and the tools take turns (A B C, A B C). Servers are started before. Prints
Markdown: seconds on the clock, processor seconds of client and server, and the client's memory. Before the measured
rounds, an additional run of each tool gives the recall and precision of its pairs against brute force, and those of the
joins that make clusters from single documents. nearsim verifies every pair; the other tools report candidates.

`peer-lookups`: each tool indexes the file, and texts that are not in the file are looked up one by one. The texts are
further documents of the same corpus, or the last documents of the file.

Slow tools only get the first documents (--at-most NAME=N), and their seconds are for these documents. text-dedup needs
packages that conflict with those of other tools, so it has a separate environment: uv venv F; uv pip install --python
F/bin/python text-dedup; then --text-dedup F/bin/python. datasketch-redis needs redis-server (Debian: redis-server).
"""

import gzip
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import numpy as np
import orjson
from typer import Option

from benchmarks.corpus import Corpus
from benchmarks.measure import describe_machine, ratio, spread
from benchmarks.options import CorpusFile, Documents, Major, Rounds
from benchmarks.peers.contestants import NEARSIM, Contestant, TextDedup, contestants
from benchmarks.peers.judge import (
    Score,
    Truth,
    find_truth,
    judge_clusters,
    judge_pairs,
    read_clusters,
    read_named,
    read_rows,
)
from benchmarks.processes import Cost, run_measured
from benchmarks.truth import read_documents

_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
_VERSIONS = ("rensa", "datasketch", "redis", "dedup-pg")
_CLUSTERS_ONLY = ("dedup-pg",)


@dataclass(frozen=True, slots=True)
class Files:
    """The input files in a folder: files of the first documents, written when needed, and of texts to look up."""

    folder: Path
    documents: Sequence[tuple[str, str]]
    asked: Sequence[tuple[str, str]]

    def first(self, count: int | None) -> Path:
        """Return a file of the first documents, or of all documents."""
        size = min(count or len(self.documents), len(self.documents))
        path = self.folder / f"first-{size}.jsonl.gz"
        if not path.exists():
            write_lines(self.documents[:size], path)
        return path

    def lookups(self) -> Path:
        """Return the file of the texts to look up."""
        path = self.folder / "lookups.jsonl.gz"
        if not path.exists():
            write_lines(self.asked, path)
        return path


def write_lines(documents: Iterable[tuple[str, str]], path: Path) -> None:
    """Write documents as JSON lines of id and text."""
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.writelines(orjson.dumps({"id": name, "text": text}) + b"\n" for name, text in documents)


def read_texts(corpus: Path | None, documents: int) -> list[tuple[str, str]]:
    """Return the ids and texts, including titles, of the file or of a generated corpus."""
    if corpus:
        read = read_documents(corpus)
        return [
            (document.external_id, "\n".join(filter(None, (document.title, document.body))))
            for document in read
        ]
    generated = Corpus(documents, seed=1).documents()
    return [(made.external_id, "\n".join(filter(None, (made.title, made.text)))) for made in generated]


def judge(tool: Contestant, files: Files, truth: Truth) -> Score:
    """Run a tool once, so that it writes its pairs or clusters, and score these."""
    pairs, output = files.folder / f"pairs-{tool.name}.npy", files.folder / f"judged-{tool.name}"
    run_measured(tool.command(files.first(tool.at_most), output, "--pairs", str(pairs)), environment(files))
    if isinstance(tool, TextDedup):
        return judge_clusters(read_clusters(output / "uf.pkl", tool.python, len(truth.rows)), truth)
    score = judge_pairs(read_named(pairs, truth.rows) if tool.name == NEARSIM else read_rows(pairs), truth)
    return Score(None, None, score.joins_found, score.joins_right) if tool.name in _CLUSTERS_ONLY else score


def environment(files: Files) -> dict[str, str]:
    """Return the environment variables of all tools; `own` is the URL of nearsim's server."""
    return {**_ENVIRONMENT, "HF_HOME": str(files.folder / "huggingface")}


def compare(chosen: Sequence[Contestant], files: Files, rounds: int, *, judged: bool) -> str:
    """Score every tool once, then measure the tools in turns; return the table."""
    scores: dict[str, Score] = {}
    for tool in chosen if judged else ():
        print(f"judging {tool.name}", file=sys.stderr)
        scores[tool.name] = judge(tool, files, find_truth(files.first(tool.at_most)))
    costs: dict[str, list[Cost]] = {tool.name: [] for tool in chosen}
    for number in range(rounds):
        for tool in chosen:
            output = files.folder / f"unique-{tool.name}-{number}"
            cost, _ = run_measured(
                tool.command(files.first(tool.at_most), output), environment(files), tool.server
            )
            costs[tool.name].append(cost)
            print(f"{tool.name}: {cost.wall:.2f} s", file=sys.stderr)
    return table(chosen, costs, scores, len(files.documents))


def table(
    chosen: Sequence[Contestant], costs: dict[str, list[Cost]], scores: dict[str, Score], documents: int
) -> str:
    """Return the figures as Markdown. Ratios to nearsim compare the same rounds and the same documents."""
    lines = [
        "| tool | documents | seconds | nearsim takes, times | client CPU, s | server CPU, s | client memory, MB "
        "| recall of pairs | precision | recall of joins | precision of joins |",
        "|---" * 11 + "|",
    ]
    nearsim_walls = [cost.wall for cost in costs.get(NEARSIM, [])]

    for tool in chosen:
        walls = [cost.wall for cost in costs[tool.name]]
        size = min(tool.at_most or documents, documents)
        # A tool with a limit gets fewer documents, so its time cannot be compared with nearsim's.
        whole = size == documents and tool.name != NEARSIM and nearsim_walls
        shares = f"{ratio(nearsim_walls, walls)}" if whole else ""
        middle = [
            spread([getattr(cost, name) for cost in costs[tool.name]]).median for name in ("client", "server")
        ]
        memory = max(cost.megabytes for cost in costs[tool.name])
        figures = [f"{tool.name} ({tool.does})", f"{size:,}", str(spread(walls)), shares]
        figures += [f"{middle[0]:.2f}", f"{middle[1]:.2f}", f"{memory:.0f}", *columns(scores.get(tool.name))]
        lines.append(f"| {' | '.join(figures)} |")
    return "\n".join(lines)


def columns(score: Score | None) -> list[str]:
    """Return a score as cells with four decimals, and a dash for figures that a tool does not have."""
    if score is None:
        return ["-"] * 4
    values = (score.recall, score.precision, score.joins_found, score.joins_right)
    return ["-" if value is None else f"{value:.4f}" for value in values]


def look_up(chosen: Sequence[Contestant], files: Files) -> str:
    """Index the file with each tool, and return the milliseconds of look-ups as Markdown."""
    lines = ["| tool | documents | p50, ms | p99, ms | longest, ms |", "|---|---|---|---|---|"]
    for tool in chosen:
        output = files.folder / f"lookups-{tool.name}"
        options = ("--lookups", str(files.lookups()))
        _, printed = run_measured(
            tool.command(files.first(tool.at_most), output, *options), environment(files)
        )
        times = np.quantile(np.array(json.loads(printed)), [0.5, 0.99, 1.0]).tolist()
        size = min(tool.at_most or len(files.documents), len(files.documents))
        lines.append(
            f"| {tool.name} ({tool.does}) | {size:,} | {' | '.join(f'{value:.2f}' for value in times)} |"
        )
    return "\n".join(lines)


Peers = Annotated[list[str], Option(metavar="NAME", help="This tool only, and nearsim.")]
AtMost = Annotated[list[str], Option(metavar="NAME=N", help="Documents of a slow tool.")]
TextDedupPython = Annotated[Path | None, Option(metavar="PYTHON", help="Interpreter that has text-dedup.")]


def dedupe(
    documents: Documents = 100_000,
    corpus: CorpusFile = None,
    rounds: Rounds = 3,
    peers: Peers = [],
    at_most: AtMost = [],
    text_dedup: TextDedupPython = None,
    no_judge: Annotated[bool, Option("--no-judge", help="No recall and precision.")] = False,
    major: Major = 18,
) -> str:
    """De-duplicate a file with each tool; the tools take turns."""
    texts = read_texts(corpus, documents)
    with running(texts, [], at_most, text_dedup, peers, major) as (chosen, files):
        return compare(chosen, files, rounds, judged=not no_judge)


def lookups(
    documents: Documents = 100_000,
    corpus: CorpusFile = None,
    lookups: Annotated[int, Option(help="Number of texts, which are not indexed.")] = 500,
    peers: Peers = [],
    at_most: AtMost = [],
    text_dedup: TextDedupPython = None,
    major: Major = 18,
) -> str:
    """Index a file with each tool, and look up texts one by one."""
    # The last texts of the file are looked up, so they are not indexed.
    texts = read_texts(corpus, documents + lookups)
    with running(texts[:-lookups], texts[-lookups:], at_most, text_dedup, peers, major) as (chosen, files):
        return look_up(chosen, files)


@contextmanager
def running(
    indexed: Sequence[tuple[str, str]],
    looked_up: Sequence[tuple[str, str]],
    at_most: Sequence[str],
    text_dedup: Path | None,
    peers: Sequence[str],
    major: int,
) -> Iterator[tuple[list[Contestant], Files]]:
    """Start the servers of the chosen tools, and yield the tools that can run, with their files."""
    limits = {name: int(count) for name, count in (limit.split("=") for limit in at_most)}
    names = [NEARSIM, *peers] if peers else []
    with tempfile.TemporaryDirectory() as folder, contestants(major, limits, text_dedup, names) as tools:
        for tool in tools:
            if tool.missing:
                print(f"left out {tool.name}: {tool.missing}", file=sys.stderr)
            elif tool.name == NEARSIM and tool.address:
                os.environ["NEARSIM_DATABASE_URL"] = tool.address
        yield [tool for tool in tools if not tool.missing], Files(Path(folder), indexed, looked_up)
    versions = {name: value for name in _VERSIONS if (value := _version(name))}
    print(describe_machine(versions))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

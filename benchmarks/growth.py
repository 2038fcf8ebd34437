"""How the cost of an index grows with its documents, and what skewed corpora cost.

    python -m benchmarks growth [--documents 10000 --documents 100000 ...] [--lookups 1000] [--corpora FOLDER]
    python -m benchmarks skew [--documents 100000] [--rounds 3]

`growth` writes a synthetic corpus of each size and ingests it with `nearsim ingest` on a new server, which is removed
before the next size. In the temporary folder (TMPDIR), a document takes about 5.2 KB, and up to 2.2 KB more while it is
indexed. In addition there are up to 4 GB of WAL, the files of sorts, and the corpus with 0.7 KB per document, which
`--corpora` keeps in a folder for later runs.

It prints Markdown: seconds on the clock; processor seconds of client and server, and WAL, by stage (sampled four times
a second); the client's memory; the time per document as a ratio to that of 100,000 documents, or of the first size;
bytes on disk by table; and the latency of look-ups of texts that are not in the index. Texts are looked up once after a
restart of the server, whose files are still in the cache of the operating system, and then again.

`skew` ingests corpora of one size in turns: plain documents; documents of which 92 % are in one bucket because of a
footer; documents of which 92 % come from a single template, so that any two of these are a pair; documents of which 5 %
have the same block of boilerplate; and documents with 2,000 exact copies. Ratios are to the plain corpus of the same
round.
"""

import gzip
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
import psutil
import psycopg
from typer import Option

from benchmarks.corpus import Corpus, CorpusDocument, generator, write_corpus
from benchmarks.measure import ratio, spread
from benchmarks.options import RECIPE, Documents, Major, Rounds
from benchmarks.own_server import own_server
from benchmarks.plan import Shares
from benchmarks.processes import Cost, processor_seconds, run_measured
from benchmarks.skewed import HOT_SHARE, corpus_documents, with_hot_bucket
from benchmarks.templates import with_family
from nearsim_db import Document, Index
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe.conversion import load
from nearsim_db.store.database import Database
from nearsim_db.store.embedded.cluster import PostgresCluster

BASE = 100_000
_SAMPLE_SECONDS = 0.25
_MATCHES = 20
_SEED = 1
_NOW = """
SELECT coalesce((SELECT CASE state WHEN 'building' THEN stage ELSE 'afterwards' END
                 FROM nearsim.generation ORDER BY generation_id DESC LIMIT 1), 'sign'),
    (pg_current_wal_insert_lsn() - '0/0')::bigint
"""
_CANDIDATES = """
SELECT coalesce((figures ->> 'candidates')::float8, 0) FROM nearsim.generation ORDER BY generation_id DESC LIMIT 1
"""
_FULL_PAGES = "SELECT wal_fpi FROM pg_stat_wal"
_BYTES = """
SELECT relname, pg_total_relation_size(oid)::bigint FROM pg_class
WHERE relkind = 'r' AND relnamespace::regnamespace::text IN ('nearsim', 'nearsim_index')
"""


@dataclass(slots=True)
class Use:
    """The cost of a stage: seconds on the clock, processor seconds of client and server, and bytes of WAL."""

    figures: list[float] = field(default_factory=lambda: [0.0] * 4)

    def add(self, interval: Sequence[float]) -> None:
        """Add the four figures of one interval."""
        self.figures = [total + figure for total, figure in zip(self.figures, interval, strict=True)]


@dataclass(frozen=True, slots=True)
class Ingested:
    """An ingest of a corpus, and look-ups of texts that are not in it."""

    documents: int
    cost: Cost
    stages: dict[str, Use]  # the cost by stage
    full_pages: int  # images of whole pages in the WAL
    candidates: float
    bytes_by_table: dict[str, float]  # for each document
    lookups: dict[str, list[float]] = field(default_factory=dict)  # milliseconds, the first time and again


@contextmanager
def watched_stages(url: str, server: psutil.Process) -> Iterator[dict[str, Use]]:
    """Sample the stage of the newest generation until the block ends, and add up the cost of each stage."""
    stages: dict[str, Use] = {}
    stopped = threading.Event()

    def sample(connection: "psycopg.Connection[tuple[object, ...]]") -> tuple[str, list[float]]:
        row = connection.execute(_NOW).fetchone()
        assert row is not None
        client = sum(map(processor_seconds, psutil.Process().children()))
        return str(row[0]), [time.perf_counter(), client, processor_seconds(server), float(str(row[1]))]

    def watch() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            _, before = sample(connection)
            while not stopped.wait(_SAMPLE_SECONDS):
                stage, now = sample(connection)
                # When a process of the client ends, the sum decreases.
                passed = [max(0.0, new - old) for new, old in zip(now, before, strict=True)]
                stages.setdefault(stage, Use()).add(passed)
                before = now

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield stages
    finally:
        stopped.set()
        thread.join()


def ingest(
    cluster: PostgresCluster, file: Path, collection: str, recipe: Path = RECIPE
) -> tuple[Cost, dict[str, Use], int]:
    """Create a profile and ingest a file, with the commands of nearsim.

    Returns the cost of the ingest, the cost by stage, and the number of full-page images.
    """
    postmaster = cluster.status()
    assert postmaster is not None
    environment = {"NEARSIM_DATABASE_URL": cluster.dsn()}
    command = [sys.executable, "-m", "nearsim_db"]
    named = ["--collection", collection, "--quiet"]
    run_measured([*command, "profile", "create", "default", "--recipe", str(recipe), *named], environment)
    before = full_page_images(cluster.dsn())
    with watched_stages(cluster.dsn(), postmaster.process) as stages:
        cost, _ = run_measured([*command, "ingest", str(file), *named], environment, postmaster.process)
    return cost, stages, full_page_images(cluster.dsn()) - before


def full_page_images(url: str) -> int:
    """Return how many images of whole pages the server has written to its WAL."""
    with psycopg.connect(url, autocommit=True) as connection:
        return int(_value(connection.execute(_FULL_PAGES)))


def _value(cursor: "psycopg.Cursor[tuple[object, ...]]") -> float:
    row = cursor.fetchone()
    assert row is not None
    return float(str(row[0]))


def measure_size(major: int, documents: int, lookups: int, folder: Path) -> Ingested:
    """Ingest a corpus of one size on a new server, and look up texts that are not in the corpus."""
    file, texts = corpus_files(documents, lookups, folder)
    with own_server(major) as cluster:
        cost, stages, pages = ingest(cluster, file, "growth")
        with psycopg.connect(cluster.dsn(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            candidates = _value(connection.execute(_CANDIDATES))
            sizes = bytes_by_table([(str(name), int(str(size))) for name, size in connection.execute(_BYTES)])
        # Empty the server's own cache before the first look-ups.
        cluster.stop()
        cluster.start()
        times = look_up(cluster.dsn(), read_documents(texts))
    shares = {name: size / documents for name, size in sizes.items()}
    return Ingested(documents, cost, stages, pages, candidates, shares, times)


def corpus_files(documents: int, lookups: int, folder: Path) -> tuple[Path, Path]:
    """Return the files of a corpus and of the documents to look up; write them unless the folder has them."""
    name = f"{documents}-{lookups}-seed{_SEED}.jsonl.gz"
    files = folder / f"corpus-{name}", folder / f"lookups-{name}"
    if not all(file.exists() for file in files):
        corpus = Corpus(documents + lookups, _SEED).documents()
        for file, amount in zip(files, (documents, lookups), strict=True):
            # Rename a file when it is complete, so that an interrupted run leaves no file that looks complete.
            unfinished = file.with_suffix(".unfinished")
            write_corpus(islice(corpus, amount), unfinished, None)
            unfinished.replace(file)
    return files


def read_documents(file: Path) -> list[Document]:
    """Return the documents of a file that `write_corpus` wrote."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return [Document(record["id"], record["title"], record["text"]) for record in records]


def bytes_by_table(sizes: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return bytes by table, the largest first; the partitions of all generations count for their table."""
    by_table: dict[str, int] = {}
    for name, size in sizes:
        # The name of a partition is the name of its table, followed by numbers.
        parent = re.sub(r"(_\d+)+$", "", name)
        by_table[parent] = by_table.get(parent, 0) + size
    return dict(sorted(by_table.items(), key=lambda entry: entry[1], reverse=True))


def look_up(url: str, documents: Sequence[Document]) -> dict[str, list[float]]:
    """Return the milliseconds of looking up the text of each document, and of looking it up again."""
    times: dict[str, list[float]] = {"first": [], "again": []}
    with Index.connect(url, collection="growth") as index:
        index.check(Document("warm-up", None, "loads the kernels and opens the session"))
        for milliseconds in times.values():
            for document in documents:
                began = time.perf_counter()
                index.similar_to_text(document.body or "", document.title, limit=_MATCHES)
                milliseconds.append((time.perf_counter() - began) * 1e3)
    return times


def size_tables(ingests: Sequence[Ingested]) -> str:
    """Return the figures of all sizes as Markdown."""
    base = next((ingested for ingested in ingests if ingested.documents == BASE), ingests[0])
    lines = [
        "| documents | seconds | us a document | ratio | client CPU, s | server CPU, s | client memory, MB | WAL, KB "
        "a document | of it full pages, at most | candidates a document |",
        "|---" * 10 + "|",
    ]

    for ingested in ingests:
        a_document = ingested.cost.wall / ingested.documents
        wal = sum(use.figures[3] for use in ingested.stages.values()) / ingested.documents / 1e3
        # In KB: a page has 8,192 bytes, and the image of a page has at most that many.
        pages = ingested.full_pages * 8.192 / ingested.documents
        figures = [f"{ingested.documents:,}", f"{ingested.cost.wall:.1f}", f"{a_document * 1e6:.0f}"]
        figures += [f"{a_document * base.documents / base.cost.wall:.2f}", f"{ingested.cost.client:.1f}"]
        figures += [
            f"{ingested.cost.server:.1f}",
            f"{ingested.cost.megabytes:.0f}",
            f"{wal:.2f}",
            f"{pages:.2f}",
        ]
        figures.append(f"{ingested.candidates / ingested.documents:.2f}")
        lines.append(f"| {' | '.join(figures)} |")

    lines += [
        "",
        "| documents | stage | seconds | client CPU, s | server CPU, s | WAL, KB a document |",
        "|---" * 6 + "|",
    ]
    for ingested in ingests:
        for stage, use in ingested.stages.items():
            wall, client, server, wal = use.figures
            times = f"{wall:.1f} | {client:.1f} | {server:.1f} | {wal / ingested.documents / 1e3:.2f}"
            lines.append(f"| {ingested.documents:,} | {stage} | {times} |")
    return "\n".join([*lines, "", *disk_lines(ingests), "", *lookup_lines(ingests)])


def disk_lines(ingests: Sequence[Ingested]) -> list[str]:
    """Return the bytes per document by table, for the tables with at least ten bytes per document at the last size."""
    names = [name for name in ingests[-1].bytes_by_table if ingests[-1].bytes_by_table[name] >= 10]
    lines = [f"| documents | {' | '.join(names)} | all |", "|---" * (len(names) + 2) + "|"]
    for ingested in ingests:
        cells = [f"{ingested.bytes_by_table.get(name, 0):,.0f}" for name in names]
        lines.append(
            f"| {ingested.documents:,} | {' | '.join(cells)} | {sum(ingested.bytes_by_table.values()):,.0f} |"
        )
    return lines


def lookup_lines(ingests: Sequence[Ingested]) -> list[str]:
    """Return a table of the milliseconds of look-ups: the first time, and when repeated."""
    lines = ["| documents | first p50, ms | p99 | again p50 | p99 |", "|---" * 5 + "|"]
    for ingested in ingests:
        cells = [
            f"{value:.2f}" for times in ingested.lookups.values() for value in np.quantile(times, [0.5, 0.99])
        ]
        lines.append(f"| {ingested.documents:,} | {' | '.join(cells)} |")
    return lines


def skewed(documents: int) -> dict[str, Iterator[CorpusDocument]]:
    """Return corpora of one size by name; the plain corpus comes first."""
    plain = Shares(exact=0, block=0)
    family = documents * 92 // 100
    rng = generator(np.random.SeedSequence([1, family]))
    return {
        "plain": Corpus(documents, 1, shares=plain).documents(),
        "92 % in one bucket": in_one_bucket(Corpus(documents, 1, shares=plain)),
        "92 % of one template": with_family(Corpus(documents - family, 1, shares=plain), family, rng),
        "5 % with one block": Corpus(documents, 1, shares=Shares(exact=0, block=0.05)).documents(),
        "2,000 exact copies": Corpus(
            documents, 1, shares=Shares(exact=min(2_000 / documents, 0.5), block=0)
        ).documents(),
    }


def in_one_bucket(corpus: Corpus) -> Iterator[CorpusDocument]:
    """Yield the documents of a corpus, of which 92 % are put into one bucket of band 0."""
    encoder = Encoder(resolve(load(RECIPE)))
    for document in with_hot_bucket(corpus_documents(corpus), corpus.language, encoder, HOT_SHARE):
        yield CorpusDocument(document.external_id, document.title or "", document.body or "", -1, "plain")


def measure_skew(major: int, documents: int, rounds: int, folder: Path) -> str:
    """Ingest the skewed corpora in turns and return the table."""
    files = {name: folder / f"{place}.jsonl.gz" for place, name in enumerate(skewed(documents))}
    for name, corpus in skewed(documents).items():
        write_corpus(corpus, files[name], None)

    costs: dict[str, list[Cost]] = {name: [] for name in files}
    with own_server(major) as cluster, Database.connect(cluster.dsn()) as database:
        for number in range(rounds):
            for name, file in files.items():
                collection = f"{file.stem.partition('.')[0]}-{number}"
                costs[name].append(ingest(cluster, file, collection)[0])
                delete_collection(database, collection)
                print(f"{name}: {costs[name][-1].wall:.1f} s", file=sys.stderr)

    lines = ["| corpus | seconds | times plain | processor seconds | times plain |", "|---" * 5 + "|"]
    base = costs["plain"]
    for name, corpus_costs in costs.items():
        walls, used = (
            [cost.wall for cost in corpus_costs],
            [cost.client + cost.server for cost in corpus_costs],
        )
        times = [
            ratio(walls, [cost.wall for cost in base]),
            ratio(used, [cost.client + cost.server for cost in base]),
        ]
        lines.append(f"| {name} | {spread(walls)} | {times[0]} | {spread(used)} | {times[1]} |")
    return "\n".join(lines)


def sizes(
    documents: Annotated[
        list[int], Option(metavar="N", help="Number of documents of a corpus (repeatable).")
    ] = [10_000, BASE, 1_000_000],
    lookups: Annotated[int, Option(help="Number of texts to look up.")] = 1_000,
    corpora: Annotated[Path | None, Option(metavar="FOLDER", help="Keep the corpora for later runs.")] = None,
    major: Major = 18,
) -> str:
    """Ingest corpora of growing size."""
    ingests = []
    for size in documents:
        with tempfile.TemporaryDirectory() as name:
            folder = corpora or Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            ingests.append(measure_size(major, size, lookups, folder))
        print(f"{size:,} documents: {ingests[-1].cost.wall:.1f} s", file=sys.stderr)
    return size_tables(ingests)


def skew(documents: Documents = BASE, rounds: Rounds = 3, major: Major = 18) -> str:
    """Ingest skewed corpora of one size in turns."""
    with tempfile.TemporaryDirectory() as name:
        return measure_skew(major, documents, rounds, Path(name))

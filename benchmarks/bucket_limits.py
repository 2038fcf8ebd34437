"""What match.bucket_limit costs and leaves out: pair recall, build and look-ups, for several limits.

    python -m benchmarks.bucket_limits [--documents 100000] [--corpus FILE.jsonl.gz ...]

Corpora: the synthetic corpus, 16,000 log lines, 20,000 documents of which 92 % share one bucket, and the files given.
All are built with the default recipe on a dedicated server, under each limit. Recall is of the exact pairs of
documents with different features. Seconds of a build are processor time of client and server together, the least of
the rounds; a look-up is `check` with a limit of 20 matches, the least wall-clock time of three calls for each of
documents drawn at random (p50, p99) and of those in the largest buckets (the worst).
"""

import argparse
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import psycopg
from psycopg import sql

from benchmarks.corpus import Corpus
from benchmarks.exact import exact_pairs
from benchmarks.in_memory import read_features
from benchmarks.measure import describe_machine, machine
from benchmarks.own_server import own_server
from benchmarks.processes import processor_seconds
from benchmarks.skewed import HOT_SHARE, corpus_documents, log_lines, with_hot_bucket
from benchmarks.truth import read_documents
from nearsim_db import Document, Index
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver.statements import Leaves

LIMITS = (64, 128, 256, 512, 0)
_LINES, _HOT = 16_000, 20_000
_MATCHES, _LOOKUPS, _CALLS, _WARM_UP = 20, 1_000, 3, 100
_IN_LARGEST = """
SELECT document.external_id FROM nearsim.document JOIN {band} AS band USING (doc_id) WHERE bucket_hash IN (
    SELECT bucket_hash FROM {band} GROUP BY bucket_hash ORDER BY count(*) DESC, bucket_hash LIMIT 10)
ORDER BY hashint8(doc_id) LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Case:
    """The figures of one build: linked pairs of heads, stored ones, and milliseconds of look-ups.

    `hot` are look-ups of documents in the largest buckets.
    """

    seconds: float
    linked: int
    stored: int
    lookups: list[float]
    hot: list[float]


def true_pairs(documents: Sequence[Document], recipe: Recipe) -> int:
    """Count the pairs of documents with different features that reach the threshold."""
    sets = read_features(Encoder(resolve(recipe)), documents).sets
    return len(exact_pairs(sets, recipe.match.threshold).left)


def build(url: str, server: psutil.Process, documents: Sequence[Document], recipe: Recipe) -> Case:
    """Build one index, look documents up in it, and drop it."""
    collection = f"limit-{recipe.match.bucket_limit}"
    with Index.connect(url, collection=collection) as index:
        index.create_profile("default", recipe)
        before = processor_seconds(server) + _own_seconds()
        index.add(documents)
        seconds = processor_seconds(server) + _own_seconds() - before
        leaves = index.serving().context.leaves
        with psycopg.connect(url, autocommit=True) as session:
            stored = _first(session, sql.SQL("SELECT count(*) FROM {}").format(leaves.table("similar_pair")))
        linked = int(index.stats()["linked_pairs_per_document"] * index.stats()["heads"])
        lookups = list(_lookups(index, _draw(documents)))
        hot = list(_lookups(index, _in_largest(url, leaves, documents)))
        index.delete_profile("default")
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("DELETE FROM nearsim.document")
        session.execute("VACUUM nearsim.document")
        session.execute("DELETE FROM nearsim.change")
    return Case(seconds, linked, stored, lookups, hot)


def _first(session: psycopg.Connection[tuple[object, ...]], command: sql.Composed) -> int:
    row = session.execute(command).fetchone()
    return int(str(row[0])) if row else 0


def _own_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime + sum(psutil.Process().cpu_times()[2:4])


def _draw(documents: Sequence[Document]) -> list[Document]:
    rng = np.random.Generator(np.random.PCG64(1))
    drawn = rng.choice(len(documents), min(_LOOKUPS, len(documents)), replace=False)
    return [documents[place] for place in drawn.tolist()]


def _in_largest(url: str, leaves: Leaves, documents: Sequence[Document]) -> list[Document]:
    command = sql.SQL(_IN_LARGEST).format(band=leaves.table("band"))
    with psycopg.connect(url) as session:
        names = {name for (name,) in session.execute(command, {"most": _LOOKUPS // 10})}
    return [one for one in documents if one.external_id in names]


def _lookups(index: Index, chosen: Sequence[Document]) -> Iterator[float]:
    """Yield the milliseconds of looking up each document, the least of some calls, after a warm-up."""
    for document in chosen[:_WARM_UP]:
        index.check(document, limit=_MATCHES)
    for document in chosen:
        passed = []
        for _ in range(_CALLS):
            started = time.perf_counter()
            index.check(document, limit=_MATCHES)
            passed.append(1_000 * (time.perf_counter() - started))
        yield min(passed)


def corpora(options: argparse.Namespace) -> Iterator[tuple[str, list[Document]]]:
    """Yield the corpora by name."""
    if options.documents:
        yield f"synthetic, {options.documents:,}", list(corpus_documents(Corpus(options.documents, seed=1)))
    yield f"log lines, {_LINES:,}", list(log_lines(_LINES))
    hot = Corpus(_HOT, seed=1)
    encoder = Encoder(resolve(Recipe()))
    yield (
        f"92 % in one bucket, {_HOT:,}",
        list(with_hot_bucket(corpus_documents(hot), hot.language, encoder, HOT_SHARE)),
    )
    for path in options.corpus:
        yield path.name.partition(".")[0], read_documents(path)


def measure(name: str, documents: Sequence[Document], options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of a corpus, one for each limit, as Markdown."""
    wanted, first = true_pairs(documents, Recipe()), 0.0
    with own_server(options.major) as server:
        postmaster = server.status()
        assert postmaster is not None, "the server was just started"
        for limit in options.limits:
            recipe = override(Recipe(), [f"match.bucket_limit={limit}"])
            done = [build(server.dsn(), postmaster.process, documents, recipe) for _ in range(options.rounds)]
            case, seconds = done[-1], min(one.seconds for one in done)
            first = first or seconds
            quantiles = [*np.quantile(np.array(case.lookups), [0.5, 0.99]).tolist(), max(case.hot)]
            figures = " | ".join(f"{one:.1f}" for one in quantiles)
            yield (
                f"| {name} | {limit or 'none'} | {case.stored / max(wanted, 1):.4f} | {case.linked:,} "
                f"| {seconds:.1f} | {seconds / first:.2f} | {figures} |"
            )


def main() -> None:
    """Parse the command line, measure, print a table in Markdown."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument(
        "--documents", type=int, default=100_000, help="synthetic ones (default: %(default)s)"
    )
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], metavar="FILE.jsonl.gz")
    parser.add_argument(
        "--limits", type=int, nargs="+", default=LIMITS, help="0: none (default: %(default)s)"
    )
    parser.add_argument("--major", type=int, default=18, help="of PostgreSQL (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args()
    print(
        "| corpus | bucket_limit | pair recall | linked pairs | build, s | times | look-up p50, ms | p99 "
        "| worst in large buckets |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, documents in corpora(options):
        for line in measure(name, documents, options):
            print(line, flush=True)
    print(describe_machine(machine()))


if __name__ == "__main__":
    main()

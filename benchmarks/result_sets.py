"""Near-duplicates within result sets of 100: latency of the first, the next and the repeated answer.

    python benchmarks/result_sets.py --documents 200000 --families bottom_k fast_similarity --major 18

Indexes the synthetic corpus on a dedicated server, once per family. A result set resembles that of a search:
random documents, some of them with near-copies, in random order. Times are those of one thread, in
milliseconds; the mixes count sets per minute. Then the comparison of all pairs alone, with and without early
stopping, in turns.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import Corpus
from benchmarks.living.speed import percentiles
from benchmarks.measure import describe_machine, machine, ratio, spread, take_turns
from benchmarks.own_server import own_server
from nearsim_db import Deduper, Document, Index
from nearsim_db.similarity.jit import compiled
from nearsim_db.similarity.profile import make_family
from nearsim_db.similarity.recipe import Recipe, from_mapping
from nearsim_db.similarity.sketch import NO_KNOWN_PAIRS, Family

_SIZE = 100
_COPIES = 30  # of the documents of a set, those drawn from few clusters
_SETS = 1_000
_ROOM = 512 << 20  # for all sketches
_THRESHOLD = Fraction(7, 10)

Rows = NDArray[np.int64]  # (n, 2): doc_id, revision
Timed = Callable[[Rows], object]


def recipe(family: str) -> Recipe:
    """Return a recipe of word 3-shingles; longer ones for bottom_k, whose keys are single shingles, and small
    buckets.
    """
    rare = {"shingle": {"k": 5}, "match": {"min_shared_bands": 3, "bucket_limit": 8}}
    return from_mapping({"sketch": {"family": family}, **(rare if family == "bottom_k" else {})})


def make_sets(rows: Rows, clusters: Sequence[Rows], count: int, seed: int) -> list[Rows]:
    """Return result sets of 100 documents, about 30 of them from clusters, at most 10 of each."""
    rng = np.random.Generator(np.random.PCG64(seed))
    sets = []
    for _ in range(count):
        parts, drawn = [], 0
        while drawn < _COPIES and clusters:
            cluster = clusters[int(rng.integers(len(clusters)))]
            part = rng.permutation(cluster)[: min(10, _COPIES - drawn)]
            parts.append(part)
            drawn += len(part)
        parts.append(rows[rng.integers(len(rows), size=2 * _SIZE)])
        joined = np.concatenate(parts)
        _, first = np.unique(joined[:, 0], return_index=True)
        sets.append(rng.permutation(joined[np.sort(first)][:_SIZE]))
    return sets


def read_rows(index: Index) -> tuple[Rows, list[Rows]]:
    """Return all documents, and those of each cluster."""
    with index.database.engine.connect() as connection:
        found = connection.execute(
            "SELECT doc_id, revision, coalesce(cluster_id, 0) FROM nearsim.document "
            "LEFT JOIN nearsim.cluster_member USING (doc_id) ORDER BY 3, 1"
        )
        read = np.array([tuple(row) for row in found], np.int64)
    clustered = read[read[:, 2] > 0]
    changes = np.flatnonzero(np.diff(clustered[:, 2])) + 1
    return read[:, :2], [part[:, :2] for part in np.split(clustered, changes) if len(part)]


def measure(call: Timed, sets: Sequence[Rows]) -> dict[str, dict[str, float]]:
    """Return percentiles of milliseconds, one call per set: wall time, and CPU time of this thread."""
    clock, processor = [], []
    for one in sets:
        started, began = time.perf_counter(), time.thread_time()
        call(one)
        processor.append(1_000 * (time.thread_time() - began))
        clock.append(1_000 * (time.perf_counter() - started))
    return {"clock": percentiles(clock), "processor": percentiles(processor)}


def per_minute(call: Timed, sets: Sequence[Rows]) -> dict[str, int]:
    """Return sets per minute: by wall time, and by this process's CPU time, the capacity of one core."""
    started, began = time.perf_counter(), time.process_time()
    for one in sets:
        call(one)
    used, passed = time.process_time() - began, time.perf_counter() - started
    return {"clock": round(60 * len(sets) / passed), "one core": round(60 * len(sets) / used)}


def with_revisions(deduper: Deduper) -> Timed:
    """Query like an application that has its rows at hand."""
    return lambda one: deduper.dedupe(one[:, 0].tolist(), one[:, 1].tolist())


def by_id(deduper: Deduper) -> Timed:
    """Query like an application that only knows doc_ids."""
    return lambda one: deduper.dedupe(one[:, 0].tolist())


def warm_up(deduper: Deduper, rows: Rows) -> Deduper:
    """Read the sketches of all documents into the cache."""
    for at in range(0, len(rows), _SIZE):
        deduper.dedupe(rows[at : at + _SIZE, 0].tolist())
    return deduper


def measure_calls(index: Index, rows: Rows, clusters: Sequence[Rows]) -> dict[str, object]:
    """Measure cold, warm and repeated calls, with and without revisions."""
    sets = make_sets(rows, clusters, _SETS, seed=1)
    found: dict[str, object] = {}
    Deduper(index).dedupe(sets[0][:, 0].tolist())
    for name, ask in (("by doc_id", by_id), ("with revisions", with_revisions)):
        found[f"cold {name}"] = measure(_fresh(index, ask), sets[:200])
        warm = warm_up(Deduper(index, sketch_bytes=_ROOM), rows)
        found[f"warm {name}"] = measure(ask(warm), sets)
        found[f"seen {name}"] = measure(ask(warm), sets)
    return found


def _fresh(index: Index, ask: Callable[[Deduper], Timed]) -> Timed:
    """Yield calls with empty caches, in a connected process."""
    deduper = Deduper(index, sketch_bytes=0, answer_bytes=0)
    ask(deduper)(np.ones((1, 2), np.int64))
    return ask(deduper)


def measure_mixes(index: Index, rows: Rows, clusters: Sequence[Rows]) -> dict[str, dict[str, dict[str, int]]]:
    """Return sets per minute of one client, with the server on the same machine."""
    seen, new = (make_sets(rows, clusters, 4 * _SETS, seed) for seed in (2, 3))
    half_seen = [one for pair in zip(seen, new, strict=True) for one in pair]
    mixes: dict[str, dict[str, dict[str, int]]] = {}
    for name, ask in (("by doc_id", by_id), ("with revisions", with_revisions)):
        keeping = warm_up(Deduper(index, sketch_bytes=_ROOM), rows)
        forgetful = warm_up(Deduper(index, sketch_bytes=_ROOM, answer_bytes=0), rows)
        for one in seen:
            ask(keeping)(one)
        mixes[name] = {
            "half seen before, half new sets of warm documents": per_minute(ask(keeping), half_seen),
            "all warm, no answers kept": per_minute(ask(forgetful), half_seen),
        }
    return mixes


@compiled
def _wholly_sorted(sketches: NDArray[Any], need: int, first: NDArray[np.int64]) -> None:
    """Return the answer of `first_similar` for sets of at least k ids, merging each pair until k distinct ids."""
    k = sketches.shape[1]
    for row in range(len(sketches)):
        first[row] = -1
        for other in range(row):
            if first[other] >= 0:
                continue
            left = right = both = 0
            while left + right - both < k:
                ahead, behind = sketches[row, left], sketches[other, right]
                both += int(ahead == behind)
                left += int(ahead <= behind)
                right += int(behind <= ahead)
            if both >= need:
                first[row] = other
                break


@compiled
def _equal_positions(left: NDArray[Any], right: NDArray[Any]) -> int:
    equal = 0
    for begin in range(0, len(left), 64):
        part = np.uint32(0)
        for position in range(64):
            part += np.uint32(left[begin + position] == right[begin + position])
        equal += int(part)
    return equal


@compiled
def _wholly_positions(sketches: NDArray[Any], need: int, first: NDArray[np.int64]) -> None:
    """Return the answer of `first_similar`, comparing all positions of each pair, 64 at a time."""
    for row in range(len(sketches)):
        first[row] = -1
        for other in range(row):
            if first[other] >= 0:
                continue
            equal = _equal_positions(sketches[row], sketches[other])
            if equal >= need:
                first[row] = other
                break


def measure_kernels(index: Index, sets: Sequence[Rows], rounds: int = 15) -> dict[str, str]:
    """Return microseconds per set of the comparison alone, and the gain of early stopping, in turns with NumPy."""
    chosen = index.serving().context.encoder.profile.recipe
    family, plain = make_family(chosen), make_family(chosen, "numpy")
    read = [_read_sketches(index, family, one) for one in sets]
    whole = _wholly_positions if family.positional else _wholly_sorted
    firsts = [np.empty(len(one), np.int64) for one in read]

    def stopping(family: Family, taken: int) -> list[NDArray[np.int64]]:
        return [
            family.first_similar(one, np.ones(len(one), bool), _THRESHOLD, NO_KNOWN_PAIRS)
            for one in read[:taken]
        ]

    def comparing_wholly() -> None:
        for one, first in zip(read, firsts, strict=True):
            whole(one, 90, first)  # 0.7 of 128

    comparing_wholly()
    assert all(map(np.array_equal, firsts, stopping(family, len(read))))
    assert all(map(np.array_equal, firsts, stopping(plain, 2)))
    turns = take_turns({"whole": comparing_wholly, "stopping": lambda: stopping(family, len(read))}, rounds)
    numpy = take_turns({"numpy": lambda: stopping(plain, 4)}, 3)["numpy"]
    return {
        name: str(spread([1e6 * one / len(read) for one in seconds])) for name, seconds in turns.items()
    } | {
        "whole / stopping": str(ratio(turns["whole"], turns["stopping"])),
        "NumPy": str(spread([1e6 * one / 4 for one in numpy])),
    }


def _read_sketches(index: Index, family: Family, rows: Rows) -> NDArray[np.generic]:
    with index.database.engine.connect() as connection:
        blobs = connection.execute(
            "SELECT sketch FROM nearsim.signature WHERE doc_id = ANY(%s) AND feature_count >= 128",
            (rows[:, 0].tolist(),),
        )
        return np.stack([np.frombuffer(row[0], family.dtype.newbyteorder("<")) for row in blobs]).astype(
            family.dtype
        )


def run(url: str, family: str, documents: int) -> dict[str, object]:
    """Index the corpus under one family and run all measurements."""
    with Index.connect(url, collection=family) as index:
        index.create_profile("benchmark", recipe(family))
        started = time.perf_counter()
        index.add(
            Document(one.external_id, one.title, one.text) for one in Corpus(documents, seed=1).documents()
        )
        built = time.perf_counter() - started
        rows, clusters = read_rows(index)
        stats = index.stats()
        return {
            "family": family,
            "documents": len(rows),
            "seconds to index": round(built, 1),
            "bands x rows": f"{stats['bands']} x {stats['rows']}",
            "candidates per document": stats["candidates_per_document"],
            "milliseconds": measure_calls(index, rows, clusters),
            "sets a minute": measure_mixes(index, rows, clusters),
            "microseconds to compare a set": measure_kernels(index, make_sets(rows, clusters, 40, seed=3)),
        }


def main() -> None:
    """Parse the command line, measure, print one JSON document per family."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--documents", type=int, default=200_000, help="default: %(default)s")
    parser.add_argument("--families", nargs="+", default=["fast_similarity", "bottom_k"])
    parser.add_argument("--major", type=int, default=18, help="of PostgreSQL (default: %(default)s)")
    options = parser.parse_args()
    print(describe_machine(machine()), file=sys.stderr)
    for family in options.families:
        with own_server(options.major) as server:
            found = run(server.dsn(), family, options.documents)
        print(json.dumps(found, indent=2), flush=True)


if __name__ == "__main__":
    main()

"""Pairs by datasketch's LSH Ensemble (Zhu and others 2016), with runs of 5 words, 128 values and 16 partitions by size.

    python -m benchmarks.peers.with_ensemble FILE.jsonl PAIRS.jsonl THRESHOLD

Writes a pair for each text that the index returns for another text. The pairs are not verified.
"""

import json
import sys
from pathlib import Path
from typing import Any

import xxhash
from datasketch import MinHash, MinHashLSHEnsemble

from benchmarks.partial_copies import K, runs

_VALUES, _PARTS = 128, 16


def main() -> None:
    """Index all texts, and look up each of them."""
    source, output, threshold = sys.argv[1:]
    records = [json.loads(line) for line in Path(source).read_text("utf-8").splitlines()]
    sets = [[" ".join(run).encode() for run in runs(sketch["text"].split(), K)] for sketch in records]
    sketches = list(MinHash.generator(sets, num_perm=_VALUES, hashfunc=xxhash.xxh32_intdigest))
    index: Any = MinHashLSHEnsemble(threshold=float(threshold), num_perm=_VALUES, num_part=_PARTS)
    index.index((row, sketch, len(sets[row])) for row, sketch in enumerate(sketches))
    pairs = {
        (min(row, other), max(row, other))
        for row, sketch in enumerate(sketches)
        for other in index.query(sketch, len(sets[row]))
        if other != row
    }

    with Path(output).open("w", encoding="utf-8") as stream:
        for left, right in sorted(pairs):
            stream.write(json.dumps({"left": records[left]["id"], "right": records[right]["id"]}) + "\n")


if __name__ == "__main__":
    main()

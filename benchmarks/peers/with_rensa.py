"""The job with rensa, a fast MinHash library: texts are signed in batches and queried at once, without verification."""

from typing import Any

from rensa import RMinHash, RMinHashLSH

from benchmarks.peers.job import BANDS, THRESHOLD, K, batches, read_job
from benchmarks.peers.shingles import word_shingles

_SEED = 42


def main() -> None:
    """Index a file in memory; write the survivors, or look up texts."""
    job = read_job()
    lines, texts = job.read()
    index: Any = RMinHashLSH(threshold=THRESHOLD, num_perm=K, num_bands=BANDS)
    rows, sketches = [], []
    for batch in batches(texts):
        shingled = [(row, shingles) for row in batch if (shingles := word_shingles(texts[row]))]
        rows += [row for row, _ in shingled]
        sketches += RMinHash.from_token_sets([shingles for _, shingles in shingled], num_perm=K, seed=_SEED)

    index.insert_pairs(list(zip(rows, sketches, strict=True)))
    if job.lookups:
        job.time_lookups(
            lambda text: index.query(
                RMinHash.from_token_sets([word_shingles(text)], num_perm=K, seed=_SEED)[0]
            )
        )
        return
    matches = zip(rows, index.query_all(sketches), strict=True)
    job.finish(lines, ((other, row) for row, others in matches for other in others if other < row))


if __name__ == "__main__":
    main()

"""The job with datasketch, as its documentation recommends for speed.

It uses bulk hashing with xxhash, lean MinHashes, and datasketch's choice of bands for the threshold. The index is in
memory, or with --server in Redis, where it is written in an insertion session and queried one text at a time.
"""

import uuid
from typing import Any

import xxhash
from datasketch import LeanMinHash, MinHash, MinHashLSH

from benchmarks.peers.job import THRESHOLD, K, batches, read_job
from benchmarks.peers.shingles import word_shingles


def sketch(texts: list[str]) -> list[Any]:
    """Return the lean MinHashes of texts."""
    sets = [[shingle.encode() for shingle in word_shingles(text)] for text in texts]
    hashes = MinHash.generator(sets, num_perm=K, hashfunc=xxhash.xxh32_intdigest)
    return [LeanMinHash(hashed) for hashed in hashes]


def storage(socket: str | None) -> dict[str, object]:
    """Return the configuration of an index in memory, or of a new index in the Redis server at a socket."""
    if socket is None:
        return {"type": "dict"}
    return {"type": "redis", "basename": uuid.uuid4().bytes, "redis": {"unix_socket_path": socket}}


def main() -> None:
    """Index a file; write the survivors, or look up texts."""
    job = read_job()
    lines, texts = job.read()
    index: Any = MinHashLSH(threshold=THRESHOLD, num_perm=K, storage_config=storage(job.server))
    rows, sketches = [], []
    with index.insertion_session() as session:
        for batch in batches(texts):
            filled = [row for row in batch if texts[row].strip()]
            new = sketch([texts[row] for row in filled])
            for row, sketched in zip(filled, new, strict=True):
                session.insert(row, sketched, check_duplication=False)
            rows += filled
            sketches += new

    if job.lookups:
        job.time_lookups(lambda text: index.query(sketch([text])[0]))
        return
    matches = ((row, index.query(sketched)) for row, sketched in zip(rows, sketches, strict=True))
    job.finish(lines, ((other, row) for row, others in matches for other in others if other < row))


if __name__ == "__main__":
    main()

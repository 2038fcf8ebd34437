"""The job that every tool does in a separate process.

It reads a file, finds near-duplicates, joins them into clusters, and writes the survivors. Or it indexes the file, and
looks up one text after the other.
"""

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

RECIPE = Path(__file__).parents[1] / "recipes" / "w3.toml"
THRESHOLD, K, BANDS, ROWS = 0.7, 128, 32, 4
BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Job:
    """The files of a run: the input, which is compressed JSON lines of id and text; the output; and optionally pairs.

    The output has the lines of the survivors, and the pairs are pairs of rows. If `lookups`, a file like the input, is
    given, its texts are looked up instead. `server` is the address of a server.
    """

    input: Path
    output: Path
    pairs: Path | None
    lookups: Path | None
    server: str | None

    def read(self) -> tuple[list[bytes], list[str]]:
        """Return the lines of the input, and the texts in them."""
        with gzip.open(self.input) as stream:
            lines = stream.readlines()
        return lines, [orjson.loads(line)["text"] for line in lines]

    def finish(self, lines: Sequence[bytes], pairs: Iterable[tuple[int, int]]) -> None:
        """Join pairs of rows into clusters, and write the first line of each cluster."""
        if self.pairs is not None:
            pairs = list(pairs)
            np.save(self.pairs, np.array(pairs, np.int64).reshape(-1, 2))
        self.write(lines, join(len(lines), pairs))

    def write(self, lines: Sequence[bytes], first_rows: Sequence[int]) -> None:
        """Write the lines that are the first lines of their clusters."""
        with self.output.open("wb") as stream:
            stream.writelines(line for row, line in enumerate(lines) if first_rows[row] == row)

    def time_lookups(self, look_up: Callable[[str], object]) -> None:
        """Print the milliseconds of looking up each text as JSON, after a warm-up with a tenth of the texts."""
        assert self.lookups is not None
        with gzip.open(self.lookups) as stream:
            texts = [orjson.loads(line)["text"] for line in stream]
        for text in texts[: len(texts) // 10]:
            look_up(text)
        milliseconds = []
        for text in texts:
            began = time.perf_counter()
            look_up(text)
            milliseconds.append((time.perf_counter() - began) * 1e3)
        print(json.dumps(milliseconds))


def read_job() -> Job:
    """Parse the command line of a tool's script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    for name in ("--pairs", "--lookups"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--server")
    options = parser.parse_args()
    return Job(options.input, options.output, options.pairs, options.lookups, options.server)


def join(rows: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the first row of each row's cluster, by union-find."""
    parents = list(range(rows))

    def find(row: int) -> int:
        while parents[row] != row:
            # Halve the path to the root for later calls.
            parents[row] = row = parents[parents[row]]
        return row

    for left, right in pairs:
        left_root, right_root = find(left), find(right)
        # The smaller row is the root, so the root is the first row of its cluster.
        if left_root < right_root:
            parents[right_root] = left_root
        elif right_root < left_root:
            parents[left_root] = right_root
    return [find(row) for row in range(rows)]


def batches(texts: Sequence[str]) -> Iterator[range]:
    """Yield the rows of each batch, in order."""
    for begin in range(0, len(texts), BATCH):
        yield range(begin, min(begin + BATCH, len(texts)))

"""From a file to near-duplicates: nearsim into PostgreSQL, verified and stored, against datasketch in memory.

    python benchmarks/end_to_end.py --documents F.jsonl.gz --recipe benchmarks/recipes/w3.toml [--truth T.csv.gz]

The server runs before the clock starts, and each round fills a new collection; reading the file, normalising,
shingling and everything after count for both. datasketch hashes with xxhash, with its default bands for the
threshold and one process; nearsim uses all cores, and at the end its pairs and clusters are stored.
`datasketch, verified` adds the exact check of datasketch's candidates. All take turns in one run. Supported are
word shingles separated by spaces and character shingles of title and body; the file is JSON lines of id, title
and text, gzip-compressed.
"""

import argparse
import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import xxhash

from benchmarks import peers
from benchmarks.measure import StepTimes, describe_machine, machine, ratio, spread, take_turns
from benchmarks.truth import LEAST_SIMILARITY, read_documents, read_truth
from nearsim_db.errors import RecipeError
from nearsim_db.index import Index
from nearsim_db.indexing.collections import temporary_collection
from nearsim_db.readers import Source
from nearsim_db.similarity.metrics import reach_mask, reaches
from nearsim_db.similarity.recipe import Recipe, load, override
from nearsim_db.store.database import Database

NEARSIM, UNVERIFIED, VERIFIED = "nearsim", "datasketch", "datasketch, verified"

NamedPairs = set[tuple[str, str]]


@dataclass(slots=True)
class Contest:
    """One file and recipe. `found` has the pairs of each contestant's last round, by external ids, the smaller
    first.
    """

    path: Path
    recipe: Recipe
    database: Database
    stack: ExitStack
    found: dict[str, NamedPairs] = field(default_factory=dict)
    steps: StepTimes = field(default_factory=StepTimes)
    indexes: list[Index] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)

    def run_nearsim(self) -> None:
        """Create a collection and a profile, and ingest the file. The collection is deleted when the contest ends."""
        name = f"end-to-end-{os.getpid()}-{next(self._numbers)}"
        self.stack.enter_context(temporary_collection(self.database, name))
        self.steps = StepTimes()
        index = Index(self.database, name, progress=self.steps)
        index.create_profile("benchmark", self.recipe)
        index.ingest(Source([self.path]))
        self.steps.finish()
        self.indexes.append(index)

    def run_datasketch(self, name: str) -> None:
        """Read, shingle, hash in bulk, insert, query; and verify the candidates if the name says so."""
        documents = _read_plainly(self.path)
        texts = ["\n".join(filter(None, (one.get("title"), one.get("text")))) for one in documents]
        found = peers.find_pairs(
            texts,
            peer_shingles(self.recipe),
            self.recipe.match.threshold,
            self.recipe.sketch.k,
            xxhash.xxh32_intdigest,
        )
        rows = found.verified(self._reaches) if name == VERIFIED else found.pairs
        ids = [str(one["id"]) for one in documents]
        self.found[name] = {_ordered(ids[left], ids[right]) for left, right in rows}

    def read_own_pairs(self) -> None:
        """Read nearsim's pairs after the clock has stopped."""
        self.found[NEARSIM] = {_ordered(pair.left, pair.right) for pair in self.indexes[-1].pairs()}

    def runs(self) -> dict[str, Callable[[], None]]:
        """The contestants by name."""
        return {
            NEARSIM: self.run_nearsim,
            UNVERIFIED: partial(self.run_datasketch, UNVERIFIED),
            VERIFIED: partial(self.run_datasketch, VERIFIED),
        }

    def _reaches(self, intersection: int, union: int) -> bool:
        return reaches(intersection, union, self.recipe.match.threshold)


def peer_shingles(recipe: Recipe) -> Callable[[str], set[bytes]]:
    """Return the recipe's shingles as a user of datasketch would write them. Raises RecipeError if that is not
    possible.
    """
    rules = recipe.shingle
    if rules.scheme == "char":
        return partial(peers.character_shingles, k=rules.k)
    if rules.scheme == "word" and rules.tokens == "whitespace":
        return partial(peers.word_shingles, k=rules.k)
    raise RecipeError(
        f"{rules.scheme} shingles of {rules.tokens} tokens are not written for datasketch here; "
        "take character shingles, or word shingles with tokens = whitespace"
    )


def judge(found: NamedPairs, true: NamedPairs) -> dict[str, float]:
    """Return recall and precision of named pairs; 1 if there is nothing to find, or nothing was found."""
    right = len(found & true)
    return {
        "pairs": len(found),
        "recall": right / len(true) if true else 1.0,
        "precision": right / len(found) if found else 1.0,
    }


def true_pairs(documents: Path, truth: Path, threshold: float) -> NamedPairs:
    """Return the pairs of a truth file that reach the threshold. Raises ValueError below the file's own threshold."""
    if threshold < LEAST_SIMILARITY:
        raise ValueError(f"the truth ends at {LEAST_SIMILARITY}; {threshold} cannot be judged by it")
    known = read_documents(documents)
    pairs = read_truth(truth, known)
    kept = pairs.take(reach_mask(pairs.intersection, pairs.union, threshold))
    return {
        _ordered(known[left].external_id, known[right].external_id)
        for left, right in zip(kept.left.tolist(), kept.right.tolist(), strict=True)
    }


def _ordered(left: str, right: str) -> tuple[str, str]:
    return (left, right) if left < right else (right, left)


def _read_plainly(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        return [json.loads(line) for line in lines]


def report(
    contest: Contest, seconds: Mapping[str, Sequence[float]], true: NamedPairs | None
) -> dict[str, object]:
    """Return what to print: seconds, ratios to nearsim, the steps of its last round, and all recalls and
    precisions.
    """
    judged = {name: judge(pairs, true) for name, pairs in contest.found.items()} if true is not None else {}
    return {
        "seconds": {name: str(spread(values)) for name, values in seconds.items()},
        "times faster than": {
            name: str(ratio(values, seconds[NEARSIM])) for name, values in seconds.items() if name != NEARSIM
        },
        "steps of nearsim": {name: round(value, 3) for name, value in contest.steps.seconds.items()},
        "found": judged or {name: {"pairs": len(pairs)} for name, pairs in contest.found.items()},
        "machine": machine(),
    }


def main() -> None:
    """Warm up, take turns, print."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--documents", type=Path, required=True, metavar="FILE.jsonl.gz")
    parser.add_argument("--recipe", type=Path, required=True, metavar="RECIPE.toml")
    parser.add_argument("--truth", type=Path, metavar="TRUTH.csv.gz", help="to judge the pairs by")
    parser.add_argument("--threshold", type=float, default=0.7, help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--database", metavar="URL", help="default: NEARSIM_DATABASE_URL or embedded")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    recipe = override(load(options.recipe), [f"match.threshold={options.threshold}"])
    true = true_pairs(options.documents, options.truth, options.threshold) if options.truth else None
    with Database.connect(options.database) as database, ExitStack() as stack:
        contest = Contest(options.documents, recipe, database, stack)
        contest.run_nearsim()
        seconds = take_turns(contest.runs(), options.rounds)
        contest.read_own_pairs()
        results = report(contest, seconds, true)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    facts = results.pop("machine")
    print(json.dumps(results, indent=2, ensure_ascii=False))
    assert isinstance(facts, dict)
    print(describe_machine(facts))


if __name__ == "__main__":
    main()

"""Overlap of unrelated documents of a corpus in word 3-shingles, by brute force in plain Python.

python benchmarks/background.py CORPUS.jsonl.gz --documents 10000
"""

import argparse
import gzip
import json
import random
from collections import Counter
from pathlib import Path
from statistics import fmean

QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)


def word_shingles(text: str, size: int = 3) -> frozenset[str]:
    """Return word shingles of the lower-cased text, split at white space.

    A text shorter than `size` is one shingle; a text without words has none.
    """
    words = text.lower().split()
    if not words:
        return frozenset()
    return frozenset(" ".join(words[i : i + size]) for i in range(max(1, len(words) - size + 1)))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Return intersection over union; 0 if either set is empty."""
    shared = len(left & right)
    return shared / (len(left) + len(right) - shared) if shared else 0.0


def read_shingles(path: Path, documents: int, seed: int) -> list[frozenset[str]]:
    """Return the shingle sets, over title, newline and text, of a random sample of the documents.

    Documents of 20 shingles or fewer are left out: tiny texts are similar by accident.
    """
    sets = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            sets.append(word_shingles(f"{record.get('title') or ''}\n{record['text']}"))
    sets = [shingles for shingles in sets if len(shingles) > 20]
    random.Random(seed).shuffle(sets)
    return sets[:documents]


def describe(sets: list[frozenset[str]], pairs: int, seed: int) -> dict[str, float]:
    """Return the mean share of a document's shingles that occur in another document, and the Jaccard of random
    pairs.
    """
    holders = Counter(shingle for shingles in sets for shingle in shingles)
    shared = fmean(sum(holders[shingle] > 1 for shingle in shingles) / len(shingles) for shingles in sets)
    chooser = random.Random(seed)
    scores = sorted(jaccard(*chooser.sample(sets, 2)) for _ in range(pairs))
    figures = {
        "documents": len(sets),
        "shingles_per_document": fmean(map(len, sets)),
        "share_found_elsewhere": shared,
        "pair_mean": fmean(scores),
    }
    return figures | {f"pair_quantile_{q}": scores[int(q * len(scores))] for q in QUANTILES}


def main() -> None:
    """Parse the command line and print one figure per line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("corpus", type=Path, help="gzip-compressed JSONL with title and text")
    parser.add_argument("--documents", type=int, default=10_000, help="sample (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=200_000, help="random pairs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default: %(default)s)")
    options = parser.parse_args()
    sets = read_shingles(options.corpus, options.documents, options.seed)
    for name, value in describe(sets, options.pairs, options.seed).items():
        print(f"{name:24} {value:.5g}")


if __name__ == "__main__":
    main()

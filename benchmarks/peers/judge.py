"""Score the pairs or clusters of a tool against the exact pairs.

Pairs are scored as pairs, and as the joins that make clusters from single documents.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import orjson

from benchmarks.exact import exact_pairs
from benchmarks.in_memory import distinct, read_features
from benchmarks.peers.job import RECIPE, THRESHOLD
from benchmarks.truth import Ints, read_documents
from nearsim_db.similarity.clustering import connected_components
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import load, override


@dataclass(frozen=True, slots=True)
class Truth:
    """The exact pairs of a file of n documents."""

    codes: Ints  # n * left row + right row, ascending
    clusters: Ints  # int64 of n: a label for each document
    rows: Mapping[str, int]  # by external id


@dataclass(frozen=True, slots=True)
class Score:
    """Recall and precision of pairs and of joins; those of pairs are None for tools that only report clusters."""

    recall: float | None
    precision: float | None
    joins_found: float
    joins_right: float


@cache
def find_truth(path: Path) -> Truth:
    """Return all pairs of a file whose exact Jaccard similarity reaches the threshold, including identical texts."""
    documents = read_documents(path)
    recipe = override(load(RECIPE), [f"match.threshold={THRESHOLD}"])
    features = read_features(Encoder(resolve(recipe)), documents)
    exact = exact_pairs(features.sets, THRESHOLD)
    members = features.members()
    heads = features.heads.tolist()

    # A pair of heads stands for all pairs of their twins, and the twins of a head are pairs, too.
    pairs = [
        (min(left_row, right_row), max(left_row, right_row))
        for left, right in zip(exact.left.tolist(), exact.right.tolist(), strict=True)
        for left_row in members[heads[left]]
        for right_row in members[heads[right]]
    ]
    pairs += [
        (left_row, right_row)
        for group in members.values()
        for place, left_row in enumerate(group)
        for right_row in group[place + 1 :]
    ]

    rows = {document.external_id: row for row, document in enumerate(documents)}
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return Truth(to_codes(table, len(rows)), labels_of(table, len(rows)), rows)


def to_codes(pairs: Ints, documents: int) -> Ints:
    """Return the distinct pairs of rows as ascending numbers, one for each pair."""
    return (
        distinct(pairs.min(axis=1) * documents + pairs.max(axis=1)) if len(pairs) else np.zeros(0, np.int64)
    )


def labels_of(pairs: Ints, documents: int) -> Ints:
    """Return a label for each document; documents that are connected by pairs have the same label."""
    labels = np.arange(documents)
    if len(pairs):
        members, roots = connected_components(pairs)
        labels[members] = roots
    return labels


def judge_pairs(pairs: Ints, truth: Truth) -> Score:
    """Score reported pairs of rows, int64 (m, 2), against the truth."""
    size = len(truth.rows)
    codes = to_codes(pairs, size)
    right = int(np.isin(codes, truth.codes, assume_unique=True).sum())
    joins = judge_clusters(labels_of(pairs, size), truth)
    return Score(
        right / len(truth.codes) if len(truth.codes) else 1.0,
        right / len(codes) if len(codes) else 1.0,
        joins.joins_found,
        joins.joins_right,
    )


def judge_clusters(labels: Ints, truth: Truth) -> Score:
    """Score clusters, given as a label for each document, against the true clusters.

    A cluster of n documents takes n - 1 joins. Joins within a reported and a true cluster are right.
    """
    size = len(labels)
    joins = [
        # n documents in c clusters take n - c joins.
        size - len(distinct(clusters))
        for clusters in (truth.clusters * size + labels, truth.clusters, labels)
    ]
    both, true, made = joins
    return Score(None, None, both / true if true else 1.0, both / made if made else 1.0)


def read_rows(path: Path) -> Ints:
    """Return the pairs of rows that a script of this package wrote."""
    return np.asarray(np.load(path), np.int64)


def read_named(path: Path, rows: Mapping[str, int]) -> Ints:
    """Return the rows of the pairs that `nearsim dedupe` wrote as JSON lines."""
    with path.open("rb") as lines:
        pairs = [(rows[pair["left"]], rows[pair["right"]]) for pair in map(orjson.loads, lines)]
    return np.array(pairs, np.int64).reshape(-1, 2)


def read_clusters(path: Path, python: Path, documents: int) -> Ints:
    """Return the labels of text-dedup's clusters from its pickled union-find, which text-dedup's interpreter reads."""
    code = (
        "import json, pickle, sys; print(json.dumps([*pickle.load(open(sys.argv[1], 'rb')).parent.items()]))"
    )
    done = subprocess.run([python, "-c", code, path], stdout=subprocess.PIPE, check=True)
    return labels_of(np.array(json.loads(done.stdout), np.int64).reshape(-1, 2), documents)

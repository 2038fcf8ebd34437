"""Recall and precision against exact truth, over many seeds in memory and for one through the database.

python benchmarks/accuracy.py --documents F.jsonl.gz --truth T.csv.gz --recipe benchmarks/recipes/w3.toml

The truth lists all pairs at 0.3 or more: id_a, id_b, inter, union. Thresholds are decided on integers. Twins (pairs
of equal feature sets, found through their digest whatever the seed) are reported apart. A reported pair counts as
precise only if the truth has it with the same intersection and union. For the first seed the same recipe is built in
a database (--database URL, else NEARSIM_DATABASE_URL, else the embedded server), whose pairs must be equal.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.in_memory import (
    FeatureSets,
    FoundPairs,
    Overlaps,
    expand_twins,
    find_pairs,
    read_features,
    sketch_heads,
)
from benchmarks.measure import describe_machine, machine
from benchmarks.truth import LEAST_SIMILARITY, Truth, read_documents, read_truth, wilson_interval
from nearsim_db.database import Database
from nearsim_db.encode import Encoder
from nearsim_db.index import Index
from nearsim_db.profile import resolve
from nearsim_db.recipe import Recipe, load, override
from nearsim_db.records import Document
from nearsim_db.verify import reaching

THRESHOLDS = (0.5, 0.7, 0.8, 0.9)
SEEDS = 20


@dataclass(slots=True)
class Score:
    """Counts of one threshold and bucket limit, summed over seeds; a reported pair is right if the truth has it so."""

    threshold: float
    bucket_limit: int
    bands: int
    rows: int
    expected_recall: float
    seeds: int = 0
    found: int = 0
    wanted: int = 0
    found_twins: int = 0
    wanted_twins: int = 0
    right: int = 0
    reported: int = 0
    linked: int = 0
    screened: int = 0
    heads: int = 0
    lowest_recall: float = 1.0

    @property
    def recall(self) -> float:
        """Of pairs that are no twins; 1 when there are none."""
        return self.found / self.wanted if self.wanted else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of `recall`, trials pooled over seeds."""
        return wilson_interval(self.found, self.wanted)

    @property
    def recall_of_all(self) -> float:
        """Of twins and others together."""
        wanted = self.wanted + self.wanted_twins
        return (self.found + self.found_twins) / wanted if wanted else 1.0

    @property
    def precision(self) -> float:
        """The share of reported pairs that are right."""
        return self.right / self.reported if self.reported else 1.0


def score_seed(score: Score, features: FeatureSets, truth: Truth, found: FoundPairs) -> None:
    """Add one seed's pairs to a score; `truth` is the whole truth."""
    heads = np.stack((features.head_of[truth.left], features.head_of[truth.right]))
    left, right = heads.min(axis=0), heads.max(axis=0)
    twins = left == right
    size = len(features.head_of)
    reported = found.left * size + found.right
    order = np.argsort(reported)
    places = np.searchsorted(reported, left * size + right, sorter=order)
    places = order[places.clip(max=len(order) - 1)] if len(order) else np.zeros(len(left), np.int64)
    hit = reported[places] == left * size + right if len(order) else np.zeros(len(left), np.bool_)
    same = (found.intersection[places] == truth.intersection) & (found.union[places] == truth.union) if len(
        order
    ) else hit
    wanted = reaching(truth.intersection, truth.union, score.threshold)
    equal_sets = truth.intersection == truth.union
    groups = features.group_sizes()
    recall = float(hit[wanted & ~twins].mean()) if (wanted & ~twins).any() else 1.0
    score.seeds += 1
    score.found += int((hit & wanted & ~twins).sum())
    score.wanted += int((wanted & ~twins).sum())
    score.found_twins += int((twins & wanted).sum())
    score.wanted_twins += int((twins & wanted).sum())
    score.right += int((hit & wanted & same).sum()) + int((twins & equal_sets).sum())
    score.reported += int((groups[found.left] * groups[found.right]).sum())
    score.reported += int((groups * (groups - 1) // 2).sum())
    score.linked += found.linked
    score.screened += found.screened
    score.heads += len(features.heads)
    score.lowest_recall = min(score.lowest_recall, recall)

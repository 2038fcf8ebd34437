"""Recall and precision of any sketch family, from documents to pairs in PostgreSQL, against brute force in memory.

    python -m benchmarks accuracy --documents F.jsonl.gz --recipe benchmarks/recipes/hyperplane.toml --tfidf 1000

`--tfidf N` gives every document its tf-idf vector over the N most frequent words, for recipes with input =
"vector"; vectors have length 1 unless `--raw` is given. Twins are documents with the same features; every sketch finds
them, so they are reported separately. `expected` is the profile's expected recall at the threshold, and
`expected_over_all` is the mean of the profile's curve over the true pairs.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Option

from benchmarks.all_pairs import TruePairs, true_pairs
from benchmarks.in_memory import FeatureSets, read_features
from benchmarks.options import RECIPE, Changes, RecipeFile
from benchmarks.tfidf import with_vectors
from benchmarks.truth import Ints, read_documents, wilson_interval
from nearsim_db.index import Index
from nearsim_db.indexing.drop_generation import delete_collection
from nearsim_db.records import Document
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.profile import Profile, resolve
from nearsim_db.similarity.recipe import Recipe, load, override


@dataclass(slots=True)
class Judged:
    """Counts of pairs, summed over the indexes of all seeds; `recall` excludes twins."""

    family: str
    threshold: float
    bands: int
    rows: int
    documents: int
    expected: float
    expected_over_all: float
    seeds: int = 0
    found: int = 0
    wanted: int = 0
    found_twins: int = 0
    wanted_twins: int = 0
    right: int = 0
    reported: int = 0
    candidates_per_document: float = 0.0

    @property
    def recall(self) -> float:
        """The share of true pairs that the indexes found; 1 if there are no true pairs."""
        return self.found / self.wanted if self.wanted else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of `recall`, with the trials of all seeds."""
        return wilson_interval(self.found, self.wanted)

    @property
    def precision(self) -> float:
        """The share of reported pairs that are true."""
        return self.right / self.reported if self.reported else 1.0


def measure(url: str | None, documents: Sequence[Document], recipe: Recipe, seeds: int = 1) -> Judged:
    """Index the documents in a new collection, once per seed, and compare its pairs with the truth."""
    profile = resolve(recipe)
    encoder = Encoder(profile)
    features = read_features(encoder, documents)
    true = expand(features, true_pairs(encoder, features.sets))
    judged = _promised(profile, features, true)
    for seed in range(1, seeds + 1):
        pairs, candidates = _index(url, documents, override(recipe, [f"sketch.seed={seed}"]))
        add_seed(judged, features, true, pairs)
        judged.candidates_per_document += candidates / seeds
    return judged


def _index(url: str | None, documents: Sequence[Document], recipe: Recipe) -> tuple[Ints, float]:
    """Return the pairs of an index as left * n + right, and the candidates per head."""
    rows = {document.external_id: row for row, document in enumerate(documents)}
    name = f"accuracy-{os.getpid()}"
    with Index.connect(url, collection=name) as index:
        index.create_profile("accuracy", recipe)
        try:
            index.add(documents)
            ends = np.array([(rows[pair.left], rows[pair.right]) for pair in index.pairs()], np.int64)
            candidates = index.stats()["candidates_per_document"] or 0.0
        finally:
            delete_collection(index.database, name)
        ends = np.sort(ends.reshape(-1, 2), axis=1)
        return ends[:, 0] * len(rows) + ends[:, 1], candidates


def expand(features: FeatureSets, true: TruePairs) -> TruePairs:
    """Expand pairs of heads to pairs of documents, including pairs of twins; documents are rows of the corpus."""
    members = {head: np.array(rows) for head, rows in features.members().items()}
    groups = [members[head] for head in features.heads.tolist()]
    lefts, rights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for left_head, right_head in zip(true.left.tolist(), true.right.tolist(), strict=True):
        lefts.append(np.repeat(groups[left_head], len(groups[right_head])))
        rights.append(np.tile(groups[right_head], len(groups[left_head])))
    # Skip the first array: it is empty, and only makes np.concatenate work if there are no pairs.
    repeats = [len(ends) for ends in lefts[1:]]

    for group in groups:
        left, right = np.triu_indices(len(group), 1)
        lefts.append(group[left])
        rights.append(group[right])

    ends = np.sort(np.stack((np.concatenate(lefts), np.concatenate(rights))), axis=0)
    similarity = np.repeat(true.similarity, repeats)
    return TruePairs(ends[0], ends[1], np.append(similarity, np.ones(ends.shape[1] - len(similarity))))


def _promised(profile: Profile, features: FeatureSets, true: TruePairs) -> Judged:
    """Return the expected recall at the threshold and over the true pairs other than twins."""
    apart = features.head_of[true.left] != features.head_of[true.right]
    # Round the similarities, so that few distinct probabilities have to be computed.
    values, repeats = np.unique(true.similarity[apart].round(4), return_counts=True)
    promised = [profile.match_probability(value) for value in values.tolist()]
    return Judged(
        family=profile.recipe.sketch.family,
        threshold=profile.recipe.match.threshold,
        bands=profile.bands,
        rows=profile.rows,
        documents=len(features.head_of),
        expected=profile.expected_recall,
        expected_over_all=float(np.average(promised, weights=repeats)) if promised else 1.0,
    )


def add_seed(judged: Judged, features: FeatureSets, true: TruePairs, pairs: Ints) -> None:
    """Count the pairs that the index of one seed found; pairs are numbers, left * n + right."""
    codes = true.left * len(features.head_of) + true.right
    twins = features.head_of[true.left] == features.head_of[true.right]
    hit = np.isin(codes, pairs)

    judged.seeds += 1
    judged.found += int((hit & ~twins).sum())
    judged.wanted += int((~twins).sum())
    judged.found_twins += int((hit & twins).sum())
    judged.wanted_twins += int(twins.sum())
    judged.right += int(np.isin(pairs, codes).sum())
    judged.reported += len(pairs)


def main(
    documents: Annotated[Path, Option(metavar="FILE", help="Documents, all of which are compared.")],
    recipe: RecipeFile = RECIPE,
    changes: Changes = [],
    tfidf: Annotated[int | None, Option(help="Give documents tf-idf vectors with N dimensions.")] = None,
    raw: Annotated[bool, Option("--raw", help="Do not scale vectors to length 1.")] = False,
    seeds: Annotated[int, Option(help="Number of seeds; an index is built for each.")] = 1,
    database: Annotated[
        str | None, Option(metavar="URL", help="Default: NEARSIM_DATABASE_URL or embedded.")
    ] = None,
) -> dict[str, object]:
    """Measure recall and precision of an index against brute force."""
    corpus = read_documents(documents)
    if tfidf is not None:
        corpus = with_vectors(corpus, tfidf, normalised=not raw)
    judged = measure(database, corpus, override(load(recipe), changes), seeds)
    shares = {"recall": judged.recall, "interval": judged.interval, "precision": judged.precision}
    return asdict(judged) | shares

"""`dedupe` of a file and an index make the same clusters of the same records."""

import json
import random
from pathlib import Path

import pytest

from nearsim_db import Document, Index
from nearsim_db.analysis.dedupe_files import Outputs, dedupe
from nearsim_db.readers import Source
from nearsim_db.similarity.recipe import Recipe, override
from tests.builders.command_line import write_jsonl
from tests.builders.selection import some_combinations

RULES = ["shingle.k=1", "match.threshold=0.5", "bands.recall=0.9999"]
Clusters = set[frozenset[str]]


def clusters_of_files(documents: list[Document], recipe: Recipe, folder: Path) -> Clusters:
    """The clusters that `dedupe` lists."""
    records = [{"id": one.external_id, "text": one.body, "source": one.source} for one in documents]
    listed = folder / "clusters.jsonl"
    dedupe(
        Source([write_jsonl(folder / "in.jsonl", records)]),
        recipe,
        Outputs(folder / "unique.jsonl", clusters=listed),
    )
    return {frozenset(json.loads(line)["members"]) for line in listed.read_text().splitlines()}


def clusters_of_index(url: str, documents: list[Document], recipe: Recipe) -> Clusters:
    """The clusters of an index that is built with most documents and extended by the others."""
    with Index.connect(url) as index:
        index.create_profile("default", recipe)
        index.add(documents[: len(documents) * 3 // 4])
        index.add(documents[len(documents) * 3 // 4 :])
        return {frozenset(cluster.members) for cluster in index.clusters()}


def alike(seed: int) -> list[Document]:
    """Documents of two sources and few texts, many of them equal, with and without numbers."""
    rng = random.Random(seed)
    texts = ["one two three four five six", "one two three four five seven", "one two three eight nine ten"]
    texts += [f"{texts[0]} {number}" for number in range(2)]
    return [Document(f"{at:02}", body=rng.choice(texts), source=rng.choice("ab")) for at in range(40)]


@pytest.mark.parametrize("seed", range(2))
@some_combinations(
    ("across", ["source", "none"]),
    ("linkage", ["average", "representative", "connected"]),
    ("numbers", ["link", "keep-apart"]),
)
def test_files_and_indexes_are_clustered_alike(
    database_url: str, tmp_path: Path, seed: int, across: str, linkage: str, numbers: str
) -> None:
    settings = [
        *RULES,
        f"match.across={across}",
        f"cluster.linkage={linkage}",
        f"cluster.numbers_differ={numbers}",
    ]
    recipe, documents = override(Recipe(), settings), alike(seed)
    assert clusters_of_files(documents, recipe, tmp_path) == clusters_of_index(
        database_url, documents, recipe
    )


@pytest.mark.parametrize("linkage", ["average", "representative"])
def test_equal_texts_of_one_source_are_no_pair(tmp_path: Path, linkage: str) -> None:
    rules = ["match.threshold=0.7", "match.across=source", f"cluster.linkage={linkage}"]
    recipe = override(Recipe(), [*RULES, *rules])
    documents = [Document(name, body="the same words in all", source=name[0]) for name in ("a1", "a2", "b1")]
    assert clusters_of_files(documents, recipe, tmp_path) == {frozenset({"a1", "b1"})}

"""Every record that dedupe reads is kept, removed as a duplicate of a named one, or rejected."""

import csv
import io
import json
import random
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import networkx
import pyarrow
import pytest

from nearsim_db.deduplication.files import dedupe
from nearsim_db.deduplication.output import Outputs
from nearsim_db.readers import Source
from nearsim_db.similarity.recipe import from_mapping
from tests.builders.selection import some
from tests.builders.word_sets import similarity

Texts = Sequence[str]

WORDS = [f"word{number}" for number in range(200)]
THRESHOLD = 0.7


def draw_texts(rng: random.Random) -> list[str]:
    """Some texts, and copies of them of which a few words differ; one is empty."""
    texts = [" ".join(rng.choices(WORDS, k=30)) for _ in range(12)]
    for _ in range(18):
        words = rng.choice(texts).split()
        words[rng.randrange(len(words))] = rng.choice(WORDS)
        texts.append(" ".join(words))
    rng.shuffle(texts)
    return [*texts, "", texts[0]]


def ids(texts: Texts) -> list[str]:
    """Ids that recur within a file and in every file."""
    return [str(at % 7) for at in range(len(texts))]


def write_jsonl(folder: Path, texts: Texts) -> Path:
    path = folder / "part.jsonl"
    lines = [json.dumps({"id": name, "text": text}) for name, text in zip(ids(texts), texts, strict=True)]
    path.write_text("\n".join([*lines[:5], "{broken", *lines[5:], "[]"]) + "\n")
    return path


def write_csv(folder: Path, texts: Texts) -> Path:
    path, content = folder / "part.csv", io.StringIO()
    writer = csv.writer(content)
    writer.writerows([("id", "text"), *zip(ids(texts), texts, strict=True), ("", "without an id")])
    path.write_text(content.getvalue())
    return path


def write_splits(folder: Path, texts: Texts) -> Path:
    """A dataset of two splits in two files each, as `DatasetDict.save_to_disk` writes it; ids recur in every file."""
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    for place, split in enumerate(("train", "test")):
        (folder / split).mkdir()
        for at, name in enumerate(names):
            quarter = 2 * place + at
            own = texts[len(texts) * quarter // 4 : len(texts) * (quarter + 1) // 4]
            table = pyarrow.table({"id": [*ids(own), None], "text": [*own, "no id"]})
            with pyarrow.ipc.new_stream(folder / split / name, table.schema) as writer:
                writer.write_table(table)
        state = {"_data_files": [{"filename": name} for name in names], "_split": split}
        (folder / split / "state.json").write_text(json.dumps(state))
        (folder / split / "dataset_info.json").write_text("{}")
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    return folder


def write_folder(folder: Path, texts: Texts) -> Path:
    for at, text in enumerate(texts):
        (folder / f"{at:02}").mkdir()
        (folder / f"{at:02}" / "same.txt").write_text(text)
    return folder


def read_texts(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("write", "rejected"), [(write_jsonl, 2), (write_csv, 1), (write_splits, 4), (write_folder, 0)]
)
@pytest.mark.parametrize("seed", some([1, 2, 3, 4], "every seed"))
def test_kept_removed_and_rejected_add_up_to_read(
    tmp_path: Path, write: Callable[[Path, Texts], Path], rejected: int, seed: int
) -> None:
    rng, paths, texts = random.Random(seed), [], list[str]()
    for name in "abc":
        (tmp_path / name).mkdir()
        part = draw_texts(rng)
        texts += part
        paths.append(write(tmp_path / name, part))
    outputs = Outputs(tmp_path / "unique.jsonl", tmp_path / "pairs.jsonl", tmp_path / "clusters.jsonl")
    summary = dedupe(Source(paths), from_mapping({"match": {"threshold": 0.7}}), outputs)
    kept = read_texts(tmp_path / "unique.jsonl")
    assert summary.ingest.rejected == 3 * rejected
    assert summary.ingest.read == len(texts) + 3 * rejected == len(kept) + summary.duplicates + 3 * rejected
    graph = networkx.Graph()
    graph.add_nodes_from(range(len(texts)))
    graph.add_edges_from(
        (one, other)
        for one, other in combinations(range(len(texts)), 2)
        if similarity(texts[one], texts[other]) >= THRESHOLD
    )
    components = list(networkx.connected_components(graph))
    assert len(kept) == len(components)
    assert sorted(kept) == sorted(texts[min(one)] for one in components)
    clusters = [json.loads(line) for line in (tmp_path / "clusters.jsonl").read_text().splitlines()]
    assert sum(len(one["places"]) - 1 for one in clusters) == summary.duplicates
    assert len({(place["file"], place["record"]) for one in clusters for place in one["places"]}) == sum(
        len(one) for one in components if len(one) > 1
    )
    assert all(one["survivor_place"] in one["places"] for one in clusters)
    removed_by_pairs(outputs, summary.duplicates)


def removed_by_pairs(outputs: Outputs, duplicates: int) -> None:
    """Each removed record is tied to the survivor of its cluster by pairs that reach the threshold."""
    assert outputs.pairs is not None and outputs.clusters is not None
    pairs = [json.loads(line) for line in outputs.pairs.read_text().splitlines()]
    assert all(one["intersection"] / one["union"] >= THRESHOLD for one in pairs)
    ties = networkx.Graph((place_of(one["left_place"]), place_of(one["right_place"])) for one in pairs)
    removed = 0
    for line in outputs.clusters.read_text().splitlines():
        cluster = json.loads(line)
        reached = networkx.node_connected_component(ties, place_of(cluster["survivor_place"]))
        assert reached == set(map(place_of, cluster["places"]))
        removed += len(reached) - 1
    assert removed == duplicates


def place_of(place: dict[str, object]) -> tuple[object, ...]:
    return place["file"], place["record"]

"""Two generations compared, against brute force over all pairs of documents in plain Python."""

import random
from collections import Counter

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Limits, Reindex
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store import diffs
from nearsim_db.store.diffs import DiffPair, GenerationTables
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN
from tests.builders.diff_world import Ids, Written, leaves

EVERYTHING = 10_000
STORY = "the ferry to the island was late again and nobody at the harbour knew why"


def brute_clusters(live: Written, new: Written) -> Counter[str]:
    """The changes of clusters, from their sets of documents."""
    before, after = live.members(), new.members()
    found: Counter[str] = Counter(live=len(before), new=len(after))
    for one in after.values():
        met = {live.clusters[doc_id] for doc_id in one if doc_id in live.clusters}
        found["formed"] += not met
        found["merged"] += len(met) > 1
    for cluster, one in before.items():
        met = {new.clusters[doc_id] for doc_id in one if doc_id in new.clusters}
        found["dissolved"] += not met
        found["split"] += len(met) > 1
        if len(met) != 1:
            continue
        (other,) = met
        if {live.clusters[doc_id] for doc_id in after[other] if doc_id in live.clusters} != {cluster}:
            continue
        lost, came = one - after[other], after[other] - one
        found["changed" if lost and came else "shrunk" if lost else "grown" if came else "same"] += 1
        found["survivor_changed"] += live.survivors[cluster] != new.survivors[other]
    return found


def check_samples(
    chosen: list[DiffPair], expected: set[Ids], before: dict[Ids, float], after: dict[Ids, float]
) -> None:
    """Samples are differences, have the similarities, and their weights sum to all differences."""
    assert sum(one.pairs for one in chosen) == len(expected)
    for one in chosen:
        pair = one.left_id, one.right_id
        assert pair in expected
        for tie, known in ((one.live, before), (one.new, after)):
            assert (None if tie is None else tie.similarity) == known.get(pair)


@pytest.mark.parametrize(
    ("most_classes", "numbers"),
    [(0, (901, 902)), (6, (FIRST_OWN + 901, FIRST_OWN + 902)), (100, (901, FIRST_OWN + 902))],
    ids=["shared tables", "own tables", "either"],
)
def test_random_generations(
    database_url: str, most_classes: int, numbers: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffs, "_MOST_CLASSES", most_classes)
    engine = open_engine(database_url)
    totals: Counter[str] = Counter()
    for seed in range(8):
        rng = random.Random(f"{seed} {most_classes}")
        documents = rng.choice([5, 12, 30])
        live, new = (Written.random(rng, documents) for _ in range(2))
        before, after = live.expanded(), new.expanded()
        with diffs.comparing(engine) as connection:
            both = GenerationTables(*map(leaves, numbers))
            live.write(connection, both.live)
            new.write(connection, both.new)
            counted = diffs.count_documents(connection, both.live)
            assert (counted.documents, counted.with_features) == (
                len(live.heads) + len(live.featureless),
                len(live.heads),
            )
            assert counted.heads == len(live.families())
            common = before.keys() & after.keys()
            rescored = {pair for pair in common if before[pair] != after[pair]}
            found = diffs.count_pairs(connection, both)
            lost, gained = before.keys() - after.keys(), after.keys() - before.keys()
            assert (found.live, found.new, found.common) == (len(before), len(after), len(common))
            assert (found.gained, found.lost, found.rescored) == (len(gained), len(lost), len(rescored))
            assert found.lost_share == (len(lost) / len(before) if before else None)
            check_samples(diffs.sample_absent(connection, both, "live", EVERYTHING), lost, before, {})
            check_samples(diffs.sample_absent(connection, both, "new", EVERYTHING), gained, {}, after)
            check_samples(diffs.sample_rescored(connection, both, EVERYTHING), rescored, before, after)
            clusters, expected = diffs.count_clusters(connection, both), brute_clusters(live, new)
            counts = [name for name in diffs.ClusterCounts.__slots__ if not name.endswith("_share")]
            assert {name: getattr(clusters, name) for name in counts} == {
                name: expected[name] for name in counts
            }
            assert clusters.split_share == (clusters.split / clusters.live if clusters.live else None)
            merged = diffs.sample_clusters(connection, both, "new", EVERYTHING)
            assert len(merged) == expected["merged"]
            for one in merged:
                those = new.members()[one.cluster]
                shared = Counter(live.clusters[doc_id] for doc_id in those if doc_id in live.clusters)
                assert (one.documents, one.all_parts) == (len(those), len(shared))
                assert one.survivor.doc_id == new.survivors[one.cluster]
                listed = {part.cluster: part.shared for part in one.parts}
                assert sorted(listed.values()) == sorted(shared.values())[-5:]
                assert listed.items() <= shared.items()
                assert all(part.documents == len(live.members()[part.cluster]) for part in one.parts)
            assert len(diffs.sample_clusters(connection, both, "live", EVERYTHING)) == expected["split"]
        totals += Counter(lost=len(lost), gained=len(gained), rescored=len(rescored)) + expected
    assert all(totals[name] for name in ("lost", "gained", "rescored", "merged", "split", "same"))
    engine.dispose()


def test_reasons_for_lost_and_gained_pairs(database_url: str) -> None:
    edited = STORY.replace("harbour", "station")
    texts = {"one": STORY, "two": edited, "twin": STORY, "number": "1 2 3", "numbers": "1 2 3"}
    with Index.connect(database_url) as index:
        index.create_profile(
            "default",
            override(Recipe(), ["shingle.k=1", "match.threshold=0.8", "bands.count=128", "bands.rows=1"]),
        )
        index.add([Document(name, body=body) for name, body in texts.items()])
        Reindex(index.database, "default").start(
            settings=["match.threshold=0.9", "shingle.min_token_length=2"]
        )
        found = Reindex(index.database, "default").diff()
        # Each has 13 distinct words, and they share 12 of 14.
        assert found.recipe == {"shingle.min_token_length": (1, 2), "match.threshold": (0.8, 0.9)}
        whys = {(one.left.id, one.right.id): one.why for one in found.samples.lost}
        assert whys["one", "two"] == "now: similarity 0.8571 is below the threshold of 0.9"
        assert whys["number", "numbers"] == "before: identical features; now: 'number' has no features"
        assert (found.pairs.live, found.pairs.lost, found.pairs.common) == (4, 3, 1)
        back = Reindex(index.database, "default")
        back.promote()
        gained = back.diff(1, limits=Limits.parse(gained=2)).samples.gained
        whys = {(one.left.id, one.right.id): one.why for one in gained}
        assert whys["one", "two"] == "before: similarity 0.8571 is below the threshold of 0.9"
        assert whys["number", "numbers"].endswith("has no features; now: identical features")

"""Two generations written by hand, compared against brute force over all pairs of documents in plain Python."""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, product
from uuid import UUID

import pytest
from psycopg import sql

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Limits, Reindex
from nearsim_db.records import GenerationId
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.engine import open_engine
from nearsim_db.store.driver.statements import FIRST_OWN, Leaves
from nearsim_db.store.generations import diffs
from nearsim_db.store.generations.diffs import ComparedTables, DiffPair
from nearsim_db.store.generations.tables import GenerationTables

Ids = tuple[int, int]


@dataclass(frozen=True)
class Written:
    """One generation: the head of each document that has features, pairs of heads, members of clusters."""

    heads: dict[int, int]
    featureless: set[int]
    pairs: dict[Ids, float]
    clusters: dict[int, int]
    survivors: dict[int, int]

    @classmethod
    def random(cls, rng: random.Random, documents: int) -> "Written":
        """Few or many families; some documents have no features, some are missing.

        Some clusters have no survivor.
        """
        families = rng.choice([2, 4, documents, documents * 3])
        there = [one for one in range(1, documents + 1) if rng.random() < 0.9]
        featureless = {one for one in there if rng.random() < 0.1}
        family = {one: rng.randrange(families) for one in there if one not in featureless}
        first: dict[int, int] = {}
        heads = {one: first.setdefault(own, one) for one, own in family.items()}
        likely = rng.choice([0.05, 0.3, 1.0])
        tied = {
            pair: rng.choice([0.5, 0.7, 1.0])
            for pair in combinations(sorted(set(heads.values())), 2)
            if rng.random() < likely
        }
        kinds = rng.choice([3, documents])
        kind = {one: rng.randrange(kinds) for one in heads if rng.random() < 0.8}
        label: dict[int, int] = {}
        clusters = {one: label.setdefault(own, one) for one, own in kind.items()}
        survivors = {
            cluster: rng.choice([d for d, c in clusters.items() if c == cluster])
            for cluster in set(clusters.values())
            if rng.random() < 0.8
        }
        return cls(heads, featureless, tied, clusters, survivors)

    def write(self, connection: Connection, leaves: Leaves) -> None:
        """Fill its tables, which are created if they are its own."""
        GenerationTables(connection, leaves).create()
        inner = connection.backend.cursor()

        def insert(table: str, columns: str, rows: list[tuple[object, ...]]) -> None:
            names = ["generation_id", *columns.split(", ")]
            command = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                leaves.table(table),
                sql.SQL(", ").join(map(sql.Identifier, names)),
                sql.SQL(", ").join([sql.Placeholder()] * len(names)),
            )
            inner.executemany(command, [(leaves.generation_id, *row) for row in rows])

        insert(
            "signature",
            "doc_id, revision, feature_count, numbers_digest, feature_digest, sketch, head_id",
            [(one, 1, 5, 0, UUID(int=head), b"", head) for one, head in self.heads.items()]
            + [(one, 1, 0, 0, None, None, None) for one in self.featureless],
        )
        GenerationTables(connection, leaves).signatures.index()
        insert(
            "similar_pair",
            "left_id, right_id, shared_bands, estimate, similarity, verified_at",
            [(*pair, 3, similarity, similarity, "now") for pair, similarity in self.pairs.items()],
        )
        insert(
            "cluster_member",
            "doc_id, cluster_id, is_survivor",
            [(one, cluster, self.survivors.get(cluster) == one) for one, cluster in self.clusters.items()],
        )

    def expanded(self) -> dict[Ids, float]:
        """All pairs of documents with their similarity."""
        families = self.families()
        found = {pair: 1.0 for family in families.values() for pair in combinations(family, 2)}
        for (left, right), similarity in self.pairs.items():
            for one, other in product(families[left], families[right]):
                found[min(one, other), max(one, other)] = similarity
        return found

    def families(self) -> dict[int, list[int]]:
        """Documents by their head."""
        families: dict[int, list[int]] = defaultdict(list)
        for one, head in self.heads.items():
            families[head].append(one)
        return families

    def members(self) -> dict[int, frozenset[int]]:
        """Clusters with their documents."""
        members: dict[int, set[int]] = defaultdict(set)
        for one, cluster in self.clusters.items():
            members[cluster].add(one)
        return {cluster: frozenset(those) for cluster, those in members.items()}


def leaves(number: int) -> Leaves:
    """The tables of a generation that has no row in nearsim.generation."""
    return Leaves(GenerationId(number))


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
        found["survivor_changed"] += live.survivors.get(cluster) != new.survivors.get(other)
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


@pytest.mark.slow("several builds")
@pytest.mark.parametrize(
    ("most_classes", "numbers"),
    [(0, (901, 902)), (6, (FIRST_OWN + 901, FIRST_OWN + 902)), (100, (901, FIRST_OWN + 902))],
    ids=["shared tables", "own tables", "either"],
)
def test_random_generations(
    database_url: str, most_classes: int, numbers: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diffs, "_MAX_CLASS_PAIRS", most_classes)
    engine = open_engine(database_url)
    totals: Counter[str] = Counter()
    for seed in range(8):
        rng = random.Random(f"{seed} {most_classes}")
        documents = rng.choice([5, 12, 30])
        live, new = (Written.random(rng, documents) for _ in range(2))
        before, after = live.expanded(), new.expanded()
        with diffs.comparing(engine) as connection:
            both = ComparedTables(*(GenerationTables(connection, leaves(number)) for number in numbers))
            live.write(connection, both.live.leaves)
            new.write(connection, both.new.leaves)
            counted = both.live.diff.count_documents()
            assert (counted.documents, counted.with_features) == (
                len(live.heads) + len(live.featureless),
                len(live.heads),
            )
            assert counted.heads == len(live.families())
            common = before.keys() & after.keys()
            rescored = {pair for pair in common if before[pair] != after[pair]}
            found = both.count_pairs()
            lost, gained = before.keys() - after.keys(), after.keys() - before.keys()
            assert (found.live, found.new, found.common) == (len(before), len(after), len(common))
            assert (found.gained, found.lost, found.rescored) == (len(gained), len(lost), len(rescored))
            assert found.lost_share == (len(lost) / len(before) if before else None)
            check_samples(both.sample_absent("live", EVERYTHING), lost, before, {})
            check_samples(both.sample_absent("new", EVERYTHING), gained, {}, after)
            check_samples(both.sample_rescored(EVERYTHING), rescored, before, after)
            clusters, expected = both.count_clusters(), brute_clusters(live, new)
            counts = [name for name in diffs.ClusterCounts.__slots__ if not name.endswith("_share")]
            assert {name: getattr(clusters, name) for name in counts} == {
                name: expected[name] for name in counts
            }
            assert clusters.split_share == (clusters.split / clusters.live if clusters.live else None)
            merged = both.sample_clusters("new", EVERYTHING)
            assert len(merged) == expected["merged"]
            for one in merged:
                those = new.members()[one.cluster]
                shared = Counter(live.clusters[doc_id] for doc_id in those if doc_id in live.clusters)
                assert (one.documents, one.all_parts) == (len(those), len(shared))
                assert one.survivor.doc_id == new.survivors.get(one.cluster)
                listed = {part.cluster: part.shared for part in one.parts}
                assert sorted(listed.values()) == sorted(shared.values())[-5:]
                assert listed.items() <= shared.items()
                assert all(part.documents == len(live.members()[part.cluster]) for part in one.parts)
            assert len(both.sample_clusters("live", EVERYTHING)) == expected["split"]
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

"""Pairs from match.review to the threshold: stored with their exact similarity, outside of everything that counts."""

import json
import random
from fractions import Fraction
from pathlib import Path

import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.verify_index import verify_index
from nearsim_db.errors import RecipeError
from nearsim_db.records import Pair
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, from_mapping, override, to_mapping
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.statements import run
from tests.builders.command_line import CommandLine, write_jsonl
from tests.builders.near_copies import edited, recipe, text

PAIRS = """
SELECT left_external_id, right_external_id, similarity FROM nearsim.pairs WHERE profile = 'reviewed'
"""
REVIEW_PAIRS = """
SELECT left_external_id, right_external_id, similarity FROM nearsim.review_pairs WHERE profile = 'reviewed'
"""
REVIEWED = recipe(review=0.4)


def shingles(body: str) -> frozenset[tuple[str, ...]]:
    words = body.split()
    return frozenset(zip(words, words[1:], words[2:], strict=False))


def expected(texts: dict[str, str], low: float, high: float) -> dict[tuple[str, str], float]:
    """The pairs by brute force with a similarity from `low` to below `high`."""
    ids = list(texts)
    found = {}
    for at, one in enumerate(ids):
        for other in ids[at + 1 :]:
            left, right = shingles(texts[one]), shingles(texts[other])
            alike = Fraction(len(left & right), len(left | right))
            if Fraction(str(low)) <= alike < Fraction(str(high)):
                found[one, other] = float(alike)
    return found


def as_found(pairs: list[Pair]) -> dict[tuple[str, str], float]:
    return {(one.left, one.right): one.similarity for one in pairs}


def make_texts(seed: int) -> dict[str, str]:
    """Families of copies with one to eight edits, and some copies twice."""
    rng = random.Random(seed)
    texts: dict[str, str] = {}
    for family in range(12):
        original = text(rng)
        texts[f"{family:02}"] = original
        for copy in range(4):
            texts[f"{family:02}-{copy}"] = edited(rng, original, rng.randint(1, 8))
        texts[f"{family:02}-twin"] = texts[f"{family:02}-{rng.randrange(4)}"]
    return texts


@pytest.mark.slow("several builds")
def test_pairs_below_the_threshold_are_stored_apart(database_url: str, connection: Connection) -> None:
    texts = make_texts(1)
    documents = [Document(one, body=body) for one, body in texts.items()]
    with (
        Index.connect(database_url, profile="reviewed") as reviewed,
        Index.connect(database_url, profile="plain") as plain,
    ):
        reviewed.create_profile("reviewed", REVIEWED)
        plain.create_profile("plain", recipe(review=0.0))
        reviewed.add(documents[:40])  # built, then extended by the queue
        reviewed.add(documents[40:])
        in_review = as_found(list(reviewed.pairs(review=True)))
        assert in_review == pytest.approx(expected(texts, 0.4, 0.7)) and len(in_review) > 50
        assert list(plain.pairs(review=True)) == []
        counted = as_found(list(reviewed.pairs()))
        assert counted == as_found(list(plain.pairs())) == pytest.approx(expected(texts, 0.7, 1.1))
        assert {one.members for one in reviewed.clusters()} == {one.members for one in plain.clusters()}
        assert reviewed.stats()["pairs"] == plain.stats()["pairs"] == len(counted)
        assert (reviewed.stats()["review_pairs"], plain.stats()["review_pairs"]) == (len(in_review), 0)
        kinds = [(one.kind, one.left, one.right) for one in reviewed.events() if one.kind == "pair_found"]
        assert kinds == [
            (one.kind, one.left, one.right) for one in plain.events() if one.kind == "pair_found"
        ]
    for query, found in ((PAIRS, counted), (REVIEW_PAIRS, in_review)):
        assert {(left, right): alike for left, right, alike in run(connection, query).rows()} == found


@pytest.mark.slow("several builds")
def test_edits_and_deletions_keep_pairs_in_review_true(database_url: str) -> None:
    rng = random.Random(2)
    texts = make_texts(2)
    with Index.connect(database_url) as index:
        index.create_profile("default", REVIEWED)
        index.add([Document(one, body=body) for one, body in texts.items()])
        for _ in range(3):
            changed = rng.sample(list(texts), 6)
            gone, others = changed[:2], changed[2:]
            index.delete(gone)
            for one in gone:
                del texts[one]
            for one in others:
                texts[one] = edited(rng, texts[one], 4)
            index.add([Document(one, body=texts[one]) for one in others])
            both = {one: texts[one] for one in sorted(texts)}
            for review, low, high in ((True, 0.4, 0.7), (False, 0.7, 1.1)):
                found = {
                    tuple(sorted(ends)): alike
                    for ends, alike in as_found(list(index.pairs(review=review))).items()
                }
                assert found == pytest.approx(expected(both, low, high))
        assert verify_index(index.database, index.collection, sample=None).found.faults == ()


def test_files(tmp_path: Path) -> None:
    texts = make_texts(3)
    source = write_jsonl(tmp_path / "in.jsonl", ({"id": one, "text": body} for one, body in texts.items()))
    review = tmp_path / "review.jsonl"
    written, counted = {}, {}
    for name, options in (("plain", ()), ("reviewed", ("--set", "match.review=0.4", "--review", review))):
        output, pairs = tmp_path / f"{name}.jsonl", tmp_path / f"{name}-pairs.jsonl"
        bands = ("--set", "bands.count=64", "--set", "bands.rows=2")
        given = (source, "-o", output, "--pairs", pairs, *bands, *options, "--json")
        summary = json.loads(CommandLine({}).succeed("dedupe", *given).out)
        counted[name] = summary["pairs"], summary["review_pairs"]
        written[name] = output.read_bytes(), pairs.read_bytes()
    assert written["plain"] == written["reviewed"]
    lines = [json.loads(line) for line in review.read_text().splitlines()]
    assert {(one["left"], one["right"]): one["similarity"] for one in lines} == pytest.approx(
        expected(texts, 0.4, 0.7)
    )
    of_pairs = len(written["plain"][1].splitlines())
    assert counted == {"plain": (of_pairs, 0), "reviewed": (of_pairs, len(lines))}


def test_bands_are_chosen_for_the_threshold_or_for_the_pairs_in_review() -> None:
    default, none = resolve(Recipe()), resolve(from_mapping({"match": {"review": 0.0}}))
    assert default.banding == none.banding
    assert default.match_probability(0.5) == pytest.approx(1 - (1 - 0.5**4) ** 20)
    assert resolve(from_mapping({"bands": {"recall_at": "review"}})).match_probability(0.5) >= 0.995


@pytest.mark.parametrize(
    ("settings", "review"),
    [
        ([], 0.5),
        (["match.threshold=0.5"], 0.0),
        (["match.verify=estimate"], 0.0),
        (["sketch.family=winnow"], 0.0),
        (["sketch.family=hyperplane", "sketch.k=1024"], 0.0),
        (["match.review=0.0", "match.threshold=0.8"], 0.0),
    ],
)
def test_the_default_is_for_exact_jaccard_similarities(settings: list[str], review: float) -> None:
    chosen = override(Recipe(), settings)
    assert chosen.match.review == review
    assert from_mapping(to_mapping(chosen)) == chosen
    if settings[:1] != ["match.review=0.0"]:
        undone = override(
            chosen, ["match.threshold=0.7", "match.verify=exact", "sketch.family=fast_similarity"]
        )
        assert undone.match.review == 0.5


@pytest.mark.parametrize(
    "mapping",
    [
        {"match": {"review": 0.7}},
        {"match": {"review": 0.0}, "bands": {"recall_at": "review"}},
        {"bands": {"recall_at": "review", "count": 20, "rows": 4}},
        {"match": {"review": 0.5, "verify": "bands"}},
        {"match": {"review": 0.5, "threshold": 2.0}, "sketch": {"family": "projection"}},
    ],
)
def test_impossible_reviews_are_refused(mapping: dict[str, dict[str, object]]) -> None:
    with pytest.raises(RecipeError, match=r"match\.review"):
        from_mapping(mapping)

"""Candidate rates of pairs of known similarity, through the whole store, against the algebra."""

import math
from itertools import pairwise

import pytest

from nearsim_db import Document, Index
from nearsim_db.similarity.amplification import Amplification
from nearsim_db.similarity.encoder import Encoder
from nearsim_db.similarity.recipe import Recipe, override

CONSTRUCTIONS = {
    "and-or": "or(20, and(5))",
    "or-and": "and(4, or(4))",
    "m-of-b": "at_least(3, 24, and(3))",
    "cascade": "or(3, and(4, or(4, and(2))))",
}
PAIRS = 300
LATE = 200
SIMILARITIES = {"alike": (30, 10), "apart": (20, 20)}  # common words, and words of either alone
RULES = [
    "sketch.family=minhash",
    "sketch.k=128",
    "shingle.scheme=bag",
    "match.threshold=0.05",
    "match.bucket_limit=0",
]


def write_pairs() -> list[Document]:
    """Pairs of texts, each of words of its own, so that only the two of a pair have any in common."""
    documents = []
    for kind, (common, alone) in SIMILARITIES.items():
        for number in range(PAIRS):
            shared = [f"{kind}{number}c{word}" for word in range(common)]
            for side in "ab":
                own = [f"{kind}{number}{side}{word}" for word in range(alone)]
                documents.append(Document(f"{kind} {number} {side}", body=" ".join(shared + own)))
    return documents


def agrees(construction: Amplification, matched: list[bool]) -> bool:
    """A construction evaluated by its definition, on the bands that are shared."""
    if construction.inner is None:
        votes = matched if construction.kind != "and" else [matched[0]] * construction.count
    else:
        size = construction.inner.bands
        parts = [matched[at * size : (at + 1) * size] for at in range(construction.count)]
        votes = [agrees(construction.inner, part) for part in parts]
    wanted = {"and": construction.count, "or": 1, "at_least": construction.least}[construction.kind]
    return sum(votes) >= wanted


@pytest.mark.slow("statistics of every construction")
def test_candidate_rates_agree_with_the_algebra(database_url: str) -> None:
    documents = write_pairs()
    with Index.connect(database_url) as index:
        for seed, (name, written) in enumerate(CONSTRUCTIONS.items(), 1):
            profile = index.create_profile(
                name, override(Recipe(), [*RULES, f"sketch.seed={seed}", f"match.amplification={written}"])
            )
            assert str(profile.amplification) == written
        # The first are indexed at once, the others one by one as they would come later.
        index.add(documents[:-LATE])
        index.add(documents[-LATE:])
        with index.database.engine.connect() as connection:
            rows = connection.execute(
                "SELECT profile, left_external_id, right_external_id FROM nearsim.pairs"
            ).fetchall()
        for generation, profile in index.profiles():
            found = {(left, right) for name, left, right in rows if name == generation.profile}
            check_against_definition(Encoder(profile), documents, found)
            check_rates(profile.amplification, found)
            check_lookups(database_url, generation.profile, documents, found)


def check_against_definition(
    encoder: Encoder, documents: list[Document], found: set[tuple[str, str]]
) -> None:
    """The pairs are those whose bucket hashes meet the construction; all of them reach the threshold."""
    keys = encoder.matrix_keys(encoder.encode([one.body for one in documents]).sketches)
    expected = {
        (left.external_id, right.external_id)
        for (left, mine), (right, other) in list(pairwise(zip(documents, keys, strict=True)))[::2]
        if agrees(encoder.profile.amplification, (mine == other).tolist())
    }
    assert found == expected


def check_rates(construction: Amplification, found: set[tuple[str, str]]) -> None:
    """The share of each similarity equals the algebra's within 4.5 standard deviations."""
    for kind, (common, alone) in SIMILARITIES.items():
        expected = construction.probability(common / (common + 2 * alone))
        rate = sum(left.startswith(kind) for left, _ in found) / PAIRS
        assert abs(rate - expected) < 4.5 * math.sqrt(expected * (1 - expected) / PAIRS) + 1e-9, (
            construction,
            kind,
        )


def check_lookups(url: str, profile: str, documents: list[Document], found: set[tuple[str, str]]) -> None:
    """A lookup of a document returns its pair, if it has one."""
    asked = [one for one in documents if one.external_id.endswith("b")][::30]
    with Index.connect(url, profile=profile) as index:
        answers = [index.check(one) for one in asked]
    assert {
        (match.external_id, one.external_id)
        for one, matches in zip(asked, answers, strict=True)
        for match in matches
    } == {pair for pair in found if pair[1] in {one.external_id for one in asked}}

"""Bands and tables of a build: candidate rates against the algebra, and bands that an earlier rule chose."""

import math
from itertools import pairwise

import psycopg
import pytest

from nearsim_db import Document, Index
from nearsim_db.admin.reindex import Reindex
from nearsim_db.search.answers import list_newest, profile_of
from nearsim_db.similarity import lsh
from nearsim_db.similarity.amplification import Amplification, banding
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
        for generation in list_newest(index.database, index.collection):
            profile = profile_of(generation)
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


TEXT = "the council voted on monday to close the old bath house at the end of the month"
EDITED = f"{TEXT} and to sell it"


def choose_all_bands(
    k: int, base: float, recall: float, minimum: int, *, threshold: float, positional: bool
) -> Amplification:
    """The rule of earlier versions: as many bands as the sketch has values for."""
    assert (k, base, recall, minimum, threshold, positional) == (128, 0.7, 0.99, 1, 0.7, True)
    return banding(32, 4)


@pytest.fixture
def database_of_earlier_version(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An index of 32 bands, made when a recall of 0.99 was the default."""
    with monkeypatch.context() as earlier:
        earlier.setattr(lsh, "choose_bands", choose_all_bands)
        with Index.connect(database_url) as index:
            index.create_profile("default", override(Recipe(), ["bands.recall=0.99"]))
            index.add([Document("first", body=TEXT), Document("other", body="a page about another thing")])
    return database_url


def band_rows(database_url: str) -> list[tuple[str, int]]:
    """The number of band rows of each document of the live generation."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            "SELECT external_id, count(*) FROM nearsim.band JOIN nearsim.generation USING (generation_id)"
            " JOIN nearsim.document USING (doc_id) WHERE state = 'live' GROUP BY 1 ORDER BY 1"
        ).fetchall()


def test_generation_of_an_earlier_version_is_written_and_queried(database_of_earlier_version: str) -> None:
    with Index.connect(database_of_earlier_version) as index:
        index.add([Document("second", body=EDITED), Document("other", body="a page that is written anew")])
        (pair,) = index.pairs()
        assert {pair.left, pair.right} == {"first", "second"}
        assert [one.external_id for one in index.similar("first")] == ["second"]
        assert [one.external_id for one in index.similar_to_text(TEXT)] == ["first", "second"]
        (profile,) = index.profiles()
        assert (profile.bands, profile.rows) == (32, 4)
        stats = index.stats()
        assert (stats["bands"], stats["unused_rows"], stats["expected_recall"]) == (32, 0, 0.999847)
    assert band_rows(database_of_earlier_version) == [("first", 32), ("other", 32), ("second", 32)]


def test_reindexing_chooses_bands_anew(database_of_earlier_version: str) -> None:
    with Index.connect(database_of_earlier_version) as index:
        reindex = Reindex(index.database, "default")
        made = reindex.start()
        assert (made.bands, made.rows, made.recipe["bands"]["recall"]) == (17, 4, 0.99)
        reindex.promote()
    assert band_rows(database_of_earlier_version) == [("first", 17), ("other", 17)]


TABLES = """
SELECT relname, relpersistence::text, EXISTS (SELECT FROM pg_inherits WHERE inhrelid = pg_class.oid)
FROM pg_class WHERE relnamespace = 'nearsim_index'::regnamespace AND relkind = 'r' AND relname ~ '_([0-9]+|shared)$'
"""
KNOWN = "SELECT reltuples FROM pg_class WHERE oid = 'nearsim.signature'::regclass"


def test_a_permanent_index_is_logged(database_url: str) -> None:
    with Index.connect(database_url) as index, psycopg.connect(database_url) as watching:
        index.add([Document("a", body="one two three")])
        assert {row[1:] for row in watching.execute(TABLES)} == {("p", True)}


@pytest.mark.usefixtures("own_tables")
def test_a_small_build_does_not_analyze_all_collections(database_url: str) -> None:
    """Statistics over all collections are updated once these have doubled."""
    known = []
    with Index.connect(database_url) as index, psycopg.connect(database_url, autocommit=True) as watching:
        for name, count in (("large", 10), ("small", 9), ("medium", 5)):
            one = Index(index.database, name)
            one.add(Document(str(number), body=f"text {number} of {name}") for number in range(count))
            known.append(watching.execute(KNOWN).fetchone())
    assert known == [(10,), (10,), (24,)]

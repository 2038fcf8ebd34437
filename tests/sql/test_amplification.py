"""Amplifications, the S-curve and the estimate in SQL agree with the package."""

import math
from itertools import combinations

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from nearsim_db import Index
from nearsim_db.errors import RecipeError
from nearsim_db.similarity import lsh
from nearsim_db.similarity.amplification import parse
from nearsim_db.similarity.profile import resolve
from nearsim_db.similarity.recipe import Recipe, override, to_mapping
from nearsim_db.store.driver import Connection
from tests.builders.sql_world import RULES, World, write_documents

TEXTS = [
    "or(40, and(3))",
    "at_least(3, 40, and(3))",
    "and(4, or(4))",
    "and(5)",
    "or(9)",
    "at_least(2, 9)",
    "at_least(3, 3)",
    "or(1, and(1))",
    "or(4, and(4, or(4, and(4))))",
    "or(3, at_least(2, 3, and(2, or(2, and(2)))))",
    "at_least(2, 4, at_least(3, 5))",
]
WRONG = [
    "", "or", "or(4", "or(4))", "or(4, and)", "or(4, and(3)", "xor(4)", "or(4.5)", "or(4) and(3)", "and(4 or(4))",
    "at_least(3)", "or(3, 4)", "or(0)", "at_least(5, 4)", "at_least(0, 4)", "or(70000)", "or(12345678901)",
    "or(4, and(3), and(2))", "or(2)(or(2))", "OR(4)",
]  # fmt: skip


def test_evaluation_agrees_with_the_package(connection: Connection) -> None:
    recipes = [["sketch.k=256", f"match.amplification={text}"] for text in TEXTS]
    recipes += [["bands.count=6", "bands.rows=2", f"match.min_shared_bands={minimum}"] for minimum in (1, 3)]
    for number, rules in enumerate(recipes):
        profile = resolve(override(Recipe(), rules))
        rng = np.random.default_rng(number)
        matched = rng.random((40, profile.bands)) < rng.choice([0.1, 0.3, 0.6, 0.9], (40, 1))
        matched[0], matched[1] = False, True
        expected = profile.amplification.evaluate(matched).tolist()
        assert set(expected) == {True, False}
        assert met_in_sql(connection, to_mapping(profile.recipe), matched) == expected, rules
        row = connection.execute(
            "SELECT nearsim.amplification_of(%s, %s, %s)",
            [Jsonb(to_mapping(profile.recipe)), profile.bands, profile.rows],
        )
        assert row.fetchone() == (str(profile.amplification),)


def met_in_sql(connection: Connection, recipe: dict[str, object], matched: NDArray[np.bool_]) -> list[bool]:
    """Whether each row of matched bands satisfies the recipe."""
    cursor = connection.execute(
        "SELECT nearsim.is_candidate(%s, CAST(bands AS smallint[])) FROM unnest(CAST(%s AS text[])) AS bands",
        [Jsonb(recipe), [f"{{{','.join(map(str, np.flatnonzero(row).tolist()))}}}" for row in matched]],
    )
    return [bool(one[0]) for one in cursor.fetchall()]


def test_probability_equals_the_package(connection: Connection) -> None:
    rows = connection.execute(
        "SELECT text, s, nearsim.match_probability(s, text) "
        "FROM unnest(CAST(%s AS text[])) AS text, unnest(CAST(%s AS float8[])) AS s",
        [TEXTS, [0.0, 1e-9, 0.001, 0.2, 0.5, 0.8, 0.999, 1.0]],
    )
    for text, similarity, found in rows.fetchall():
        expected = parse(str(text)).probability(float(str(similarity)))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-140), (text, similarity)


def test_invalid_amplifications_are_refused_as_in_the_package(connection: Connection) -> None:
    for text in WRONG:
        with pytest.raises(RecipeError):
            parse(text)
        refused = pytest.raises(psycopg.errors.InvalidParameterValue, match="amplification")
        with refused, connection.backend.transaction():
            connection.execute("SELECT nearsim.match_probability(0.5, %s)", [text])


OR_AND = "and(2, or(20, and(3)))"


def test_views_and_functions_use_the_profiles_amplification(database_url: str) -> None:
    rules = [rule for rule in RULES if not rule.startswith(("match.min", "bands."))]
    with Index.connect(database_url) as index:
        known = World.build(index, [*rules, f"match.amplification={OR_AND}"], write_documents(1))
        check_pairs(known)
        check_reasons(known)
        check_similar(known)
        shown = known.row("SELECT expected_recall, amplification, bands FROM nearsim.profiles")
        assert shown == {
            "expected_recall": known.profile.expected_recall,
            "amplification": OR_AND,
            "bands": 40,
        }


def check_pairs(known: World) -> None:
    """The index has the pairs that brute force has."""
    stored = set(known.ask("SELECT left_id, right_id FROM nearsim.pairs"))
    expected = {pair for pair in combinations(known.doc_ids, 2) if known.is_pair(*pair)}
    few = [pair for pair in combinations(known.doc_ids, 2) if known.shared(*pair) and not known.meets(*pair)]
    assert stored == expected and few


def check_reasons(known: World) -> None:
    """why_not reports shared bands that do not satisfy the amplification."""
    reported = set()
    for left, right in list(combinations(known.doc_ids, 2))[::19]:
        if not (known.features[left] and known.features[right]):
            continue
        found = known.row(
            "SELECT * FROM nearsim.why_not_by_doc_id(CAST(%s AS bigint), CAST(%s AS bigint))", left, right
        )
        chance = known.profile.match_probability(known.estimate(left, right))
        assert found["probability"] == pytest.approx(chance, rel=1e-9, abs=1e-12)
        short = known.shared(left, right) > 0 and not known.meets(left, right)
        said = f"they share {known.shared(left, right)} buckets, and not those that {OR_AND} requires"
        assert (said in found["reason"]) == short, found["reason"]
        reported.add(short)
    assert reported == {True, False}


def check_similar(known: World) -> None:
    """With a lower threshold similar_to adds compared pairs; with a minimum of bands, all that share it."""
    command = "SELECT doc_id FROM nearsim.similar_to_by_doc_id(CAST(%s AS bigint), %s, %s)"
    added = 0
    for asked in known.doc_ids[::9]:
        others = [one for one in known.doc_ids if one != asked]
        pairs = {one for one in others if known.is_pair(asked, one)}
        near = {one for one in others if known.shared(asked, one) and known.estimate(asked, one) >= 0.1}
        met = {one for one in near if known.meets(asked, one)}
        for least, fewest, expected in (
            (None, None, pairs),
            (0.1, None, pairs | met),
            (0.1, 1, pairs | near),
        ):
            assert {doc_id for (doc_id,) in known.ask(command, asked, least, fewest)} == expected
        added += len(near - met)
    assert added


BANDINGS = [(1, 1), (4, 4), (20, 5), (25, 2), (32, 4), (40, 3), (256, 16), (128, 1)]
SIMILARITIES = [0.0, 1e-9, 0.001, 0.05, 0.2, 0.35, 0.5, 0.7, 0.8, 0.95, 0.999, 1 - 1e-12, 1.0]


def test_match_probability_equals_the_package(connection: Connection) -> None:
    asked = [
        (similarity, bands, rows, minimum)
        for similarity in SIMILARITIES
        for bands, rows in BANDINGS
        for minimum in {1, 2, 3, bands // 2 + 1, bands, bands + 1}
    ]
    rows = connection.execute(
        "SELECT nearsim.match_probability(s, b, r, m) "
        "FROM unnest(%s::float8[], %s::int[], %s::int[], %s::int[]) WITH ORDINALITY AS q (s, b, r, m, place) "
        "ORDER BY place",
        [list(column) for column in zip(*asked, strict=True)],
    )
    for (similarity, bands, band_rows, minimum), (found,) in zip(asked, rows, strict=True):
        expected = lsh.match_probability(similarity, bands, band_rows, minimum)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-140), (similarity, bands, band_rows, minimum)


def test_curves_equal_the_package(connection: Connection) -> None:
    for command, text in (
        ("SELECT * FROM nearsim.curve(4, 4)", "or(4, and(4))"),
        ("SELECT * FROM nearsim.curve(20, 5, min_shared_bands => 3)", "at_least(3, 20, and(5))"),
        ("SELECT * FROM nearsim.curve(' and( 4,or(4) ) ')", "and(4, or(4))"),
    ):
        rows, probability = connection.execute(command.encode()).fetchall(), parse(text).probability
        assert rows == [(at / 20, pytest.approx(probability(at / 20), rel=1e-9)) for at in range(21)]


def test_largest_number_of_bands(connection: Connection) -> None:
    similarity, bands = 0.9999999999, 2**31 - 1
    command = "SELECT nearsim.match_probability(%s, %s, 1, m) FROM unnest(%s::int[]) AS m"
    rows = connection.execute(command, [similarity, bands, [1, bands - 1, bands]])
    found = [float(str(row[0])) for row in rows]
    every = math.exp(bands * math.log(similarity))
    all_but_one = every * bands * (1 - similarity) / similarity
    assert found == pytest.approx([1, every + all_but_one, every], rel=1e-6)


INVALID = [
    "match_probability(0.5, 0, 4)", "match_probability(0.5, 4, -1)", "match_probability(1.5, 4, 4)",
    "match_probability('NaN', 4, 4)", "match_probability(0.5, 4, 4, 0)", "estimate('\\x0011', '\\x001122')",
    "estimate('\\x001122', '\\x001122')", "estimate('', '')", "estimate('\\x00', '\\x00', 0)",
    *(f"band_keys(decode(repeat('00', 512), 'hex'), {arguments})" for arguments in (
        "257, 1", "0, 4", "33, 4", "4, 0", "4, 4, 1, 5", "4, 4, 1, 4, 'md5'",
    )),
]  # fmt: skip


def test_invalid_arguments_are_refused(connection: Connection) -> None:
    for call in INVALID:
        with pytest.raises(psycopg.errors.InvalidParameterValue), connection.backend.transaction():
            connection.execute(f"SELECT nearsim.{call}".encode())

"""The S-curve and the estimate in SQL agree with the package."""

import math

import psycopg
import pytest

from nearsim_db.similarity import lsh
from nearsim_db.store.driver import Connection

BANDINGS = [(1, 1), (4, 4), (20, 5), (25, 2), (32, 4), (40, 3), (256, 16), (128, 1)]
SIMILARITIES = [0.0, 1e-9, 0.001, 0.05, 0.2, 0.35, 0.5, 0.7, 0.8, 0.95, 0.999, 1 - 1e-12, 1.0]

# Leskovec, Rajaraman, Ullman: the slides of CS246 on the theory of LSH, 4 bands of 4 rows.
SLIDES = {
    0.2: 0.0064,
    0.3: 0.0320,
    0.4: 0.0985,
    0.5: 0.2275,
    0.6: 0.4260,
    0.7: 0.6666,
    0.8: 0.8785,
    0.9: 0.9860,
}


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


def test_curve_equals_the_published_figures(connection: Connection) -> None:
    rows = connection.execute("SELECT similarity, probability FROM nearsim.curve(4, 4)").fetchall()
    found = {round(float(str(similarity)), 2): float(str(probability)) for similarity, probability in rows}
    assert {similarity: round(found[similarity], 4) for similarity in SLIDES} == SLIDES
    assert len(found) == 21 and list(found) == sorted(found)
    assert found[0] == 0 and found[1] == 1
    rows = connection.execute("SELECT * FROM nearsim.curve(20, 5, min_shared_bands => 3)").fetchall()
    assert rows == [
        (step / 20, pytest.approx(lsh.match_probability(step / 20, 20, 5, 3), rel=1e-9)) for step in range(21)
    ]


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

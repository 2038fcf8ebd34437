"""The S-curve and the estimate in SQL agree with the package."""

import math

import numpy as np
import psycopg
import pytest

from nearsim_db.similarity import lsh
from nearsim_db.similarity.sketch import make_family
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


def test_curve_with_minimum_shared_bands(connection: Connection) -> None:
    rows = connection.execute("SELECT * FROM nearsim.curve(20, 5, min_shared_bands => 3)").fetchall()
    assert rows == [
        (similarity, pytest.approx(lsh.match_probability(similarity, 20, 5, 3), rel=1e-9))
        for similarity in (step / 20 for step in range(21))
    ]


def test_largest_number_of_bands(connection: Connection) -> None:
    similarity, bands = 0.9999999999, 2**31 - 1
    command = "SELECT nearsim.match_probability(%s, %s, 1, m) FROM unnest(%s::int[]) AS m"
    rows = connection.execute(command, [similarity, bands, [1, bands - 1, bands]])
    found = [float(str(row[0])) for row in rows]
    every = math.exp(bands * math.log(similarity))
    all_but_one = every * bands * (1 - similarity) / similarity
    assert found == pytest.approx([1, every + all_but_one, every], rel=1e-6)


@pytest.mark.parametrize(
    "call, complaint",
    [
        ("match_probability(0.5, 0, 4)", "0 bands of 4 rows are out of range"),
        ("match_probability(0.5, 4, -1)", "4 bands of -1 rows are out of range"),
        ("match_probability(1.5, 4, 4)", "a similarity of 1.5 is outside"),
        ("match_probability('NaN', 4, 4)", "a similarity of NaN is outside"),
        ("match_probability(0.5, 4, 4, 0)", "a minimum of 0 shared bands"),
        ("estimate('\\x0011', '\\x001122')", "sketches of 2 and 3 bytes"),
        ("estimate('\\x001122', '\\x001122')", "a sketch of 3 bytes does not fit 4 bytes_per_position"),
        ("estimate('', '')", "a sketch of 0 bytes does not fit"),
        ("estimate('\\x00', '\\x00', 0)", "does not fit 0 bytes_per_position"),
    ],
)
def test_invalid_arguments_are_refused(connection: Connection, call: str, complaint: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=complaint):
        connection.execute(f"SELECT nearsim.{call}".encode())


@pytest.mark.parametrize(
    ("family", "options", "width"),
    [
        ("fast_similarity", {}, 4),
        ("minhash", {"functions": "prime32"}, 8),
        ("minhash", {"functions": "java32"}, 4),
    ],
)
def test_estimate_equals_the_family(
    connection: Connection, family: str, options: dict[str, str], width: int
) -> None:
    rng = np.random.default_rng(5)
    made = make_family(family, 100, 3, 64, options)
    shared = rng.integers(0, 2**63, 60, np.uint64)
    sets = [
        np.concatenate([shared[:part], rng.integers(0, 2**63, 60, np.uint64)]) for part in range(0, 60, 6)
    ]
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in sets])))
    sketches = made.sketch(np.concatenate(sets), offsets)
    blobs = [row.tobytes() for row in sketches.astype(sketches.dtype.newbyteorder("<"))]
    for other in range(len(sets)):
        expected = made.estimate(sketches[:1], sketches[other : other + 1])[0]
        row = connection.execute("SELECT nearsim.estimate(%s, %s, %s)", (blobs[0], blobs[other], width))
        assert row.fetchone() == (expected,)

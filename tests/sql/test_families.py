"""Sketches and band keys in SQL agree with the package and the index, for every family."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db import Document, Index
from nearsim_db.similarity import profile
from nearsim_db.similarity.arrays import Ragged
from nearsim_db.similarity.recipe import Recipe, override, to_mapping
from nearsim_db.similarity.sketch import FAMILIES, Banding, band_keys
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import to_bigint
from tests.builders.selection import some

OPTIONS: dict[str, list[str]] = {
    "fast_similarity": [],
    "minhash": ["bands.hash=xor"],
    "bottom_k": ["sketch.k=32"],
    "hyperplane": ["sketch.k=200", "bands.count=20", "bands.rows=9", "match.threshold=0.8"],
    "projection": ["match.threshold=3", "bands.count=40", "bands.rows=3"],
    "dart_minhash": ["match.min_shared_bands=2"],
    "rare": ["sketch.k=12"],
}
MORE = {
    "prime32": ["sketch.family=minhash"],
    "java32": ["sketch.family=minhash", "sketch.functions=java32", "bands.hash=djb2a-joined"],
    "signs": ["sketch.family=hyperplane", "sketch.vectors=sign", "sketch.k=1024", "sketch.seed=5"],
    "narrow": ["sketch.family=projection", "sketch.width=0.25", "match.threshold=0.5"],
    "wide": ["sketch.family=projection", "sketch.width=1000", "sketch.k=1024", "match.threshold=900"],
}
RECIPES = {
    family: [f"sketch.family={family}", *OPTIONS[family]] for family in FAMILIES if family in OPTIONS
} | MORE
DOCUMENTS, FEATURES = 10, 60
ASK = """
SELECT nearsim.estimate_under(recipe, %(first)s, other.sketch),
    nearsim.keys_under(recipe, %(bands)s, %(rows)s, other.sketch),
    nearsim.shared_bands(recipe, %(bands)s, %(rows)s, %(first)s, other.sketch)
FROM CAST(%(recipe)s AS jsonb) AS recipe
CROSS JOIN unnest(CAST(%(sketches)s AS bytea[])) WITH ORDINALITY AS other (sketch, place)
ORDER BY other.place
"""


def sketches_of(family: Any) -> NDArray[Any]:
    """Documents with ever fewer features of the first; where weights have signs, its double and its opposite, too."""
    rng = np.random.default_rng(17)
    words = rng.integers(0, 2**64, 2 * FEATURES, np.uint64)
    ids, weights = [], []
    for number in range(DOCUMENTS):
        ids.append(np.sort(words[number * 6 : number * 6 + FEATURES]))
        weights.append(rng.integers(1, 4, FEATURES).astype(np.float64))
    if family.metric in ("cosine", "euclidean"):
        ids += [ids[0], ids[0]]
        weights += [2 * weights[0], -weights[0]]
    offsets = np.arange(len(ids) + 1) * FEATURES
    found: NDArray[Any] = family.sketch(np.concatenate(ids), offsets, np.concatenate(weights))
    return found


def test_estimates_and_keys_equal_the_package(connection: Connection) -> None:
    assert RECIPES.keys() | {"winnow"} >= FAMILIES.keys()
    for name in RECIPES:
        check(connection, name)


def check(connection: Connection, name: str) -> None:
    """Estimates, keys, shared bands and collision probabilities under one recipe."""
    made = profile.resolve(override(Recipe(), RECIPES[name]))
    family, bands, rows = profile.make_family(made.recipe, "numpy"), made.bands, made.rows
    sketches = sketches_of(family)
    banding = made.banding
    first = np.repeat(sketches[:1], len(sketches), axis=0)
    estimates = family.estimate(first, sketches)
    asked: dict[str, Any] = {
        "recipe": json.dumps(to_mapping(made.recipe)),
        "bands": bands,
        "rows": rows,
        "first": sketches[0].tobytes(),
        "sketches": [one.tobytes() for one in sketches],
    }
    rows_found = connection.execute(ASK.encode(), asked).fetchall()
    found, keys, shared = (list(column) for column in zip(*rows_found, strict=True))
    assert found == pytest.approx(estimates.tolist(), abs=1e-9), name
    own = family.band_keys(sketches, banding)
    assert not isinstance(own, Ragged)
    assert keys == to_bigint(own).tolist(), name
    matched = family.matched_bands(first, sketches, banding)
    assert shared == [np.flatnonzero(row).tolist() for row in matched], name
    assert len(set(found)) > 3 and shared[0] == list(range(bands)), name
    chances = connection.execute(
        "SELECT nearsim.collision_probability(%s::jsonb, s) FROM unnest(%s::float8[]) AS s",
        (asked["recipe"], similarities := [float(one) for one in (*np.linspace(0, 1, 60), 1e-9, 1 - 1e-9)]),
    )
    expected = [family.collision_probability(one) for one in similarities]
    assert [chance for (chance,) in chances] == pytest.approx(expected, abs=1e-9), name


def test_fingerprints_equal_the_package(connection: Connection) -> None:
    made = profile.resolve(override(Recipe(), ["sketch.family=winnow"]))
    sketches = sketches_of(profile.make_family(made.recipe, "numpy"))
    longer = override(made.recipe, ["match.min_fingerprints=1"])
    sketches[1::2] = sketches_of(profile.make_family(longer, "numpy"))[1::2]  # of longer windows
    asked: dict[str, Any] = {
        "recipe": json.dumps(to_mapping(made.recipe)),
        "bands": made.bands,
        "rows": made.rows,
        "first": sketches[0, 0],
        "sketches": sketches[:, 0].tolist(),
    }
    found = connection.execute(ASK.encode(), asked).fetchall()
    assert len(found) == DOCUMENTS
    window, *own = np.frombuffer(sketches[0, 0], "<u8").tolist()
    for (estimate, keys, shared), content in zip(found, sketches[:, 0], strict=True):
        wide, *other = np.frombuffer(content, "<u8").tolist()
        both = set(own) & set(other)
        assert keys == other
        least = min(len(own) * (window + 1), len(other) * (wide + 1))
        assert estimate == pytest.approx(min(1, len(both) * (max(window, wide) + 1) / least))
        assert shared == [place for place, one in enumerate(own) if one in both]
    assert len({estimate for estimate, *_ in found}) > 3
    assert len({content[:8] for content in sketches[:, 0]}) > 1


def test_width_ratio_inverts_the_bucket_probability(connection: Connection) -> None:
    chances = [1 / 4096, *np.linspace(0.01, 0.99, 50).tolist(), 4095 / 4096]
    rows = connection.execute(
        "SELECT chance, nearsim.bucket_probability(nearsim.width_ratio_of_probability(chance)) "
        "FROM unnest(%s::float8[]) AS chance",
        (chances,),
    )
    found = rows.fetchall()
    assert len(found) == len(chances)
    assert [back for _, back in found] == pytest.approx([chance for chance, _ in found], abs=1e-13)


K = 128
SHAPES = [
    (bands, rows) for rows in (1, 2, 3, 4, 5, 7, 16, 128) for bands in {1, (K // rows + 1) // 2, K // rows}
]
KINDS = {"uint32": (4, False), "int32": (4, True), "uint64": (8, False)}


def sketches(kind: str) -> NDArray[np.generic]:
    """Three random sketches and one of the greatest values of its kind."""
    rng = np.random.default_rng(9)
    if kind == "uint64":
        drawn = rng.integers(0, 2**32 + 15, (4, K), np.uint64)
        drawn[3] = 2**32 + 14
        return drawn
    words = rng.integers(0, 2**32, (4, K), np.uint32)
    words[3] = 2**32 - 1
    return words.view(kind)


@pytest.mark.parametrize("scheme", ["mix64", "xor", "djb2a-joined"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_keys_equal_the_package(connection: Connection, kind: str, scheme: str) -> None:
    given, (width, is_signed) = sketches(kind), KINDS[kind]
    for bands, rows in SHAPES:
        for seed in (1, 2**63 - 1):
            expected = to_bigint(band_keys(given, Banding(bands, rows, scheme, seed))).tolist()
            blobs = [row.tobytes() for row in given]
            found = connection.execute(
                "SELECT nearsim.band_keys(sketch, %s, %s, %s, %s, %s, %s) "
                "FROM unnest(%s::bytea[]) WITH ORDINALITY AS q (sketch, place) ORDER BY place",
                (bands, rows, seed, width, scheme, is_signed, blobs),
            )
            assert [keys for (keys,) in found] == expected, (bands, rows, seed)


def test_default_keys_are_mix64_of_four_bytes(connection: Connection) -> None:
    given = sketches("uint32")[:1]
    row = connection.execute("SELECT nearsim.band_keys(%s, 32, 4)", (given.tobytes(),)).fetchone()
    assert row == (to_bigint(band_keys(given, Banding(32, 4))).tolist()[0],)


@pytest.mark.parametrize(
    "rules",
    some(
        [
            [],
            ["sketch.family=minhash", "sketch.seed=7", "bands.hash=xor"],
            ["sketch.family=minhash", "sketch.functions=java32", "bands.hash=djb2a-joined"],
            ["sketch.family=bottom_k", "sketch.seed=5"],
            ["sketch.family=bottom_k", "sketch.k=4", "bands.count=3", "bands.rows=1", "hash.base=crc32"],
        ],
        "every family",
        kept=2,
    ),
)
def test_buckets_equal_the_index(database_url: str, rules: list[str]) -> None:
    texts = {
        "a": "one two three four five",
        "b": "six seven eight nine ten",
        "none": "",
        "twin": "One two, three four five",
    }
    with Index.connect(database_url) as index:
        index.create_profile("default", override(Recipe(), rules))
        index.add(Document(name, body=text) for name, text in texts.items())
        bands = index.profiles()[0].bands
        with index.database.transaction() as connection:
            stored = connection.execute(
                "WITH key AS MATERIALIZED (SELECT doc_id, band_no, bucket_hash FROM nearsim.band) "
                "SELECT external_id, array_agg(bucket_hash ORDER BY band_no, bucket_hash) "
                "FROM key JOIN nearsim.document USING (doc_id) GROUP BY 1"
            )
            expected: dict[str, Any] = {str(name): keys for name, keys in stored}
            computed = connection.execute(
                "SELECT external_id, array_agg(bucket_hash ORDER BY band_no, bucket_hash) "
                "FROM nearsim.document CROSS JOIN LATERAL nearsim.buckets_of(doc_id) GROUP BY 1"
            )
            found = {str(name): keys for name, keys in computed}
    assert expected.keys() == {"a", "b"} and len(expected["a"]) == bands
    assert found == expected | {"twin": expected["a"]}

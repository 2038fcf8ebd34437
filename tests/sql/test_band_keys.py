"""Band keys computed in SQL equal the package's and those in the index."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nearsim_db import Document, Index
from nearsim_db.similarity.recipe import Recipe, override
from nearsim_db.similarity.sketch import Banding, band_keys
from nearsim_db.store.driver import Connection
from nearsim_db.store.driver.codec import to_bigint
from tests.builders.selection import some

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
        bands = index.profiles()[0][1].bands
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

"""Known answers of shingles and base hashes.

The hashes of `KNOWN_IDS` were computed once, by plain big-integer arithmetic, and are not to change: sketches in
existing databases depend on them. The other values are from the publications named by the tests.
"""

from typing import Any

import pytest

from nearsim_db.similarity.backend import Backend
from nearsim_db.similarity.recipe import from_mapping
from nearsim_db.similarity.text import SCHEME_VERSION, Shingler
from tests.builders.selection import every_backend

KNOWN_IDS = {
    "poly64": {
        "a": 0x685FDF50E51FA977,
        "he": 0xE2B6B0ABCC77BBF6,
        "sample": 0x644530FDBC7D3A2A,
        "Zürich": 0xEAAEC114208F0373,
        "안녕하세요": 0x50E5394199D0BB84,
        "😀": 0x58F7380811F8DF83,
    },
    "crc32": {
        "a": 0xE8B7BE43,
        "he": 0xD1256687,
        "sample": 0xF10B76C3,
        "Zürich": 0xD30BA93E,
        "안녕하세요": 0x4C8B7AF1,
        "😀": 0x054DB544,
    },
    "djb2a": {
        "a": 0x0002B5C4,
        "he": 0x00596F08,
        "sample": 0x80F54C03,
        "Zürich": 0x44344D50,
        "안녕하세요": 0x4D5550BD,
        "😀": 0x7C2ED2F2,
    },
}


def ids(text: str, backend: Backend, base: str = "crc32", **shingle: Any) -> list[int]:
    as_written = {"unicode": "none", "case": "none", "whitespace": "none"}
    recipe = from_mapping({"normalise": as_written, "shingle": shingle, "hash": {"base": base}})
    found: list[int] = Shingler(recipe, backend).shingles([text]).ids.tolist()
    return found


@every_backend
@pytest.mark.parametrize("base", list(KNOWN_IDS))
def test_known_ids(backend: Backend, base: str) -> None:
    assert SCHEME_VERSION == 1, "a changed scheme needs its own known ids"
    for text, known in KNOWN_IDS[base].items():
        assert ids(text, backend, base, scheme="char", k=128) == [known]
        assert ids(text, backend, base, scheme="bag", tokens="whitespace") == [known]
    assert ids("", backend, base, scheme="char", k=128) == []


@every_backend
def test_riskiq_djb2a(backend: Backend) -> None:
    assert ids("he", backend, "djb2a", scheme="char", k=2) == [5861128]
    assert ids("she said he", backend, "djb2a", scheme="bag")[-1] == 5861128


@every_backend
def test_the_signedness_of_djb2a_beyond_ascii(backend: Backend) -> None:
    one = {"scheme": "char", "k": 5}
    assert ids("é", backend, "djb2a", **one) == [5857935]
    assert ids("é", backend, "djb2a-signed", **one) == [5859471]
    # The byte -23 of U+00E9: 177573 ^ -23 is -177588.
    assert ids("é", backend, "djb2a-cast", **one) == [-177588 % 2**32]
    assert ids("ǩ", backend, "djb2a-cast", **one) == ids("é", backend, "djb2a-cast", **one)
    for base in ("djb2a", "djb2a-signed", "djb2a-cast"):
        assert ids("he", backend, base, **one) == [5861128]
